//! The program as a whole, on the file that `examples/make_example.py` makes.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn ocean() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data/ocean.h5")
}

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hyperslab"));
    command.env_remove("NO_COLOR").env_remove("HYPERSLAB_NUM_THREADS");
    command
}

fn run(arguments: &[&str]) -> Output {
    program().args(arguments).output().unwrap()
}

/// Runs a command on the example file, `FILE` standing for its path, and gives its output and exit code.
fn on_ocean(arguments: &[&str]) -> (String, String, i32) {
    let file = ocean().display().to_string();
    let arguments: Vec<String> = arguments.iter().map(|a| a.replace("FILE", &file)).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let output = run(&arguments);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().replace(&file, "FILE");
    (text(output.stdout), text(output.stderr), output.status.code().unwrap())
}

/// Output of a command that must succeed and say nothing on stderr.
fn stdout(arguments: &[&str]) -> String {
    let (out, err, code) = on_ocean(arguments);
    assert_eq!((err.as_str(), code), ("", 0), "{arguments:?}");
    out
}

/// A name that is not UTF-8, with `::` in it.
#[cfg(unix)]
#[test]
fn any_file_name_can_be_given() {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;
    let folder = tempfile::tempdir().unwrap();
    let mut name = folder.path().as_os_str().to_owned();
    name.push(OsString::from_vec(b"/caf\xe9::1.h5".to_vec()));
    std::fs::copy(ocean(), &name).unwrap();
    let mut slice = name.clone();
    slice.push("::/lat[:2]");
    for (words, address, wanted) in [
        (&["ls"][..], &name, "/             group"),
        (&["check"], &name, "sound"),
        (&["describe", "--json"], &name, "\"hdf5\""),
        (&["dump", "-h"], &name, "netcdf"),
        (&["get"], &slice, "[-88.5 -85.5]"),
    ] {
        let output = program().args(words).arg(address).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains(wanted), "{words:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn ls_shows_the_tree() {
    let wanted = "\
/             group, 6 members
  current     -> /sst
  lat         f32le (60,)
  lon         f32le (120,)
  ships       group, 4 members
    flag      enum<i8>{\"BAD\"=2,\"GOOD\"=0,\"SUSPECT\"=1} (4,)
    notes     vstr:utf8:nullterm (4,)
    stations  compound of 5 members (3,)
    tracks    vlen<i32le> (2,)
  sst         f32le (12/inf, 60, 120)  chunks (3, 30, 60)  shuffle, deflate(6), fletcher32 1.8x
  time        f64le (12/inf,)  chunks (12,)
";
    assert_eq!(stdout(&["ls", "FILE"]), wanted);
}

#[test]
fn ls_of_a_group_and_of_an_array() {
    let flat = stdout(&["ls", "FILE::/ships"]);
    assert!(flat.starts_with("flag      enum") && flat.lines().count() == 4, "{flat}");
    let deep = stdout(&["ls", "-r", "-l", "FILE::/ships"]);
    assert!(deep.contains("/ships/notes     vstr:utf8:nullterm (4,)  contiguous  64 B stored"), "{deep}");
    assert!(deep.contains("@comment = \"positions of the moorings\""), "{deep}");
    assert!(stdout(&["ls", "FILE::/current"]).starts_with("/sst  f32le (12/inf, 60, 120)"));
    let json = stdout(&["ls", "--json", "FILE"]);
    for line in json.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
    assert!(json.contains(r#"{"kind":"softlink","path":"/current","target":"/sst"}"#), "{json}");
}

#[test]
fn colours_are_only_for_those_who_want_them() {
    assert!(!stdout(&["ls", "FILE"]).contains('\x1b'));
    assert!(stdout(&["--color", "always", "ls", "FILE"]).contains("\x1b[36m  current\x1b[0m"));
}

#[test]
fn info_says_everything() {
    let file = stdout(&["info", "FILE"]);
    assert!(
        file.contains("HDF5, superblock version 3") || file.contains("HDF5, superblock version 2"),
        "{file}"
    );
    assert!(file.contains("2 groups, 8 arrays, 1 links"), "{file}");
    let sst = stdout(&["info", "FILE::/sst"]);
    for wanted in
        ["index: ", "16 stored of 16", "fill value", "NaN", "deflate(6), parameters [6]", "@units = \"degC\""]
    {
        assert!(sst.contains(wanted), "{wanted} in {sst}");
    }
    assert!(sst.contains("@DIMENSION_LIST = [[/time], [/lat], [/lon]]"), "{sst}");
}

#[test]
fn describe_is_what_the_reference_libraries_read() {
    let (out, err, code) = on_ocean(&["describe", "--json", "FILE"]);
    assert_eq!((err.as_str(), code), ("", 0));
    let wanted = include_str!("data/ocean.json").trim_end();
    let start = out.find("\"hdf5\":").unwrap() + 7;
    assert_eq!(&out[start..start + wanted.len()], wanted);
    assert!(out.starts_with("{\"file\":\"ocean.h5\",\"format\":\"hdf5\","), "{out}");
}

#[test]
fn get_as_text() {
    let wanted = "[[29.38   NaN 27.63]\n [29.27   NaN 27.58]]\n";
    assert_eq!(stdout(&["get", "FILE::/sst[0, 28:30, :60:20]"]), wanted);
    assert_eq!(stdout(&["get", "FILE::/ships/flag"]), "[GOOD    BAD     SUSPECT GOOD]\n");
    assert_eq!(stdout(&["get", "FILE::/ships/tracks"]), "[[0, 1, 2]\n [0, 10, 20, 30, 40]]\n");
    assert_eq!(stdout(&["get", "FILE::/time[3]"]), "106.3125\n");
    assert_eq!(stdout(&["get", "FILE::/time[5:5]"]), "[] of extents (0,)\n");
    let summary = stdout(&["get", "FILE::/sst", "--short"]);
    assert!(summary.starts_with("[[[ 5.05  4.71  4.43 ...") && summary.contains("\n  ...\n"), "{summary}");
}

/// What goes to a file or a pipe is all there.
#[test]
fn text_that_nobody_looks_at_is_whole() {
    let all = stdout(&["get", "FILE::/sst"]);
    let numbers = |c: char| c.is_whitespace() || c == '[' || c == ']';
    assert_eq!(all.split(numbers).filter(|n| !n.is_empty()).count(), 12 * 60 * 120);
    assert!(!all.contains("..."));
}

#[test]
fn plan_as_json() {
    let plan = stdout(&["plan", "FILE::/sst[0, 30:, ::4]", "--json"]);
    assert!(plan.starts_with(r#"{"arrays":1,"bytes_decoded":43200,"#), "{plan}");
}

/// A small memory limit makes small slabs.
#[test]
fn a_low_limit_still_reads() {
    let all = on_ocean(&["get", "FILE::/sst", "--format", "raw", "--max-memory", "200K", "-o", "/dev/null"]);
    assert_eq!(all.2, 0, "{}", all.1);
}

#[cfg(unix)]
#[test]
fn a_pipe_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let output = run(&["ls", pipe.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("by position"));
}

#[test]
fn get_as_json_and_csv() {
    let stations = stdout(&["get", "FILE::/ships/stations[:2]", "--format", "json"]);
    let wanted = r#"[{"name":"ALPHA","lat":12.5,"lon":200.0,"depth":-4200,"active":true},{"name":"BRAVO","lat":52.75,"lon":325.5,"depth":-3100,"active":false}]"#;
    assert_eq!(stations.trim_end(), wanted);
    assert_eq!(
        stdout(&["get", "FILE::/sst[0, 28, :40:20]", "--format", "json"]).trim_end(),
        r#"[29.38,"NaN"]"#
    );
    assert_eq!(stdout(&["get", "FILE::/sst[:0, :2, 0]", "--format", "json"]).trim_end(), "[]");
    let notes = r#"["calm","fog, then rain","","gr\u00f6\u00dfte Welle 9 m"]"#;
    assert_eq!(stdout(&["get", "FILE::/ships/notes", "--format", "json"]).trim_end(), notes);
    let csv = stdout(&["get", "FILE::/ships/stations", "--format", "csv"]);
    assert_eq!(csv.lines().nth(2), Some("BRAVO,52.75,325.5,-3100,false"));
    let csv = stdout(&["get", "FILE::/ships/notes", "--format", "csv"]);
    assert_eq!(csv, "calm\n\"fog, then rain\"\n\ngrößte Welle 9 m\n");
    let (_, err, code) = on_ocean(&["get", "FILE::/sst", "--format", "csv"]);
    assert!(code == 2 && err.contains("3 axes"), "{err}");
}

#[test]
fn get_into_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    stdout(&["get", "FILE::/time[:3]", "-o", &path("time.raw")]);
    let wanted: Vec<u8> = [15.0f64, 45.4375, 75.875].iter().flat_map(|x| x.to_le_bytes()).collect();
    assert_eq!(std::fs::read(path("time.raw")).unwrap(), wanted);
    stdout(&["get", "FILE::/ships/stations", "-o", &path("stations.npy")]);
    let npy = std::fs::read(path("stations.npy")).unwrap();
    let text = String::from_utf8_lossy(&npy).into_owned();
    assert!(
        text.contains(
            "[('name', '|S8'), ('lat', '<f4'), ('lon', '<f4'), ('depth', '<i2'), ('active', '|b1')]"
        )
    );
    assert_eq!(npy.len() % 64, 3 * 19);
    // A read that fails leaves nothing, and what was there stays.
    let (_, _, code) = on_ocean(&["get", "FILE::/ships/tracks", "--format", "raw", "-o", &path("time.raw")]);
    assert_eq!(code, 2);
    assert_eq!(std::fs::read(path("time.raw")).unwrap(), wanted);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn stats_are_one_line_of_json_on_stderr() {
    let (out, err, code) = on_ocean(&["get", "FILE::/sst[0, 0, 0]", "--stats"]);
    assert_eq!((out.as_str(), code), ("5.05\n", 0));
    let stats: serde_json::Value = serde_json::from_str(err.trim_end()).unwrap();
    assert_eq!((stats["chunks_decoded"].as_u64(), stats["bytes_out"].as_u64()), (Some(1), Some(4)));
}

#[test]
fn chunks_that_were_never_written_are_what_the_user_says() {
    let folder = tempfile::tempdir().unwrap();
    let document = r#"{"zarr_format":2,"shape":[2],"chunks":[2],"dtype":"<f4","fill_value":-1,"compressor":null,
        "filters":null,"order":"C"}"#;
    std::fs::write(folder.path().join(".zarray"), document).unwrap();
    let address = format!("{}::/", folder.path().display());
    let get = |how: &str| {
        let done = run(&["get", &address, "--format", "json", "--missing-chunks", how]);
        (String::from_utf8(done.stdout).unwrap(), done.status.code())
    };
    assert_eq!(get("fill"), ("[-1.0,-1.0]\n".into(), Some(0)));
    assert_eq!(get("nan"), ("[\"NaN\",\"NaN\"]\n".into(), Some(0)));
    assert_eq!(get("raise"), (String::new(), Some(2)));
}

#[test]
fn codecs_are_listed_in_every_spelling() {
    let table = run(&["codecs"]).stdout;
    let table = String::from_utf8(table).unwrap();
    let zlib = table.lines().find(|line| line.starts_with("zlib ")).unwrap();
    let v3 = r#"{"name":"numcodecs.zlib","configuration":{"level":1}}"#;
    assert!(zlib.contains(r#"  {"id":"zlib","level":1}  "#) && zlib.ends_with(v3), "{zlib}");
    assert!(zlib.contains("      1  encode, decode"), "{zlib}");
    let lines = String::from_utf8(run(&["codecs", "--json"]).stdout).unwrap();
    let codecs: Vec<serde_json::Value> = lines.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(codecs.len(), table.lines().count());
    let zstd = codecs.iter().find(|c| c["hdf5"] == 32015).unwrap();
    assert_eq!((&zstd["id"], &zstd["numcodecs"]["level"]), (&"zstd".into(), &0.into()));
}

#[test]
fn plan_names_the_chunks() {
    let plan = stdout(&["plan", "FILE::/current[0, 10:20]"]);
    assert!(plan.contains("chunk [0, 0, 0]") && plan.contains("chunk [0, 0, 1]"), "{plan}");
}

#[test]
fn errors_name_what_is_missing_and_what_is_near() {
    let failure = |arguments: &[&str]| {
        let (out, err, code) = on_ocean(arguments);
        assert_eq!((out.as_str(), code), ("", 2), "{arguments:?}");
        err
    };
    let err = failure(&["get", "FILE::/ship/stations"]);
    assert!(err.contains("E_NOT_FOUND") && err.contains("did you mean ships?"), "{err}");
    assert!(failure(&["get", "FILE::/ships"]).contains("is a group; list its members with"));
    assert!(failure(&["get", "FILE::/sst[99]"]).contains("E_BOUNDS"));
    assert!(failure(&["get", "FILE::/sst[0,,1]"]).contains("E_ARGUMENT"));
    assert!(failure(&["ls", "s3://bucket/a.h5"]).contains("s3://"));
    assert!(failure(&["ls", "/no/such/file.h5"]).contains("/no/such/file.h5"));
}

#[test]
fn a_closed_pipe_is_success() {
    let mut child = program()
        .args(["get", &format!("{}::/sst", ocean().display()), "--format", "raw"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

#[test]
fn check_says_once_what_all_chunks_lack() {
    let folder = tempfile::tempdir().unwrap();
    let array = r#"{"zarr_format": 2, "shape": [6], "chunks": [2], "dtype": "<i4", "fill_value": 0, "order": "C",
        "filters": null, "compressor": {"id": "nonsense"}}"#;
    std::fs::write(folder.path().join(".zarray"), array).unwrap();
    for chunk in ["0", "1", "2"] {
        std::fs::write(folder.path().join(chunk), b"12345678").unwrap();
    }
    let output = run(&["check", "--json", &folder.path().display().to_string()]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &report["sound"]), (Some(0), &serde_json::Value::Null), "{report}");
    assert_eq!(report["faults"].as_array().map(Vec::len), Some(0), "{report}");
    assert_eq!(report["not_checked"].as_array().map(Vec::len), Some(1), "{report}");
    assert!(report["not_checked"][0]["message"].to_string().contains("nonsense"), "{report}");
    assert_eq!((&report["chunks"], &report["chunks_not_checked"]), (&0.into(), &3.into()), "{report}");
}

#[test]
fn check_finds_what_is_wrong() {
    let sound = stdout(&["check", "FILE"]);
    assert!(sound.contains("sound: 10 objects") && sound.contains("1 provenance hash"), "{sound}");
    let folder = tempfile::tempdir().unwrap();
    let bytes = std::fs::read(ocean()).unwrap();
    let broken = |name: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let path = folder.path().join(name);
        let mut bytes = bytes.clone();
        change(&mut bytes);
        std::fs::write(&path, bytes).unwrap();
        let output = run(&["check", "--json", &path.display().to_string()]);
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(1), "{report}");
        report
    };
    // One byte of a chunk: its checksum fails.
    let at = chunk_offset();
    let report = broken("chunk.h5", &|b| b[at + 100] ^= 1);
    let fault = &report["faults"][0];
    assert_eq!(fault["object"], "/sst", "{report}");
    assert_eq!(fault["offset"].as_u64(), Some(at as u64), "{report}");
    // One letter of a value whose hash is stated.
    let hash = b"0d9ac53c";
    let at = bytes.windows(hash.len()).position(|w| w == hash).unwrap();
    let report = broken("hash.h5", &|b| b[at] = b'1');
    // It lies in a heap without checksums: only the hash itself tells, and is counted like any other.
    assert_eq!(report["faults"].as_array().map(Vec::len), Some(1), "{report}");
    let fault = &report["faults"][0];
    assert_eq!((&fault["code"], &fault["object"]), (&"E_CHECKSUM".into(), &"/sst".into()), "{report}");
    let words = "provenance: the elements hash to 0d9ac53c";
    assert!(fault["message"].as_str().is_some_and(|m| m.contains(words)), "{report}");
    assert_eq!(report["provenance_hashes"], 1, "{report}");
    // Half of the file.
    let report = broken("half.h5", &|b| b.truncate(b.len() / 2));
    assert!(report["faults"].to_string().contains("E_TRUNCATED"), "{report}");
    // No file of a known format: nothing to say about it.
    let other = folder.path().join("other.h5");
    std::fs::write(&other, b"hello").unwrap();
    assert_eq!(run(&["check", &other.display().to_string()]).status.code(), Some(2));
}

/// Runs `check --json` on a file: its report and exit code.
fn report(path: &Path) -> (serde_json::Value, Option<i32>) {
    let output = run(&["check", "--json", &path.display().to_string()]);
    (serde_json::from_slice(&output.stdout).unwrap(), output.status.code())
}

#[test]
fn check_opens_external_data() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for name in ["external_near.h5", "external_out.h5"] {
        std::fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name), at(name)).unwrap();
    }
    // The data is in `a.bin` and `b.bin` beside it.
    let (json, code) = report(&at("external_near.h5"));
    assert_eq!((code, json["faults"].as_array().unwrap().len()), (Some(1), 2), "{json}");
    assert_eq!((&json["sound"], &json["faults"][0]["code"]), (&false.into(), &"E_NOT_FOUND".into()));
    std::fs::write(at("a.bin"), [0; 8]).unwrap();
    std::fs::write(at("b.bin"), [0; 8]).unwrap();
    let (json, code) = report(&at("external_near.h5"));
    assert_eq!((code, &json["sound"], &json["chunks"]), (Some(0), &true.into(), &1.into()), "{json}");
    // The data is in `/etc/passwd`.
    let (json, code) = report(&at("external_out.h5"));
    assert_eq!((code, &json["sound"], &json["chunks"]), (Some(0), &serde_json::Value::Null, &0.into()));
    assert_eq!(json["not_checked"][0]["code"], "E_PERMISSION", "{json}");
}

#[test]
fn check_says_what_it_could_not_check() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/unknown_filter.h5");
    let output = run(&["check", &file.display().to_string()]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("not checked /d: E_UNSUPPORTED") && text.contains("40000"), "{text}");
    assert!(
        text.contains("sound as far as checked") && text.contains("0 chunks of 0 B, 2 chunks not"),
        "{text}"
    );
    let (json, _) = report(&file);
    assert_eq!((&json["sound"], &json["chunks_not_checked"]), (&serde_json::Value::Null, &2.into()));
    let (json, code) = report(Path::new("/no/such/file.h5"));
    assert_eq!((code, &json["error"]["code"]), (Some(2), &"E_NOT_FOUND".into()), "{json}");
}

#[test]
fn check_says_each_fault_once() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../hyperslab/tests/data/heaps.h5");
    let mut bytes = std::fs::read(data).unwrap();
    let blocks: Vec<usize> = (0..bytes.len() - 4).filter(|&i| &bytes[i..i + 4] == b"FHDB").collect();
    bytes[blocks[0] + 40] ^= 1;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("heaps.h5");
    std::fs::write(&path, bytes).unwrap();
    let (json, code) = report(&path);
    let texts: Vec<String> = json["faults"].as_array().unwrap().iter().map(|f| f.to_string()).collect();
    let mut unique = texts.clone();
    unique.sort();
    unique.dedup();
    assert!(code == Some(1) && texts.len() == unique.len(), "{json}");
}

/// Where the first chunk of `/sst` lies, as the plan says.
fn chunk_offset() -> usize {
    let plan = stdout(&["plan", "FILE::/sst[0, 0, 0]"]);
    let hex = plan.split("read 0x").nth(1).unwrap().split('+').next().unwrap();
    usize::from_str_radix(hex, 16).unwrap()
}

#[test]
fn help_has_examples_and_completions_name_the_commands() {
    for command in ["ls", "info", "describe", "get", "plan", "check", "completions"] {
        let help = stdout(&[command, "--help"]);
        assert!(help.contains("Examples:"), "{help}");
    }
    assert!(stdout(&["completions", "bash"]).contains("describe"));
}

#[test]
fn limits_are_obeyed() {
    let (_, err, code) = on_ocean(&["--max-memory", "1K", "get", "FILE::/sst"]);
    assert!(code == 2 && err.contains("E_LIMIT"), "{err}");
    let (_, err, code) = on_ocean(&["--max-memory", "64K", "get", "FILE::/sst"]);
    assert!(code == 2 && err.contains("--max-memory, or Limits::output"), "{err}");
    assert_eq!(stdout(&["--threads", "1", "get", "FILE::/time[3]"]), "106.3125\n");
}

/// A file of the output's name, made complete and then renamed, must not take the place of what is no regular file.
#[cfg(unix)]
#[test]
fn output_to_a_pipe_a_link_and_an_existing_file() {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt};
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let source = format!("{}::/lat[:3]", ocean().display());
    let get = |to: &Path| {
        let mut command = program();
        command.args(["get", "--format", "raw", &source, "--output"]).arg(to).status().unwrap().success()
    };

    assert!(Command::new("mkfifo").arg(path("pipe")).status().unwrap().success());
    let pipe = path("pipe");
    let reader = std::thread::spawn(move || std::fs::read(pipe).unwrap());
    assert!(get(&path("pipe")));
    assert_eq!(reader.join().unwrap().len(), 12);
    assert!(std::fs::metadata(path("pipe")).unwrap().file_type().is_fifo());

    std::fs::write(path("old"), "old").unwrap();
    std::fs::set_permissions(path("old"), std::fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink("old", path("link")).unwrap();
    assert!(get(&path("link")));
    assert_eq!(std::fs::read_link(path("link")).unwrap(), Path::new("old"));
    let written = std::fs::metadata(path("old")).unwrap();
    assert_eq!((written.len(), written.permissions().mode() & 0o777), (12, 0o640));

    std::os::unix::fs::symlink("new", path("dangling")).unwrap();
    assert!(get(&path("dangling")));
    assert_eq!(std::fs::read(path("new")).unwrap().len(), 12);
    assert!(!get(folder.path()));
    let mut left: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["dangling", "link", "new", "old", "pipe"]);
}

/// A Zarr array of `rows` rows below a folder, none of them fill.
fn counts(folder: &Path, rows: i32) -> String {
    let document = format!(
        r#"{{"zarr_format":2,"shape":[{rows}],"chunks":[{rows}],"dtype":"<i4","fill_value":0,"compressor":null,"filters":null,"order":"C"}}"#
    );
    std::fs::write(folder.join(".zarray"), document).unwrap();
    let values: Vec<u8> = (1..=rows).flat_map(i32::to_le_bytes).collect();
    std::fs::write(folder.join("0"), values).unwrap();
    folder.display().to_string()
}

#[test]
fn the_last_line_of_follow_says_what_did_not_come() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(&["follow", &counts(folder.path(), 10), "--rows", "4"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("4 rows, 6 more not asked for,"), "{said}");
    let help = stdout(&["follow", "--help"]);
    assert!(help.contains("is waited for without end: give --idle-timeout or --rows"), "{help}");
    // What cannot be read is an error, and not the end of the rows.
    let file = folder.path().join("cut.h5");
    std::fs::write(&file, &std::fs::read(ocean()).unwrap()[..3000]).unwrap();
    let output = run(&["follow", &format!("{}::/lat", file.display()), "--idle-timeout", "0.3"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(": failed") && said.contains("E_"), "{said}");
}

#[cfg(unix)]
#[test]
fn follow_is_interrupted_between_rows() {
    use std::io::{BufRead, BufReader};
    let folder = tempfile::tempdir().unwrap();
    let rows = 200_000;
    let mut child = program()
        .args(["follow", &counts(folder.path(), rows)])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "1");
    // It waits for its reader now, in the midst of the one batch.
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    std::thread::sleep(std::time::Duration::from_millis(200));
    let printed = 1 + lines.count();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(printed < rows as usize, "{said}");
    let left = rows as usize - printed;
    assert!(said.starts_with(&format!("{printed} rows, {left} announced and not printed")), "{said}");
    assert!(said.contains("interrupted"), "{said}");
}

/// What a program that was killed left of a file goes when the file is written again.
#[test]
fn leftovers_of_killed_programs_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("out.npy");
    let left = |name: &str| std::fs::File::create(folder.path().join(name)).unwrap();
    left(".out.npy.hyperslab-unfinished-12345-0");
    // Somebody writes one of these, and the others are none.
    let kept = [
        ".other.npy.hyperslab-unfinished-12345-0",
        ".out.npy.hyperslab-unfinished-12346-0",
        ".out.npy.hyperslab-unfinished-x-0",
    ];
    left(kept[0]);
    left(kept[2]);
    let held = left(kept[1]);
    held.lock().unwrap();
    let done = on_ocean(&["get", "FILE::/sst[0]", "--format", "npy", "-o", to.to_str().unwrap()]);
    assert_eq!(done.2, 0, "{}", done.1);
    let mut names: Vec<_> =
        std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, [&kept[..], &["out.npy"]].concat());
}
