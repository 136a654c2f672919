use super::*;

#[test]
fn runs_cover_a_box_once() {
    for (from, offset, to, count) in [
        ([4u64, 5, 6], [1u64, 0, 2], [2u64, 5, 3], [2u64, 5, 3]),
        ([4, 5, 6], [0, 0, 0], [4, 5, 6], [4, 5, 6]),
        ([4, 5, 6], [3, 4, 5], [3, 3, 3], [1, 1, 1]),
        ([4, 5, 6], [1, 2, 0], [2, 2, 6], [2, 2, 6]),
    ] {
        let mut seen = Vec::new();
        for (f, t, n) in runs(&from, &offset, &to, &count).unwrap() {
            seen.extend((0..n).map(|i| (f + i, t + i)));
        }
        let mut wanted = Vec::new();
        for a in 0..count[0] {
            for b in 0..count[1] {
                for c in 0..count[2] {
                    let f = ((offset[0] + a) * from[1] + offset[1] + b) * from[2] + offset[2] + c;
                    wanted.push((f as usize, ((a * to[1] + b) * to[2] + c) as usize));
                }
            }
        }
        assert_eq!(seen, wanted);
    }
}
