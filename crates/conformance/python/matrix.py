"""Writes one small HDF5 file for each feature of the format, and `expected.json`: what h5py reads in each.

    python matrix.py OUT

A case that the installed HDF5 library cannot write is left out, and said so.
"""

import json
import os
import sys
import zlib

# External raw files are named relative to the file that names them.
os.environ["HDF5_EXTFILE_PREFIX"] = "${ORIGIN}"

import h5py
import hdf5plugin
import numpy as np
from h5py import h5d, h5f, h5p, h5s, h5t, h5z

import canon

OUT = sys.argv[1]
os.makedirs(OUT, exist_ok=True)
CASES = {}
rng = np.random.default_rng(20261130)

A = (np.arange(60 * 50, dtype="<i4").reshape(60, 50) * 7919) % 100003


def case(function):
    """Registers a function that fills an open file; its keywords for h5py.File may stand in `.options`."""
    CASES[function.__name__] = (function, {})
    return function


def options(**keywords):
    def decorate(function):
        CASES[function.__name__] = (function, keywords)
        return function

    return decorate


def simple(name, data, libver="earliest", **keywords):
    CASES[name] = (lambda f: f.create_dataset("d", data=data, **keywords), {"libver": libver})


def low(f, name, t, shape, data=None, mtype=None, maxshape=None, **set_up):
    """A dataset by the low-level calls: set_up maps names of property-list setters to their arguments."""
    p = h5p.create(h5p.DATASET_CREATE)
    for setter, arguments in set_up.items():
        if setter == "chunk_opts":
            canon.HDF5.H5Pset_chunk_opts(p.id, *arguments)
        else:
            getattr(p, "set_" + setter)(*arguments)
    space = h5s.create(h5s.SCALAR) if shape == () else h5s.create_simple(shape, maxshape)
    d = h5d.create(f.id, name.encode(), t, space, dcpl=p)
    if data is not None:
        d.write(h5s.ALL, h5s.ALL, np.ascontiguousarray(data), mtype=mtype)
    return d


# --- chunk indexes, each with and without filters, with whole and partial edge chunks, in ranks 1 to 4

FILTERS = {
    "raw": {},
    "gz": {"compression": "gzip"},
    "shuf_gz_fl": {"compression": "gzip", "shuffle": True, "fletcher32": True},
}
INDEXES = {
    "bt1": ("earliest", lambda shape: None),
    "fa": ("latest", lambda shape: None),
    "ea": ("latest", lambda shape: (None,) + shape[1:]),
    "ea_last": ("latest", lambda shape: shape[:-1] + (None,)),
    "bt2": ("latest", lambda shape: (None,) * len(shape)),
    "bt1_unlimited": ("earliest", lambda shape: (None,) * len(shape)),
}
SHAPES = {
    "r1": ((1000,), (37,)),
    "r2": ((60, 50), (7, 9)),
    "r2_whole": ((60, 50), (10, 10)),
    "r3": ((11, 13, 17), (4, 5, 6)),
    "r4": ((5, 6, 7, 8), (2, 3, 4, 5)),
}
for index, (libver, limit) in INDEXES.items():
    for pipeline, filters in FILTERS.items():
        for rank, (shape, chunks) in SHAPES.items():
            if index == "bt2" and len(shape) == 1:
                continue
            data = rng.integers(-1000, 1000, shape).astype("<i4")
            simple(f"index_{index}_{pipeline}_{rank}", data, libver, chunks=chunks, maxshape=limit(shape), **filters)
wide = np.arange(40 * 5000, dtype="<i4").reshape(40, 5000)
long = np.arange(120_000, dtype="<i4")
for pipeline, filters in FILTERS.items():
    simple(f"index_single_{pipeline}", A, "latest", chunks=(60, 50), **filters)
    simple(f"index_fa_paged_{pipeline}", wide, "latest", chunks=(2, 20), **filters)
    simple(f"index_ea_paged_{pipeline}", long, "latest", chunks=(10,), maxshape=(None,), **filters)
    simple(f"index_ea_super_{pipeline}", long, "latest", chunks=(1,), maxshape=(None,)) if pipeline == "raw" else None
    simple(f"index_bt2_deep_{pipeline}", wide, "latest", chunks=(2, 20), maxshape=(None, None), **filters)
    simple(f"index_bt1_deep_{pipeline}", wide, "earliest", chunks=(2, 20), **filters)
    for n in (1024, 1025):
        simple(f"index_fa_{n}_{pipeline}", np.arange(n, dtype="<i4"), "latest", chunks=(1,), **filters)
for rank, (shape, chunks) in SHAPES.items():

    def implicit(f, shape=shape, chunks=chunks):
        data = rng.integers(0, 1 << 30, shape).astype("<i4")
        low(f, "d", h5t.STD_I32LE, shape, data, chunk=(chunks,), alloc_time=(h5d.ALLOC_TIME_EARLY,))

    CASES[f"index_implicit_{rank}"] = (implicit, {"libver": "latest"})


def grown(name, maxshape, **filters):
    """Extents that grew after writing, and shrank: chunks outside the grid of today, missing chunks inside it."""

    def fill(f):
        d = f.create_dataset("d", (20, 20), "<i4", chunks=(6, 7), maxshape=maxshape, fillvalue=-5, **filters)
        d[...] = A[:20, :20]
        d.resize((50, 20)) if maxshape[1] == 20 else d.resize((50, 31))
        d[40:45, 3:9] = 8
        d.resize((47, 20)) if maxshape[1] == 20 else d.resize((47, 25))

    CASES[name] = (fill, {"libver": "latest"})


grown("grown_ea", (None, 20))
grown("grown_ea_gz", (None, 20), compression="gzip")
grown("grown_bt2", (None, None))
grown("grown_bt2_gz", (None, None), compression="gzip")
grown("grown_fa", (100, 80), compression="gzip")

# --- filters

simple("lzf", A, chunks=(7, 9), compression="lzf")
simple("lzf_shuffle", A.astype("<f8"), chunks=(7, 9), compression="lzf", shuffle=True)
for coder in ("nn", "ec"):
    for pixels in (8, 16, 32):
        for t in ("u1", "<i2", "<i4", ">i4", "<f4", "<f8", "<i8"):
            if t == "<i8" and pixels != 8:
                continue
            data = (np.arange(4096) // 3 % 200).reshape(64, 64).astype(t)
            simple(f"szip_{coder}_{pixels}_{t.strip('<').replace('>', 'be_')}", data, chunks=(10, 32), compression="szip", compression_opts=(coder, pixels))
for t in ("i1", "u1", "<i2", "<u2", ">i2", "<i4", "<u4", "<i8", "<u8", ">i8"):
    data = rng.integers(0, 100, (60, 50)).astype(t)
    label = t.strip("<").replace(">", "be_")
    for bits in (0, 5 if t[-1] == "1" else 9):
        simple(f"scaleoffset_{label}_{bits}", data, chunks=(7, 9), scaleoffset=bits)
    simple(f"scaleoffset_fill_{label}", data, chunks=(7, 9), scaleoffset=0, fillvalue=42)
    simple(f"scaleoffset_same_{label}", np.full((20, 20), 7, t), chunks=(7, 9), scaleoffset=0)
for t in ("<f4", "<f8", ">f4"):
    for digits in (1, 3):
        data = rng.normal(0, 50, (60, 50)).astype(t)
        simple(f"scaleoffset_{t.strip('<').replace('>', 'be_')}_{digits}", data, chunks=(7, 9), scaleoffset=digits)
simple("scaleoffset_nan", np.array([1.5, np.nan, 2.25, 3, 4], "<f4"), chunks=(5,), scaleoffset=2)
for precision, offset, base, tag in ((17, 0, h5t.STD_I32LE, "i32"), (12, 3, h5t.STD_U16LE, "u16"), (12, 3, h5t.STD_I16BE, "i16be"), (5, 2, h5t.STD_U8LE, "u8"), (33, 11, h5t.STD_I64BE, "i64be")):

    def nbit(f, precision=precision, offset=offset, base=base):
        t = base.copy()
        t.set_precision(precision)
        t.set_offset(offset)
        span = 1 << precision - 1
        data = rng.integers(0 if t.get_sign() == h5t.SGN_NONE else -span, span, (60, 50)).astype("<i8")
        low(f, "d", t, (60, 50), data, h5t.NATIVE_INT64, chunk=((7, 9),), filter=(h5z.FILTER_NBIT, h5z.FLAG_MANDATORY))

    CASES[f"nbit_{tag}_{precision}"] = (nbit, {})


@case
def nbit_float(f):
    t = h5t.IEEE_F32BE.copy()
    t.set_fields(26, 20, 6, 7, 13)
    t.set_offset(7)
    t.set_precision(20)
    t.set_ebias(31)
    t.set_size(4)
    data = (A[:20, :20] % 100).astype("<f4")
    low(f, "d", t, (20, 20), data, h5t.NATIVE_FLOAT, chunk=((7, 9),), filter=(h5z.FILTER_NBIT, h5z.FLAG_MANDATORY))


@case
def nbit_compound(f):
    inner = h5t.STD_I32LE.copy()
    inner.set_precision(21)
    t = h5t.create(h5t.COMPOUND, 24)
    t.insert(b"a", 0, inner)
    t.insert(b"pad", 8, h5t.STD_U8LE)
    t.insert(b"arr", 12, h5t.array_create(h5t.STD_I16BE, (3,)))
    data = np.zeros(40, [("a", "<i4"), ("pad", "u1"), ("arr", "<i2", (3,))])
    data["a"], data["pad"], data["arr"] = np.arange(40) * 7, 9, -3
    low(f, "d", t, (40,), data, h5t.py_create(data.dtype), chunk=((7,),), filter=(h5z.FILTER_NBIT, h5z.FLAG_MANDATORY))


plain = {"i1": (A % 100).astype("i1"), "i2": A.astype("<i2"), "i4": A, "f8": (A / 7).astype("<f8"), "be": A.astype(">i4")}
for cname in ("blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"):
    for shuffle in (0, 1, 2):
        for t in ("i1", "i4", "f8"):
            try:
                simple(f"blosc_{cname}_{shuffle}_{t}", plain[t], chunks=(25, 30), **hdf5plugin.Blosc(cname=cname, clevel=5, shuffle=shuffle))
            except ValueError:
                pass
noise = rng.integers(0, 256, (300, 300)).astype("u1")
simple("blosc_incompressible", noise, chunks=(300, 300), **hdf5plugin.Blosc(cname="lz4"))
simple("blosc_level0", A, chunks=(25, 30), **hdf5plugin.Blosc(cname="lz4", clevel=0))
big = (np.arange(512 * 1024, dtype="<i4") // 5).reshape(512, 1024)
simple("blosc_blocks", big, chunks=(512, 1024), **hdf5plugin.Blosc(cname="blosclz", clevel=9))
simple("blosc_blocks_zstd", big, chunks=(512, 1024), **hdf5plugin.Blosc(cname="zstd", clevel=1, shuffle=2))
for cname in ("blosclz", "lz4", "lz4hc", "zlib", "zstd"):
    for filters in (0, 1, 2):
        for t in ("i1", "i4", "f8"):
            simple(f"blosc2_{cname}_{filters}_{t}", plain[t], chunks=(25, 30), **hdf5plugin.Blosc2(cname=cname, clevel=5, filters=filters))
simple("blosc2_delta", A, chunks=(25, 30), **hdf5plugin.Blosc2(cname="zstd", filters=hdf5plugin.Blosc2.DELTA))
simple("blosc2_blocks", big, chunks=(512, 1024), **hdf5plugin.Blosc2(cname="lz4"))
simple("blosc2_noise", noise, chunks=(300, 300), **hdf5plugin.Blosc2(cname="zstd"))
simple("blosc2_zeros", np.zeros((100, 100), "<f8"), chunks=(50, 50), **hdf5plugin.Blosc2(cname="zstd"))
simple("blosc2_rank1", np.arange(1000, dtype="<i2"), chunks=(300,), **hdf5plugin.Blosc2(cname="lz4"))
simple("blosc2_rank3", np.arange(4000, dtype="<f4").reshape(10, 20, 20), chunks=(4, 7, 9), **hdf5plugin.Blosc2(cname="zstd", filters=2))
for t, data in plain.items():
    simple(f"bitshuffle_none_{t}", data, chunks=(25, 30), **hdf5plugin.Bitshuffle(cname="none"))
    simple(f"bitshuffle_lz4_{t}", data, chunks=(25, 30), **hdf5plugin.Bitshuffle(cname="lz4"))
    simple(f"bitshuffle_zstd_{t}", data, chunks=(25, 30), **hdf5plugin.Bitshuffle(cname="zstd"))
    simple(f"zstd_{t}", data, chunks=(15, 25), **hdf5plugin.Zstd())
    simple(f"lz4_{t}", data, chunks=(15, 25), **hdf5plugin.LZ4())
    simple(f"bzip2_{t}", data, chunks=(15, 25), **hdf5plugin.BZip2())
simple("bitshuffle_blocks", big, chunks=(512, 1024), **hdf5plugin.Bitshuffle(nelems=1024))
simple("bitshuffle_odd", np.arange(1003, dtype="<i4"), chunks=(1003,), **hdf5plugin.Bitshuffle())
simple("lz4_blocks", big, chunks=(512, 1024), **hdf5plugin.LZ4(nbytes=10_000))
simple("lz4_noise", noise, chunks=(300, 300), **hdf5plugin.LZ4())
simple("bzip2_zeros", np.zeros(10_000, "<i8"), chunks=True, **hdf5plugin.BZip2())


@case
def filter_masks(f):
    d = f.create_dataset("d", (12,), "<i4", chunks=(4,), compression="gzip", shuffle=True)
    d[:4] = [1, 2, 3, 4]
    shuffled = np.array([5, 6, 7, 8], "<i4").view("u1").reshape(4, 4).T.tobytes()
    d.id.write_direct_chunk((4,), shuffled, filter_mask=0b10)
    d.id.write_direct_chunk((8,), np.array([9, 10, 11, 12], "<i4").tobytes(), filter_mask=0b11)


@options(libver="latest")
def filter_masks_fixed_array(f):
    d = f.create_dataset("d", (12,), "<i4", chunks=(4,), compression="gzip")
    d[:4] = [1, 2, 3, 4]
    d.id.write_direct_chunk((4,), np.array([5, 6, 7, 8], "<i4").tobytes(), filter_mask=1)


@case
def last_chunk_cut(f):
    d = f.create_dataset("d", (10,), "<i4", chunks=(8,), compression="gzip")
    d[:8] = np.arange(8)
    d.id.write_direct_chunk((8,), zlib.compress(np.array([8, 9], "<i4").tobytes()))


@options(libver="latest")
def edge_chunks_unfiltered(f):
    low(f, "d", h5t.STD_I32LE, (60, 50), A, chunk=((7, 9),), deflate=(4,), chunk_opts=(2,))


@options(libver="latest")
def edge_chunks_unfiltered_ea(f):
    low(f, "d", h5t.STD_I32LE, (60, 50), A, None, (h5s.UNLIMITED, 50), chunk=((7, 9),), deflate=(4,), chunk_opts=(2,))


# --- element types

for t in ("i1", "u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", ">i2", ">u2", ">i4", ">u4", ">i8", ">u8"):
    info = np.iinfo(t)
    data = np.array([info.min, info.min + 1, 0, 1, 100, info.max - 1, info.max], t)
    simple("type_" + t.strip("<").replace(">", "be_"), data)
for t in ("<f2", "<f4", "<f8", ">f2", ">f4", ">f8"):
    info = np.finfo(t)
    data = np.array([0, -0.0, 1, -1.5, info.max, info.tiny, info.smallest_subnormal, np.inf, -np.inf, np.nan], t)
    simple("type_" + t.strip("<").replace(">", "be_"), data)
simple("type_bool", (A % 2).astype(bool))
simple("type_complex64", np.arange(20, dtype="<c8"))
simple("type_complex128", np.arange(20, dtype="<c16") * (1 - 2j))
simple("type_longdouble", np.arange(20, dtype=np.longdouble) / 3)
simple("type_fixed_string", np.array([b"abc", b"de", b"", b"abcdefg"], "S7"))


def typed(name, make, count=20):
    """A dataset of a type that NumPy lacks, holding pseudo-random bytes of it."""

    def fill(f):
        t = make()
        data = rng.integers(0, 256, count * t.get_size()).astype("u1")
        low(f, "d", t, (count,), data, t)

    CASES[name] = (fill, {"libver": "latest"} if "native_complex" in name else {})


def integer(base, precision, offset):
    t = base.copy()
    canon.HDF5.H5Tset_precision(t.id, precision)
    canon.HDF5.H5Tset_offset(t.id, offset)
    return t


def sized(base, size):
    t = base.copy()
    t.set_size(size)
    return t


def floating(base, size, precision, fields, bias, offset=0):
    t = base.copy()
    if size > t.get_size():
        t.set_size(size)
    t.set_fields(*fields)
    t.set_offset(offset)
    t.set_precision(precision)
    t.set_ebias(bias)
    t.set_size(size)
    return t


typed("type_i24", lambda: sized(h5t.STD_I32LE, 3))
typed("type_u24be", lambda: sized(h5t.STD_U32BE, 3))
typed("type_i128", lambda: sized(h5t.STD_I64LE, 16))
typed("type_partial_i32", lambda: integer(h5t.STD_I32LE, 17, 5))
typed("type_partial_u64be", lambda: integer(h5t.STD_U64BE, 40, 9))
typed("type_bitfield8", lambda: h5t.STD_B8LE)
typed("type_bitfield32be", lambda: h5t.STD_B32BE)
typed("type_bitfield64", lambda: h5t.STD_B64LE)
typed("type_partial_bitfield", lambda: integer(h5t.STD_B16LE, 9, 2))
typed("type_time32", lambda: h5t.UNIX_D32LE)
typed("type_time64be", lambda: h5t.UNIX_D64BE)
typed("type_bfloat16", lambda: floating(h5t.IEEE_F32LE, 2, 16, (15, 7, 8, 0, 7), 127))
typed("type_bias31", lambda: floating(h5t.IEEE_F32LE, 2, 16, (15, 9, 6, 0, 9), 31))
typed("type_f8_e4m3", lambda: floating(h5t.IEEE_F32LE, 1, 8, (7, 3, 4, 0, 3), 7))
typed("type_f24be", lambda: floating(h5t.IEEE_F32BE, 3, 24, (23, 16, 7, 0, 16), 63))
if hasattr(h5t, "VAX_F32"):
    typed("type_vax32", lambda: h5t.VAX_F32)
    typed("type_vax64", lambda: h5t.VAX_F64)
if hasattr(h5t, "COMPLEX_IEEE_F64LE"):
    typed("type_native_complex128", lambda: h5t.COMPLEX_IEEE_F64LE)
    typed("type_native_complex64be", lambda: h5t.COMPLEX_IEEE_F32BE)


@case
def type_opaque(f):
    t = h5t.create(h5t.OPAQUE, 5)
    t.set_tag(b"five bytes")
    low(f, "d", t, (4,), np.frombuffer(b"abcdefghijklmnopqrst", "u1"), t)


@case
def type_strings(f):
    for pad, tag in ((h5t.STR_NULLTERM, "term"), (h5t.STR_NULLPAD, "pad"), (h5t.STR_SPACEPAD, "space")):
        for charset, code in ((h5t.CSET_ASCII, "ascii"), (h5t.CSET_UTF8, "utf8")):
            t = h5t.C_S1.copy()
            t.set_size(8)
            t.set_strpad(pad)
            t.set_cset(charset)
            low(f, f"{tag}_{code}", t, (3,), np.frombuffer(b"abc     defghijk\0\0\0\0\0\0\0\0", "u1"), t)


@case
def type_enums(f):
    for base in ("i1", "<i4", ">i2", "<u8"):
        t = h5py.enum_dtype({"RED": 0, "GREEN": 1, "BLUE": 42}, basetype=base)
        f.create_dataset(base.strip("<").replace(">", "be_"), data=np.array([0, 1, 42, 1, 7], base), dtype=t)


@case
def type_arrays(f):
    f.create_dataset("one", (10,), np.dtype(("<i4", (3,))))[...] = np.arange(30).reshape(10, 3)
    f.create_dataset("two", (4, 2), np.dtype((">f8", (2, 3))))[...] = np.arange(48).reshape(4, 2, 2, 3)
    low(f, "nested", h5t.array_create(h5t.array_create(h5t.STD_I16LE, (2,)), (3,)), (5,), np.arange(30, dtype="<i2"), h5t.array_create(h5t.array_create(h5t.STD_I16LE, (2,)), (3,)))


record = np.dtype([("a", "<i4"), ("b", ">f8"), ("c", "S5"), ("e", [("x", "<i2"), ("y", "<f4", (3,))])])
records = np.zeros(30, record)
records["a"], records["b"], records["c"] = np.arange(30), np.arange(30) / 3, b"abc"
records["e"]["x"], records["e"]["y"] = 5, 1.5
for libver in ("earliest", "v108", "v110", "latest"):
    simple(f"type_compound_{libver}", records, libver if libver != "v108" else ("v108", "v108"))
simple("type_compound_gz", records, chunks=(7,), compression="gzip", shuffle=True)
aligned = np.zeros(9, np.dtype([("i", "i1"), ("f", "<f8"), ("s", "<i2"), ("u", "u1")], align=True))
aligned["i"], aligned["f"], aligned["s"], aligned["u"] = 1, 2.5, -3, 4
simple("type_compound_padded", aligned)


@case
def type_compound_odd(f):
    t = h5t.create(h5t.COMPOUND, 40)
    t.insert(b"late", 31, h5t.STD_I16BE)
    t.insert(b"early", 3, h5t.IEEE_F32LE)
    low(f, "d", t, (6,), rng.integers(0, 256, 240).astype("u1"), t)


@case
def type_compound_many(f):
    t = np.dtype([(f"field_{i}", "<i4") for i in range(300)])
    f.create_dataset("d", data=np.zeros(3, t))


@case
def vlen(f):
    d = f.create_dataset("numbers", (6,), h5py.vlen_dtype("<i4"))
    for i in range(5):
        d[i] = np.arange(i)
    d = f.create_dataset("doubles", (3,), h5py.vlen_dtype(">f8"), chunks=(2,), compression="gzip")
    d[0], d[2] = [1.5, -2], np.arange(1000)
    s = f.create_dataset("strings", (4,), h5py.string_dtype())
    s[0], s[1], s[3] = "aé", "", "z" * 5000
    f.create_dataset("ascii", data=["one", "two"], dtype=h5py.string_dtype("ascii"))


@case
def vlen_nested(f):
    inner = h5t.vlen_create(h5t.STD_I16LE)
    low(f, "unset", h5t.vlen_create(inner), (3,))
    pair = np.dtype([("n", "<i4"), ("s", h5py.string_dtype())])
    data = np.zeros(4, pair)
    data["n"], data["s"] = [1, 2, 3, 4], ["a", "bb", "", "dddd"]
    f.create_dataset("compound", data=data)


@case
def vlen_of_compound(f):
    d = f.create_dataset("d", (3,), h5py.vlen_dtype(np.dtype([("x", "<i2"), ("y", ">f4")])))
    d[0] = np.array([(1, 2.5), (3, 4.5)], [("x", "<i2"), ("y", ">f4")])
    d[2] = np.array([(9, 9.5)], [("x", "<i2"), ("y", ">f4")])


@case
def vlen_many(f):
    f.create_dataset("d", data=[f"text {i} " + "x" * (i % 61) for i in range(3000)], dtype=h5py.string_dtype())


for libver in ("earliest", "latest"):

    def references(f):
        g = f.create_group("g")
        d = f.create_dataset("refs", (4,), h5py.ref_dtype)
        d[0], d[1], d[3] = g.ref, f.ref, d.ref
        s = f.create_dataset("s", data=A)
        r = f.create_dataset("regions", (3,), h5py.regionref_dtype)
        r[0], r[2] = s.regionref[1:5, 2:8], s.regionref[::7, ::5]
        g.attrs["to"] = d.ref
        g.attrs.create("both", [d.ref, s.ref], dtype=h5py.ref_dtype)

    CASES[f"references_{libver}"] = (references, {"libver": libver})

# --- extents, layouts, fill

simple("scalar", np.int32(7))
simple("scalar_compound", records[3])
simple("zero_extent", np.zeros((0, 5), "<i4"))
simple("rank_8", np.arange(256, dtype="<i2").reshape((2,) * 8), chunks=(1, 2) * 4)
simple("rank_32", np.arange(4, dtype="<i2").reshape((1,) * 30 + (2, 2)))


@case
def null_space(f):
    f["d"] = h5py.Empty("<f4")
    f.attrs["nothing"] = h5py.Empty("S3")


@case
def zero_unlimited(f):
    f.create_dataset("d", (0,), "<f4", maxshape=(None,), chunks=(8,))
    e = f.create_dataset("e", (0,), "<f4", maxshape=(None,), chunks=(8,))
    e.resize((3,))
    e[...] = [1, 2, 3]


@case
def compact(f):
    low(f, "d", h5t.STD_I32LE, (20,), A.ravel()[:20], layout=(h5d.COMPACT,))
    low(f, "never", h5t.STD_I32LE, (20,), layout=(h5d.COMPACT,))


@case
def external_files(f):
    data = A.tobytes()
    for i, name in enumerate(("part0.bin", "part1.bin")):
        with open(os.path.join(OUT, name), "wb") as raw:
            raw.write(b"skip" * (i + 1) + data[i * 5000 : (i + 1) * 5000 if i == 0 else None])
    files = [("part0.bin", 4, 5000), ("part1.bin", 8, len(data) - 5000)]
    f.create_dataset("d", A.shape, "<i4", external=files)
    f.create_dataset("beyond", (50,), "<i4", external=[("part0.bin", 4, 2000)])


for when, code in (("never", h5d.FILL_TIME_NEVER), ("ifset", h5d.FILL_TIME_IFSET), ("alloc", h5d.FILL_TIME_ALLOC)):
    for libver in ("earliest", "latest"):

        def fill_time(f, code=code):
            p = h5p.create(h5p.DATASET_CREATE)
            p.set_chunk((4,))
            p.set_fill_value(np.array(7, "<i4"))
            p.set_fill_time(code)
            d = h5py.Dataset(h5d.create(f.id, b"d", h5t.STD_I32LE, h5s.create_simple((10,)), dcpl=p))
            d[:4] = [1, 2, 3, 4]
            p = h5p.create(h5p.DATASET_CREATE)
            p.set_fill_value(np.array(7, "<i4"))
            p.set_fill_time(code)
            h5d.create(f.id, b"never", h5t.STD_I32LE, h5s.create_simple((10,)), dcpl=p)

        CASES[f"fill_{when}_{libver}"] = (fill_time, {"libver": libver})
for libver in ("earliest", "latest"):

    def sparse(f):
        d = f.create_dataset("d", (60, 50), "<i4", fillvalue=42, chunks=(7, 9), compression="gzip")
        d[8:10, 8:30] = 1
        f.create_dataset("never", (60, 50), ">i2", fillvalue=-2)
        f.create_dataset("default", (60, 50), ">i2", chunks=(10, 10))
        r = f.create_dataset("records", (10,), record, chunks=(3,), fillvalue=records[7])
        r[4] = records[2]
        f.create_dataset("text", (5,), h5py.string_dtype(), chunks=(2,))[1] = "one"

    CASES[f"sparse_{libver}"] = (sparse, {"libver": libver})

# --- virtual datasets


@options(libver="latest")
def virtual_same_file(f):
    for i in range(3):
        f.create_dataset(f"s{i}", data=A + i)
    layout = h5py.VirtualLayout((3, 60, 50), "<i4")
    for i in range(3):
        layout[i] = h5py.VirtualSource(".", f"s{i}", (60, 50))
    f.create_virtual_dataset("d", layout, fillvalue=-1)


@options(libver="latest")
def virtual_other_files(f):
    layout = h5py.VirtualLayout((3, 60, 50), "<i4")
    layout[0] = h5py.VirtualSource("index_fa_gz_r2.h5", "d", (60, 50))
    layout[1, ::2] = h5py.VirtualSource("index_bt1_raw_r2.h5", "d", (60, 50))[:30]
    layout[2] = h5py.VirtualSource("not-there.h5", "d", (60, 50))
    f.create_virtual_dataset("d", layout, fillvalue=-1)


@options(libver="latest")
def virtual_strided(f):
    f.create_dataset("s", data=A)
    layout = h5py.VirtualLayout((20, 50), "<f8")
    layout[1::2, 5:44:3] = h5py.VirtualSource(".", "s", (60, 50))[3:33:3, 2:28:2]
    f.create_virtual_dataset("d", layout, fillvalue=0.5)


@options(libver="latest")
def virtual_unlimited(f):
    layout = h5py.VirtualLayout((60, 50), "<i4", maxshape=(None, 50))
    source = h5py.VirtualSource("index_ea_gz_r2.h5", "d", (60, 50), maxshape=(None, 50))
    layout[0 : h5s.UNLIMITED, :] = source[0 : h5s.UNLIMITED, :]
    f.create_virtual_dataset("d", layout, fillvalue=-1)


@options(libver="latest")
def virtual_printf(f):
    for i in range(4):
        if i != 2:
            f.create_dataset(f"block{i}", data=A[:10] + i)
    p = h5p.create(h5p.DATASET_CREATE)
    p.set_fill_value(np.array(-9, "<i4"))
    whole = h5s.create_simple((40, 50), (h5s.UNLIMITED, 50))
    whole.select_hyperslab((0, 0), (h5s.UNLIMITED, 1), (10, 50), (10, 50))
    p.set_virtual(whole, b".", b"block%b", h5s.create_simple((10, 50)))
    h5d.create(f.id, b"d", h5t.STD_I32LE, h5s.create_simple((40, 50), (h5s.UNLIMITED, 50)), dcpl=p)


@options(libver="latest")
def virtual_of_virtual(f):
    f.create_dataset("s", data=A)
    first = h5py.VirtualLayout((60, 25), "<i4")
    first[...] = h5py.VirtualSource(".", "s", (60, 50))[:, ::2]
    f.create_virtual_dataset("v", first)
    second = h5py.VirtualLayout((30, 25), "<i4")
    second[...] = h5py.VirtualSource(".", "v", (60, 25))[::2]
    f.create_virtual_dataset("d", second)


# --- groups, links, names, attributes

for libver in ("earliest", "latest"):
    for order in (False, True):

        def groups(f):
            for i in range(300):
                f.create_group(f"group {i}")
            f["group 150"].create_dataset("d", data=A[:3])
            f["group 7/a/b/c"] = 1

        CASES[f"groups_{libver}_{'ordered' if order else 'plain'}"] = (groups, {"libver": libver, "track_order": order})

    def links(f):
        g = f.create_group("g")
        g["d"] = A[:4]
        f["hard"] = g["d"]
        g["up"] = f["/"]
        g["self"] = g
        f["soft"] = h5py.SoftLink("/g/d")
        f["dangling"] = h5py.SoftLink("/nowhere/at/all")
        f["round"] = h5py.SoftLink("/round")
        f["outside"] = h5py.ExternalLink("scalar.h5", "/d")
        f["missing"] = h5py.ExternalLink("not-there.h5", "/d")

    CASES[f"links_{libver}"] = (links, {"libver": libver})

    def names(f):
        f["héllo wörld"] = 1
        f.create_group(b"\xff\xfe bytes")
        f["x" * 1000] = 2
        f["tab\there"] = 3
        f.attrs["naïve"] = 4

    CASES[f"names_{libver}"] = (names, {"libver": libver})

    def attributes(f):
        f["t"] = np.dtype("<i4")
        f["t"].attrs["on a type"] = 1
        f.attrs["text"] = "on the root"
        d = f.create_dataset("d", data=A[:2], dtype=f["t"])
        for name, v in {
            "scalar": np.int16(-5), "floats": np.arange(6.0).reshape(2, 3), "text": "aé", "bytes": np.bytes_(b"xyz"),
            "texts": ["a", "bb", "ccc"], "records": records[:3], "bool": True, "complex": 1 - 2j, "empty": np.zeros((0, 3)),
            "big endian": np.arange(3, dtype=">i8"),
        }.items():
            d.attrs.create(name, v, dtype=h5py.string_dtype() if name == "texts" else None)
        d.attrs.create("typed", 9, dtype=f["t"])
        for i in range(60):
            f.create_group("many") if i == 0 else None
            f["many"].attrs[f"attribute number {i}"] = np.arange(i)
        for i in range(40):
            f.create_group("wide") if i == 0 else None
            f["wide"].attrs[f"a{i}"] = "x" * 400

    CASES[f"attributes_{libver}"] = (attributes, {"libver": libver})


@options(libver="latest", track_order=True)
def attributes_ordered(f):
    for i in (3, 1, 2, 0):
        f.attrs[f"a{i}"] = i
    g = f.create_group("g", track_order=True)
    for i in range(50, 0, -1):
        g.attrs[f"b{i}"] = i


@options(libver="latest")
def attributes_large(f):
    f.attrs["large"] = np.arange(20_000, dtype="<i4")
    for i in range(20):
        f.attrs[f"tail {i}"] = np.full(3000, i, "<i4")


@case
def committed(f):
    f["t/record"] = record
    f["t/number"] = np.dtype(">i2")
    f.create_dataset("d", data=records, dtype=f["t/record"])
    f.create_dataset("n", data=np.arange(5), dtype=f["t/number"])


@options(libver="latest")
def deep_groups(f):
    f["/".join(["g"] * 60)] = 5


# --- the file itself

for size in (512, 1024, 8192):
    CASES[f"user_block_{size}"] = (lambda f: f.create_dataset("d", data=A, chunks=(7, 9), compression="gzip"), {"userblock_size": size})
for low_version, high_version in (("earliest", "v108"), ("v108", "v108"), ("v110", "v110"), ("v112", "v112"), ("v114", "v114"), ("latest", "latest")):
    for pipeline, filters in FILTERS.items():
        CASES[f"bounds_{low_version}_{high_version}_{pipeline}"] = (
            lambda f, filters=filters: f.create_dataset("d", data=A, chunks=(7, 9), maxshape=(None, 50), **filters),
            {"libver": (low_version, high_version)},
        )
for strategy in ("page", "fsm", "aggregate", "none"):
    keywords = {"libver": "latest", "fs_strategy": strategy, "fs_persist": strategy in ("page", "fsm")}
    if strategy == "page":
        keywords["fs_page_size"] = 4096

    def spaced(f):
        f.create_dataset("gone", data=A)
        f.create_dataset("d", data=A, chunks=(7, 9), compression="gzip")
        del f["gone"]

    CASES[f"space_{strategy}"] = (spaced, keywords)


def write(name, fill, keywords):
    path = os.path.join(OUT, name + ".h5")
    with h5py.File(path, "w", **keywords) as f:
        fill(f)


def write_sizes(name, offset, length):
    p = h5p.create(h5p.FILE_CREATE)
    p.set_sizes(offset, length)
    with h5py.File(h5f.create(os.path.join(OUT, name + ".h5").encode(), h5f.ACC_TRUNC, fcpl=p)) as f:
        f.create_dataset("d", data=A[:20], chunks=(7, 9), compression="gzip")
        f.create_dataset("strings", data=["a", "bc"], dtype=h5py.string_dtype())
        f.create_dataset("c", data=np.arange(10))
        for i in range(20):
            f.create_group(f"g{i}").attrs["n"] = i


expected, refused = {}, []
for name, (fill, keywords) in CASES.items():
    try:
        write(name, fill, keywords)
    except Exception as error:
        refused.append(f"{name}: {error!r:.150}")
        if os.path.exists(os.path.join(OUT, name + ".h5")):
            os.remove(os.path.join(OUT, name + ".h5"))
for offset in (2, 4, 8):
    for length in (2, 4, 8):
        CASES[f"sizes_{offset}_{length}"] = None
        try:
            write_sizes(f"sizes_{offset}_{length}", offset, length)
        except Exception as error:
            refused.append(f"sizes_{offset}_{length}: {error!r:.150}")
            path = os.path.join(OUT, f"sizes_{offset}_{length}.h5")
            if os.path.exists(path):
                os.remove(path)
for name in CASES:
    path = os.path.join(OUT, name + ".h5")
    if os.path.exists(path):
        try:
            expected[name + ".h5"] = canon.dump(path)
        except Exception as error:
            refused.append(f"{name} (reading): {error!r:.150}")
            os.remove(path)
for line in refused:
    print("left out", line)
with open(os.path.join(OUT, "expected.json"), "w") as out:
    json.dump(expected, out, indent=0, sort_keys=True)
print(len(expected), "files")
