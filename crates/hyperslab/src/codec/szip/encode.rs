//! The entropy encoder: every block by the option that takes fewest bits among splitting, none, and zeros.

use super::super::bits::BitWriter;
use super::Coder;

/// Appends `samples`, in scan lines of `line`.
pub(super) fn encode(coder: &Coder, line: usize, samples: &[u32], out: &mut Vec<u8>) {
    let mut writer = BitWriter::new(out);
    let mut padded = Vec::new();
    for line in samples.chunks(line) {
        padded.clear();
        padded.extend_from_slice(line);
        // Whole blocks and, but for the last line, all blocks of a line; the last sample again costs least.
        let last = line.last().copied().unwrap_or(0);
        padded.resize(coder.block * coder.blocks, last);
        if coder.differences {
            fold_differences(coder, &mut padded);
        }
        for (i, block) in padded.chunks_exact(coder.block).enumerate() {
            encode_block(coder, coder.differences && i == 0, block, &mut writer);
        }
    }
    writer.finish();
}

fn encode_block(coder: &Coder, has_reference: bool, block: &[u32], writer: &mut BitWriter) {
    let option_bits = coder.option_bits();
    let coded = block.get(usize::from(has_reference)..).unwrap_or_default();
    let reference = block.first().filter(|_| has_reference);
    let write_reference = |writer: &mut BitWriter| {
        if let Some(&reference) = reference {
            writer.write(reference.into(), coder.bits);
        }
    };
    if coded.iter().all(|&sample| sample == 0) {
        writer.write(0, option_bits + 1);
        write_reference(writer);
        writer.unary(0);
        return;
    }
    // Splitting off `low` bits costs them and the rest in unary.
    let cost = |low: u32| coded.iter().map(|&s| u64::from(s >> low) + 1 + u64::from(low)).sum::<u64>();
    let most = (1u32 << option_bits) - 3;
    let best = (0..=most).map(|low| (cost(low), low)).min();
    let plain = coded.len() as u64 * u64::from(coder.bits);
    match best {
        Some((cost, low)) if cost < plain => {
            writer.write((low + 1).into(), option_bits);
            write_reference(writer);
            coded.iter().for_each(|&sample| writer.unary(sample >> low));
            coded.iter().for_each(|&sample| writer.write(sample.into(), low));
        }
        _ => {
            writer.write((1 << option_bits) - 1, option_bits);
            block.iter().for_each(|&sample| writer.write(sample.into(), coder.bits));
        }
    }
}

/// Replaces all samples but the first by their differences to the one before, folded to be not negative.
fn fold_differences(coder: &Coder, samples: &mut [u32]) {
    let most = coder.most();
    let mut samples = samples.iter_mut();
    let Some(&mut mut before) = samples.next() else { return };
    for sample in samples {
        let value = *sample;
        let room = before.min(most - before);
        let distance = value.abs_diff(before);
        *sample = if distance > room {
            room + distance
        } else if value >= before {
            2 * distance
        } else {
            2 * distance - 1
        };
        before = value;
    }
}
