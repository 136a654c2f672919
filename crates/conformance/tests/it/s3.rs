//! Object stores against a server that speaks S3: moto, started here, on this machine only.

use hyperslab::source::store::contract_tests;
use hyperslab::source::{CloudOptions, CloudPlace, CloudStore, Keys, RemoteOptions, Store};
use hyperslab::{ErrorKind, Limits};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A running server; it ends with this value.
pub(crate) struct Moto {
    process: Child,
    address: String,
}

impl Moto {
    pub(crate) fn start() -> Moto {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let address = format!("127.0.0.1:{port}");
        let process = Command::new(conformance::reference::python())
            .args(["-m", "moto.server", "-H", "127.0.0.1", "-p", &port.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let moto = Moto { process, address };
        let begun = Instant::now();
        while TcpStream::connect(&moto.address).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(60), "moto does not start; is it installed?");
            std::thread::sleep(Duration::from_millis(100));
        }
        moto.ask("PUT", "/bucket", &[]);
        moto
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// One request without credentials, for objects that everybody may read.
    fn ask(&self, method: &str, path: &str, body: &[u8]) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let (address, length) = (&self.address, body.len());
        let public = if body.is_empty() { "" } else { "x-amz-acl: public-read\r\n" };
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{public}Content-Length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    pub(crate) fn store(&self, prefix: &str) -> CloudStore {
        let cloud = CloudOptions::default().with_endpoint(Some(self.endpoint()));
        let cloud = cloud.with_keys(Some(Keys::new("key", "secret")));
        let place = CloudPlace::s3("bucket", prefix).unwrap();
        CloudStore::open(&place, &cloud, &Limits::default(), &RemoteOptions::default()).unwrap()
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Runs the contract on the store at an address, in a process with nothing but this environment.
fn keeps_the_contract(address: &str, environment: &[(&str, &str)]) {
    let mut program = Command::new(env!("CARGO_BIN_EXE_contract"));
    let output = program.arg(address).env_clear().envs(environment.iter().copied()).output().unwrap();
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("keeps the contract"), "{address}: {said}");
}

#[test]
fn credentials_styles_and_servers() {
    let moto = Moto::start();
    let endpoint = moto.endpoint();
    let keys = [("AWS_ACCESS_KEY_ID", "me"), ("AWS_SECRET_ACCESS_KEY", "secret")];
    let with = |more: &[(&'static str, &str)]| -> Vec<(&'static str, String)> {
        keys.iter().chain(more).map(|(name, value)| (*name, value.to_string())).collect()
    };
    let check = |address: &str, environment: Vec<(&'static str, String)>| {
        let environment: Vec<_> = environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
        keeps_the_contract(address, &environment);
    };
    // Keys and server from the environment.
    check("s3://bucket/environment#mode=zarr", with(&[("AWS_ENDPOINT_URL", &endpoint)]));
    check(&format!("{endpoint}/bucket/url#mode=nczarr,s3"), with(&[]));
    // Keys, region and server from the files of the AWS tools, by the profile that the environment or the address names.
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join(".aws")).unwrap();
    std::fs::write(
        home.path().join(".aws/config"),
        format!("[default]\nregion = eu-1\n[profile lab]\nregion = eu-2\nendpoint_url = {endpoint}\n"),
    )
    .unwrap();
    let credentials =
        "[lab]\naws_access_key_id = them\naws_secret_access_key = secret\naws_session_token = token\n";
    std::fs::write(home.path().join(".aws/credentials"), credentials).unwrap();
    let at_home = home.path().display().to_string();
    check("s3://bucket/profile#mode=zarr", vec![("HOME", at_home.clone()), ("AWS_PROFILE", "lab".into())]);
    check("s3://bucket/named#mode=zarr&aws.profile=lab", vec![("HOME", at_home)]);
    // The bucket in the name of the server, which only a proxy finds.
    let proxied = with(&[("http_proxy", &endpoint), ("AWS_REGION", "us-east-1")]);
    check(
        "s3://bucket/virtual#mode=zarr&aws.style=virtual&aws.endpoint=http://s3.amazonaws.com",
        proxied.clone(),
    );
    // And in the path.
    check("s3://bucket/path#mode=zarr&aws.style=path&aws.endpoint=http://s3.amazonaws.com", proxied);
}

#[test]
fn a_bucket_is_a_store() {
    let moto = Moto::start();
    contract_tests::check_all(&moto.store(""));
    moto.store("").put("some/where", "beside".into(), &Default::default()).unwrap();
    moto.store("").put("some/prefixed", "beside".into(), &Default::default()).unwrap();
    contract_tests::check_all(&moto.store("some/prefix/"));
    assert_eq!(moto.store("some").list("").unwrap(), ["prefixed", "where"]);
    assert!(moto.store("").traffic().requests == 0 && moto.store("none").list("").unwrap().is_empty());

    // A file in it that everybody may read, by URLs of both kinds.
    let path = conformance::tool::root().join("crates/hyperslab/tests/data/netcdf4.nc");
    moto.ask("PUT", "/bucket/data/a%20b%2Bc.nc", &std::fs::read(&path).unwrap());
    let local = hyperslab::open(path.as_path()).unwrap().walk().map(|e| e.path).collect::<Vec<_>>();
    let endpoint = moto.endpoint();
    for url in [
        format!("s3://bucket/data/a b+c.nc#aws.endpoint={endpoint}"),
        format!("s3://bucket/data/a b+c.nc#mode=bytes,s3&aws.endpoint={endpoint}&aws.region=eu-central-1"),
        format!("{endpoint}/bucket/data/a b+c.nc#mode=s3"),
    ] {
        let file = hyperslab::open(url.as_str()).unwrap();
        assert_eq!(file.walk().map(|e| e.path).collect::<Vec<_>>(), local, "{url}");
        assert!((1..=3).contains(&file.traffic().requests), "{:?}", file.traffic());
    }

    // Not everybody may read this one: with the right credentials only.
    moto.store("").put("data/own.nc", std::fs::read(&path).unwrap().into(), &Default::default()).unwrap();
    let own = format!("s3://bucket/data/own.nc#aws.endpoint={endpoint}");
    let refused = hyperslab::open(own.as_str()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Permission, "{refused}");
    assert!(refused.to_string().contains("s3://bucket/data/own.nc"), "{refused}");
    let ls = |url: &str| {
        let mut program = Command::new(conformance::tool::path());
        let program = program.args(["ls", "--stats", url]);
        let keys =
            [("AWS_ACCESS_KEY_ID", "me"), ("AWS_SECRET_ACCESS_KEY", "secret"), ("AWS_REGION", "us-east-1")];
        let output = program.envs(keys).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (right, said) = ls(&own);
    assert!(right && said.contains("\"remote_requests\":"), "{said}");
    let (right, said) = ls(&format!("s3://bucket/none.nc#aws.endpoint={endpoint}"));
    assert!(!right && said.contains("E_NOT_FOUND") && said.contains("s3://bucket/none.nc"), "{said}");
    let (right, said) = ls(&format!("s3://nobucket/x#aws.endpoint={endpoint}"));
    assert!(!right && said.contains("nobucket"), "{said}");

    // What changes while it is read is an error.
    let store = moto.store("data");
    let long: Vec<u8> = vec![7; 1 << 20];
    store.put("changing", long.clone().into(), &Default::default()).unwrap();
    let source = store.open("changing").unwrap().unwrap();
    store.put("changing", vec![8; 1 << 20].into(), &Default::default()).unwrap();
    let changed = source.read(&[hyperslab::source::ByteRange::new(500_000, 10)]).unwrap_err();
    assert_eq!(changed.kind(), ErrorKind::Changed, "{changed}");
}
