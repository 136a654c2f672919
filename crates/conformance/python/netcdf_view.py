"""Writes netCDF files and Zarr stores with netCDF4-python and xarray, and `expected.json`: what is in each in the form of
the `netcdf` section of `describe --json`.

    python netcdf_view.py OUT

What netCDF-C writes as NCZarr is expected to be what it writes as netCDF-4, which its own reader of NCZarr does not
always manage. What xarray writes as Zarr is expected to be what was given to it.
"""

import hashlib
import json
import pathlib
import sys
import warnings

import netCDF4
import numpy as np
import xarray as xr

warnings.simplefilter("ignore")
OUT = pathlib.Path(sys.argv[1]).absolute()
EXPECTED = {}

# ---------------------------------------------------------------- the canonical form
WORDS = {"S1": "char", "i1": "byte", "u1": "ubyte", "i2": "short", "u2": "ushort", "i4": "int", "u4": "uint",
         "i8": "int64", "u8": "uint64", "f4": "float", "f8": "double"}


def word(dtype):
    return WORDS[f"{dtype.kind}{dtype.itemsize}"]


def little(a):
    a = np.ascontiguousarray(a)
    return a.astype(a.dtype.newbyteorder("<")).tobytes()


def data(a):
    if a.dtype.kind in "OU":
        body = json.dumps(["s:" + str(x).encode().hex() for x in a.ravel()], separators=(",", ":")).encode()
    else:
        body = little(a)
    return {"raw": a.dtype.kind not in "OU", "bytes": len(body), "sha256": hashlib.sha256(body).hexdigest()}


def attribute(value):
    if isinstance(value, bytes):
        return {"type": "char", "n": 1, "hex": value.hex()}
    if isinstance(value, str):
        return {"text": [value]}
    if isinstance(value, (list, tuple)) and all(isinstance(v, str) for v in value):
        return {"text": list(value)}
    a = np.atleast_1d(np.asarray(value))
    return {"type": word(a.dtype), "n": a.size, "hex": little(a).hex()}


def variable(v):
    v.set_auto_maskandscale(False)
    v.set_auto_chartostring(False)
    a = v[...] if v.size else np.zeros(v.shape, v.dtype)
    return {
        "type": "string" if v.dtype is str else word(v.dtype),
        "dims": list(v.dimensions),
        "shape": list(v.shape),
        "attrs": {name: attribute(v.getncattr(name)) for name in v.ncattrs()},
        "data": data(np.asarray(a, object) if v.dtype is str else a),
    }


def group(g):
    return {
        "dims": {n: {"size": len(d), "unlimited": d.isunlimited()} for n, d in g.dimensions.items()},
        "types": {},
        "attrs": {name: attribute(g.getncattr(name)) for name in g.ncattrs()},
        "vars": {n: variable(v) for n, v in g.variables.items()},
        "groups": {n: group(inner) for n, inner in g.groups.items()},
    }


def of_file(path):
    with netCDF4.Dataset(path) as f:
        return group(f) | {"kind": f.data_model}


# ---------------------------------------------------------------- netCDF4-python
CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


NUMBERS = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"]
CLASSIC = ["i1", "i2", "i4", "f4", "f8"]


def ramp(dtype, shape):
    return (np.arange(np.prod(shape)) % 100).astype(dtype).reshape(shape)


def numbers(f, types):
    f.createDimension("y", 3)
    f.createDimension("x", 5)
    for t in types:
        f.createVariable(f"plain_{t}", t, ("y", "x"))[:] = ramp(t, (3, 5))
        f.createVariable(f"filled_{t}", t, ("x",), fill_value=np.dtype(t).type(7))[2:] = 9
        f.createVariable(f"empty_{t}", t, ("y", "x"))
        f.createVariable(f"scalar_{t}", t, ())[...] = 42


@case
def every_number(f):
    numbers(f, NUMBERS)


@case
def classic_numbers(f):
    numbers(f, CLASSIC)


@case
def numbers_only(f):
    f.createDimension("y", 3)
    f.createDimension("x", 5)
    for t in NUMBERS:
        f.createVariable(t, t, ("y", "x"))[:] = ramp(t, (3, 5))
        f.createVariable(f"alone_{t}", t, ())[...] = 3
    f.title, f.count, f.half = "a title", np.int32(3), 2.5
    f.counts = np.array([1, 2, 3], "i4")


@case
def named_as_dimensions(f):
    """Coordinate variables have one dimension; the others only share a name with theirs."""
    f.createDimension("x", 3)
    f.createDimension("y", 2)
    f.createVariable("x", "f4", ("x",))[:] = ramp("f4", (3,))
    f.createVariable("y", "i2", ("y", "x"))[:] = ramp("i2", (2, 3))


@case
def coordinates_of_every_shape(f):
    """Variables called like dimensions: of one axis, of several, of other ones, in groups and along dimensions of outer groups."""
    for name, length in {"x": 3, "y": 2, "z": 4, "t": None}.items():
        f.createDimension(name, length)
    f.createVariable("z", "i2", ("x",))[:] = ramp("i2", (3,))
    f.createVariable("y", "f4", ("y", "x"))[:] = ramp("f4", (2, 3))
    f.createVariable("t", "f8", ("t",))[:3] = [1, 2, 3]
    f.createVariable("v", "i4", ("t", "y", "x"))[:3] = ramp("i4", (3, 2, 3))
    g = f.createGroup("g")
    g.createDimension("x", 5)
    g.createDimension("u", None)
    g.createVariable("u", "f4", ("u", "x"))[:2] = ramp("f4", (2, 5))
    g.createVariable("x", "f4", ("x",))[:] = ramp("f4", (5,))
    g.createVariable("y", "i2", ("y",))[:] = [7, 8]
    g.createVariable("both", "i2", ("y", "x"))[:] = ramp("i2", (2, 5))
    deep = g.createGroup("deep")
    deep.createVariable("t", "i4", ("t", "u"))[:3, :2] = ramp("i4", (3, 2))
    deep.createVariable("alone", "u1", ("z",))[:] = 1


@case
def text(f):
    f.createDimension("x", 2)
    f.createDimension("n", 4)
    f.createVariable("c", "S1", ("x", "n"))[:] = np.array([b"abcd", b"e\xff"], "S4").view("S1").reshape(2, 4)
    f.createVariable("one", "S1", ())[...] = b"z"
    f.createVariable("unset", "S1", ("x",))


@case
def strings(f):
    f.createDimension("x", 3)
    s = f.createVariable("s", str, ("x",))
    s[0], s[2] = "first", "dritte ü"
    f.createVariable("alone", str, ())[...] = "only"


@case
def attributes(f):
    for t in NUMBERS:
        f.setncattr(f"one_{t}", np.dtype(t).type(3))
        f.setncattr(f"many_{t}", np.array([1, 2, 100], t))
    f.low, f.high = np.int64(-(2**63)), np.uint64(2**64 - 1)
    f.special = np.array([np.nan, np.inf, -np.inf])
    f.text = "plain"
    f.quoted = 'with "quotes", \\ and\nlines'
    f.unicode = "größe 漢字"
    f.map = '{"a": [1,2]}'
    f.setncattr_string("list", ["a", "bc"])
    f.createDimension("x", 1)
    f.createVariable("v", "f4", ("x",)).units = "m s-1"


@case
def classic_attributes(f):
    for t in CLASSIC:
        f.setncattr(f"one_{t}", np.dtype(t).type(3))
        f.setncattr(f"many_{t}", np.array([1, 2, 100], t))
    f.text = "plain"
    f.empty = ""


@case
def groups(f):
    f.createDimension("x", 2)
    f.createVariable("x", "f8", ("x",))[:] = [1, 2]
    for name in ["zebra", "apple"]:
        g = f.createGroup(name)
        g.createDimension("y", 3)
        if name == "zebra":
            g.createDimension("x", 4)
        x = 4 if name == "zebra" else 2
        g.createVariable("v", "i4", ("x", "y"))[:] = ramp("i4", (x, 3))
        g.about = name
        deep = g.createGroup("deep").createGroup("deeper")
        deep.createVariable("v", "u1", ("x",))[:] = 1


@case
def unlimited(f):
    f.createDimension("t", None)
    f.createDimension("u", None)
    f.createDimension("never", None)
    f.createDimension("x", 3)
    f.createVariable("long", "i4", ("t", "x"))[:5] = ramp("i4", (5, 3))
    f.createVariable("short", "f4", ("t",))[:2] = [1, 2]
    f.createVariable("both", "i2", ("t", "u"))[:5, :2] = ramp("i2", (5, 2))
    f.createVariable("none", "i4", ("never", "x"))


@case
def records(f):
    f.createDimension("t", None)
    f.createDimension("x", 3)
    f.createVariable("a", "i2", ("t", "x"))[:3] = ramp("i2", (3, 3))
    f.createVariable("fixed", "f8", ("x",))[:] = [1, 2, 3]
    f.createVariable("b", "i1", ("t",))[:3] = [1, 2, 3]


@case
def one_record_variable(f):
    f.createDimension("t", None)
    f.createDimension("x", 3)
    f.createVariable("b", "i1", ("t", "x"))[:3] = ramp("i1", (3, 3))


@case
def byte_orders(f):
    f.createDimension("x", 4)
    for t in ["i2", "i4", "f4", "f8"]:
        f.createVariable(f"big_{t}", t, ("x",), endian="big")[:] = ramp(t, 4)
        f.createVariable(f"little_{t}", t, ("x",), endian="little")[:] = ramp(t, 4)


@case
def filters(f):
    f.createDimension("y", 40)
    f.createDimension("x", 30)
    made = 0
    for name, options in {
        "zlib": {"compression": "zlib"}, "no_shuffle": {"compression": "zlib", "shuffle": False},
        "sums": {"compression": "zlib", "fletcher32": True}, "only_sums": {"fletcher32": True},
        "zstd": {"compression": "zstd"}, "bzip2": {"compression": "bzip2"},
        "blosc_lz4": {"compression": "blosc_lz4"}, "blosc_zstd": {"compression": "blosc_zstd", "blosc_shuffle": 2},
    }.items():
        for t in ["i4", "f8"]:
            v = f.createVariable(f"{name}_{t}", t, ("y", "x"), chunksizes=(16, 30), **options)
            v[:] = ramp(t, (40, 30))
            made += 1
    assert made == 16


@case
def szip(f):
    f.createDimension("y", 40)
    f.createDimension("x", 30)
    f.createVariable("v", "i4", ("y", "x"), chunksizes=(16, 30), compression="szip")[:] = ramp("i4", (40, 30))


@case
def odd_names(f):
    f.createDimension("größe", 2)
    f.createVariable("temp-2.m@x", "i4", ("größe",))[:] = [1, 2]
    f.createVariable("with blank", "i4", ("größe",)).setncattr("odd attr", np.int32(1))
    f.createVariable("größe", "i4", ("größe",))[:] = [3, 4]


@case
def chunks_never_written(f):
    f.createDimension("x", 10)
    v = f.createVariable("v", "i4", ("x",), chunksizes=(3,), fill_value=-1)
    v[4] = 1


def write(name, target, **options):
    with netCDF4.Dataset(target, "w", **options) as f:
        CASES[name](f)


# What older kinds of files have not.
NOT = {
    "NETCDF3_CLASSIC": {"every_number", "numbers_only", "strings", "attributes", "groups", "unlimited", "coordinates_of_every_shape", "filters", "szip", "byte_orders",
                        "chunks_never_written"},
    "NETCDF3_64BIT_DATA": {"numbers_only", "strings", "attributes", "groups", "unlimited", "coordinates_of_every_shape", "filters", "szip", "byte_orders",
                           "chunks_never_written"},
    "NETCDF4_CLASSIC": {"every_number", "numbers_only", "strings", "attributes", "groups", "unlimited", "coordinates_of_every_shape"},
}
NOT["NETCDF3_64BIT_OFFSET"] = NOT["NETCDF3_CLASSIC"]
for kind in ["NETCDF4", "NETCDF4_CLASSIC", "NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA"]:
    for name in CASES:
        if name not in NOT.get(kind, ()):
            file = f"{name}_{kind}.nc"
            write(name, OUT / file, format=kind)
            EXPECTED[file] = of_file(OUT / file)

for name in CASES:
    store = f"{name}.nczarr"
    write(name, f"file://{OUT / store}#mode=nczarr,file")
    EXPECTED[store] = EXPECTED[f"{name}_NETCDF4.nc"]

# Without NCZarr's own members netCDF-C finds less again: no dimensions of outer groups, no types of attributes.
for name in ["numbers_only", "filters", "chunks_never_written"]:
    store = f"{name}.purezarr"
    write(name, f"file://{OUT / store}#mode=zarr,file")
    EXPECTED[store] = EXPECTED[f"{name}_NETCDF4.nc"]

# ---------------------------------------------------------------- xarray
VALUES = {
    "i1": np.array([1, -2, 3], "i1"), "u8": np.array([1, 2, 2**64 - 1], "u8"), "i4": np.array([[1, 2, 3], [4, 5, 6]], "i4"),
    "f4": np.array([1.5, np.nan, -3], "f4"), "f8": np.array([[1, 2, 3], [np.inf, 5, 6]]),
    "text": np.array(["a", "längst", ""]), "objects": np.array(["x", "yy", "zzz"], object),
    "truth": np.array([True, False, True]), "alone": np.float64(2.5),
    "time": np.array(["2000-01-01", "2000-01-02", "2001-06-01T12:00"], "M8[ns]"),
}
ATTRIBUTES = {"text": "größe", "whole": 3, "big": 2**40, "half": 2.5, "ints": [1, 2, 3], "floats": [1.0, 2.5],
              "texts": ["a", "bc"], "empty": ""}


def dataset(names):
    ds = xr.Dataset(attrs=ATTRIBUTES)
    for name in names:
        a = VALUES[name]
        ds[name] = (("y", "x")[2 - a.ndim:], a, {"long_name": f"the {name}"})
    ds = ds.assign_coords(x=("x", [10.0, 20.0, 30.0], {"units": "m"}))
    return ds


def inferred(value):
    """An attribute of JSON, of the smallest type from int on that loses nothing."""
    if isinstance(value, str) or isinstance(value, list) and isinstance(value[0], str):
        return attribute(value)
    a = np.atleast_1d(np.asarray(value))
    if a.dtype.kind == "i" and (a == a.astype("i4")).all():
        a = a.astype("i4")
    return attribute(a)


def of_dataset(ds, store):
    """What a store holds, by what xarray gives of it undecoded."""
    raw = xr.open_dataset(store, engine="zarr", decode_cf=False, consolidated=False)
    out = {"dims": {n: {"size": s, "unlimited": False} for n, s in raw.sizes.items()}, "types": {}, "groups": {},
           "kind": "NETCDF4", "attrs": {k: inferred(v) for k, v in ds.attrs.items()}, "vars": {}}
    for name, v in raw.variables.items():
        a = np.asarray(v.values)
        if a.dtype == bool:
            a = a.astype("u1")
        kind = "string" if a.dtype.kind in "OUT" else word(a.dtype)
        if a.dtype.kind == "T":
            a = a.astype(object)
        attrs = {}
        for key, value in v.attrs.items():
            if key == "_FillValue" and not isinstance(value, str):
                attrs[key] = attribute(a.dtype.type(value))
            else:
                attrs[key] = inferred(value)
        out["vars"][str(name)] = {"type": kind, "dims": list(v.dims), "shape": list(a.shape), "attrs": attrs, "data": data(a)}
    return out


for version in [2, 3]:
    for consolidated in [True, False]:
        names = [n for n in VALUES if n != "objects" or version == 2]
        ds = dataset(names)
        store = f"xarray_v{version}_{'consolidated' if consolidated else 'plain'}.zarr"
        encoding = {"i1": {"_FillValue": np.int8(-2)}, "f8": {"_FillValue": -9999.0}}
        ds.to_zarr(OUT / store, zarr_format=version, consolidated=consolidated, encoding=encoding)
        EXPECTED[store] = of_dataset(ds, OUT / store)

for engine, names in {
    "netcdf4": [n for n in VALUES], "h5netcdf": [n for n in VALUES if n != "truth"],
    "scipy": ["i1", "i4", "f4", "f8", "text", "alone", "time"],
}.items():
    ds = dataset(names)
    if engine == "scipy":
        # netCDF-3 has neither wide integers nor lists of text.
        ds.attrs = {k: v for k, v in ATTRIBUTES.items() if k not in ("big", "texts")}
    file = f"xarray_{engine}.nc"
    ds.to_netcdf(OUT / file, engine=engine)
    EXPECTED[file] = of_file(OUT / file)

(OUT / "expected.json").write_text(json.dumps(EXPECTED, indent=1))
