"""Writes netCDF and HDF5 files with whatever CDL has a form for, or has none for: user-defined types, nested groups with
dimensions of one name, special attributes, and what h5py writes that netCDF reads in its own way.

    python cdl_files.py OUT
"""

import pathlib
import sys
import warnings

import h5py
import netCDF4
import numpy as np

warnings.simplefilter("ignore")
OUT = pathlib.Path(sys.argv[1]).absolute()


def netcdf(name, **options):
    return netCDF4.Dataset(OUT / name, "w", **options)


with netcdf("types.nc") as f:
    f.createDimension("x", 3)
    f.createDimension("t", None)
    pair = np.dtype([("a", "i4"), ("b", "f8")])
    pair_t = f.createCompoundType(pair, "pair_t")
    nested = f.createCompoundType(np.dtype([("p", pair), ("v", "f4", (2, 2)), ("n", "i1", (3,)), ("c", "S1", (4,))]), "nested_t")
    sky = f.createEnumType(np.int8, "sky_t", {"Clear": 0, "Cumulo nimbus": 1, "Missing": -1})
    wide = f.createEnumType(np.uint64, "wide_t", {"low": 0, "high": 2**64 - 1})
    ragged = f.createVLType(np.float32, "ragged_t")
    words = f.createVLType(np.int16, "words_t")
    a = np.zeros(3, pair)
    a["a"], a["b"] = [1, 2, 3], [0.5, np.nan, 1e30]
    f.createVariable("pairs", pair_t, ("x",))[:] = a
    n = np.zeros(3, nested.dtype)
    n["p"], n["v"], n["n"], n["c"] = a, 1.25, 7, np.array([b"a", b"\n", b"\x00", b"d"])
    f.createVariable("nesteds", nested, ("t", "x"))[:2] = np.stack([n, n])
    v = f.createVariable("skies", sky, ("t",), fill_value=-1)
    v[:4] = [0, 1, 0, -1]
    f.createVariable("wides", wide, ("x",))[:] = np.array([0, 2**64 - 1, 0], "u8")
    r = f.createVariable("rag", ragged, ("x",))
    for i in range(3):
        r[i] = np.arange(i, dtype="f4") / 3
    w = f.createVariable("word", words, ("t", "x"))
    for i in range(2):
        for j in range(3):
            w[i, j] = np.arange(3 * i + j, dtype="i2")
    f.createVariable("one_pair", pair_t, ())[...] = a[0]
    f.pair = a[:1]
    s = f.createVariable("s", str, ("t", "x"))
    s[0, 0], s[1, 2] = 'quoted "text" \\ and\nlines\tand é', ""
    s.setncattr_string("strings", ["one", "two, three", "li\nne"])
    s.setncattr_string("single", "only")
    g = f.createGroup("g")
    g.createEnumType(np.int16, "sky_t", {"Other": 5})
    g.createVariable("outer", pair_t, ("x",))[:] = a

with netcdf("groups.nc") as f:
    f.createDimension("x", 2)
    f.createDimension("t", None)
    f.createVariable("x", "f8", ("x",))[:] = [1, 2]
    f.createVariable("at", "i4", ("t", "x"))[:3] = 1
    f.title, f.unlimited, f.data = "with \"quotes\"", 1, np.int16(2)
    for name in ["zebra", "apple one", "data"]:
        g = f.createGroup(name)
        g.createDimension("x", 4)
        g.createDimension("u", None)
        g.createVariable("v", "i2", ("u", "x"))[:2] = 5
        g.createVariable("outer", "i4", ("t",))[:2] = [1, 2]
        g.createVariable("data", "f4", ("u",)).setncattr("data", 1.5)
        d = g.createGroup("deep").createGroup("deeper")
        d.createDimension("t", 1)
        d.createVariable("v", "u1", ("u", "t", "x"))[:2] = 1
        d.about = "deep"
    f.createGroup("empty")

with netcdf("specials.nc") as f:
    f.createDimension("y", 40)
    f.createDimension("x", 30)
    f.createDimension("t", None)
    options = {
        "plain": {}, "zlib": {"zlib": True, "complevel": 6}, "both": {"zlib": True, "fletcher32": True, "shuffle": True},
        "no_shuffle": {"zlib": True, "shuffle": False}, "sums": {"fletcher32": True}, "chunked": {"chunksizes": (7, 11)},
        "contiguous": {"contiguous": True}, "big": {"endian": "big"}, "little": {"endian": "little"},
        "szip": {"compression": "szip"}, "szip_sums": {"compression": "szip", "fletcher32": True},
        "no_fill": {"fill_value": False}, "fill": {"fill_value": 7},
        "digits": {"zlib": True, "least_significant_digit": 2},
    }
    for name, o in options.items():
        f.createVariable(name, "f4" if name == "digits" else "i4", ("y", "x"), **o)[:] = 3
    f.createVariable("bytes", "i1", ("x",), zlib=True)
    f.createVariable("chars", "S1", ("y", "x"), zlib=True)
    f.createVariable("strings", str, ("x",), zlib=True)
    f.createVariable("alone", "f8", (), fill_value=-1)
    f.createVariable("grows", "u2", ("t", "y"), zlib=True)
    q = f.createVariable("q", "f4", ("y", "x"), zlib=True, significant_digits=3)
    q[:] = np.linspace(0, 1, 1200).reshape(40, 30)

with netcdf("plugins.nc") as f:
    # Filters without which ncdump shows no data.
    f.createDimension("x", 30)
    f.createVariable("bzip2", "i4", ("x",), compression="bzip2", fletcher32=True)
    f.createVariable("zstd", "i4", ("x",), compression="zstd", shuffle=True)

with netcdf("classic_model.nc", format="NETCDF4_CLASSIC") as f:
    f.createDimension("t", None)
    f.createDimension("n", 5)
    f.createVariable("c", "S1", ("t", "n"), zlib=True)[:2] = np.array([b"ab\ncd", b"e\x00f\xff"], "S5").view("S1").reshape(2, 5)
    f.createVariable("v", "f8", ("t",))[:2] = [1e20, -0.0]
    f.text = "two\nlines\n"

VALUES = {"f4": [0, -0.0, 1, 0.1, 1e20, 1e-20, 123456789, np.nan, np.inf, -np.inf, 9.96921e36, 16777216],
          "f8": [0, -0.0, 1, 0.1, 1e20, 1e-300, 123456789012345678, np.nan, np.inf, -np.inf, 9.969209968386869e36, 2 / 3]}
with netcdf("numbers.nc") as f:
    for t, values in VALUES.items():
        f.createDimension(t, len(values))
        f.createVariable(t, t, (t,))[:] = np.array(values, t)
        f.createVariable("nan_" + t, t, (t,), fill_value=np.nan)[:] = np.array(values, t)
        f.setncattr("many_" + t, np.array(values, t))
        v = f.createVariable("format_" + t, t, (t,))
        v.C_format = "%8.3f"
        v[:] = np.array(values, t)
    for t in ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]:
        i = np.iinfo(t)
        f.createDimension(t, 4)
        f.createVariable(t, t, (t,))[:] = np.array([i.min, i.max, 0, 1], t)
        f.setncattr("many_" + t, np.array([i.min, i.max, 0, 1], t))

with netcdf("names.nc") as f:
    for name in ["2x", "a b", "a(b)", "a,b;c:d", "größe", "a\\b", 'q"q', "a'b", "a{b}", "a#b!", "dimensions", "variables", "data",
                 "types", "group", "a.b-c+d@e", "_x", "x[1]", "a=b", "a&b|c^d~e`f$g%h*i?j<k>l"]:
        f.createDimension(name, 2)
        v = f.createVariable(name, "i1", (name,))
        v[:] = [1, 2]
        v.setncattr(name, name)

with h5py.File(OUT / "h5py.h5", "w") as f:
    for t in ["f2", ">f2", "i1", ">i4", "u8", "?", "c8", "S3", "O", "V5"]:
        name = "d" + t.replace(">", "big_").replace("?", "bool")
        data = np.zeros((2, 3), t) if t != "O" else np.array([["a", "bc", ""], ["d", "e", "ü"]], object)
        kind = h5py.string_dtype() if t == "O" else None
        f.create_dataset(name, data=np.arange(6).reshape(2, 3).astype(t) if t in ("f2", ">f2", ">i4") else data, dtype=kind)
    f.attrs["half"] = np.float16(1.5)
    f.attrs["halves"] = np.array([1.5, np.nan, -2], "f2")
    f.attrs["fixed"] = np.bytes_("abc")
    f.attrs["list"] = np.array([b"abc", b"de"])
    for name in ("none", "none2"):
        f.create_dataset(name, (0, 0), "i4")
    f.create_dataset("grows", (0, 2), "i4", maxshape=(None, 2))
    f.create_dataset("sums", (10, 10), "i2", chunks=(5, 5), shuffle=True, fletcher32=True, compression="gzip")
    f.create_dataset("lzf", (10, 10), "i2", chunks=(5, 5), compression="lzf", shuffle=True)
    f.create_dataset("offset", (10, 10), "i2", chunks=(5, 5), scaleoffset=3)
    f.create_dataset("null", data=h5py.Empty("i4"))
    g = f.create_group("g")
    g.create_dataset("v", data=np.arange(3))
    g.attrs["about"] = "it is there twice"
    f["again"] = g
    f["soft"] = h5py.SoftLink("/g/v")
    f["softgroup"] = h5py.SoftLink("/g")
    space = h5py.h5t.C_S1.copy()
    space.set_size(6)
    space.set_strpad(h5py.h5t.STR_SPACEPAD)
    a = h5py.h5a.create(f.id, b"spaces", space, h5py.h5s.create_simple((2,)))
    a.write(np.array([b"ab    ", b"      "], "S6"), mtype=space)
    layout = h5py.VirtualLayout((3,), "i8")
    layout[:] = h5py.VirtualSource(f["g/v"])
    f.create_virtual_dataset("virtual", layout)

with h5py.File(OUT / "scales.h5", "w") as f:
    x = f.create_dataset("x", data=np.arange(3.0))
    y = f.create_dataset("y", data=np.arange(2))
    x.make_scale("x axis")
    y.make_scale()
    d = f.create_dataset("d", data=np.ones((2, 3)), compression="gzip")
    d.dims[0].attach_scale(y)
    d.dims[1].attach_scale(x)
    n = f.create_dataset("n", data=np.ones(0))
    n.make_scale()

with h5py.File(OUT / "order.h5", "w", track_order=True) as f:
    for name in "zyxab":
        d = f.create_dataset(name, data=np.arange(2))
        for key in ["q", "c", "k", "a"]:
            d.attrs[key] = key
    for i in range(20):
        f.attrs[f"a{19 - i}"] = i
