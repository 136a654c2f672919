//! Writers of stores that keep nobody out, and of those that fail.

use super::*;
use crate::dtype::{ByteOrder, IntegerType};
use crate::model::write::{LayoutSpec, ShardSpec};
use crate::source::store::{Get, Listing, MemoryStore, Precondition, Store, Version};
use crate::source::{ReadHints, Source};
use bytes::Bytes;
use std::sync::atomic::{AtomicI64, Ordering};

/// A store in memory that keeps nobody out, as object stores are, and fails when it is told to.
#[derive(Debug)]
struct Cloud {
    inner: MemoryStore,
    /// Requests until one fails.
    left: AtomicI64,
    /// Whether all later ones fail, too: the program has died.
    dies: bool,
}

impl Cloud {
    fn new(dies: bool) -> Cloud {
        Cloud { inner: MemoryStore::new(), left: AtomicI64::new(i64::MAX), dies }
    }

    fn heal(&self) {
        self.left.store(i64::MAX, Ordering::Relaxed);
    }

    fn ask(&self) -> Result<&MemoryStore> {
        let left = self.left.fetch_sub(1, Ordering::Relaxed);
        let fails = if self.dies { left <= 0 } else { left == 0 };
        if fails { Err(Error::new(ErrorKind::Permission, "the server says no")) } else { Ok(&self.inner) }
    }
}

impl Store for Cloud {
    fn len(&self, key: &str) -> Result<Option<u64>> {
        self.ask()?.len(key)
    }

    fn get_many(&self, gets: &[Get]) -> Vec<Result<Option<Bytes>>> {
        match self.ask() {
            Ok(store) => store.get_many(gets),
            Err(_) => gets.iter().map(|_| Err(Error::new(ErrorKind::Permission, "no"))).collect(),
        }
    }

    fn version(&self, key: &str) -> Result<Option<Version>> {
        self.ask()?.version(key)
    }

    fn put(&self, key: &str, bytes: Bytes, when: &Precondition) -> Result<Version> {
        self.ask()?.put(key, bytes, when)
    }

    fn delete(&self, key: &str) -> Result<bool> {
        self.ask()?.delete(key)
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>> {
        self.ask()?.list(prefix)
    }

    fn search(&self, prefix: &str) -> Result<Listing> {
        self.ask()?.search(prefix)
    }

    fn hints(&self) -> ReadHints {
        self.inner.hints()
    }

    fn name(&self) -> String {
        "cloud".into()
    }

    fn open(&self, key: &str) -> Result<Option<Arc<dyn Source>>> {
        self.ask()?.open(key)
    }
}

fn int32() -> DType {
    DType::Integer(IntegerType::new(4, ByteOrder::Little, true))
}

fn sharded(shape: &[u64], chunk: &[u64], shard: &[u64]) -> ArraySpec {
    let mut spec = ArraySpec::simple(int32(), shape);
    let shard = ShardSpec { extents: shard.to_vec(), index_at_start: false };
    spec.layout = LayoutSpec::Chunked { chunk: chunk.to_vec(), shard: Some(shard) };
    spec
}

fn open(store: &Arc<Cloud>) -> Result<File> {
    let hierarchy = crate::format::open_store(store.clone(), Default::default())?;
    Ok(File::from_hierarchy(hierarchy, "cloud", &OpenOptions::default()))
}

fn ones(file: &File, path: &str) -> usize {
    let data = file.array(path).unwrap().read::<i32>(..).unwrap().data;
    data.iter().filter(|&&v| v == 1).count()
}

fn make(store: &Arc<Cloud>, options: &CreateOptions) -> Result<()> {
    let mut transaction = File::create_in(store.clone(), Format::Zarr3, options)?;
    transaction.create_group("g")?;
    transaction.create_array("g/a", sharded(&[8, 8], &[2, 2], &[4, 4]))?;
    transaction.create_array("g/old", ArraySpec::simple(int32(), &[4]).with_chunk(&[2]))?;
    for (path, shape) in [("g/a", vec![8, 8]), ("g/old", vec![4])] {
        let mut staged = StagedArray::full(&shape, &shape, &int32(), None)?;
        staged.set(.., 1)?;
        staged.commit_to(&mut transaction, path)?;
    }
    transaction.commit().map(drop)
}

fn change_it(store: &Arc<Cloud>) -> Result<()> {
    let mut transaction = File::edit_in(store.clone(), &OpenOptions::default())?;
    transaction.set("g/a", crate::Selection::parse("[1:7, 3:5]")?, 2)?;
    transaction.set_attribute("g", "title", "new")?;
    transaction.apply(Change::Delete { path: ObjectPath::parse("g/old")? })?;
    transaction.create_array("g/new", ArraySpec::simple(int32(), &[4]).with_chunk(&[2]))?;
    transaction.commit().map(drop)
}

/// Whether a store is as it was before [`change_it`], or as after; it is nothing else.
fn is_new(store: &Arc<Cloud>) -> bool {
    let file = open(store).unwrap();
    let group = file.group("g").unwrap();
    let found = (
        ones(&file, "g/a") == 64 - 12,
        group.attribute("title").is_ok(),
        file.array("g/old").is_err(),
        file.array("g/new").is_ok(),
    );
    let new = found == (true, true, true, true);
    assert!(new || found == (false, false, false, false) && ones(&file, "g/a") == 64, "{found:?}");
    new
}

#[test]
fn edits_that_break_off_at_any_request_leave_the_old_state_or_the_new_one() {
    for dies in [false, true] {
        let (mut states, mut before) = (0, 0);
        loop {
            let store = Arc::new(Cloud::new(dies));
            make(&store, &CreateOptions::default()).unwrap();
            store.left.store(states, Ordering::Relaxed);
            let done = change_it(&store);
            let all = store.left.load(Ordering::Relaxed) > 0;
            store.heal();
            // The next writer finishes what was committed.
            drop(File::edit_in(store.clone(), &OpenOptions::default()).unwrap());
            let new = is_new(&store);
            assert!(new || done.is_err(), "request {states}: said to be done");
            before += usize::from(!new);
            // A turn that could not be given up does no harm.
            let intent = store.inner.get(".hyperslab/intent.json").unwrap().unwrap_or_default();
            assert!(intent.is_empty() || intent.windows(10).any(|w| w == b"\"prepared\""), "{intent:?}");
            if all {
                done.unwrap();
                break;
            }
            if let Err(e) = done {
                assert!(!new || e.to_string().contains("is committed"), "request {states}: {e}");
            }
            states += 1;
            // Whatever is left, the change can be made again.
            if !new {
                change_it(&store).unwrap();
                assert!(is_new(&store));
            }
        }
        assert!(states > 40 && before > 20 && before < states as usize, "{before} of {states}");
    }
}

#[test]
fn new_hierarchies_that_break_off_are_not_there() {
    for dies in [false, true] {
        for request in 0.. {
            let store = Arc::new(Cloud::new(dies));
            store.left.store(request, Ordering::Relaxed);
            let done = make(&store, &CreateOptions::default());
            let all = store.left.load(Ordering::Relaxed) > 0;
            store.heal();
            match open(&store) {
                Ok(file) => {
                    assert_eq!((ones(&file, "g/a"), ones(&file, "g/old")), (64, 4), "request {request}")
                }
                Err(_) => assert!(done.is_err(), "request {request}"),
            }
            if all {
                done.unwrap();
                assert!(request > 10);
                break;
            }
            // What is left is not taken for chunks of another one.
            let mut left = store.inner.list("").unwrap();
            left.retain(|key| !key.starts_with(".hyperslab"));
            if !left.is_empty() {
                let refused = make(&store, &CreateOptions::default()).unwrap_err();
                assert_eq!(refused.kind(), ErrorKind::AlreadyExists, "{left:?}");
            }
            make(&store, &CreateOptions::default().with_overwrite(true)).unwrap();
            assert_eq!(ones(&open(&store).unwrap(), "g/a"), 64);
        }
    }
}

#[test]
fn writers_that_nobody_keeps_out_lose_no_cells() {
    let store = Arc::new(Cloud::new(false));
    let mut transaction = File::create_in(store.clone(), Format::Zarr3, &CreateOptions::default()).unwrap();
    transaction.create_array("a", sharded(&[20, 20], &[5, 5], &[10, 10])).unwrap();
    transaction.commit().unwrap();
    let refused = AtomicI64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let (store, refused) = (store.clone(), &refused);
            scope.spawn(move || {
                // Of no chunk all cells, of every shard some.
                for part in 0..5u64 {
                    let text = format!("[{}:{}, {}:{}]", part * 4, part * 4 + 4, thread * 5, thread * 5 + 5);
                    let mut tries = 0;
                    loop {
                        let edited = File::edit_in(store.clone(), &OpenOptions::default());
                        let done = edited.and_then(|mut transaction| {
                            transaction.set("a", crate::Selection::parse(&text).unwrap(), 1)?;
                            transaction.commit()
                        });
                        match done {
                            Ok(_) => break,
                            Err(e) if e.kind() == ErrorKind::Changed && tries < 500 => {
                                tries += 1;
                                refused.fetch_add(1, Ordering::Relaxed);
                            }
                            Err(e) => panic!("{e}"),
                        }
                    }
                }
            });
        }
    });
    assert_eq!(ones(&open(&store).unwrap(), "a"), 400, "{refused:?} were refused");
    let left: Vec<_> = store.list("").unwrap();
    assert!(left.iter().all(|key| !key.starts_with(".hyperslab")), "{left:?}");
}

#[test]
fn a_change_of_extents_and_a_chunk_do_not_go_together() {
    let store = Arc::new(Cloud::new(false));
    make(&store, &CreateOptions::default()).unwrap();
    let mut first = File::edit_in(store.clone(), &OpenOptions::default()).unwrap();
    first.set("g/a", .., 3).unwrap();
    let mut second = File::edit_in(store.clone(), &OpenOptions::default()).unwrap();
    let array = ObjectPath::parse("g/a").unwrap();
    second.apply(Change::Resize { array, shape: vec![3, 3] }).unwrap();
    second.commit().unwrap();
    // Its chunks are of an array that is not the one that is there.
    assert_eq!(first.commit().unwrap_err().kind(), ErrorKind::Changed);
    assert_eq!(ones(&open(&store).unwrap(), "g/a"), 9);
}

#[test]
fn what_lies_where_an_array_comes_is_not_of_it() {
    let store = Arc::new(Cloud::new(false));
    make(&store, &CreateOptions::default()).unwrap();
    store.put("g/b/c/0", vec![1; 8].into(), &Precondition::None).unwrap();
    let mut transaction = File::edit_in(store.clone(), &OpenOptions::default()).unwrap();
    transaction.create_array("g/b", ArraySpec::simple(int32(), &[2]).with_chunk(&[2])).unwrap();
    transaction.commit().unwrap();
    assert_eq!(open(&store).unwrap().array("g/b").unwrap().read::<i32>(..).unwrap().data, [0, 0]);
}
