//! The program `hyperslab`.
//!
//! Data goes to stdout, everything else to stderr. Exit codes: 0 done, 1 a clear "no" (faults found), 2 failed, 130 interrupted
//! while something was written, which is taken back. A closed pipe is success: the reader has what it wanted.

mod args;
mod check;
mod codecs;
mod commit;
mod copy;
mod create;
mod describe;
mod diff;
mod dump;
mod edit;
mod follow;
mod get;
mod given;
mod info;
mod interrupt;
mod json;
mod log;
mod ls;
mod output;
mod plan;
mod stat;
mod variable;
mod versions;
mod words;
mod zmap;

use args::{Arguments, Command};
use clap::{CommandFactory, Parser};
use output::{Failure, Out, Outcome};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(true) | Err(Failure::ClosedPipe) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(Failure::Library(e)) if e.kind() == hyperslab::ErrorKind::Cancelled => {
            output::say("hyperslab: interrupted; nothing was changed");
            ExitCode::from(interrupt::EXIT)
        }
        Err(failure) => {
            output::complain(&failure);
            ExitCode::from(2)
        }
    }
}

/// Whether a command makes or changes files. Others leave nothing behind when a signal ends them.
fn writes(command: &Command) -> bool {
    match command {
        Command::Get(get) => get.output.is_some(),
        Command::Copy(_)
        | Command::Create(_)
        | Command::Set(_)
        | Command::Attr(_)
        | Command::Resize(_)
        | Command::Mv(_)
        | Command::Rm(_)
        | Command::Append(_)
        | Command::Commit(_)
        | Command::Versions { .. } => true,
        _ => false,
    }
}

/// Runs one command; false is a clear "no".
fn run(arguments: &Arguments) -> Outcome<bool> {
    let mut options = arguments.open_options();
    if writes(&arguments.command) {
        options.cancel = Some(interrupt::token()?);
    }
    let mut out = Out::stdout(arguments.color);
    let verdict = match &arguments.command {
        Command::Ls(ls) => ls::run(ls, &options, &mut out),
        Command::Info(info) => info::run(info, &options, &mut out).map(|()| true),
        Command::Describe(describe) => describe::run(describe, &options, &mut out),
        Command::Dump(dump) => dump::run(dump, &options, &mut out),
        Command::Follow(follow) => follow::run(follow, &options, &mut out),
        Command::Get(get) => get::run(get, &options, &mut out).map(|()| true),
        Command::Plan(plan) => plan::run(plan, &options, &mut out).map(|()| true),
        Command::Commit(commit) => commit::run(commit, &options, &mut out).map(|()| true),
        Command::Log(log) => log::run(log, &options, &mut out).map(|()| true),
        Command::Versions { upkeep } => versions::run(upkeep, &options, &mut out),
        Command::Check(check) => check::run(check, &options, &mut out),
        Command::Stat(stat) => stat::run(stat, &options, &mut out).map(|()| true),
        Command::Create(create) => create::run(create, &options).map(|()| true),
        Command::Zmap { look } => zmap::run(look, &options, &mut out).map(|()| true),
        Command::Copy(copy) => copy::run(copy, &options, &mut out).map(|()| true),
        Command::Diff(diff) => diff::run(diff, &options, &mut out),
        Command::Set(set) => edit::set(set, &options).map(|()| true),
        Command::Attr(attr) => edit::attr(attr, &options).map(|()| true),
        Command::Resize(resize) => edit::resize(resize, &options).map(|()| true),
        Command::Mv(rename) => edit::rename(rename, &options).map(|()| true),
        Command::Rm(remove) => edit::remove(remove, &options).map(|()| true),
        Command::Append(append) => edit::append(append, &options).map(|()| true),
        Command::Codecs(codecs) => codecs::run(codecs, &mut out).map(|()| true),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Arguments::command(), "hyperslab", &mut script);
            out.write(&script).map(|()| true)
        }
    }?;
    out.finish()?;
    Ok(verdict)
}
