use super::*;
use crate::dtype::{ByteOrder, DType, IntegerType, ReferenceKind};
use crate::error::{Error, ErrorKind, Result};
use crate::model::*;
use crate::shape::Name;
use bytes::Bytes;
use std::sync::Arc;

/// Groups and datatypes in memory; the address of an object is its place in the list.
#[derive(Debug, Default)]
struct Tree {
    /// `None`: a datatype.
    nodes: Vec<Option<Vec<(Name, LinkTarget)>>>,
    neighbour: Option<Arc<dyn Hierarchy>>,
}

impl Tree {
    fn new(nodes: usize) -> Tree {
        Tree { nodes: vec![Some(Vec::new()); nodes], neighbour: None }
    }

    fn link(mut self, from: usize, name: impl Into<Name>, target: LinkTarget) -> Tree {
        let links = self.nodes[from].as_mut().unwrap();
        links.push((name.into(), target));
        links.sort_by(|a, b| a.0.cmp(&b.0));
        self
    }

    fn hard(self, from: usize, name: impl Into<Name>, to: usize) -> Tree {
        self.link(from, name, LinkTarget::Hard(NodeId::Address(to as u64)))
    }

    fn soft(self, from: usize, name: &str, target: &str) -> Tree {
        self.link(from, name, LinkTarget::Soft(target.into()))
    }

    fn file(self) -> File {
        File::from_hierarchy(Arc::new(self), "memory", &OpenOptions::default())
    }

    fn node(&self, node: &NodeId) -> Result<&Option<Vec<(Name, LinkTarget)>>> {
        let NodeId::Address(a) = node else { return Err(Error::invalid("not an address")) };
        self.nodes.get(*a as usize).ok_or_else(|| Error::corrupt("object header", *a, "broken"))
    }
}

impl Hierarchy for Tree {
    fn info(&self) -> FileInfo {
        FileInfo { format: "memory", ..FileInfo::default() }
    }
    fn root(&self) -> NodeId {
        NodeId::Address(0)
    }
    fn kind(&self, node: &NodeId) -> Result<NodeKind> {
        Ok(if self.node(node)?.is_some() { NodeKind::Group } else { NodeKind::Datatype })
    }
    fn links(&self, group: &NodeId) -> Result<Links> {
        let links = self.node(group)?.iter().flatten();
        let link = |(name, target): &(Name, LinkTarget)| Link {
            name: name.clone(),
            target: target.clone(),
            creation_order: None,
        };
        Ok(Links { links: links.map(link).collect(), ..Links::default() })
    }
    fn link(&self, group: &NodeId, name: &Name) -> Result<Option<Link>> {
        Ok(self.links(group)?.links.into_iter().find(|l| l.name == *name))
    }
    fn attributes(&self, _: &NodeId) -> Result<Vec<AttributeEntry>> {
        let attribute = |name: &str, data: &'static [u8]| Attribute {
            name: name.into(),
            dtype: self.datatype(&NodeId::Address(0)).unwrap(),
            space: Dataspace::Simple { dims: vec![data.len() as u64], max: vec![None] },
            data: Bytes::from_static(data),
            order: None,
            committed: None,
        };
        let broken = (Some("broken".into()), Error::corrupt("attribute", 7, "broken"));
        Ok(vec![Ok(attribute("levels", &[1, 2, 3])), Err(broken)])
    }
    fn array(&self, _: &NodeId) -> Result<(ArrayMeta, Storage)> {
        Err(Error::unsupported("arrays"))
    }
    fn datatype(&self, _: &NodeId) -> Result<DType> {
        Ok(DType::Integer(IntegerType::new(1, ByteOrder::Little, true)))
    }
    fn heap_ref(&self, _: &[u8]) -> Result<Option<(u64, HeapRef)>> {
        Ok(None)
    }
    fn heap_objects(&self, _: &[HeapRef]) -> Result<Vec<Bytes>> {
        Ok(Vec::new())
    }
    fn reference(&self, _: ReferenceKind, _: &[u8]) -> Result<Reference> {
        Ok(Reference::Null)
    }
    fn neighbour(&self, file: &Name) -> Result<Option<Arc<dyn Hierarchy>>> {
        match file.as_bytes() {
            b"other.h5" => Ok(self.neighbour.clone()),
            b"../x" => Err(Error::new(ErrorKind::Permission, "outside")),
            _ => Ok(None),
        }
    }
    fn check(&self, _: &mut dyn FnMut(Fault)) {}
}

#[test]
fn handles_go_to_any_thread() {
    fn goes<T: Send + Sync>() {}
    goes::<File>();
    goes::<Group>();
    goes::<Array>();
    goes::<Object>();
    goes::<crate::ReadPlan>();
    goes::<crate::OpenOptions>();
    goes::<Error>();
}

#[test]
fn addresses_split_where_the_file_ends() {
    let exists = |names: &'static [&'static str]| move |f: &str| names.contains(&f);
    let parts = |a: Address| (a.file, a.fragment, a.path);
    let parse = |text: &str, names| parts(Address::parse_with(text, exists(names)));
    let plain = |f: &str, p: &str| (f.to_string(), None, p.to_string());
    assert_eq!(parse("a.h5", &[]), plain("a.h5", "/"));
    assert_eq!(parse("a.h5::", &[]), plain("a.h5", "/"));
    assert_eq!(parse("a.h5::/x[0:3]", &[]), plain("a.h5", "/x[0:3]"));
    assert_eq!(parse("a.h5::x::y", &["a.h5"]), plain("a.h5", "x::y"));
    // The longest file name that exists wins; else the first `::/`.
    assert_eq!(parse("a::b.h5::/x", &["a::b.h5", "a"]), plain("a::b.h5", "/x"));
    assert_eq!(parse("a::b.h5::/x::/y", &[]), plain("a::b.h5", "/x::/y"));
    assert_eq!(parse("run[1].h5::/x[1]", &["run[1].h5"]), plain("run[1].h5", "/x[1]"));
    assert_eq!(parse("a::b", &["a::b"]), plain("a::b", "/"));
    assert_eq!(parse("C:\\data\\a.h5::/x", &[]), plain("C:\\data\\a.h5", "/x"));
    let with_mode = ("a.nc".to_string(), Some("mode=zarr".to_string()), "/x".to_string());
    assert_eq!(parse("a.nc#mode=zarr::/x", &["a.nc"]), with_mode);
    assert_eq!(parse("odd#a=b.nc::/x", &["odd#a=b.nc"]), plain("odd#a=b.nc", "/x"));
    assert_eq!(parse("odd#1.nc", &[]), plain("odd#1.nc", "/"));
}

#[cfg(unix)]
#[test]
fn file_names_need_not_be_text() {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;
    let folder = tempfile::tempdir().unwrap();
    let at =
        |name: &[u8]| OsString::from_vec([folder.path().as_os_str().as_encoded_bytes(), b"/", name].concat());
    let file = at(b"caf\xe9::1.h5");
    std::fs::write(&file, b"").unwrap();
    let path = |text: &[u8]| {
        let address = Address::from(at(text));
        assert_eq!(address.local().as_os_str(), file.as_os_str(), "{address}");
        address.path
    };
    assert_eq!(path(b"caf\xe9::1.h5"), "/");
    assert_eq!(path(b"caf\xe9::1.h5::/x[0]"), "/x[0]");
    assert_eq!(path(b"caf\xe9::1.h5::x::y"), "x::y");
    // The file is found, and is no HDF5 file.
    let error = crate::open(Address::from(file.clone())).unwrap_err();
    assert!(error.to_string().contains("caf\u{fffd}::1.h5"), "{error}");
    // What is not there is taken for one name.
    assert_eq!(Address::from(at(b"\xff::/x")).local().as_os_str(), at(b"\xff::/x"));
}

#[test]
fn slices_are_the_last_brackets() {
    let split = |text: &str| Address::parse(text).split_slice().map(|(p, s)| (p.to_string(), s.to_string()));
    assert_eq!(split("a::/x[0, [5, 1], ...]"), Some(("/x".into(), "[0, [5, 1], ...]".into())));
    assert_eq!(split("a::/x[1][2]"), Some(("/x[1]".into(), "[2]".into())));
    assert_eq!(split("a::/x"), None);
    assert_eq!(split("a::/x]"), None);
    assert_eq!(split("a::[1]"), Some(("/".into(), "[1]".into())));
}

#[test]
fn schemes_and_modes_are_refused_by_name() {
    let refused = |text: &str| crate::open(Address::parse(text)).unwrap_err().to_string();
    assert!(refused("gopher://host/a.h5").contains("gopher://"));
    assert!(refused("a.nc#mode=dap4,s3").contains("#mode=dap4,s3"));
    let parts = |text: &str| {
        let a = Address::parse(text);
        (a.file, a.fragment.unwrap_or_default(), a.path)
    };
    let triple = |a: &str, b: &str, c: &str| (a.to_owned(), b.to_owned(), c.to_owned());
    assert_eq!(parts("https://h/a.nc?x=1#bytes::/v[0]"), triple("https://h/a.nc?x=1", "bytes", "/v[0]"));
    assert_eq!(parts("http://[::1]:80/a.nc"), triple("http://[::1]:80/a.nc", "", "/"));
    assert_eq!(parts("http://[::1]:80/a.nc::v"), triple("http://[::1]:80/a.nc", "", "v"));
    assert_eq!(parts("s3://b/a#b.nc#mode=s3"), triple("s3://b/a#b.nc", "mode=s3", "/"));
    assert_eq!(parts("file:///a.zarr#mode=nczarr,file"), triple("file:///a.zarr", "mode=nczarr,file", "/"));
}

#[test]
fn addresses_lead_to_files_folders_and_zip_files() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a b.bin");
    std::fs::write(&path, b"0123").unwrap();
    std::fs::write(dir.path().join("empty.zip"), [b"PK\x05\x06".as_slice(), &[0; 18]].concat()).unwrap();
    let open = |text: String| Location::open(&Address::parse(&text), &OpenOptions::default());
    let folder = dir.path().display();
    for text in [
        format!("{folder}/a b.bin"),
        format!("file://{folder}/a%20b.bin"),
        format!("file://localhost{folder}/a b.bin"),
    ] {
        assert!(
            matches!(open(text.clone()), Ok(Location::File(source, _)) if source.len().unwrap() == 4),
            "{text}"
        );
    }
    for text in
        [format!("{folder}"), format!("file://{folder}/#mode=zarr,file"), format!("{folder}/empty.zip")]
    {
        assert!(matches!(open(text.clone()), Ok(Location::Store(_))), "{text}");
    }
    assert_eq!(open(format!("{folder}/none")).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn paths_lead_through_soft_links_and_dots() {
    let file = Tree::new(4)
        .hard(0, "a", 1)
        .hard(1, "b", 2)
        .hard(2, "c", 3)
        .soft(1, "near", "b/./c")
        .soft(2, "far", "/a/near")
        .file();
    for path in ["/a/b/c", "a//b/./c/", "/a/near", "/a/b/far"] {
        assert_eq!(*file.get(path).unwrap().node(), NodeId::Address(3), "{path}");
    }
    assert_eq!(file.get("/a/b/far").unwrap().path(), "/a/b/c");
    assert_eq!(file.get("/").unwrap().path(), "/");
    let group = file.group("a").unwrap();
    assert_eq!(group.get("b").unwrap().path(), "/a/b");
    assert_eq!(group.get("/a").unwrap().path(), "/a");
    assert_eq!(group.children().unwrap().len(), 2);
}

#[test]
fn what_is_missing_is_named_with_what_is_near() {
    let file = Tree::new(3).hard(0, "temperature", 1).hard(1, "values", 2).file();
    let message = |path: &str| {
        let e = file.get(path).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::NotFound);
        e.to_string()
    };
    let e = message("/temprature/values");
    assert!(e.contains("no temprature in group /") && e.contains("did you mean temperature?"), "{e}");
    let e = message("/temperature/xyz");
    assert!(e.contains("no xyz in group /temperature") && e.contains("there are values"), "{e}");
    let e = message("/temperature/values/a");
    assert!(e.contains("none at all"), "{e}");
}

#[test]
fn circles_of_links_end() {
    let file = Tree::new(1).soft(0, "a", "b").soft(0, "b", "/a").soft(0, "deep", "deep/deep").file();
    for path in ["/a", "/b/x", "/deep"] {
        let e = file.get(path).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::LimitExceeded);
        assert!(e.to_string().contains("circle"), "{e}");
    }
}

#[test]
fn external_links_lead_to_neighbours_only() {
    let external = |file: &str, path: &str| LinkTarget::External { file: file.into(), path: path.into() };
    let mut tree = Tree::new(1)
        .link(0, "there", external("other.h5", "/x"))
        .link(0, "gone", external("gone.h5", "/x"))
        .link(0, "out", external("../x", "/x"))
        .link(0, "own", LinkTarget::UserDefined { class: 70, data: Bytes::new() });
    tree.neighbour = Some(Arc::new(Tree::new(2).hard(0, "x", 1)));
    let file = tree.file();
    assert_eq!(file.get("/there").unwrap().path(), "/x");
    let kind = |path: &str| file.get(path).unwrap_err().kind();
    assert_eq!(kind("/gone"), ErrorKind::NotFound);
    assert_eq!(kind("/out"), ErrorKind::Permission);
    assert_eq!(kind("/own"), ErrorKind::Unsupported);
}

#[test]
fn names_that_are_not_text_are_spelled_in_hex() {
    let file = Tree::new(3).hard(0, &b"\xff\x01"[..], 1).hard(0, "hex:ff02", 2).file();
    assert_eq!(*file.get("/hex:ff01").unwrap().node(), NodeId::Address(1));
    assert_eq!(file.get("hex:ff01").unwrap().path(), "/hex:ff01");
    assert_eq!(*file.get("/hex:ff02").unwrap().node(), NodeId::Address(2));
}

#[test]
fn a_walk_meets_every_object_once() {
    let file = Tree::new(4)
        .hard(0, "b", 1)
        .hard(0, "a", 2)
        .hard(2, "again", 1)
        .hard(1, "up", 0)
        .hard(1, "broken", 99)
        .soft(0, "s", "/a")
        .file();
    let seen: Vec<String> = file
        .walk()
        .map(|entry| match entry.item {
            Item::Group(_, links) => format!("{} group of {}", entry.path, links.unwrap().links.len()),
            Item::HardLink(first) => format!("{} = {first}", entry.path),
            Item::SoftLink(target) => format!("{} -> {target}", entry.path),
            Item::Fault(_, e) => format!("{} {}", entry.path, e.code()),
            other => format!("{} {other:?}", entry.path),
        })
        .collect();
    let wanted = ["/ group of 3", "/a group of 1", "/a/again group of 2", "/a/again/broken E_CORRUPT"];
    assert_eq!(seen[..4], wanted);
    assert_eq!(seen[4..], ["/a/again/up = /", "/b = /a/again", "/s -> /a"]);
    assert_eq!(file.paths()[&NodeId::Address(1)], "/a/again");
}

#[test]
fn deep_nesting_costs_no_stack() {
    let deep = 10_000;
    let tree = (0..deep).fold(Tree::new(deep + 1), |t, i| t.hard(i, "g", i + 1));
    let file = tree.file();
    assert_eq!(file.walk().count(), deep + 1);
    let path = "/g".repeat(deep);
    assert_eq!(*file.get(&path).unwrap().node(), NodeId::Address(deep as u64));
}

#[test]
fn attributes_are_values() {
    let root = Tree::new(1).file().root();
    assert_eq!(root.attribute("levels").unwrap().to_string(), "[1, 2, 3]");
    assert_eq!(root.attribute("broken").unwrap_err().kind(), ErrorKind::Corrupt);
    let e = root.attribute("level").unwrap_err();
    assert!(e.to_string().contains("did you mean levels?"), "{e}");
}
