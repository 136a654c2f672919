//! Crashes at length: see `scripts/crash`.

use conformance::crash::{SCENARIOS, Work, faults, kills, recoveries, simulate, write_for_ever};
use conformance::history;
use hyperslab::source::write::simulate::Crash;
use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "crash --states N | --recoveries STEP | --kills N | --faults STEP | --histories STEPS SEED FOLDER | \
    --write FILE --edit|--anew|--copy|--create|--commit";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let good = match words.as_slice() {
        ["--states", n] => n.parse().is_ok_and(states),
        ["--faults", step] => step.parse().is_ok_and(fail),
        ["--kills", n] => n.parse().is_ok_and(kill),
        ["--recoveries", step] => step.parse().is_ok_and(recover),
        ["--histories", steps, seed, folder] => match (steps.parse(), seed.parse()) {
            (Ok(steps), Ok(seed)) => histories(steps, seed, Path::new(folder)),
            _ => false,
        },
        ["--write", file, how] => match Work::parse(how).map(|work| write_for_ever(Path::new(file), work)) {
            Some(Ok(())) => true,
            Some(Err(e)) => {
                eprintln!("{e}");
                false
            }
            None => false,
        },
        _ => {
            eprintln!("{USAGE}");
            false
        }
    };
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// At least so many states of each scenario: more random ones until there are.
fn states(wanted: usize) -> bool {
    let (mut all, mut good) = (0, true);
    for scenario in SCENARIOS {
        let (mut random, mut found) = (4, 0);
        while found * SCENARIOS.len() < wanted && random < 1 << 20 {
            let outcome = simulate(scenario, Crash { random, seed: random as u64, every: 1 })
                .expect("the scenario runs");
            found = outcome.states;
            random *= 4;
            println!(
                "{}: {} states: {} old, {} new, {} lost",
                scenario.name,
                outcome.states,
                outcome.old,
                outcome.new,
                outcome.lost.len()
            );
            outcome.lost.iter().take(10).for_each(|lost| println!("  {lost}"));
            good &= outcome.lost.is_empty();
        }
        all += found;
    }
    println!("{all} states");
    good && all >= wanted
}

/// Lets every so many-th call of each scenario fail.
fn fail(step: usize) -> bool {
    let mut good = true;
    for scenario in SCENARIOS {
        let (count, wrong) = faults(scenario, step.max(1)).expect("the scenario runs");
        println!("{}: {count} failures of the disk: {} wrong", scenario.name, wrong.len());
        wrong.iter().for_each(|w| println!("  {w}"));
        good &= wrong.is_empty();
    }
    good
}

/// Lets what brings files back break off, for every so many-th call of each scenario.
fn recover(step: usize) -> bool {
    let mut good = true;
    for scenario in SCENARIOS {
        let outcome = recoveries(scenario, step.max(1), Crash { random: 2, seed: 3, every: 1 });
        let outcome = outcome.expect("the scenario runs");
        println!(
            "{}: {} states while it is brought back: {} lost",
            scenario.name,
            outcome.states,
            outcome.lost.len()
        );
        outcome.lost.iter().take(10).for_each(|lost| println!("  {lost}"));
        good &= outcome.lost.is_empty();
    }
    good
}

/// Random edits of each kind of file, compared with a model; files and models are left in the folder.
fn histories(steps: u64, seed: u64, folder: &Path) -> bool {
    let mut good = true;
    for kind in history::KINDS {
        match history::run(kind, steps, seed, folder, 200) {
            Ok(done) => println!("{}: {done}", kind.name),
            Err(e) => {
                println!("{}: {e}", kind.name);
                good = false;
            }
        }
    }
    good
}

fn kill(count: usize) -> bool {
    let program = std::env::current_exe().expect("this program has a path");
    let (in_commit, wrong) = kills(&program, count, 1);
    println!("{count} kills, {in_commit} of them within a commit: {} wrong", wrong.len());
    wrong.iter().for_each(|w| println!("  {w}"));
    wrong.is_empty()
}
