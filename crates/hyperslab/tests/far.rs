//! Files that are far away: how many requests, round trips and bytes it takes to get at what is in them.

#[path = "support/bucket.rs"]
mod bucket;
#[path = "support/server.rs"]
mod server;

use bucket::{Bucket, Dialect};
use hyperslab::convention::netcdf::Group;
use hyperslab::source::{FileSource, RemoteOptions, Store, ZipStore};
use hyperslab::{File, Limits, Object, Selection};
use server::{Fault, Server};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const LATENCY: Duration = Duration::from_millis(20);

/// A fixture, which is stored compressed.
fn fixture(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/data/{name}.zst", env!("CARGO_MANIFEST_DIR"));
    zstd::decode_all(std::fs::File::open(path).unwrap()).unwrap()
}

fn serve(name: &str, latency: Duration, rate: usize) -> Server {
    let server = Server::throttled(latency, rate);
    server.put(&format!("/{name}"), fixture(name));
    server
}

fn sel(text: &str) -> Selection {
    Selection::parse(text).unwrap()
}

/// Looks at everything but the elements of arrays; how many objects there are.
fn look(file: &File) -> usize {
    let mut objects = 0;
    for entry in file.walk() {
        let Ok(object) = entry.open(file) else { continue };
        match &object {
            Object::Array(array) => {
                for attribute in array.attributes().unwrap() {
                    array.attribute_value(&attribute.unwrap()).unwrap();
                }
            }
            Object::Group(group) => drop(group.attributes().unwrap()),
            _ => {}
        }
        objects += 1;
    }
    objects
}

#[test]
fn a_netcdf_file_is_opened_and_a_slice_of_it_read_in_few_requests() {
    let server = serve("far_netcdf.nc", LATENCY, 0);
    let file = hyperslab::open(server.url("/far_netcdf.nc")).unwrap();
    assert_eq!(look(&file), 22);
    let slice: Vec<f32> = file.array("/var07").unwrap().read(sel("[3, 10:20, ::7]")).unwrap().data;
    assert_eq!(slice.len(), 10 * 19);
    let (requests, bytes, waves) = server.count();
    assert!(
        requests <= 6 && waves <= 4 && bytes <= 1_000_000,
        "{requests} requests, {waves} waves, {bytes} bytes"
    );
    let traffic = file.traffic();
    assert_eq!((traffic.requests, traffic.bytes, traffic.retries), (requests as u64, bytes as u64, 0));
    assert!(traffic.hits > 0);
}

#[test]
fn two_thousand_objects_are_listed_in_few_requests() {
    let server = serve("far_objects.h5", LATENCY, 0);
    let file = hyperslab::open(server.url("/far_objects.h5")).unwrap();
    assert_eq!(look(&file), 2001);
    let (requests, bytes, waves) = server.count();
    assert!(requests <= 30, "{requests} requests, {waves} waves, {bytes} bytes");
}

#[test]
fn failures_pass_or_name_the_array_and_the_url() {
    let server = serve("far_netcdf.nc", Duration::ZERO, 0);
    let url = server.url("/far_netcdf.nc");
    // Every other request fails.
    server.on(|r| match r.number % 4 {
        0 => Some(Fault::Status(503, "text/plain", "busy")),
        2 => Some(Fault::Cut(10)),
        _ => None,
    });
    let file = hyperslab::open(url.as_str()).unwrap();
    let array = file.array("/var07").unwrap();
    array.read::<f32>(sel("[3]")).unwrap();
    assert!(file.traffic().retries >= 2);
    server.on(|_| Some(Fault::Status(403, "text/plain", "no longer")));
    let error = array.read::<f32>(sel("[9]")).unwrap_err();
    assert_eq!(error.kind(), hyperslab::ErrorKind::Permission);
    let text = error.to_string();
    assert!(text.contains("/var07") && text.contains("HTTP 403") && text.contains(&url), "{text}");
    // Never a fill value, and never a file that is not there.
    assert_eq!(hyperslab::open(url.as_str()).unwrap_err().kind(), hyperslab::ErrorKind::Permission);
}

#[test]
fn files_that_are_far_away_are_told_by_content() {
    let server = Server::start(Duration::ZERO);
    let path = format!("{}/tests/data/netcdf4.nc", env!("CARGO_MANIFEST_DIR"));
    server.put("/data", std::fs::read(&path).unwrap());
    let names = |file: File| file.walk().map(|e| e.path).collect::<Vec<_>>();
    let local = names(hyperslab::open(path.as_str()).unwrap());
    for fragment in ["", "#bytes", "#mode=bytes", "#mode=netcdf-4,bytes"] {
        assert_eq!(names(hyperslab::open(server.url(&format!("/data?a=b{fragment}"))).unwrap()), local);
    }
    let missing = hyperslab::open(server.url("/none.nc")).unwrap_err();
    assert_eq!(missing.kind(), hyperslab::ErrorKind::NotFound);
    assert!(missing.to_string().contains("HTTP 404"), "{missing}");
}

const GROUP: &str = "{\"zarr_format\":2}";
const ARRAY: &str = "{\"zarr_format\":2,\"shape\":[2,4],\"chunks\":[1,2],\"dtype\":\"<i2\",\"compressor\":null,\
                     \"fill_value\":7,\"order\":\"C\",\"filters\":null,\"dimension_separator\":\"/\"}";

/// Puts a store with an array of four chunks, two of which are there, below `s.zarr`.
fn put_store(put: &dyn Fn(&str, &[u8])) {
    put(".zgroup", GROUP.as_bytes());
    put("deep/.zgroup", GROUP.as_bytes());
    put("deep/a/.zarray", ARRAY.as_bytes());
    put("deep/a/.zattrs", b"{\"units\":\"m\"}");
    put("deep/a/0/1", &[1, 0, 2, 0]);
    put("deep/a/1/0", &[3, 0, 4, 0]);
}

#[test]
fn a_zarr_store_in_a_bucket_is_listed_and_read() {
    use hyperslab::source::{CloudOptions, CloudPlace, CloudStore, Keys, Store};
    for (dialect, scheme) in [(Dialect::S3, "s3"), (Dialect::Google, "gs")] {
        let bucket = Bucket::start(dialect);
        let cloud = CloudOptions::default().with_endpoint(Some(bucket.endpoint()));
        let cloud = cloud.with_keys(Some(Keys::new("key", "secret")));
        let (limits, remote) = (hyperslab::Limits::default(), RemoteOptions::default());
        let place = match dialect {
            Dialect::S3 => CloudPlace::s3("bucket", "s.zarr"),
            _ => CloudPlace::gs("bucket", "s.zarr"),
        };
        let store = CloudStore::open(&place.unwrap(), &cloud, &limits, &remote).unwrap();
        put_store(&|key, bytes| {
            store.put(key, bytes.to_vec().into(), &Default::default()).unwrap();
        });
        let endpoint = bucket.endpoint();
        let mut urls = vec![
            format!("{scheme}://bucket/s.zarr#aws.endpoint={endpoint}"),
            format!("{scheme}://bucket/s.zarr/#mode=zarr,{scheme}&aws.endpoint={endpoint}"),
        ];
        if dialect == Dialect::S3 {
            urls.push(format!("{endpoint}/bucket/s.zarr#mode=nczarr,s3"));
            urls.push(format!("{endpoint}/bucket/s.zarr#mode=xarray,s3&aws.region=eu-1"));
        }
        for url in urls {
            let file = hyperslab::open(url.as_str()).unwrap();
            assert_eq!(file.walk().map(|e| e.path).collect::<Vec<_>>(), ["/", "/deep", "/deep/a"], "{url}");
            let array = file.array("/deep/a").unwrap();
            let read = array.read::<i16>(sel("[...]")).unwrap();
            assert_eq!((read.data, read.shape), (vec![7, 7, 1, 2, 3, 4, 7, 7], vec![2, 4]), "{url}");
            // What may not be seen is not what does not exist.
            bucket.fail(403, 1000);
            let error = array.read::<i16>(sel("[0]")).unwrap_err();
            assert_eq!(error.kind(), hyperslab::ErrorKind::Permission, "{url}: {error}");
            assert!(
                error.to_string().contains("HTTP 403") && error.to_string().contains("deep/a/0/"),
                "{error}"
            );
            bucket.fail(503, 1);
            assert_eq!(array.read::<i16>(sel("[0]")).unwrap().data, [7, 7, 1, 2]);
            assert!(file.traffic().retries > 0 && file.traffic().requests > 4, "{:?}", file.traffic());
        }
        let none = hyperslab::open(format!("{scheme}://bucket/none#aws.endpoint={endpoint}")).unwrap_err();
        assert_eq!(none.kind(), hyperslab::ErrorKind::NotFound, "{none}");
        assert!(none.to_string().contains(&format!("{scheme}://bucket/none")), "{none}");
    }
}

#[test]
fn a_zarr_store_on_a_web_server_needs_to_say_what_it_has() {
    let server = Server::start(Duration::ZERO);
    put_store(&|key, bytes| server.put(&format!("/s.zarr/{key}"), bytes));
    let all = |file: File| file.walk().map(|e| e.path).collect::<Vec<_>>();
    // Without a list of what there is, an array is found by its name, and the rest is said to be unknown.
    let file = hyperslab::open(server.url("/s.zarr#mode=zarr")).unwrap();
    assert_eq!(file.array("/deep/a").unwrap().read::<i16>(sel("[0]")).unwrap().data, [7, 7, 1, 2]);
    let at = hyperslab::Address::parse(&server.url("/s.zarr#mode=zarr::/deep/a[1, ::2]"));
    let (object, selection) = hyperslab::open(at.clone()).unwrap().locate(&at).unwrap();
    let Object::Array(array) = object else { panic!("an array") };
    assert_eq!(array.read::<i16>(selection).unwrap().data, [3, 7]);
    let listed = file.root().links().map(|_| ()).unwrap_err();
    assert_eq!(listed.kind(), hyperslab::ErrorKind::Unsupported, "{listed}");
    let consolidated = format!(
        "{{\"zarr_consolidated_format\":1,\"metadata\":{{\".zgroup\":{GROUP},\"deep/.zgroup\":{GROUP},\
         \"deep/a/.zarray\":{ARRAY},\"deep/a/.zattrs\":{{\"units\":\"m\"}}}}}}"
    );
    server.put("/s.zarr/.zmetadata", consolidated);
    for url in ["/s.zarr", "/s.zarr/", "/s.zarr#mode=zarr", "/s.zarr?sig=1%2B#mode=nczarr,consolidated"] {
        server.forget();
        let file = hyperslab::open(server.url(url)).unwrap();
        assert_eq!(all(file.clone()), ["/", "/deep", "/deep/a"], "{url}");
        let array = file.array("/deep/a").unwrap();
        let opened = server.log().len();
        assert_eq!(array.read::<i16>(sel("[...]")).unwrap().data, [7, 7, 1, 2, 3, 4, 7, 7]);
        // One request a chunk, and few to know what there is.
        assert_eq!(server.log().len(), opened + 4, "{url}");
        assert!(
            opened <= 10,
            "{url}: {:?}",
            server.log().iter().map(|r| r.target.clone()).collect::<Vec<_>>()
        );
        server.on(|r| r.path().contains("/a/0/").then_some(Fault::Status(403, "text/plain", "")));
        assert_eq!(array.read::<i16>(sel("[0]")).unwrap_err().kind(), hyperslab::ErrorKind::Permission);
        // One that fails once is asked again; a page is no chunk.
        server.on(|r| (r.number % 2 == 0).then_some(Fault::Status(503, "text/plain", "")));
        assert_eq!(array.read::<i16>(sel("[1]")).unwrap().data, [3, 4, 7, 7]);
        server.on(|r| r.path().contains("/a/0/").then_some(Fault::Status(200, "text/html", "<html>log in")));
        assert!(array.read::<i16>(sel("[0]")).unwrap_err().to_string().contains("web page"));
        server.on(|_| None);
    }
}

#[test]
fn nczarr_on_a_web_server_says_itself_what_it_has() {
    let server = Server::start(Duration::ZERO);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/nczarr/attributes.zip");
    let store = ZipStore::open(Arc::new(FileSource::open(&path).unwrap()), &Limits::default()).unwrap();
    for key in store.list("").unwrap() {
        server.put(&format!("/s/{key}"), store.get(&key).unwrap().unwrap().to_vec());
    }
    let file = hyperslab::open(server.url("/s#mode=nczarr")).unwrap();
    let view = file.netcdf().unwrap();
    let names = |g: &Group| g.variables.iter().map(|v| v.name.to_string()).collect::<Vec<_>>().join(" ");
    let all: Vec<_> = view.groups().iter().map(|g| (g.path.clone(), names(g), g.left_out.len())).collect();
    let wanted = [("/", "zebra text apple scalar"), ("/g", "u own"), ("/g/inner", "deep")];
    assert_eq!(all, wanted.map(|(path, names)| (path.to_string(), names.to_string(), 0)));
}

#[test]
fn what_a_remote_file_names_is_looked_for_in_its_folder() {
    let folder = format!("{}/tests/data/virtual/", env!("CARGO_MANIFEST_DIR"));
    let server = Server::start(Duration::ZERO);
    for name in ["v1.h5", "s0.h5", "s1.h5", "s2.h5", "u.h5", "bad.h5"] {
        server.put(&format!("/x/{name}"), std::fs::read(format!("{folder}{name}")).unwrap());
    }
    let here = hyperslab::open(format!("{folder}v1.h5").as_str()).unwrap();
    let there = hyperslab::open(server.url("/x/v1.h5?key=1")).unwrap();
    let read = |file: &File| file.array("columns").unwrap().read_raw(sel("[...]")).unwrap().bytes.to_vec();
    assert_eq!(read(&there), read(&here));
    assert!(server.log().iter().all(|r| r.target.ends_with("?key=1")));
    assert_eq!(there.traffic().requests, server.log().len() as u64);
    // A source that may not be read is no fill.
    server.on(|r| r.path().contains("/s").then_some(Fault::Status(403, "text/plain", "")));
    let again = hyperslab::open(server.url("/x/v1.h5")).unwrap();
    let error = again.array("columns").unwrap().read_raw(sel("[...]")).unwrap_err();
    assert_eq!(error.kind(), hyperslab::ErrorKind::Permission, "{error}");
}

/// The rows that come of a file on a server, which is written over meanwhile.
#[test]
fn a_file_that_grows_on_a_server_is_followed() {
    use hyperslab::follow::{Event, FollowOptions, Stop, follow};
    use hyperslab::model::Value;
    let server = Server::start(Duration::ZERO);
    server.put("/run/a%20b.h5", fixture("swmr_early.h5"));
    let options =
        FollowOptions::new().with_interval(Duration::from_millis(10)).with_idle(Duration::from_secs(20));
    let address = format!("{}::/one", server.url("/run/a%20b.h5"));
    let mut follow = follow(hyperslab::Address::parse(&address), &["/one", "/text"], options).unwrap();
    let mut next = 0;
    for (moment, rows) in [("later", 10), ("closed", 37)] {
        match follow.next().unwrap().unwrap() {
            Event::Rows(came) => {
                assert_eq!((came.first, came.first + came.count), (next, rows));
                let values = came.parts[0].elements.values().unwrap();
                let wanted: Vec<i128> = (next..rows).map(|i| i128::from(1000 * i + 1)).collect();
                assert_eq!(values.iter().filter_map(Value::as_integer).collect::<Vec<_>>(), wanted);
                next = rows;
            }
            other => panic!("{other:?}"),
        }
        server.put("/run/a%20b.h5", fixture(&format!("swmr_{moment}.h5")));
    }
    assert!(follow.next().is_none());
    assert_eq!(follow.stats().stop, Some(Stop::Closed));
    // Nothing is pinned to one state of the file, and nothing comes whole.
    let asked = server.log();
    assert!(asked.iter().all(|r| r.header("if-match").is_none() && r.header("if-range").is_none()));
    assert!(asked.iter().filter(|r| r.method == "GET").all(|r| r.header("range").is_some()));
}

/// An array of four chunks of 1 KiB on a web server.
fn put_array(server: &Server) {
    server.put("/s/.zgroup", GROUP);
    let text = "{\"zarr_format\":2,\"shape\":[4096],\"chunks\":[1024],\"dtype\":\"|u1\",\"compressor\":null,\
                \"fill_value\":7,\"order\":\"C\",\"filters\":null}";
    server.put("/s/a/.zarray", text);
    server.put("/s/z/.zarray", text.replace("null,\"fill", "{\"id\":\"zlib\",\"level\":1},\"fill"));
    for chunk in 0..4 {
        server.put(&format!("/s/a/{chunk}"), vec![chunk; 1024]);
    }
}

fn sent(server: &Server) -> usize {
    // What was sent is known when the connection has ended.
    std::thread::sleep(Duration::from_millis(200));
    server.log().iter().map(|r| r.sent).sum()
}

#[test]
fn documents_without_end_are_not_read_to_their_end() {
    let server = Server::start(Duration::ZERO);
    put_array(&server);
    server.on(|r| r.path().ends_with("zarr.json").then_some(Fault::Endless));
    let options = hyperslab::OpenOptions::new().with_limits(Limits::default().with_document(1 << 20));
    // What consolidated metadata would say is unknown then, and the array itself is not to be trusted.
    let file = hyperslab::open_with(server.url("/s#mode=zarr"), &options);
    let error = file.and_then(|file| file.array("/a").map(|_| ())).unwrap_err();
    assert_eq!(error.kind(), hyperslab::ErrorKind::LimitExceeded, "{error}");
    let (sent, asked) = (sent(&server), server.log().len());
    // What lies in the buffers of the connections comes on top.
    assert!(sent < asked * (1 << 20) + (64 << 20), "{sent} bytes in {asked} requests");
}

/// A server knows nothing of folders; what it does not show of a store is not called absent.
#[test]
fn a_store_that_is_not_shown_is_told_from_none() {
    let server = Server::start(Duration::ZERO);
    put_array(&server);
    let open = || hyperslab::open(server.url("/s")).unwrap_err();
    server.on(|r| r.path().contains("/s/").then_some(Fault::Status(403, "text/plain", "")));
    let error = open();
    assert!(error.kind() == hyperslab::ErrorKind::Permission, "{error}");
    server.on(|r| r.path().contains("/s/").then_some(Fault::Status(200, "text/html", "<html>log in")));
    let error = open();
    assert!(error.to_string().contains("web page"), "{error}");
    server.on(|_| None);
    assert_eq!(hyperslab::open(server.url("/none")).unwrap_err().kind(), hyperslab::ErrorKind::NotFound);
    let error = hyperslab::open(server.url("/none#mode=zarr")).unwrap_err().to_string();
    assert!(error.contains("no Zarr document"), "{error}");
}

#[test]
fn a_chunk_object_that_is_too_long_is_not_read_to_its_end() {
    let server = Server::start(Duration::ZERO);
    put_array(&server);
    let file = hyperslab::open(server.url("/s#mode=zarr")).unwrap();
    for (name, chunk) in [("/a", "/s/a/2"), ("/z", "/s/z/2")] {
        server.forget();
        server.on(move |r| (r.path() == chunk).then_some(Fault::Endless));
        let array = file.array(name).unwrap();
        for region in ["[2048:2050]", "[1024:4000]"] {
            let error = array.read::<u8>(sel(region)).unwrap_err();
            let text = error.to_string();
            assert_eq!(error.kind(), hyperslab::ErrorKind::Corrupt, "{text}");
            assert!(
                text.contains("chunk [2]") && text.contains("a chunk of 1024 can be encoded to"),
                "{text}"
            );
        }
        assert!(sent(&server) < 32 << 20, "{}", sent(&server));
    }
}

#[test]
fn chunks_that_are_too_long_together_are_read_one_by_one() {
    let server = Server::start(Duration::ZERO);
    put_array(&server);
    let mut limits = Limits::default();
    // Planned as if one batch had room for all, which together are longer.
    limits.in_flight = 3 * 4096;
    let options = hyperslab::OpenOptions::new().with_limits(limits);
    let file = hyperslab::open_with(server.url("/s#mode=zarr"), &options).unwrap();
    for chunk in 0..4u8 {
        // Stored blocks, which are longer than what they hold, with empty ones before them.
        let mut deflated = vec![0x78, 0x01];
        deflated.extend([0, 0, 0, 0xff, 0xff].repeat(800));
        deflated.extend([1, 0, 4, 0xff, 0xfb]);
        deflated.extend([chunk; 1024]);
        let sum = [chunk; 1024].iter().fold((1u32, 0u32), |(a, b), &x| {
            let a = (a + u32::from(x)) % 65521;
            (a, (b + a) % 65521)
        });
        deflated.extend((sum.1 << 16 | sum.0).to_be_bytes());
        server.put(&format!("/s/z/{chunk}"), deflated);
    }
    let read = file.array("/z").unwrap().read::<u8>(sel("[...]")).unwrap().data;
    assert!(read.chunks(1024).zip(0..).all(|(chunk, n)| chunk.iter().all(|&x| x == n)));
    // At least one of them had to be asked for again.
    let asked =
        server.log().iter().filter(|r| r.path().starts_with("/s/z/") && !r.path().ends_with("y")).count();
    assert!(asked > 4, "{asked}");
}

#[test]
fn sources_of_a_virtual_dataset_do_not_wait_for_one_another() {
    let folder = format!("{}/tests/data/virtual/", env!("CARGO_MANIFEST_DIR"));
    let server = Server::start(LATENCY);
    server.put("/x/many.h5", std::fs::read(format!("{folder}many.h5")).unwrap());
    let source = fixture("virtual/many_source.h5");
    let at = source.windows(16).position(|w| w == [0xab; 16]).unwrap();
    for n in 0..12u8 {
        let mut source = source.clone();
        source[at..at + 20_000].fill(n);
        server.put(&format!("/x/n{n:02}.h5"), source);
    }
    // So little that elements do not come with the first request.
    let mut remote = RemoteOptions::default();
    remote.first = 600;
    let mut options = hyperslab::OpenOptions::new();
    options.remote = remote;
    let open = || hyperslab::open_with(server.url("/x/many.h5"), &options).unwrap();
    for name in ["all", "over"] {
        let array = open().array(name).unwrap();
        server.forget();
        let read = array.read::<u8>(sel("[...]")).unwrap().data;
        let step = if name == "all" { 20_000 } else { 10_000 };
        let wanted: Vec<u8> = (0..read.len()).map(|i| (i / step).min(11) as u8).collect();
        assert!(read == wanted, "{name}");
        let (requests, _, waves) = server.count();
        assert!(requests >= 24 && waves < 12, "{name}: {requests} requests in {waves} waves");
        // What is open is not opened again, and what is read together takes one wave.
        server.forget();
        assert!(array.read::<u8>(sel("[...]")).unwrap().data == wanted);
        let (requests, _, waves) = server.count();
        assert!(requests == 12 && waves <= 2, "{name}: {requests} requests in {waves} waves");
    }
    // The error is that of the first source that fails, whichever answers first.
    server.on(|r| (r.path() > "/x/n04").then_some(Fault::Status(403, "text/plain", "")));
    for _ in 0..3 {
        let error = open().array("all").unwrap().read::<u8>(sel("[...]")).unwrap_err().to_string();
        assert!(error.contains("n04.h5") && error.contains("HTTP 403"), "{error}");
    }
    // A source that is not there gives fill, as on disk.
    server.on(|r| (r.path() == "/x/n04.h5").then_some(Fault::Status(404, "text/plain", "")));
    let read = open().array("over").unwrap().read::<u8>(sel("[...]")).unwrap().data;
    assert_eq!((read[39_999], read[40_000], read[49_999], read[50_000]), (3, 3, 3, 5));
}

/// How many numbered sources there are is found out by looking for the first that is missing.
#[test]
fn numbered_sources_of_a_virtual_dataset_are_looked_for_together() {
    let folder = format!("{}/tests/data/virtual/", env!("CARGO_MANIFEST_DIR"));
    let server = Server::start(LATENCY);
    server.put("/x/numbered.h5", std::fs::read(format!("{folder}numbered.h5")).unwrap());
    let source = fixture("virtual/many_source.h5");
    let at = source.windows(16).position(|w| w == [0xab; 16]).unwrap();
    // What comes behind a gap does not count, whatever it is.
    for n in (0..40u8).chain([41]) {
        let mut source = source.clone();
        source[at..at + 20_000].fill(n);
        server.put(&format!("/x/m{n}.h5"), if n == 41 { b"no file".to_vec() } else { source });
    }
    let file = hyperslab::open(server.url("/x/numbered.h5")).unwrap();
    server.forget();
    let array = file.array("d").unwrap();
    assert_eq!(array.shape(), [800_000]);
    let (requests, _, waves) = server.count();
    assert!(requests >= 41 && waves < 20, "{requests} requests in {waves} waves");
    let read = array.read::<u8>(sel("[...]")).unwrap().data;
    assert!(read.chunks(20_000).zip(0..).all(|(part, n)| part.iter().all(|&x| x == n)));
    // One that may not be seen is not the end.
    server.on(|r| (r.path() == "/x/m20.h5").then_some(Fault::Status(403, "text/plain", "")));
    let error = hyperslab::open(server.url("/x/numbered.h5")).unwrap().array("d").unwrap_err();
    assert!(error.kind() == hyperslab::ErrorKind::Permission && error.to_string().contains("m20"), "{error}");
}

#[test]
fn thousands_of_small_arrays_are_looked_at_in_few_requests() {
    let server = serve("far_objects.h5", LATENCY, 0);
    let all = |file: &File| {
        let arrays = file.walk().filter_map(|entry| match entry.open(file) {
            Ok(Object::Array(array)) => Some(array.read_raw(sel("[...]")).unwrap().bytes.to_vec()),
            _ => None,
        });
        arrays.collect::<Vec<_>>()
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("o.h5");
    std::fs::write(&path, fixture("far_objects.h5")).unwrap();
    let wanted = all(&hyperslab::open(path.as_path()).unwrap());
    assert!(wanted.len() > 900);
    let file = hyperslab::open(server.url("/far_objects.h5")).unwrap();
    assert!(all(&file) == wanted);
    let (requests, bytes, _) = server.count();
    assert!(requests <= 60 && bytes < 8 << 20, "{requests} requests, {bytes} bytes");
    server.forget();
    let file = hyperslab::open(server.url("/far_objects.h5")).unwrap();
    for entry in file.walk() {
        if let Ok(Object::Array(array)) = entry.open(&file) {
            array.verify(&mut |e| panic!("{e:?}"));
        }
    }
    let (requests, bytes, _) = server.count();
    assert!(requests <= 90, "check: {requests} requests, {bytes} bytes");
}
