use super::*;
use proptest::prelude::*;

fn axis(extent: usize, positions: Positions, cuts: Vec<usize>) -> Axis {
    Axis { extent, positions, cuts }
}

fn even(start: usize, step: isize, count: usize) -> Positions {
    Positions::Even { start, step, count }
}

#[test]
fn a_canvas_refuses_what_is_not_disjoint_or_not_inside() {
    let mut out = [0u8; 12];
    let mut fits = |axes: Vec<Axis>| Canvas::new(&mut out, 2, axes).is_some();
    assert!(fits(vec![axis(6, even(0, 1, 6), vec![0, 3, 6])]));
    assert!(fits(vec![axis(6, even(5, -2, 3), vec![0, 3])]));
    assert!(fits(vec![axis(6, Positions::Listed(vec![5, 0, 2]), vec![0, 1, 3])]));
    assert!(fits(vec![axis(2, even(0, 1, 2), vec![0, 2]), axis(3, even(0, 1, 0), vec![0])]));
    assert!(!fits(vec![axis(5, even(0, 1, 5), vec![0, 5])]), "other size");
    assert!(!fits(vec![axis(6, even(0, 1, 7), vec![0, 7])]), "past the end");
    assert!(!fits(vec![axis(6, even(1, -1, 3), vec![0, 3])]), "before the start");
    assert!(!fits(vec![axis(6, even(1, 0, 2), vec![0, 2])]), "same position");
    assert!(!fits(vec![axis(6, Positions::Listed(vec![5, 0, 5]), vec![0, 3])]), "same position");
    assert!(!fits(vec![axis(6, Positions::Listed(vec![6]), vec![0, 1])]), "outside");
    assert!(!fits(vec![axis(6, even(0, 1, 6), vec![0, 4, 3, 6])]), "cuts out of order");
    assert!(!fits(vec![axis(6, even(0, 1, 6), vec![0, 5])]), "cuts end early");
    assert!(!fits(vec![axis(6, even(0, 1, 6), vec![])]), "no cuts");
    assert!(Canvas::new(&mut [], 0, vec![]).is_none(), "elements without bytes");
}

#[test]
fn a_tile_is_handed_out_once() {
    let mut out = [0u8; 6];
    let axes = vec![axis(2, even(0, 1, 2), vec![0, 1, 2]), axis(3, even(0, 1, 3), vec![0, 3])];
    let canvas = Canvas::new(&mut out, 1, axes).unwrap();
    assert!(canvas.claim([0, 0]).is_some());
    assert!(canvas.claim([0, 0]).is_none());
    assert!(canvas.claim([1, 0]).is_some());
    assert!(canvas.claim([2, 0]).is_none());
    assert!(canvas.claim([1, 1]).is_none());
    assert!(canvas.claim([1]).is_none());
    assert!(canvas.claim([1, 0, 0]).is_none());
}

#[test]
fn lanes_must_stay_in_the_tile_and_the_source() {
    let mut out = [0u8; 6];
    let canvas = Canvas::new(&mut out, 1, vec![axis(6, even(0, 1, 6), vec![0, 4, 6])]).unwrap();
    let mut tile = canvas.claim([0]).unwrap();
    let mut put = |first, count, start, step| {
        let lane = Lane { first, count, input: Input::Even { start, step } };
        tile.place(&[lane], &[1, 2, 3, 4], 0, &Verbatim::<1>)
    };
    assert_eq!(put(0, 4, 0, 1), Ok(()));
    assert_eq!(put(2, 2, 2, 1), Ok(()));
    assert_eq!(put(0, 0, 9, 1), Ok(()));
    assert_eq!(put(3, 2, 0, 1), Err(PlaceError::Bounds));
    assert_eq!(put(0, 4, 1, 1), Err(PlaceError::Bounds));
    assert_eq!(put(0, 3, 0, usize::MAX), Err(PlaceError::Bounds));
    assert_eq!(put(usize::MAX, 2, 0, 1), Err(PlaceError::Bounds));
    let lane = Lane { first: 0, count: 2, input: Input::Listed(&[0]) };
    assert_eq!(tile.place(&[lane], &[1], 0, &Verbatim::<1>), Err(PlaceError::Bounds));
    assert_eq!(tile.place(&[], &[1], 0, &Verbatim::<1>), Err(PlaceError::Bounds));
}

#[test]
fn lanes_know_when_they_are_one_run() {
    let mut out = [0u8; 24];
    fn whole(tile: &mut Tile<'_>, steps: &[usize]) -> Option<(usize, usize)> {
        let items = tile.items().to_vec();
        let lane = |(&(first, count), &step): (&(usize, usize), &usize)| Lane {
            first,
            count,
            input: Input::Even { start: 3, step },
        };
        let lanes: Vec<Lane<'_>> = items.iter().zip(steps).map(lane).collect();
        tile.run(&lanes).map(|(first, bytes)| (first, bytes.len()))
    }
    let axes = vec![axis(2, even(0, 1, 2), vec![0, 1, 2]), axis(6, even(0, 1, 6), vec![0, 6])];
    let canvas = Canvas::new(&mut out, 2, axes).unwrap();
    assert_eq!(whole(&mut canvas.claim([1, 0]).unwrap(), &[6, 1]), Some((6, 12)));
    assert_eq!(whole(&mut canvas.claim([0, 0]).unwrap(), &[6, 2]), None);
    let axes = vec![axis(2, even(0, 1, 2), vec![0, 2]), axis(6, even(0, 1, 6), vec![0, 3, 6])];
    let canvas = Canvas::new(&mut out, 2, axes).unwrap();
    assert_eq!(whole(&mut canvas.claim([0, 1]).unwrap(), &[3, 1]), None);
    let canvas = Canvas::new(&mut out, 2, vec![axis(12, even(11, -1, 12), vec![0, 12])]).unwrap();
    assert_eq!(whole(&mut canvas.claim([0]).unwrap(), &[1]), None);
    let mut one = [0u8; 2];
    let canvas = Canvas::new(&mut one, 2, vec![]).unwrap();
    assert_eq!(whole(&mut canvas.claim([]).unwrap(), &[]), Some((0, 2)));
}

/// Extent, positions and cuts of an axis.
fn any_axis() -> impl Strategy<Value = Axis> {
    (1usize..7).prop_flat_map(|extent| {
        let listed = Just((0..extent).collect::<Vec<_>>())
            .prop_shuffle()
            .prop_flat_map(move |all| (1..=extent).prop_map(move |n| Positions::Listed(all[..n].to_vec())));
        let evenly = (1..=extent, 1..=3usize, any::<bool>()).prop_map(move |(count, step, down)| {
            let count = count.min((extent - 1) / step + 1);
            let span = (count - 1) * step;
            if down { even(span, -(step as isize), count) } else { even(0, step as isize, count) }
        });
        (prop_oneof![listed, evenly], any::<u8>()).prop_map(move |(positions, bits)| {
            let count = positions.count();
            let mut cuts = vec![0];
            cuts.extend((1..count).filter(|i| bits >> i & 1 == 1));
            cuts.push(count);
            Axis { extent, positions, cuts }
        })
    })
}

fn position(axis: &Axis, item: usize) -> usize {
    match &axis.positions {
        Positions::Even { start, step, .. } => (*start as isize + item as isize * step) as usize,
        Positions::Listed(list) => list[item],
    }
}

proptest! {
    #[test]
    fn tiles_place_every_item_where_it_belongs(
        axes in proptest::collection::vec(any_axis(), 0..4),
        element in 1usize..5,
        listed in any::<bool>(),
    ) {
        let total: usize = axes.iter().map(|a| a.extent).product();
        let counts: Vec<usize> = axes.iter().map(|a| a.positions.count()).collect();
        let elements: usize = counts.iter().product();
        // Source: all items in C order, each element with its number in its first byte.
        let source: Vec<u8> = (0..elements).flat_map(|i| vec![1 + i as u8; element]).collect();
        let mut strides = vec![1; axes.len()];
        for i in (1..axes.len()).rev() {
            strides[i - 1] = strides[i] * counts[i];
        }
        let mut expected = vec![0u8; total * element];
        for (n, value) in source.chunks(element).enumerate() {
            let (mut at, mut stride, mut rest) = (0, 1, n);
            for (axis, &count) in axes.iter().zip(&counts).rev() {
                at += position(axis, rest % count) * stride;
                rest /= count;
                stride *= axis.extent;
            }
            expected[at * element..][..element].copy_from_slice(value);
        }
        let mut out = vec![0u8; total * element];
        {
            let canvas = Canvas::new(&mut out, element, axes.clone()).unwrap();
            let runs: Vec<usize> = axes.iter().map(|a| a.cuts.len() - 1).collect();
            for n in 0..runs.iter().product() {
                let mut rest: usize = n;
                let mut tile: Vec<usize> = runs.iter().rev().map(|&r| { let i = rest % r; rest /= r; i }).collect();
                tile.reverse();
                let mut tile = canvas.claim(tile).unwrap();
                let lists: Vec<Vec<usize>> = tile.items().iter().zip(&strides)
                    .map(|(&(first, count), s)| (first..first + count).map(|i| i * s).collect()).collect();
                let lanes: Vec<Lane> = tile.items().to_vec().iter().enumerate().map(|(i, &(first, count))| Lane {
                    first,
                    count,
                    input: if listed {
                        Input::Listed(&lists[i])
                    } else {
                        Input::Even { start: first * strides[i], step: strides[i] }
                    },
                }).collect();
                // As if the source began at the tile's first element.
                let base: usize = tile.items().iter().zip(&strides).map(|(&(first, _), s)| first * s).sum();
                let placed = match element {
                    1 => tile.place(&lanes, &source[base * element..], base, &Verbatim::<1>),
                    2 => tile.place(&lanes, &source[base * element..], base, &Verbatim::<2>),
                    3 => tile.place(&lanes, &source[base * element..], base, &Verbatim::<3>),
                    _ => tile.place(&lanes, &source[base * element..], base, &Verbatim::<4>),
                };
                prop_assert_eq!(placed, Ok(()));
            }
        }
        prop_assert_eq!(out, expected);
    }
}
