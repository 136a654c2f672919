use super::{Dataset, Item, UserType, parse, place};
use crate::error::{ErrorKind, Result};
use crate::limits::Limits;

fn read(text: &str) -> Result<Dataset> {
    parse(text.as_bytes(), &Limits::default())
}

/// The values of the attribute `x` of the root group.
fn values(text: &str) -> Result<Vec<Item>> {
    let read = read(&format!("netcdf n {{ :x = {text} ; }}"))?;
    Ok(read.root.attributes.into_iter().next().map(|a| a.values).unwrap_or_default())
}

#[test]
fn every_part_of_a_file_is_read() {
    let text = r#"netcdf a\ name { // a comment
types:
  compound pair { int a ; double b(2, 3), c ; }; // pair
  byte enum sky { Clear = 0, Very\ cloudy = -1 } ;
  opaque(5) raw ;
  pair(*) many ;
dimensions:
    x = 3, y = 2 ;
    t = UNLIMITED ; // (2 currently)
variables:
    float v(t, /x), w ;
        v:units = "m" ;
        string v:names = "a", "b" ;
    sky s(x) ;
        sky s:_FillValue = Clear ;
    int data ;
        data :data = 1s ;

// global attributes:
        :title = "t" ;
        string :about = "u" ;
        pair :p = {1, {1., 2.}, 3.f} ;
data:
 v = 1, _, 3 ;
 /g/u = {1, 2}, {} ;
 s = Clear, Very\ cloudy ;

group: g {
  dimensions:
    x = 4 ;
  variables:
    ubyte u(x) ;
  } // group g
}
"#;
    let file = read(text).unwrap();
    assert_eq!(file.name, "a name");
    let root = &file.root;
    let types: Vec<_> = root.types.iter().map(UserType::name).collect();
    assert_eq!(types, ["pair", "sky", "raw", "many"]);
    let UserType::Compound { fields, .. } = &root.types[0] else { panic!() };
    assert_eq!(fields[1], ("b".into(), "double".into(), vec![2, 3]));
    let UserType::Enum { members, .. } = &root.types[1] else { panic!() };
    assert_eq!(members[1], ("Very cloudy".into(), -1));
    assert_eq!(root.dimensions[2].length, None);
    let told: Vec<_> =
        root.variables.iter().map(|v| (v.name.as_str(), v.kind.as_str(), v.dimensions.len())).collect();
    assert_eq!(told, [("v", "float", 2), ("w", "float", 0), ("s", "sky", 1), ("data", "int", 0)]);
    assert_eq!(root.variables[0].attributes[1].kind.as_deref(), Some("string"));
    assert_eq!(root.variables[3].attributes[0].values, [Item::Integer(1, Some("short"))]);
    let kinds: Vec<_> = root.attributes.iter().map(|a| a.kind.as_deref()).collect();
    assert_eq!(kinds, [None, Some("string"), Some("pair")]);
    assert_eq!(root.data[0].values[1], Item::Fill);
    assert_eq!(root.data[1].variable, "/g/u");
    assert_eq!(root.groups[0].variables[0].dimensions, ["x"]);
}

#[test]
fn an_attribute_of_a_user_type_may_follow_the_types() {
    let file = read("netcdf n { types: opaque(1) o ; o :x = 0x01 ; :y = 1 ; }").unwrap();
    assert_eq!(file.root.types.len(), 1);
    assert_eq!(file.root.attributes[0].kind.as_deref(), Some("o"));
    assert_eq!(file.root.attributes.len(), 2);
}

#[test]
fn constants_have_the_types_of_their_suffixes() {
    for (text, item) in [
        ("1", Item::Integer(1, None)),
        ("-127b", Item::Integer(-127, Some("byte"))),
        ("255UB", Item::Integer(255, Some("ubyte"))),
        ("18446744073709551615ULL", Item::Integer(u64::MAX.into(), Some("uint64"))),
        ("017", Item::Integer(15, None)),
        ("0x1Fu", Item::Integer(31, Some("uint"))),
        ("0X01ff", Item::Opaque(vec![1, 255])),
        ("1.", Item::Double(1.0)),
        ("-1.79769313486232e+308", Item::Double(f64::MIN)),
        ("-0", Item::Double(-0.0)),
        ("-2.5e-3f", Item::Single(-2.5e-3)),
        ("1.e+20", Item::Double(1e20)),
        (".5", Item::Double(0.5)),
        ("-Infinityf", Item::Single(f32::NEG_INFINITY)),
        ("'\\n'", Item::Char(b'\n')),
        (r#""a\"\\\101\x42é""#, Item::Text("a\"\\ABé".into())),
        ("NIL", Item::Nil),
        ("Very cloudy", Item::Name("Very cloudy".into())),
    ] {
        assert_eq!(values(text).unwrap(), [item], "{text}");
    }
    let latin = parse(b"netcdf n { :x = \"\xe9 \\\xe9\" ; }", &Limits::default()).unwrap();
    assert_eq!(latin.root.attributes[0].values, [Item::Text(b"\xe9 \xe9".to_vec())]);
    assert!(matches!(values("-0").unwrap()[0], Item::Double(v) if v.is_sign_negative()));
    assert!(matches!(values("NaNf").unwrap()[0], Item::Single(v) if v.is_nan()));
}

#[test]
fn what_ncdump_printed_is_read() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|e| e == "cdl") {
            let text = std::fs::read(&path).unwrap();
            if text.starts_with(b"netcdf") {
                let file =
                    parse(&text, &Limits::default()).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
                assert!(!file.root.variables.is_empty(), "{}", path.display());
                seen += 1;
            }
        }
    }
    assert!(seen >= 10, "{seen}");
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    for (text, place) in [
        ("", "line 1, column 1"),
        ("netcdf x", "line 1, column 7"),
        ("netcdf x {\n :a = 1 }", "line 2, column 9: a ; is missing"),
        ("netcdf x {\n :a = \"b ; }", "line 2, column 7: a \" without"),
        ("netcdf x { variables:\n int v ;\n w:a = 1 ; }", "line 3, column 2: w has an attribute"),
        ("netcdf x { dimensions: a = -1 ; }", "line 1, column 28"),
        ("netcdf x { :a = 12zz ; }", "\"12zz\" is no number"),
        ("netcdf x { :a = 1.9e308 ; }", "\"1.9e308\" is no number"),
        ("netcdf x { /* }", "a comment without an end"),
        ("netcdf x { } }", "nothing may follow"),
    ] {
        let error = read(text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{text}");
        assert!(error.to_string().contains(place), "{text}: {error}");
    }
    assert!(parse(b"netcdf x { :\xff = 1 ; }", &Limits::default()).is_err());
    let deep = format!("netcdf x {{ :a = {} ; }}", "{".repeat(100_000));
    assert_eq!(read(&deep).unwrap_err().kind(), ErrorKind::LimitExceeded);
    let deep = format!("netcdf x {}", "{ group: g ".repeat(100_000));
    assert_eq!(read(&deep).unwrap_err().kind(), ErrorKind::LimitExceeded);
}

#[test]
fn values_are_found_again_by_their_number() {
    let text = "netcdf n { dimensions: x = 2 ; variables: int v(x) ; v:a = 1 ; data:\n v = {1, /* , */ 2},\n  3 ;\n}";
    let file = read(text).unwrap();
    let data = &file.root.data[0];
    let places: Vec<_> = (0..4).map(|n| place(text.as_bytes(), data.at, n)).collect();
    assert_eq!(places, [(2, 7), (2, 18), (3, 3), (3, 3)]);
    assert_eq!(&text[file.root.variables[0].at..][..4], "v(x)");
    assert_eq!(&text[file.root.dimensions[0].at..][..5], "x = 2");
}

#[test]
fn no_cut_of_a_text_ends_badly() {
    let text = include_bytes!("../../../../tests/data/netcdf4.cdl");
    for length in 0..text.len() {
        let _ = parse(&text[..length], &Limits::default());
        let mut changed = text.to_vec();
        changed[length] = b"{}(\"\\=:;'"[length % 9];
        let _ = parse(&changed, &Limits::default());
    }
}
