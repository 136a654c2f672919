//! The shape of the code, enforced: who may import whom, how long a file may be, and that nothing panics.
//!
//! The layers are those of `DESIGN.md`. A module imports what lies in lower layers, and of its own what `BESIDE` names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Each top-level module and its layer, those of one layer in an order of their own: which of them it may import is in
/// `BESIDE`.
const LAYERS: &[(&str, u32)] = &[
    // Errors, budgets, extents.
    ("error", 0),
    ("limits", 0),
    ("shape", 0),
    ("json", 0),
    // Element types, selections.
    ("dtype", 1),
    ("select", 1),
    // Where bytes come from, and what is done to them; neither knows the other.
    ("source", 2),
    ("codec", 2),
    // The model and the waist.
    ("model", 3),
    // Formats below the waist, plan and exec above it; they meet only in the model.
    ("format", 4),
    ("convention", 4),
    ("plan", 4),
    ("exec", 4),
    // What a user holds.
    ("array", 5),
    ("follow", 5),
    ("staged", 5),
    ("write", 5),
    ("copy", 5),
    ("diff", 5),
    ("version", 5),
];

/// Imports within one layer.
const BESIDE: &[(&str, &[&str])] = &[
    ("limits", &["error"]),
    ("shape", &["error", "limits"]),
    ("json", &["error"]),
    ("exec", &["plan"]),
    ("follow", &["array"]),
    ("staged", &["array"]),
    ("write", &["array", "staged"]),
    ("copy", &["array", "staged", "write"]),
    ("diff", &["array"]),
    ("version", &["array", "staged", "write", "copy"]),
];

/// Whether a module may import another one.
fn may_import(module: &str, target: &str) -> bool {
    let layer = |name: &str| LAYERS.iter().find(|(n, _)| *n == name).map(|l| l.1);
    let beside = BESIDE.iter().any(|(n, list)| *n == module && list.contains(&target));
    beside || layer(target) < layer(module) && layer(target).is_some()
}

/// Lines that a source file may have.
const LONGEST: usize = 800;

/// Files that may be longer, each with its reason.
const MAY_BE_LONGER: &[(&str, &str)] = &[];

/// Places where the library may name a panic, each with a reason: (file, number of lines).
const MAY_PANIC: &[(&str, usize)] = &[];

/// What panics. Indexing and arithmetic are left to the fuzzers.
const PANICS: &[&str] = &[".unwrap()", ".expect(", "panic!(", "unreachable!(", "todo!(", "unimplemented!("];

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All Rust sources below `dir`, with paths relative to the workspace.
fn sources(dir: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut todo = vec![workspace().join(dir)];
    while let Some(dir) = todo.pop() {
        for entry in std::fs::read_dir(&dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display())) {
            let path = entry.unwrap().path();
            if path.is_dir() {
                if path.file_name().is_none_or(|n| n != "target") {
                    todo.push(path);
                }
            } else if path.extension().is_some_and(|e| e == "rs") {
                let name = path.strip_prefix(workspace()).unwrap().to_string_lossy().replace('\\', "/");
                found.push((name, std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

/// The lines of `text` that ship: no comments, no items under `#[cfg(test)]`. With their numbers, from 1.
fn shipped(text: &str) -> Vec<(usize, &str)> {
    let mut out = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((i, line)) = lines.next() {
        let bare = line.trim_start();
        if bare.starts_with("#[cfg(test)]") {
            // The item ends with its closing brace at the same indent, or with a semicolon on its own line.
            let indent = line.len() - bare.len();
            for (_, item) in lines.by_ref() {
                let closes =
                    item.len() - item.trim_start().len() == indent && item.trim_start().starts_with('}');
                if closes || item.trim_end().ends_with(';') && !item.starts_with(&" ".repeat(indent + 1)) {
                    break;
                }
            }
        } else if !bare.starts_with("//") {
            out.push((i + 1, line));
        }
    }
    out
}

/// Tests, and the contract suites of the seams, which are tests for whoever implements one.
fn is_test(file: &str) -> bool {
    file.ends_with("/tests.rs")
        || file.ends_with("/contract.rs")
        || file.contains("/tests/")
        || file.ends_with("_tests.rs")
}

/// The first names after every `crate::` in `code`, also in `crate::{a, b::c}`.
fn crate_names(code: &str) -> Vec<String> {
    let word = |s: &str| s.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let mut out = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        // `$crate` in a macro is the face of the crate, and `my_crate::` is another.
        if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$') {
            continue;
        }
        let rest = &code[at + "crate::".len()..];
        let Some(list) = rest.strip_prefix('{') else {
            out.push(word(rest));
            continue;
        };
        let mut depth = 0;
        let mut start = true;
        for (i, c) in list.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => start = true,
                c if start && !c.is_whitespace() => {
                    out.push(word(&list[i..]));
                    start = false;
                }
                _ => {}
            }
        }
    }
    out
}

/// The names that `lib.rs` re-exports, and the modules that they come from.
fn reexports() -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(workspace().join("crates/hyperslab/src/lib.rs")).unwrap();
    let code: String = shipped(&text).into_iter().map(|(_, l)| format!("{l}\n")).collect();
    let mut out = BTreeMap::new();
    for (at, _) in code.match_indices("pub use ") {
        let path = code[at + "pub use ".len()..].split(';').next().unwrap();
        let Some((module, names)) = path.split_once("::") else { continue };
        for name in names.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|n| !n.is_empty()) {
            out.insert(name.to_string(), module.trim().to_string());
        }
    }
    out
}

#[test]
fn a_module_imports_only_lower_layers() {
    let reexports = reexports();
    let mut wrong = Vec::new();
    for (file, text) in sources("crates/hyperslab/src") {
        let inside = file.strip_prefix("crates/hyperslab/src/").unwrap();
        let module = inside.split('/').next().unwrap().trim_end_matches(".rs");
        if module == "lib" || is_test(&file) {
            continue;
        }
        if LAYERS.iter().all(|(name, _)| *name != module) {
            wrong.push(format!("{file}: the module `{module}` has no place in the layers"));
            continue;
        }
        // A format never looks at another one.
        let format =
            inside.strip_prefix("format/").and_then(|p| p.split('/').next()).filter(|p| *p != "mod.rs");
        let lines = shipped(&text);
        let code: String = lines.iter().map(|(_, l)| format!("{l}\n")).collect();
        for name in crate_names(&code) {
            let target = reexports.get(&name).map_or(name.as_str(), String::as_str);
            if target != module && !may_import(module, target) {
                wrong.push(format!("{file}: `{module}` may not import `{target}` (crate::{name})"));
            }
        }
        if let Some(format) = format {
            for other in code.match_indices("crate::format::").map(|(at, m)| &code[at + m.len()..]) {
                if !other.starts_with(format) {
                    let name: String =
                        other.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                    wrong.push(format!("{file}: the format `{format}` may not import the format `{name}`"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn design_md_names_every_module() {
    let design = std::fs::read_to_string(workspace().join("DESIGN.md")).unwrap();
    let missing: Vec<_> = LAYERS.iter().filter(|(m, _)| !design.contains(&format!("`{m}`"))).collect();
    assert!(missing.is_empty(), "DESIGN.md does not speak of {missing:?}");
}

#[test]
fn files_stay_readable() {
    let mut wrong = Vec::new();
    for dir in ["crates", "bench", "fuzz"].into_iter().filter(|d| workspace().join(d).is_dir()) {
        for (file, text) in sources(dir) {
            let lines = text.lines().count();
            if lines > LONGEST && !MAY_BE_LONGER.iter().any(|(f, _)| *f == file) {
                wrong.push(format!("{file}: {lines} lines, {LONGEST} allowed"));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn the_library_names_no_panic() {
    let mut wrong = Vec::new();
    for dir in ["crates/hyperslab/src", "crates/hyperslab-kernels/src"] {
        for (file, text) in sources(dir) {
            if is_test(&file) {
                continue;
            }
            let hits: Vec<_> =
                shipped(&text).into_iter().filter(|(_, l)| PANICS.iter().any(|p| l.contains(p))).collect();
            let may = MAY_PANIC.iter().find(|(f, _)| *f == file).map_or(0, |(_, n)| *n);
            if hits.len() > may {
                wrong.extend(hits.iter().map(|(n, l)| format!("{file}:{n}: {}", l.trim())));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn the_reader_of_sources_sees_what_it_should() {
    assert!(may_import("model", "dtype") && may_import("exec", "plan") && may_import("write", "staged"));
    assert!(!may_import("plan", "exec") && !may_import("codec", "model") && !may_import("source", "codec"));
    assert!(!may_import("staged", "write") && !may_import("model", "nothing"));
    assert_eq!(crate_names("use crate::plan::ReadPlan; let x = crate::exec::run();"), ["plan", "exec"]);
    assert_eq!(
        crate_names("use crate::{error::{Error, Result}, shape, model::Link};"),
        ["error", "shape", "model"]
    );
    assert_eq!(crate_names("other_crate::plan"), Vec::<String>::new());
    let text = "fn a() {}\n// x.unwrap()\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n#[cfg(test)]\nmod t;\nfn c() {}\n";
    let lines: Vec<_> = shipped(text).into_iter().map(|(_, l)| l).collect();
    assert_eq!(lines, ["fn a() {}", "fn c() {}"]);
}
