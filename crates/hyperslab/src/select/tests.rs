use super::*;
use crate::error::ErrorKind;
use crate::limits::Limits;
use proptest::prelude::*;

fn parse(text: &str) -> Selection {
    Selection::parse(text).unwrap()
}

fn shape(text: &str, dims: &[u64]) -> Vec<u64> {
    parse(text).resolve(dims, &Limits::default()).unwrap().shape().to_vec()
}

fn failure(text: &str, dims: &[u64]) -> String {
    parse(text).resolve(dims, &Limits::default()).unwrap_err().to_string()
}

#[test]
fn text_is_read_and_written_back() {
    for text in [
        "[0, 2:10:3, ..., [5, 1, 1], None]",
        "[-1, :, ::-1, :-3]",
        "[[[1, 2], [3, 4]]]",
        "[[True, False]]",
        "[...]",
        "[[]]",
    ] {
        assert_eq!(parse(text).to_string(), text);
    }
    assert_eq!(parse("0,1"), parse(" [ 0 , 1 , ] "));
    assert_eq!(parse("[0]"), parse("0"));
    assert_eq!(
        parse("[[0], [1]]"),
        Selection::vectorised(vec![Item::List(List::from(vec![0])), Item::List(List::from(vec![1])),])
    );
    assert_eq!(parse("[0],[1]"), parse("[[0], [1]]"));
    assert_eq!(parse(""), Selection::all());
    assert_eq!(parse("[()]"), Selection::all());
    assert_eq!(parse("np.newaxis, newaxis"), parse("None, None"));
    assert_eq!(parse("[[1,],]"), parse("[[1]]"));
}

#[test]
fn wrong_text_is_refused_with_its_place() {
    for text in [
        "a",
        "1 2",
        "1:2:0",
        "[1, [2, [3]]]",
        "[[1, True]]",
        "[[1, 2], [3]]x",
        "[[[1], [2, 3]]]",
        "1,,2",
        "[",
        "99999999999999999999",
        "[[",
        "[[1",
        "[[[1], 2]]",
        "[[1, [2]]]",
        "--1",
        "é",
    ] {
        let error = Selection::parse(text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{text}: {error}");
    }
    assert!(Selection::parse("0, x").unwrap_err().to_string().contains("at character 4"));
    assert!(Selection::parse(&"[".repeat(100_000)).is_err());
}

#[test]
fn rust_values_become_selections() {
    let written = |s: crate::Result<Selection>| s.unwrap().to_string();
    assert_eq!(written((0, 2..10, .., All, vec![5i64, 1]).into_selection()), "[0, 2:10, :, :, [5, 1]]");
    assert_eq!(written((..=-1i64, ..=4usize, Step(.., -1)).into_selection()), "[:, :5, ::-1]");
    assert_eq!(written((..).into_selection()), "[...]");
    assert_eq!(written("1:2".into_selection()), "[1:2]");
    assert_eq!(written(crate::s![0, 2..10;3, ..., vec![5, 1, 1], None]), "[0, 2:10:3, ..., [5, 1, 1], None]");
    assert_eq!(written(crate::s![]), "[...]");
    assert_eq!(written(crate::s![..;2, -1]), "[::2, -1]");
    assert!((u64::MAX,).into_selection().is_err());
    assert!(Step(3usize, 2).into_selection().is_err());
    assert!(Step(.., 0).into_selection().is_err());
}

#[test]
fn shapes_are_those_of_numpy() {
    let dims = [3, 4, 5];
    for (text, expected) in [
        ("[:, [0, 1], ..., [1, 2]]", &[2, 3][..]),
        ("[:, [0, 1], [1, 2]]", &[3, 2]),
        ("[0, :, [1, 2]]", &[2, 4]),
        ("[..., 0, [1, 2]]", &[3, 2]),
        ("[[1, 2], None, 0]", &[2, 1, 5]),
        ("[0, [[1, 2]]]", &[1, 2, 5]),
        ("[:, True]", &[3, 1, 4, 5]),
        ("[:, 1, True]", &[3, 1, 5]),
        ("[1, True, :, 0]", &[1, 4]),
        ("[[], :]", &[0, 4, 5]),
        ("[[True, False, True], :, [0, 1]]", &[2, 4]),
        ("[5:2, ::-2]", &[0, 2, 5]),
        ("[0, 0, 0]", &[]),
        ("[..., None]", &[3, 4, 5, 1]),
        ("[-100:100]", &[3, 4, 5]),
    ] {
        assert_eq!(shape(text, &dims), expected, "{text}");
    }
    let outer = parse("[[0, 1], :, [1, 2, 4]]").with_mode(Mode::Outer);
    assert_eq!(outer.resolve(&dims, &Limits::default()).unwrap().shape(), [2, 4, 3]);
    assert_eq!(shape("[...]", &[]), [0u64; 0]);
    assert_eq!(shape("[()]", &[]), [0u64; 0]);
}

#[test]
fn what_is_outside_is_named() {
    let dims = [3, 4, 5];
    assert!(failure("[:, 4]", &dims).contains("index 4 is outside of axis 1, which has extent 4"));
    assert!(failure("[:, :, [0, -6]]", &dims).contains("index -6 is outside of axis 2, which has extent 5"));
    assert!(failure("[0, 0, 0, 0]", &dims).contains("4 axes are indexed, but the array has 3"));
    assert!(failure("[..., ...]", &dims).contains("more than one ellipsis"));
    assert!(failure("[[0, 1], [0, 1, 2]]", &dims).contains("cannot be combined point by point"));
    assert!(failure("[:, [True, False]]", &dims).contains("does not fit"));
    assert!(failure("[0]", &[]).contains("1 axes are indexed"));
    assert!(failure("[0]", &[0]).contains("outside of axis 0"));
}

#[test]
fn huge_extents_cost_nothing() {
    let dims = [1 << 63, 1 << 62, 3];
    let limits = Limits::default();
    let region = parse("[-1, ::4611686018427387903]").resolve(&dims, &limits).unwrap();
    assert_eq!(region.shape(), [2, 3]);
    let projection = Projection::new(&region, &[10, 10, 10]).unwrap();
    let coords: Vec<Vec<u64>> = projection.iter().map(|p| p.coord.to_vec()).collect();
    let last = ((1u64 << 63) - 1) / 10;
    assert_eq!(coords, [vec![last, 0, 0], vec![last, ((1 << 62) - 1) / 10, 0]]);
    let all = parse("[...]").resolve(&dims, &limits);
    assert_eq!(all.unwrap_err().kind(), ErrorKind::LimitExceeded);
    let row = parse("[:, 0, 0]").resolve(&dims, &limits).unwrap();
    assert_eq!(Projection::new(&row, &[1 << 23, 1, 1]).unwrap().len(), 1 << 40);
    // Broadcasting that would take all memory is refused before it is done.
    let column = List::new(vec![100_000, 1], vec![0; 100_000]).unwrap();
    let row = List::from(vec![0; 100_000]);
    let error = Selection::vectorised(vec![Item::List(column), Item::List(row)]).resolve(&dims, &limits);
    assert_eq!(error.unwrap_err().kind(), ErrorKind::LimitExceeded);
}

#[test]
fn large_steps_leave_chunks_out() {
    let region = parse("[3::25]").resolve(&[100], &Limits::default()).unwrap();
    let projection = Projection::new(&region, &[10]).unwrap();
    let chunks: Vec<(u64, usize)> = projection.iter().map(|p| (p.coord[0], p.pieces[0].inside(0))).collect();
    assert_eq!(chunks, [(0, 3), (2, 8), (5, 3), (7, 8)]);
    assert!(Projection::new(&region, &[0]).is_err());
    assert!(Projection::new(&region, &[1, 1]).is_err());
}

#[test]
fn regions_from_parts_are_checked() {
    let range = |axis, start, step, count, out_start, out_step| Selector::Range {
        axis,
        start,
        step,
        count,
        out_start,
        out_step,
    };
    let ok = |s: Vec<Selector>, e: Vec<u64>| Region::new(vec![4, 4], s, e.clone(), e).is_ok();
    assert!(ok(vec![range(0, 0, 1, 4, 2, 1), range(1, 3, 1, 1, 0, 1)], vec![6, 1]));
    assert!(ok(vec![Selector::Points { axes: vec![1, 0], points: vec![3, 0], out: vec![5] }], vec![6]));
    assert!(!ok(vec![range(0, 0, 1, 4, 3, 1), range(1, 3, 1, 1, 0, 1)], vec![6, 1]), "position outside");
    assert!(!ok(vec![range(0, 0, 1, 4, 3, -2), range(1, 3, 1, 1, 0, 1)], vec![6, 1]), "position outside");
    assert!(!ok(vec![range(0, 1, 1, 4, 0, 1), range(1, 3, 1, 1, 0, 1)], vec![6, 1]), "index outside");
    assert!(!ok(vec![range(0, 0, 1, 4, 0, 1)], vec![4]), "an axis missing");
    assert!(!ok(vec![range(0, 0, 1, 4, 0, 1), range(0, 0, 1, 4, 0, 1)], vec![4, 4]), "an axis twice");
    assert!(!ok(vec![range(2, 0, 1, 4, 0, 1), range(0, 0, 1, 4, 0, 1)], vec![4, 4]), "no such axis");
    assert!(!ok(vec![Selector::Points { axes: vec![1, 0], points: vec![3], out: vec![5] }], vec![6]));
    assert!(!ok(vec![Selector::Points { axes: vec![1, 0], points: vec![4, 0], out: vec![5] }], vec![6]));
    assert!(!ok(vec![Selector::Points { axes: vec![1, 0], points: vec![3, 0], out: vec![6] }], vec![6]));
}

/// NumPy's indexing by its definition: for each position of the result, the index on each axis of the array.
mod naive {
    use super::*;

    /// Indices picked along one item: the axes they belong to, the shape they have, and for each position of that shape
    /// one index for each axis.
    struct Picked {
        axes: Vec<usize>,
        shape: Vec<u64>,
        picks: Vec<Vec<u64>>,
        advanced: bool,
        index: bool,
    }

    fn positions(shape: &[u64]) -> Vec<Vec<u64>> {
        shape.iter().fold(vec![vec![]], |all, &n| {
            all.iter().flat_map(|p| (0..n).map(move |i| [p.clone(), vec![i]].concat())).collect()
        })
    }

    /// Index tuples in C order of the result, and its shape.
    pub(super) fn select(selection: &Selection, dims: &[u64]) -> (Vec<u64>, Vec<Vec<u64>>) {
        let used: usize = selection
            .items()
            .iter()
            .map(|i| match i {
                Item::Mask(m) => m.shape().len(),
                Item::Ellipsis | Item::NewAxis => 0,
                _ => 1,
            })
            .sum();
        let mut items: Vec<Item> = Vec::new();
        for item in selection.items() {
            items.push(item.clone());
            if *item == Item::Ellipsis {
                items.extend(vec![Item::Slice(Slice::ALL); dims.len() - used]);
            }
        }
        if !items.contains(&Item::Ellipsis) {
            items.extend(vec![Item::Slice(Slice::ALL); dims.len() - used]);
        }
        let mut axis = 0;
        let mut picked = Vec::new();
        for item in &items {
            let n = dims.get(axis).copied().unwrap_or(0) as i64;
            let wrap = |i: i64| if i < 0 { (i + n) as u64 } else { i as u64 };
            let (width, shape, picks): (usize, Vec<u64>, Vec<Vec<u64>>) = match item {
                Item::NewAxis => (0, vec![1], vec![vec![]]),
                Item::Ellipsis => (0, vec![], vec![vec![]]),
                Item::Index(i) => (1, vec![], vec![vec![wrap(*i)]]),
                Item::Slice(s) => {
                    // Walk as a loop would.
                    let at = |v: i64, low: i64, high: i64| (if v < 0 { v + n } else { v }).clamp(low, high);
                    let (mut i, stop) = if s.step > 0 {
                        (s.start.map_or(0, |v| at(v, 0, n)), s.stop.map_or(n, |v| at(v, 0, n)))
                    } else {
                        (s.start.map_or(n - 1, |v| at(v, -1, n - 1)), s.stop.map_or(-1, |v| at(v, -1, n - 1)))
                    };
                    let mut picks = Vec::new();
                    while if s.step > 0 { i < stop } else { i > stop } {
                        picks.push(vec![i as u64]);
                        i = i.saturating_add(s.step);
                    }
                    (1, vec![picks.len() as u64], picks)
                }
                Item::List(l) => (1, l.shape().to_vec(), l.values().iter().map(|&i| vec![wrap(i)]).collect()),
                Item::Mask(m) => {
                    let picks: Vec<Vec<u64>> = positions(m.shape())
                        .into_iter()
                        .zip(m.values())
                        .filter(|(_, v)| **v)
                        .map(|(p, _)| p)
                        .collect();
                    (m.shape().len(), vec![picks.len() as u64], picks)
                }
            };
            picked.push(Picked {
                axes: (axis..axis + width).collect(),
                shape,
                picks,
                advanced: matches!(item, Item::List(_) | Item::Mask(_)),
                index: matches!(item, Item::Index(_)),
            });
            axis += width;
        }
        if selection.mode() == Mode::Vectorised && picked.iter().any(|p| p.advanced) {
            join(&mut picked);
        }
        let shape: Vec<u64> = picked.iter().flat_map(|p| p.shape.clone()).collect();
        let mut out = Vec::new();
        let mut choice = vec![vec![0; dims.len()]];
        for p in &picked {
            choice = choice
                .iter()
                .flat_map(|c| {
                    p.picks.iter().map(move |pick| {
                        let mut c = c.clone();
                        p.axes.iter().zip(pick).for_each(|(&a, &i)| c[a] = i);
                        c
                    })
                })
                .collect();
        }
        out.extend(choice);
        (shape, out)
    }

    /// Broadcasts the advanced items against each other and puts them where NumPy does.
    fn join(picked: &mut Vec<Picked>) {
        let fancy: Vec<usize> =
            (0..picked.len()).filter(|&i| picked[i].advanced || picked[i].index).collect();
        let separated = fancy.windows(2).any(|w| w[1] != w[0] + 1);
        let rank = fancy.iter().map(|&i| picked[i].shape.len()).max().unwrap();
        let padded = |shape: &[u64]| [vec![1; rank - shape.len()], shape.to_vec()].concat();
        let mut shape = vec![1; rank];
        for &i in &fancy {
            for (s, n) in shape.iter_mut().zip(padded(&picked[i].shape)) {
                *s = if *s == 1 { n } else { *s };
            }
        }
        let mut joint =
            Picked { axes: vec![], shape: shape.clone(), picks: vec![], advanced: true, index: false };
        joint.axes = fancy.iter().flat_map(|&i| picked[i].axes.clone()).collect();
        for position in positions(&shape) {
            let mut pick = Vec::new();
            for &i in &fancy {
                let own = padded(&picked[i].shape);
                let at =
                    position.iter().zip(&own).fold(0, |at, (&p, &n)| at * n + if n == 1 { 0 } else { p });
                pick.extend(picked[i].picks[at as usize].clone());
            }
            joint.picks.push(pick);
        }
        let at = if separated { 0 } else { fancy[0] };
        for &i in fancy.iter().rev() {
            picked.remove(i);
        }
        picked.insert(at, joint);
    }
}

fn any_item(extent: u64, length: usize) -> impl Strategy<Value = Item> {
    let n = extent as i64;
    let end = prop_oneof![2 => Just(None), 3 => (-n - 2..=n + 2).prop_map(Some)];
    let step = prop_oneof![3 => Just(1i64), 2 => -4..=-1i64, 2 => 1..=4i64, 1 => Just(i64::MIN), 1 => Just(i64::MAX)];
    let slice =
        (end.clone(), end, step).prop_map(|(start, stop, step)| Item::Slice(Slice { start, stop, step }));
    let mask =
        proptest::collection::vec(any::<bool>(), extent as usize).prop_map(|v| Item::Mask(Mask::from(v)));
    if n == 0 {
        return prop_oneof![slice, mask, Just(Item::List(List::from(vec![])))].boxed();
    }
    let list = proptest::collection::vec(-n..n, length).prop_map(|v| Item::List(List::from(v)));
    let column =
        proptest::collection::vec(-n..n, 2).prop_map(|v| Item::List(List::new(vec![2, 1], v).unwrap()));
    prop_oneof![3 => slice, 2 => (-n..n).prop_map(Item::Index), 2 => list, 1 => column, 1 => mask].boxed()
}

/// Extents and a selection for them. Lists have the same length, so that most combine; masks may not.
fn any_case() -> impl Strategy<Value = (Vec<u64>, Selection)> {
    (proptest::collection::vec(0u64..7, 0..4), 0usize..5, any::<bool>(), any::<bool>(), 0usize..5, 0usize..5)
        .prop_flat_map(|(dims, length, outer, ellipsis, at, new)| {
            let items: Vec<_> = dims.iter().map(|&n| any_item(n, length)).collect();
            let joint = if dims.len() >= 2 {
                proptest::collection::vec(any::<bool>(), (dims[0] * dims[1]) as usize).boxed()
            } else {
                Just(Vec::new()).boxed()
            };
            (Just(dims), items, joint, 0u8..6).prop_map(move |(dims, mut items, joint, kind)| {
                if kind == 0 && dims.len() >= 2 {
                    let mask = Mask::new(dims[..2].to_vec(), joint).unwrap();
                    items.splice(0..2, [Item::Mask(mask)]);
                }
                if kind < 3 {
                    items.truncate(at.max(1));
                }
                if ellipsis {
                    items.insert(at.min(items.len()), Item::Ellipsis);
                }
                if new < 3 {
                    items.insert(new.min(items.len()), Item::NewAxis);
                }
                let selection = if outer { Selection::outer(items) } else { Selection::vectorised(items) };
                (dims, selection)
            })
        })
}

/// The index tuple of every position of the region's box, by the definition of [`Region`].
fn expand(region: &Region) -> Vec<Vec<u64>> {
    let total: u64 = region.extents().iter().product();
    let mut out = vec![Vec::new(); total as usize];
    let picks: Vec<Vec<(Vec<u64>, u64)>> = region
        .selectors()
        .iter()
        .map(|s| match s {
            Selector::Range { start, step, count, out_start, out_step, .. } => (0..*count)
                .map(|i| (vec![start + i * step], (*out_start as i64 + i as i64 * out_step) as u64))
                .collect(),
            Selector::Points { axes, points, out } => (0..out.len())
                .map(|i| (points[i * axes.len()..(i + 1) * axes.len()].to_vec(), out[i]))
                .collect(),
        })
        .collect();
    let mut choices = vec![(vec![0; region.dims().len()], 0u64)];
    for ((selector, picks), extent) in region.selectors().iter().zip(&picks).zip(region.extents()) {
        let step = |(index, at): &(Vec<u64>, u64)| {
            let (index, at) = (index.clone(), *at);
            picks
                .iter()
                .map(move |(pick, out)| {
                    let mut index = index.clone();
                    selector.axes().iter().zip(pick).for_each(|(&a, &i)| index[a] = i);
                    (index, at * extent + out)
                })
                .collect::<Vec<_>>()
        };
        choices = choices.iter().flat_map(step).collect();
    }
    for (index, at) in choices {
        assert!(out[at as usize].is_empty() || region.dims().is_empty(), "a position is written twice");
        out[at as usize] = index;
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn selections_pick_what_numpy_picks((dims, selection) in any_case()) {
        let region = match selection.resolve(&dims, &Limits::default()) {
            Ok(region) => region,
            Err(e) => {
                // Lists and masks of different lengths do not combine; an ellipsis may have moved items to other axes.
                let expected = e.to_string().contains("cannot be combined") || e.kind() == ErrorKind::OutOfBounds;
                prop_assert!(expected, "{}", e);
                return Ok(());
            }
        };
        let (shape, picks) = naive::select(&selection, &dims);
        prop_assert_eq!(region.shape(), &shape[..], "{} of {:?}", selection, dims);
        prop_assert_eq!(region.count().unwrap(), picks.len() as u64);
        prop_assert_eq!(expand(&region), picks, "{} of {:?}", selection, dims);
        // It survives being written and read, but for the mode. Without elements, a mask cannot be told from a list.
        if selection.items().iter().any(|i| matches!(i, Item::Mask(m) if m.values().is_empty())) {
            return Ok(());
        }
        let again = Selection::parse(&selection.to_string()).unwrap().with_mode(selection.mode());
        let again = again.resolve(&dims, &Limits::default()).unwrap();
        prop_assert_eq!(again, region);
    }

    #[test]
    fn projections_hold_every_item_once_in_its_chunk(
        (dims, selection) in any_case(),
        seed in proptest::collection::vec(1u64..9, 3),
    ) {
        let Ok(region) = selection.resolve(&dims, &Limits::default()) else { return Ok(()) };
        let chunk = &seed[..dims.len()];
        let projection = Projection::new(&region, chunk).unwrap();
        let mut seen = std::collections::BTreeSet::new();
        let mut count = 0;
        for part in projection.iter() {
            prop_assert!(seen.insert(part.coord.clone()), "chunk {:?} twice", part.coord);
            prop_assert!(part.count() > 0, "an empty part");
            count += part.count() as u64;
            for (n, piece) in part.pieces.iter().enumerate() {
                let starts = projection.starts(n);
                prop_assert_eq!(starts[piece.group()], piece.first());
                prop_assert_eq!(starts[piece.group() + 1], piece.first() + piece.count());
                for i in 0..piece.count() {
                    let item = piece.first() + i;
                    let item = projection.order(n).map_or(item, |order| order[item]);
                    let selector = &region.selectors()[n];
                    let index: Vec<u64> = match selector {
                        Selector::Range { start, step, .. } => vec![start + item as u64 * step],
                        Selector::Points { axes, points, .. } => points[item * axes.len()..][..axes.len()].to_vec(),
                    };
                    let mut inside = 0;
                    for (&axis, index) in selector.axes().iter().zip(index) {
                        prop_assert_eq!(index / chunk[axis], part.coord[axis]);
                        inside += (index % chunk[axis]) * chunk[axis + 1..].iter().product::<u64>();
                    }
                    prop_assert_eq!(piece.inside(i) as u64, inside);
                }
            }
        }
        prop_assert_eq!(count, region.count().unwrap());
        prop_assert!(projection.get(projection.len()).is_none());
    }
}
