//! What the reference libraries say, made by the scripts in `python/`.

use crate::tool::root;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

/// Runs `python/SCRIPT OUT ARGUMENTS…` once for its present text, and gives the folder OUT.
///
/// Panics if there is no Python with the reference libraries: `scripts/test` makes one.
pub fn generated(script: &str, arguments: &[&str]) -> PathBuf {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("python");
    let read =
        |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    let stamp = [&read(script), &read("canon.py"), &arguments.join(" ")].map(String::as_str).join("\n");
    let name = [&[script.trim_end_matches(".py")], arguments].concat().join("-");
    let out = root().join("target/reference").join(&name);
    let done = out.join("made-by");
    if std::fs::read_to_string(&done).is_ok_and(|text| text == stamp) {
        return out;
    }
    // Made beside and renamed, so that two tests do not see each other's halves.
    let fresh = out.with_file_name(format!("{name}.{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&fresh);
    std::fs::create_dir_all(&fresh).expect("a folder for the reference");
    let output = Command::new(python())
        .arg(folder.join(script))
        .arg(&fresh)
        .args(arguments)
        .output()
        .expect("Python starts");
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    std::fs::write(fresh.join("made-by"), stamp).expect("the stamp is written");
    let _ = std::fs::remove_dir_all(&out);
    if std::fs::rename(&fresh, &out).is_err() {
        // Another test was faster with the same.
        let _ = std::fs::remove_dir_all(&fresh);
    }
    out
}

/// The Python of the reference libraries: `HYPERSLAB_PYTHON`, or `.venv` in the repository.
pub fn python() -> PathBuf {
    let python = std::env::var_os("HYPERSLAB_PYTHON").map_or(root().join(".venv/bin/python"), PathBuf::from);
    assert!(
        python.exists(),
        "{} is not there: run scripts/test, or scripts/python-env first",
        python.display()
    );
    python
}

/// A JSON file that a script wrote.
pub fn json(path: &Path) -> serde_json::Value {
    let text = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}
