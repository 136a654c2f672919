use super::Cdl;
use crate::codec::FilterSpec;
use crate::error::{Error, ErrorKind, Result};
use crate::limits::Limits;
use crate::model::Value;
use crate::write::{CreateOptions, Format, create};
use crate::{File, open};
use std::path::Path;

fn make(text: &str, format: Format, at: &Path) -> Result<Vec<String>> {
    let cdl = Cdl::parse(text.as_bytes(), &Limits::default())?;
    let options = CreateOptions::new().with_overwrite(true);
    let mut transaction = create(at, format, &options)?;
    let notes = cdl.write_to(&mut transaction, format)?;
    transaction.commit()?;
    Ok(notes)
}

/// A file of what stands in the root group.
fn file(text: &str, format: Format, run: impl FnOnce(&File)) {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("out");
    make(&format!("netcdf n {{ {text} }}"), format, &at).unwrap_or_else(|e| panic!("{text}: {e}"));
    run(&open(at.as_path()).unwrap());
}

fn refused(text: &str, format: Format) -> Error {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("out");
    let error = make(text, format, &at).expect_err(text);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{text}");
    error
}

fn numbers(file: &File, path: &str) -> Vec<f64> {
    file.array(path).unwrap().read::<f64>(..).unwrap().data
}

#[test]
fn values_are_of_the_type_of_their_variable() {
    for format in [Format::NetCdf4, Format::Cdf5, Format::NcZarr, Format::Zarr3] {
        let text = "dimensions: x = 5 ; variables: byte a(x) ; ushort b(x) ; float c(x) ; double d ; int64 e ;
            data: a = 1, -128, 'a', 3., \"4\" ; b = 65535, 0x10us, 7 ; c = 1, 0.1, NaN, -Infinity, -0 ; d = 1e300 ;
            e = -9223372036854775808 ;";
        file(text, format, |f| {
            assert_eq!(numbers(f, "a"), [1.0, -128.0, 97.0, 3.0, 4.0], "{format}");
            assert_eq!(numbers(f, "b"), [65535.0, 16.0, 7.0, 65535.0, 65535.0], "{format}");
            let c = f.array("c").unwrap().read::<f32>(..).unwrap().data;
            assert_eq!((c[1], c[3]), (0.1, f32::NEG_INFINITY), "{format}");
            assert!(c[2].is_nan() && c[4].is_sign_negative() && c[4] == 0.0, "{format}");
            assert_eq!(numbers(f, "d"), [1e300]);
            assert_eq!(f.array("e").unwrap().read::<i64>(..).unwrap().data, [i64::MIN]);
        });
    }
}

#[test]
fn what_is_not_given_is_the_fill_value() {
    for format in [Format::NetCdf4, Format::NetCdf3, Format::NcZarr, Format::Zarr2, Format::Hdf5] {
        let text = "dimensions: t = UNLIMITED ; x = 3 ; variables: int a(t, x) ; int b(x) ; int c(t) ;
            a:_FillValue = -1 ; data: a = 1, _, 3, 4 ; c = 1, 2, 3 ;";
        file(text, format, |f| {
            assert_eq!(f.array("a").unwrap().shape(), [3, 3], "{format}");
            assert_eq!(numbers(f, "a"), [1., -1., 3., 4., -1., -1., -1., -1., -1.], "{format}");
            assert_eq!(numbers(f, "b"), [-2147483647.0; 3], "{format}");
            assert_eq!(numbers(f, "c"), [1., 2., 3.], "{format}");
        });
    }
}

#[test]
fn unlimited_dimensions_inside_stand_in_braces() {
    let text = "dimensions: t = UNLIMITED ; u = UNLIMITED ; x = 2 ; n = 2 ; variables: int v(x, u) ; int w(t, x, u) ;
        char c(x, u, n) ; int after(u, x) ;
        data: v = {1, 2}, {3} ; w = {1}, {2, 3}, {}, {4} ; c = {\"ab\", \"c\"}, {\"d\"} ; after = 1, 2, 3, 4, 5 ;";
    file(text, Format::NetCdf4, |f| {
        let m = -2147483647.0;
        assert_eq!(numbers(f, "v"), [1., 2., m, 3., m, m]);
        assert_eq!(f.array("w").unwrap().shape(), [2, 2, 3]);
        assert_eq!(numbers(f, "w"), [1., m, m, 2., 3., m, m, m, m, 4., m, m]);
        assert_eq!(numbers(f, "after"), [1., 2., 3., 4., 5., m]);
        let c = f.array("c").unwrap();
        assert_eq!(c.shape(), [2, 3, 2]);
        let stored = c.read_raw(..).unwrap().bytes;
        assert_eq!(&stored[..], b"abc\0\0\0d\0\0\0\0\0");
    });
}

#[test]
fn texts_fill_rows_of_characters() {
    for (values, expected) in [
        (r#""ab", "", "cdef""#, "ab\0\0\0\0\0\0cdef"),
        (r#""abcdefg", "x""#, "abcdefg\0x\0\0\0"),
        ("'a', 'b', 'c'", "abc\0\0\0\0\0\0\0\0\0"),
        ("\"a\\n\",\n    \"b\", \"c\\n\"", "a\nb\0c\n\0\0\0\0\0\0"),
        ("\"a\\n\", \"b\"", "a\n\0\0b\0\0\0\0\0\0\0"),
        (r#""ab", _, "c""#, "ab\0\0\0\0\0\0c\0\0\0"),
    ] {
        let text = format!("dimensions: x = 3 ; n = 4 ; variables: char v(x, n) ; data: v =\n  {values} ;");
        for format in [Format::NetCdf3, Format::NetCdf4] {
            file(&text, format, |f| {
                let stored = f.array("v").unwrap().read_raw(..).unwrap().bytes;
                assert_eq!(String::from_utf8_lossy(&stored), expected, "{values}");
            });
        }
    }
    file("dimensions: n = 4 ; variables: char v(n) ; data: v = \"a\", \"b\" ;", Format::NetCdf3, |f| {
        assert_eq!(f.array("v").unwrap().read_raw(..).unwrap().bytes, b"ab\0\0");
    });
}

#[test]
fn user_types_hold_their_parts() {
    let text = r#"types: compound p { byte a ; double b(2) ; string s ; } ; byte enum e { Off = 0, Very\ on = 3 } ;
        opaque(3) o ; int(*) l ; compound q { byte a ; int b ; char c(3) ; } ;
        dimensions: x = 2 ; variables: p v(x) ; e w(x) ; o r(x) ; l m(x) ; q z(x) ;
        data: v = {1, {2, 3}, "four"}, {5, {6}} ; w = Very on, Off ; r = 0x010203, 0x04 ; m = {1, 2}, {} ;
        z = {1, 2, {"abc"}}, {3} ;"#;
    file(text, Format::NetCdf4, |f| {
        let value = |path: &str, i: usize| f.array(path).unwrap().read_values(..).unwrap().swap_remove(i);
        let text = |value: Value| format!("{value}");
        assert!(text(value("v", 0)).contains("four"), "{}", text(value("v", 0)));
        assert!(text(value("v", 1)).contains("9.96"), "{}", text(value("v", 1)));
        let stored = |path: &str| f.array(path).unwrap().read_raw(..).unwrap().bytes;
        assert_eq!(stored("w"), [3, 0]);
        assert_eq!(stored("r"), [1, 2, 3, 4, 0, 0]);
        assert_eq!(value("m", 0), Value::List(vec![Value::Integer(1), Value::Integer(2)]));
        assert_eq!(value("m", 1), Value::List(vec![]));
        // Members lie where C puts them.
        assert_eq!(stored("z")[..12], *b"\x01\0\0\0\x02\0\0\0abc\0");
        assert_eq!(stored("z")[12..], *b"\x03\0\0\0\x01\0\0\x80\0\0\0\0");
    });
}

#[test]
fn special_attributes_say_how_it_is_stored() {
    let text = r#"dimensions: x = 8 ; variables: int v(x) ; v:_ChunkSizes = 4 ; v:_DeflateLevel = 3 ;
        v:_Shuffle = "true" ; v:_Fletcher32 = "true" ; v:_Endianness = "big" ; v:_Storage = "chunked" ; v:units = "m" ;
        int w(x) ; w:_Storage = "compact" ; int z(x) ; z:_Filter = "2,4|1,6" ; z:_NoFill = "true" ;
        data: v = 1, 2, 3, 4, 5, 6, 7, 8 ; w = 1 ; z = 7 ;"#;
    file(text, Format::NetCdf4, |f| {
        let v = f.array("v").unwrap();
        assert_eq!(v.meta().grid.clone(), crate::model::ChunkGrid::Regular(vec![4]));
        let ids = |path: &str| -> Vec<(u16, Vec<u32>)> {
            let array = f.array(path).unwrap();
            let filters = array.meta().filters.iter().map(|f| match f {
                FilterSpec::Hdf5 { id, parameters, .. } => (*id, parameters.clone()),
                FilterSpec::Zarr { .. } => (0, Vec::new()),
            });
            filters.collect()
        };
        assert_eq!(ids("v"), [(2, vec![4]), (1, vec![3]), (3, vec![])]);
        assert_eq!(ids("z"), [(2, vec![4]), (1, vec![6])]);
        assert_eq!(v.dtype().to_string(), "i32be");
        assert_eq!(numbers(f, "v"), [1., 2., 3., 4., 5., 6., 7., 8.]);
        let names: Vec<_> = v.attributes().unwrap().iter().flatten().map(|a| a.name.to_string()).collect();
        assert!(names.contains(&"units".into()) && !names.iter().any(|n| n == "_Shuffle"), "{names:?}");
    });
}

#[test]
fn the_least_format_that_holds_it_is_chosen() {
    for (text, format) in [
        ("dimensions: x = 3 ; variables: int v(x) ;", Format::NetCdf3),
        (":a = 1b ; :_Format = \"64-bit offset\" ;", Format::Cdf2),
        (":_Format = \"netCDF-4\" ;", Format::NetCdf4),
        ("variables: uint v ;", Format::Cdf5),
        (":a = 5ULL ;", Format::Cdf5),
        (":a = 10000000000 ;", Format::Cdf5),
        ("dimensions: x = 3000000000 ;", Format::Cdf5),
        ("dimensions: x = 300000000 ; variables: double v(x) ;", Format::Cdf2),
        ("variables: string v ;", Format::NetCdf4),
        ("string :a = \"b\" ;", Format::NetCdf4),
        ("dimensions: a = UNLIMITED ; b = UNLIMITED ;", Format::NetCdf4),
        ("dimensions: a = UNLIMITED ; b = 2 ; variables: int v(b, a) ;", Format::NetCdf4),
        ("types: opaque(2) o ;", Format::NetCdf4),
        ("variables: int v ; v:_DeflateLevel = 1 ;", Format::NetCdf4),
        ("group: g { }", Format::NetCdf4),
    ] {
        let text = format!("netcdf n {{ {text} }}");
        let cdl = Cdl::parse(text.as_bytes(), &Limits::default()).unwrap();
        assert_eq!(cdl.format().unwrap(), format, "{text}");
    }
    let cdl = Cdl::parse(b"netcdf n { :_Format = \"x\" ; }", &Limits::default()).unwrap();
    assert!(cdl.format().unwrap_err().to_string().contains("line 1, column 23"));
}

#[test]
fn what_cannot_be_is_refused_with_its_place() {
    let x = "dimensions: x = 2 ; variables: byte v(x) ;";
    for (text, told) in [
        (format!("{x} data: v = 1,\n 300 ;"), "line 2, column 2: 300 does not fit"),
        (format!("{x} data: v = 1, 2,\n 3 ;"), "line 2, column 2: 3 values where there is room for 2"),
        (format!("{x} data: v = 1.5 ;"), "1.5 is no integer"),
        (format!("{x} data: v = \"2000-01-01\" ;"), "where a number is expected"),
        (format!("{x} data: v = {{1, 2}} ;"), "braces where one value"),
        (format!("{x} data: v = NIL ;"), "NIL where an integer"),
        (format!("{x} data: w = 1 ;"), "w, which is no variable"),
        (format!("{x} data: v = 1 ; v = 2 ;"), "for a second time"),
        ("variables: int v(y) ;".into(), "y, of the variable v, is no dimension"),
        ("variables: foo v ;".into(), "foo is no type"),
        ("types: foo(*) t ;".into(), "foo is no type that was defined before"),
        ("types: byte enum e { A = 300 } ;".into(), "A = 300 does not fit"),
        (":a = {1} ;".into(), "have no common type"),
        ("variables: int v ; v:_DeflateLevel = 11 ;".into(), "_DeflateLevel is a number from 0 to 9"),
        ("variables: int v ; v:_FillValue = 1, 2 ;".into(), "2 fill values"),
        ("variables: float v ; data: v = 1e300 ;".into(), "does not fit a float"),
        ("variables: string v ; data: v = \"a\\0b\" ;".into(), "a NUL in it"),
        ("dimensions: x = 2 ; u = UNLIMITED ; variables: int v(x, u) ; data: v = 1 ;".into(), "in no braces"),
    ] {
        let error = refused(&format!("netcdf n {{ {text} }}"), Format::NetCdf4);
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{text}");
        assert!(error.to_string().contains(told), "{text}: {error}");
        assert!(error.to_string().contains("line "), "{text}: {error}");
    }
    for (text, told) in [
        ("netcdf n { group: g { :a = 1 ; } }", "groups in netCDF-3"),
        ("netcdf n {\n types: opaque(2) o ; }", "line 2, column 9"),
        ("netcdf n { variables: string v ; }", "line 1, column 30"),
    ] {
        let error = refused(text, Format::NetCdf3);
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{text}");
        assert!(error.to_string().contains(told), "{text}: {error}");
    }
}

#[test]
fn no_changed_text_ends_badly() {
    let text = include_bytes!("../../../tests/data/netcdf4.cdl");
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("out");
    let limits = Limits::default().with_output(1 << 20);
    for i in (0..text.len()).step_by(41) {
        let mut changed = text.to_vec();
        changed[i] = b"{}(\"\\=:;'0_,"[i % 12];
        let Ok(cdl) = Cdl::parse(&changed, &limits) else { continue };
        let mut transaction = create(at.as_path(), Format::NetCdf4, &CreateOptions::new()).unwrap();
        let _ = cdl.write_to(&mut transaction, Format::NetCdf4);
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
