//! The same operations on staged arrays here and in versioned-hdf5: the same elements, and every chunk on the same slab at
//! the same place, with the same hash.

use crate::report;
use conformance::reference;
use hyperslab::RawData;
use hyperslab::dtype::{ByteOrder, DType, FloatType, IntegerType};
use hyperslab::staged::{Block, StagedArray, Values};
use serde_json::Value;

fn dtype(name: &Value) -> DType {
    match name.as_str() {
        Some("i64le") => DType::Integer(IntegerType::new(8, ByteOrder::Little, true)),
        Some("u8") => DType::Integer(IntegerType::new(1, ByteOrder::Little, false)),
        Some("f32be") => DType::Float(FloatType::ieee(4, ByteOrder::Big).expect("a float")),
        other => panic!("no type {other:?}"),
    }
}

fn bytes(hex: &Value) -> Vec<u8> {
    let hex = hex.as_str().expect("text");
    (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).expect("hex")).collect()
}

fn numbers(list: &Value) -> Vec<u64> {
    list.as_array().expect("a list").iter().map(|n| n.as_u64().expect("a number")).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn made(case: &Value) -> hyperslab::Result<StagedArray> {
    let (shape, chunk) = (numbers(&case["shape"]), numbers(&case["chunk"]));
    let dtype = dtype(&case["dtype"]);
    let fill = Some(Values::from(case["fill"].as_i64().expect("a number")));
    let data = || {
        Block::from_raw(RawData { shape: shape.clone(), dtype: dtype.clone(), bytes: bytes(&case["data"]) })
    };
    match case["how"].as_str() {
        Some("full") => StagedArray::full(&shape, &chunk, &dtype, fill),
        Some("base") => StagedArray::from_base(data()?, &chunk, fill),
        _ => StagedArray::from_staged(data()?, &chunk, fill),
    }
}

/// Carries out a step; false if its plan is another one.
fn run(staged: &mut StagedArray, step: &Value) -> hyperslab::Result<bool> {
    let mut same = true;
    match step["what"].as_str() {
        Some("set") => {
            let stored = bytes(&step["values"]);
            let selection = step["selection"].as_str().expect("text");
            let values = Values::stored(&numbers(&step["extents"]), staged.dtype(), &stored)?;
            let plan = staged.set_plan(selection)?.to_string();
            staged.set(selection, values)?;
            let ours: Vec<&str> =
                plan.lines().filter(|line| line.starts_with("  s") || line.starts_with("  #")).collect();
            same = step["plan"].is_null() || serde_json::json!(ours) == step["plan"];
        }
        Some("resize") => staged.resize(&numbers(&step["shape"]))?,
        Some("load") => staged.load()?,
        Some("commit") => {
            staged.commit()?;
        }
        Some("copy") => *staged = staged.copy(),
        Some("refill") => *staged = staged.refill(step["fill"].as_i64().expect("a number"))?,
        Some("astype") => *staged = staged.astype(&dtype(&step["dtype"]))?,
        other => panic!("no operation {other:?}"),
    }
    Ok(same)
}

/// Whether a slab that ends within its last chunk here is one of whole chunks there: versioned-hdf5 pads it when a copy of
/// the array is written, which changes where later chunks are put.
fn is_padded(staged: &StagedArray, step: &Value) -> bool {
    let theirs = step["after"]["slabs"].as_array().expect("a list");
    staged.ledger().slabs().iter().zip(theirs).any(|(ours, theirs)| {
        ours.as_ref().is_some_and(|ours| {
            let (chunk, theirs) = (staged.chunk_shape(), &theirs[0]);
            theirs.as_u64().is_some_and(|rows| rows != ours[0] && rows == ours[0].next_multiple_of(chunk[0]))
        }) || ours.as_ref().is_some_and(|ours| {
            let narrow = ours.iter().zip(staged.chunk_shape()).skip(1).any(|(n, chunk)| n < chunk);
            narrow
                && theirs.is_array()
                && serde_json::json!(ours[1..]) != serde_json::json!(theirs.as_array().map(|t| &t[1..]))
        })
    })
}

/// What differs from the state in `after`.
fn differences(staged: &StagedArray, step: &Value) -> hyperslab::Result<Vec<&'static str>> {
    let (after, ledger) = (&step["after"], staged.ledger());
    let list = |numbers: &[u64]| serde_json::json!(numbers);
    let slabs: Vec<Value> =
        ledger.slabs().iter().map(|s| s.as_ref().map_or(Value::Null, |shape| list(shape))).collect();
    let mut wrong = Vec::new();
    let mut check = |what, same: bool| {
        if !same {
            wrong.push(what);
        }
    };
    check("extents", list(staged.shape()) == after["shape"]);
    let all = staged.get(..)?;
    check("elements", after["data"] == hex(all.bytes().unwrap_or_default()));
    check("slab indices", serde_json::json!(ledger.map().slab_indices()) == after["indices"]);
    check("slab offsets", list(ledger.map().slab_offsets()) == after["offsets"]);
    check("slabs", Value::Array(slabs) == after["slabs"]);
    check("base slabs", serde_json::json!(ledger.base_count()) == after["bases"]);
    if let Some(tables) = step.get("hashes") {
        let ours: Vec<Value> = staged
            .hash_tables()
            .map(|table| {
                table.map_or(Value::Null, |rows| {
                    let row = |row: &[u64; 4]| row.iter().map(|n| hex(&n.to_ne_bytes())).collect::<String>();
                    rows.iter().map(row).collect::<Vec<_>>().into()
                })
            })
            .collect();
        check("hashes", Value::Array(ours) == *tables);
    }
    Ok(wrong)
}

#[test]
fn staged_arrays_are_those_of_versioned_hdf5() {
    let count = std::env::var("HYPERSLAB_STAGED_CASES").unwrap_or("400".into());
    let folder = reference::generated("staged.py", &["1", &count]);
    let cases = reference::json(&folder.join("cases.json"));
    let cases = cases.as_array().expect("a list");
    let (mut wrong, mut padded) = (Vec::new(), 0);
    for (n, case) in cases.iter().enumerate() {
        let mut staged = made(case).expect("it can be made");
        let mut elements_only = false;
        for (i, step) in case["steps"].as_array().expect("a list").iter().enumerate() {
            let done = run(&mut staged, step).and_then(|same| {
                let mut faults = differences(&staged, step)?;
                if !same {
                    faults.push("plan");
                }
                Ok(faults)
            });
            let faults = match done {
                Ok(mut faults) => {
                    if !elements_only && is_padded(&staged, step) {
                        (elements_only, padded) = (true, padded + 1);
                    }
                    if elements_only {
                        faults.retain(|what| ["extents", "elements"].contains(what));
                    }
                    if faults.is_empty() {
                        continue;
                    }
                    faults.join(", ")
                }
                Err(error) => error.to_string(),
            };
            wrong.push(format!("case {n}, step {i} ({}): {faults}", step["what"]));
            break;
        }
    }
    assert!(
        padded * 10 < cases.len(),
        "{padded} of {} sequences compared by their elements only",
        cases.len()
    );
    report("staged arrays", cases.len(), &wrong);
}
