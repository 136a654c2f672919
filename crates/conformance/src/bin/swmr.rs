//! Reads files while h5py writes them, at length: see `scripts/swmr`.

use conformance::swmr::{Script, delays, watch, wrong_in};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

const USAGE: &str = "swmr --steps N | --kills N | --rate SECONDS | --refresh";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = || arguments.get(1).and_then(|n| n.parse().ok());
    let good = match (arguments.first().map(String::as_str), number()) {
        (Some("--steps"), Some(steps)) => steps_of(steps),
        (Some("--kills"), Some(kills)) => kills_of(kills),
        (Some("--rate"), Some(seconds)) => rate(seconds),
        (Some("--refresh"), _) => refresh(),
        _ => {
            eprintln!("{USAGE}");
            false
        }
    };
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A file of its own, in memory where the system has such a folder.
fn scratch(name: &str) -> String {
    let shared = Path::new("/dev/shm");
    let folder = if shared.is_dir() { shared.to_owned() } else { std::env::temp_dir() };
    folder.join(format!("hyperslab-swmr-{}-{name}.h5", std::process::id())).to_string_lossy().into_owned()
}

fn steps_of(steps: u64) -> bool {
    let file = scratch("steps");
    let writer = Script::writer(&["write", &file, &steps.to_string()]);
    let peer = Script::start(&["read", &file]);
    let seen = watch(Path::new(&file), Duration::from_secs(30));
    let (written, peer) = (writer.finish(), peer.finish());
    let closed = hyperslab::open(&file).map(|file| wrong_in(&file));
    let _ = std::fs::remove_file(&file);
    println!("{seen:?}; writer: {written} steps a second; h5py's reader: {peer}; closed file: {closed:?}");
    seen.wrong == 0
        && seen.rows == steps
        && peer.starts_with("0 wrong")
        && closed.is_ok_and(|c| c == (0, steps))
}

/// Kills a writer at some moment, again and again: what was flushed must be there.
fn kills_of(kills: u64) -> bool {
    let mut good = 0;
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    for i in 0..kills {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let file = scratch("kill");
        let mut writer = Script::writer(&["write", &file, "1000000"]);
        std::thread::sleep(Duration::from_millis(20 + (random >> 33) % 400));
        let before = hyperslab::open_swmr(&file).and_then(|f| f.array("/one")).map(|a| a.shape()[0]);
        writer.kill();
        let after = hyperslab::open_swmr(&file).map(|f| (f.swmr_writer_active(), wrong_in(&f)));
        let checked = std::process::Command::new(conformance::tool::path()).args(["check", &file]).output();
        let said = checked.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default();
        let stopped = watch(Path::new(&file), Duration::from_millis(30));
        let sound = match (&before, &after) {
            (Ok(before), Ok((Ok(true), (0, rows)))) => {
                rows >= before && stopped.wrong == 0 && stopped.rows >= *before
            }
            _ => false,
        } && said.contains("left open by a writer that is gone")
            && said.contains("sound");
        if !sound {
            println!("kill {i}: before {before:?}, after {after:?}, then {stopped:?}; {said}");
        }
        good += u64::from(sound);
        let _ = std::fs::remove_file(&file);
    }
    println!("{good} of {kills} killed writers left files that read up to their last flush");
    good == kills
}

/// Follows 100 rows a second: whether each comes in time, and whether the writer is as fast as alone.
fn rate(seconds: u64) -> bool {
    const INTERVAL: u64 = 50;
    let steps = (seconds * 100).to_string();
    let alone = scratch("alone");
    let rate = |text: String| text.trim_start_matches("done ").parse::<f64>().unwrap_or(0.0);
    let alone_rate = rate(Script::writer(&["times", &alone, &steps, "100"]).finish());
    let file = scratch("rate");
    let writer = Script::writer(&["times", &file, &steps, "100"]);
    let late = delays(&file, INTERVAL, "csv");
    let followed_rate = rate(writer.finish());
    for file in [alone, file] {
        let _ = std::fs::remove_file(file);
    }
    println!(
        "{} rows, each once and in order; p50 {:.1} ms, p99 {:.1} ms with a look every {INTERVAL} ms; writer {followed_rate} \
         rows a second, alone {alone_rate}; it said: {}",
        late.rows,
        late.p50.as_secs_f64() * 1e3,
        late.p99.as_secs_f64() * 1e3,
        late.said
    );
    late.rows == seconds * 100
        && late.p99 < Duration::from_millis(2 * INTERVAL)
        && followed_rate > 0.98 * alone_rate
}

/// What a refresh costs, with few objects and with many, beside h5py. Short rounds in turn, and the best of each: what else
/// the machine does meets all of them.
fn refresh() -> bool {
    const COUNT: u32 = 200;
    const ROUNDS: u32 = 40;
    let objects = ["10", "10000"];
    let files = objects.map(|objects| scratch(&format!("objects-{objects}")));
    let writers = [0, 1].map(|i| Script::writer(&["objects", &files[i], objects[i]]));
    let mut arrays = files.each_ref().map(|file| {
        let opened = hyperslab::open_swmr(file).expect("it opens");
        opened.array("/d0").expect("it is there")
    });
    let (mut ours, mut theirs) = ([f64::MAX; 2], [f64::MAX; 2]);
    let mut peers = files
        .each_ref()
        .map(|file| Script::writer(&["refresh", file, &COUNT.to_string(), &ROUNDS.to_string()]));
    for _ in 0..ROUNDS {
        for i in [0, 1] {
            let start = Instant::now();
            for _ in 0..COUNT {
                arrays[i].refresh().expect("it refreshes");
                assert_eq!(arrays[i].shape(), [4]);
            }
            ours[i] = ours[i].min(start.elapsed().as_secs_f64());
            theirs[i] = theirs[i].min(peers[i].ask().parse().expect("seconds"));
        }
    }
    drop((peers, writers));
    for i in [0, 1] {
        println!(
            "{} objects: {:.2} us a refresh, h5py {:.2} us, ratio {:.3}",
            objects[i],
            ours[i] * 1e6 / f64::from(COUNT),
            theirs[i] * 1e6 / f64::from(COUNT),
            ours[i] / theirs[i]
        );
        let _ = std::fs::remove_file(&files[i]);
    }
    println!("10000 objects against 10: {:.2} times", ours[1] / ours[0]);
    ours[1] / ours[0] < 1.3 && ours.iter().zip(theirs).all(|(ours, theirs)| ours / theirs <= 0.5)
}
