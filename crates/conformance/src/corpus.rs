//! A folder of files with what the reference libraries say of them: `files/` and `expected/<same path>.json`.

use std::path::Path;

/// Paths of all files of which something is expected, relative to `files/`, sorted.
pub fn files(folder: &Path) -> Vec<String> {
    let folder = folder.join("expected");
    let (mut found, mut todo) = (Vec::new(), vec![folder.clone()]);
    while let Some(dir) = todo.pop() {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                todo.push(path);
            } else if let Some(name) =
                path.strip_prefix(&folder).ok().and_then(|p| p.to_str()?.strip_suffix(".json"))
            {
                found.push(name.to_string());
            }
        }
    }
    found.sort();
    found
}
