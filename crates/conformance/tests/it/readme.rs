//! The commands of the README, and what they print.

use conformance::tool;
use std::process::Command;

/// The console blocks of a text: each command after `$ `, and the lines under it.
fn commands(text: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        match line.strip_prefix("$ ") {
            _ if line.starts_with("```") => inside = line == "```console",
            Some(command) if inside => found.push((command.to_string(), String::new())),
            _ if inside => {
                let output = &mut found.last_mut().expect("a command comes first").1;
                output.push_str(line);
                output.push('\n');
            }
            _ => {}
        }
    }
    found
}

#[test]
fn the_tour_prints_what_it_shows() {
    let text = std::fs::read_to_string(tool::root().join("README.md")).expect("the README");
    let commands = commands(&text);
    let folder = tool::path().parent().expect("a folder").to_path_buf();
    let search = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
    let mut wrong = Vec::new();
    for (command, shown) in &commands {
        let output = Command::new("bash")
            .args(["-c", command])
            .current_dir(tool::root())
            .env("PATH", &search)
            .env("COLUMNS", "120")
            .output()
            .expect("bash starts");
        let printed =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        if printed.trim_end() != shown.trim_end() {
            wrong.push(format!("$ {command}\n--- shown\n{shown}--- printed\n{printed}"));
        }
    }
    crate::report("commands of the README", commands.len(), &wrong);
}
