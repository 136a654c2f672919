//! Every numeric type read as every other, as HDF5 converts.

use crate::report;
use conformance::reference;
use hyperslab::dtype::Element;
use hyperslab::{Array, Selection};

/// The elements of `array` read as `T`, in little-endian hex.
fn hex<T: Element, const N: usize>(
    array: &Array,
    bytes: impl Fn(T) -> [u8; N],
) -> Result<String, hyperslab::Error> {
    let data = array.read::<T>(Selection::all())?.data;
    Ok(data.into_iter().flat_map(bytes).map(|b| format!("{b:02x}")).collect())
}

#[test]
fn numbers_convert_as_hdf5_converts_them() {
    let folder = reference::generated("conversions.py", &[]);
    let file =
        hyperslab::open(folder.join("numbers.h5").to_str().expect("a path that is text")).expect("it opens");
    let expected = reference::json(&folder.join("expected.json"));
    let (mut total, mut wrong) = (0, Vec::new());
    for (name, answers) in expected.as_object().expect("datasets by name") {
        let array = file.array(name).expect("the dataset is there");
        for (wanted, expected) in answers.as_object().expect("answers by type") {
            total += 1;
            let found = match wanted.as_str() {
                "i1" => hex(&array, i8::to_le_bytes),
                "u1" => hex(&array, u8::to_le_bytes),
                "i2" => hex(&array, i16::to_le_bytes),
                "u2" => hex(&array, u16::to_le_bytes),
                "i4" => hex(&array, i32::to_le_bytes),
                "u4" => hex(&array, u32::to_le_bytes),
                "i8" => hex(&array, i64::to_le_bytes),
                "u8" => hex(&array, u64::to_le_bytes),
                "f2" => hex(&array, half::f16::to_le_bytes),
                "f4" => hex(&array, f32::to_le_bytes),
                _ => hex(&array, f64::to_le_bytes),
            };
            match found {
                Ok(found) => {
                    let width = 2 * wanted[1..].parse::<usize>().expect("a size");
                    let expected = expected.as_str().expect("hex");
                    if found.len() != expected.len() {
                        wrong.push(format!(
                            "{name} as {wanted}: {} digits, not {}",
                            found.len(),
                            expected.len()
                        ));
                        continue;
                    }
                    let elements = |text: &str| -> Vec<String> {
                        text.as_bytes()
                            .chunks(width)
                            .map(|c| String::from_utf8_lossy(c).into_owned())
                            .collect()
                    };
                    let pairs = elements(&found).into_iter().zip(elements(expected)).enumerate();
                    // The first element that differs says most.
                    if let Some((i, (ours, theirs))) =
                        pairs.into_iter().find(|(_, (a, b))| a != b && !b.contains('?'))
                    {
                        wrong.push(format!("{name} as {wanted}: element {i} is {ours}, not {theirs}"));
                    }
                }
                Err(error) => wrong.push(format!("{name} as {wanted}: {error}")),
            }
        }
    }
    report("conversions", total, &wrong);
}
