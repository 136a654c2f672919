//! The commands of the README, and what they print. With `HYPERSLAB_UPDATE=1` the README is written anew.

use conformance::tool;
use std::process::Command;

/// The text with the output under each command of its console blocks as `run` gives it, and the number of commands.
fn renew(text: &str, run: impl Fn(&str) -> String) -> (String, usize) {
    let (mut out, mut count, mut inside) = (String::new(), 0, false);
    for line in text.lines() {
        if line.starts_with("```") {
            inside = line == "```console";
        }
        match line.strip_prefix("$ ") {
            Some(command) if inside => {
                count += 1;
                let output = run(command);
                let gap = if output.trim_end().is_empty() { "" } else { "\n" };
                out.push_str(&format!("{line}\n{}{gap}", output.trim_end()));
            }
            // What stood there before.
            _ if inside && !line.starts_with("```") => {}
            _ => out.push_str(&format!("{line}\n")),
        }
    }
    (out, count)
}

#[test]
fn the_tour_prints_what_it_shows() {
    let readme = tool::root().join("README.md");
    let text = std::fs::read_to_string(&readme).expect("the README");
    let folder = tool::path().parent().expect("a folder").to_path_buf();
    let search = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
    let (fresh, commands) = renew(&text, |command| {
        let output = Command::new("bash")
            .args(["-c", &format!("{command} 2>&1")])
            .current_dir(tool::root())
            .env("PATH", &search)
            .env("COLUMNS", "110")
            .output()
            .expect("bash starts");
        String::from_utf8_lossy(&output.stdout).into_owned()
    });
    if std::env::var_os("HYPERSLAB_UPDATE").is_some() {
        std::fs::write(&readme, &fresh).expect("the README is written");
        return;
    }
    let wrong: Vec<String> = fresh
        .lines()
        .zip(text.lines())
        .filter(|(fresh, shown)| fresh != shown)
        .map(|(fresh, shown)| format!("shown   {shown}\nprinted {fresh}"))
        .collect();
    crate::report("commands of the README", commands, &wrong);
    assert_eq!(fresh, text, "the README shows more or less than the commands print");
}
