use super::{DataModel, NetcdfView, Outlook};
use crate::format;
use crate::limits::Limits;
use crate::source::{MemorySource, Neighbours};
use std::fmt::Write;
use std::sync::Arc;

fn open(bytes: &[u8]) -> NetcdfView {
    let source = Arc::new(MemorySource::new(bytes.to_vec(), "test"));
    let limits = Limits::default();
    let outlook = Outlook { extents: &|_, _| Ok(None), pure: false, name_types: false };
    NetcdfView::open(format::open(source, Neighbours::none(), limits.clone()).unwrap(), &limits, &outlook)
        .unwrap()
}

/// A line for each thing in the view.
pub(super) fn text(view: &NetcdfView) -> String {
    let mut out = String::new();
    for group in view.groups() {
        let _ = writeln!(out, "group {}", group.path);
        for a in &group.attributes {
            let _ = writeln!(out, "  :{} {} {}", a.name, view.type_name(a.kind), a.length);
        }
        for t in group.types.iter().map(|&t| &view.types()[t]) {
            let _ = writeln!(out, "  type {} {:?}", t.name, t.class);
        }
        for d in group.dimensions.iter().map(|&d| &view.dimensions()[d]) {
            let _ =
                writeln!(out, "  dim {} {}{}", d.name, d.length, if d.unlimited { " unlimited" } else { "" });
        }
        for v in &group.variables {
            let dims = v.dimensions.iter().map(|&d| &view.dimensions()[d]);
            let dims: Vec<_> = dims.map(|d| format!("{}{}", view.groups()[d.group].path, d.name)).collect();
            let _ = writeln!(out, "  {} {}({})", view.type_name(v.kind), v.name, dims.join(", "));
            for a in &v.attributes {
                let _ = writeln!(out, "    :{} {} {}", a.name, view.type_name(a.kind), a.length);
            }
        }
        for l in &group.left_out {
            let _ = writeln!(out, "  no {}: {}", l.path, l.reason);
        }
    }
    out
}

#[test]
fn a_netcdf4_file_is_as_netcdf_shows_it() {
    let view = open(include_bytes!("../../../tests/data/netcdf4.nc"));
    assert_eq!(view.model(), DataModel::NetCdf4);
    let expected = "\
group /
  :zebra short 1
  :apple char 4
  :list string 2
  type pair Compound
  type sky Enum
  type ragged VarLen
  dim time 5 unlimited
  dim x 3
  dim bare 2
  double time(/time)
  int long(/time)
  float x(/x)
    :units char 1
  byte bare(/x, /bare)
  pair pairs(/x)
  sky skies(/time)
    :_FillValue sky 1
  string names(/x)
group /inner
  dim x 4
  uint64 v(/time, /innerx)
  char c()
";
    assert_eq!(text(&view), expected);
    let time = &view.root().unwrap().variables[0];
    // Its own extent is shorter than its dimension.
    assert_eq!((view.shape(time), time.meta.space.dims()), (vec![5], &[2u64][..]));
}

#[test]
fn datasets_without_scales_get_phony_dimensions() {
    let view = open(include_bytes!("../../../tests/data/phony.h5"));
    let expected = "\
group /
  dim phony_dim_1 2
  dim phony_dim_2 2
  dim phony_dim_3 3
  short a(/phony_dim_1, /phony_dim_2, /phony_dim_3)
  float b(/phony_dim_3, /phony_dim_1)
  float half(/phony_dim_1)
  float soft(/phony_dim_3, /phony_dim_1)
  string text(/phony_dim_1)
  no /dangling: a soft link to /nothing
  no /external: an external link to /x in other.h5
  no /:table: an attribute of 2 dimensions
  no /bool: an array of type enum<i8>{\"FALSE\"=0,\"TRUE\"=1}
group /group
  dim phony_dim_0 5
  int64 c(/groupphony_dim_0)
  no /group/again: another link to a group that is shown
";
    assert_eq!(text(&view), expected);
}

#[test]
fn records_are_the_unlimited_dimension_of_netcdf3() {
    // One record dimension, one variable of five records.
    let mut bytes = b"CDF\x01\0\0\0\x05".to_vec();
    bytes.extend(b"\0\0\0\x0a\0\0\0\x01\0\0\0\x04time\0\0\0\0");
    bytes.extend(b"\0\0\0\x0c\0\0\0\x01\0\0\0\x05CLASS\0\0\0\0\0\0\x02\0\0\0\x01z\0\0\0");
    bytes.extend(b"\0\0\0\x0b\0\0\0\x01\0\0\0\x01v\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0");
    bytes.extend(b"\0\0\0\x03\0\0\0\x02\0\0\0\x80");
    bytes.resize(0x80 + 10, 0);
    let view = open(&bytes);
    assert_eq!(view.model(), DataModel::Classic);
    assert_eq!(text(&view), "group /\n  :CLASS char 1\n  dim time 5 unlimited\n  short v(/time)\n");
}
