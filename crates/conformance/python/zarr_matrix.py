"""Writes one small Zarr store for each feature of the format, as zip files, and `expected.json`: what zarr-python reads in each.

    python zarr_matrix.py OUT
"""

import hashlib
import json
import os
import sys
import warnings
import zipfile

import numcodecs
import numpy as np
import zarr
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, ShardingCodec, TransposeCodec, ZstdCodec
from zarr.storage import MemoryStore

warnings.simplefilter("ignore")
OUT = sys.argv[1]
os.makedirs(OUT, exist_ok=True)
EXPECTED = {}
rng = np.random.default_rng(20261130)

INTEGERS = ((np.arange(20 * 30) * 7919) % 10007).reshape(20, 30)


def values(dtype):
    """An array of 20 x 30 with something of everything that the type has."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return INTEGERS % 3 == 0
    if dtype.kind in "iu":
        return INTEGERS.astype(dtype)
    if dtype.kind == "f":
        a = (INTEGERS / 7 - 500).astype(dtype)
        a[0, :4] = [np.nan, np.inf, -np.inf, -0.0]
        return a
    if dtype.kind == "c":
        return (INTEGERS / 7 + 1j * (INTEGERS % 11)).astype(dtype)
    if dtype.kind in "mM":
        a = INTEGERS.astype("i8").view(dtype.newbyteorder("=")).astype(dtype)
        a[1, 1] = "NaT"
        return a
    if dtype.kind == "U":
        return np.array([["é" * (i % 4) + str(i) for i in row] for row in INTEGERS], dtype)
    if dtype.kind in "SV" and dtype.fields is None:
        return np.array([[str(i).encode() for i in row] for row in INTEGERS], "S" + str(dtype.itemsize)).view(dtype)
    if dtype.fields:
        a = np.zeros(INTEGERS.shape, dtype)
        for name in dtype.names:
            if dtype[name].subdtype is None:
                a[name] = values(dtype[name])
        return a
    raise TypeError(dtype)


def said(array):
    """What an array holds: its bytes in C order, little-endian, by their hash, or its texts."""
    a = np.asarray(array[...])
    if a.dtype.kind in "OT":
        return {"texts": [t.decode("latin1") if isinstance(t, bytes) else str(t) for t in a.ravel().tolist()]}
    a = np.ascontiguousarray(a.astype(a.dtype.newbyteorder("<")))
    return {"sha256": hashlib.sha256(a.tobytes()).hexdigest(), "bytes": a.nbytes}


def keep(name, store):
    """Writes what is in a store in memory as a zip file without compression, and takes down what it holds."""
    objects = {key: store._store_dict[key].to_bytes() for key in sorted(store._store_dict)}
    with zipfile.ZipFile(os.path.join(OUT, name + ".zip"), "w", zipfile.ZIP_STORED) as f:
        for key, data in objects.items():
            f.writestr(zipfile.ZipInfo(key, (2026, 1, 1, 0, 0, 0)), data)
    root = zarr.open(store, mode="r")
    if isinstance(root, zarr.Array):
        EXPECTED[name] = {"/": said(root)}
    else:
        EXPECTED[name] = {"/" + path: said(node) for path, node in root.members(max_depth=None) if isinstance(node, zarr.Array)}


def case(name, data, partly=True, **keywords):
    store = MemoryStore()
    try:
        # Some chunks stay unwritten.
        a = zarr.create_array(store, shape=data.shape, dtype=data.dtype, **keywords)
        if partly and data.ndim == 2:
            a[:14] = data[:14]
        else:
            a[...] = data
        keep(name, store)
    except Exception as error:  # noqa: BLE001: what this version cannot write is no case
        print(f"{name}: left out: {type(error).__name__}: {str(error)[:150]}", file=sys.stderr)


def document(name, text, objects=()):
    """A store whose documents are written by hand, in spellings that zarr-python reads and does not write."""
    store = MemoryStore()
    buffer = zarr.core.buffer.default_buffer_prototype().buffer
    for key, data in [text, *objects]:
        store._store_dict[key] = buffer.from_bytes(data if isinstance(data, bytes) else data.encode())
    keep(name, store)


CHUNKS = (8, 7)
DTYPES = ["?", "i1", "u1", "<i2", ">i2", "<u2", "<i4", ">u4", "<i8", ">u8", "<f2", ">f2", "<f4", ">f4", "<f8", ">f8", "<c8", ">c8",
          "<c16", "<M8[s]", ">M8[ms]", "<m8[10us]", "S6", "V6", "<U7", ">U7"]
for code in DTYPES:
    for v in (2, 3):
        word = code.replace("<", "le-").replace(">", "be-").replace("?", "bool").replace("[", "-").replace("]", "")
        extra = {"serializer": BytesCodec(endian="big")} if v == 3 and code[0] == ">" and code[1] != "U" else {}
        case(f"v{v}-type-{word}", values(code), zarr_format=v, chunks=CHUNKS, compressors=None, **extra)
RECORD = np.dtype([("a", "<i4"), ("b", "<f8"), ("c", "S5"), ("d", "u1")])
for v in (2, 3):
    case(f"v{v}-record", values(RECORD), zarr_format=v, chunks=CHUNKS)

FILLS = {"<f4": [0.0, -1.5, np.nan, np.inf, -np.inf, -0.0], "<f2": [np.nan, 0.5], "<i8": [-(2**63), 2**63 - 1], "<u8": [2**64 - 1],
         "<c8": [1 + 2j, complex(np.nan, np.inf)], "?": [True], "S6": [b"ab"], "<U7": ["é"], "<M8[s]": [7, "NaT"]}
for code, fills in FILLS.items():
    for number, fill in enumerate(fills):
        for v in (2, 3):
            fill_value = np.array(fill, code)[()] if code != "<M8[s]" else np.datetime64(fill, "s")
            case(f"v{v}-fill-{np.dtype(code).name}-{number}", values(code), zarr_format=v, chunks=CHUNKS, fill_value=fill_value)
case("v2-fill-null", values("<i4"), zarr_format=2, chunks=CHUNKS, fill_value=None)

V2 = {
    "zlib": numcodecs.Zlib(3), "gzip": numcodecs.GZip(3), "zstd": numcodecs.Zstd(3), "bz2": numcodecs.BZ2(3), "lzma": numcodecs.LZMA(),
    "lzma-alone": numcodecs.LZMA(format=2), "lz4": numcodecs.LZ4(),
    **{f"blosc-{c}-{s}": numcodecs.Blosc(c, shuffle=s) for c in ("lz4", "lz4hc", "blosclz", "zlib", "zstd") for s in (0, 1, 2, -1)},
}
for word, codec in V2.items():
    case(f"v2-compressor-{word}", values("<f4"), zarr_format=2, chunks=CHUNKS, compressors=codec)
case("v2-compressor-pcodec", values("<f4"), zarr_format=2, chunks=CHUNKS, filters=[numcodecs.PCodec(level=4)], compressors=None)
FILTERS = {
    "shuffle": ("<i4", numcodecs.Shuffle(4)), "delta": ("<i4", numcodecs.Delta("<i4", "<i8")), "astype": ("<i4", numcodecs.AsType("<i8", "<i4")),
    "scale": ("<i4", numcodecs.FixedScaleOffset(offset=10, scale=2, dtype="<i4", astype="<i8")),
    "quantize": ("<f8", numcodecs.Quantize(2, "<f8", "<f4")), "bitround": ("<f4", numcodecs.BitRound(9)), "packbits": ("?", numcodecs.PackBits()),
    "crc32": ("<i4", numcodecs.CRC32()), "crc32-end": ("<i4", numcodecs.CRC32(location="end")), "adler32": ("<i4", numcodecs.Adler32()),
    "fletcher32": ("<i4", numcodecs.Fletcher32()), "crc32c": ("<i4", numcodecs.CRC32C()), "crc32c-start": ("<i4", numcodecs.CRC32C(location="start")),
}
for word, (code, codec) in FILTERS.items():
    data = values(code)
    if data.dtype.kind == "f":
        data[0, :4] = 1
    case(f"v2-filter-{word}", data, partly=False, zarr_format=2, chunks=CHUNKS, filters=[codec], compressors=numcodecs.Zlib(1))
    if word in ("packbits",):
        continue
    name = type(codec).__name__
    wrapped = getattr(zarr.codecs.numcodecs, {"AsType": "AsType"}.get(name, name), None)
    if wrapped is not None:
        configuration = {k: v for k, v in codec.get_config().items() if k != "id"}
        kind = "filters" if word in ("delta", "astype", "scale", "quantize", "bitround") else "compressors"
        other = {"compressors": None} if kind == "filters" else {}
        case(f"v3-numcodecs-{word}", data, partly=False, zarr_format=3, chunks=CHUNKS, **{kind: [wrapped(**configuration)]}, **other)
for name in ("Zlib", "GZip", "Zstd", "BZ2", "LZMA", "LZ4", "Blosc"):
    wrapped = getattr(zarr.codecs.numcodecs, name, None)
    if wrapped is not None:
        case(f"v3-numcodecs-{name.lower()}", values("<f4"), zarr_format=3, chunks=CHUNKS, compressors=[wrapped()])
if hasattr(zarr.codecs.numcodecs, "PCodec"):
    case("v3-numcodecs-pcodec", values("<f4"), zarr_format=3, chunks=CHUNKS, serializer=zarr.codecs.numcodecs.PCodec(level=4), compressors=None)

V3 = {"gzip": [GzipCodec()], "zstd": [ZstdCodec()], "zstd-checksum": [ZstdCodec(checksum=True)], "crc32c": [Crc32cCodec()],
      "gzip-crc32c": [GzipCodec(), Crc32cCodec()],
      **{f"blosc-{c}-{s}": [BloscCodec(cname=c, shuffle=s)] for c in ("lz4", "zstd", "blosclz", "zlib", "lz4hc")
         for s in ("shuffle", "noshuffle", "bitshuffle")}}
for word, codecs in V3.items():
    case(f"v3-codec-{word}", values("<f4"), zarr_format=3, chunks=CHUNKS, compressors=codecs)
case("v3-transpose", values("<i4"), zarr_format=3, chunks=CHUNKS, filters=[TransposeCodec(order=(1, 0))])
CUBE = ((np.arange(6 * 10 * 8) * 31) % 997).astype("<i2").reshape(6, 10, 8)
case("v3-transpose-3", CUBE, zarr_format=3, chunks=(4, 5, 3), filters=[TransposeCodec(order=(2, 0, 1))], serializer=BytesCodec(endian="big"))

for v in (2, 3):
    for separator in "./":
        for scheme in ("default", "v2") if v == 3 else ("v2",):
            case(f"v{v}-keys-{scheme}-{'dot' if separator == '.' else 'slash'}", values("<i4"), zarr_format=v, chunks=CHUNKS,
                 chunk_key_encoding={"name": scheme, "separator": separator})
case("v2-order-f", values("<i4"), zarr_format=2, chunks=CHUNKS, order="F")
case("v2-order-f-3", CUBE, zarr_format=2, chunks=(4, 5, 3), order="F", filters=[numcodecs.Shuffle(2)])
for v in (2, 3):
    case(f"v{v}-scalar", np.array(7.5), zarr_format=v)
    case(f"v{v}-empty", np.zeros((0, 4), "<i4"), partly=False, zarr_format=v, chunks=(1, 4))

for place in ("start", "end"):
    for word, inner in {"plain": [BytesCodec()], "zstd": [BytesCodec(), ZstdCodec()], "big": [BytesCodec(endian="big"), GzipCodec()],
                        "transposed": [TransposeCodec(order=(1, 0)), BytesCodec()]}.items():
        for index in ([BytesCodec(), Crc32cCodec()], [BytesCodec()]):
            codec = ShardingCodec(chunk_shape=(4, 5), codecs=inner, index_codecs=index, index_location=place)
            case(f"v3-shards-{place}-{word}-{len(index)}", values("<i4"), zarr_format=3, chunks=(8, 15), serializer=codec, compressors=None)
    nested = ShardingCodec(chunk_shape=(4, 6), codecs=[ShardingCodec(chunk_shape=(2, 3), codecs=[BytesCodec(), ZstdCodec()], index_location=place)],
                           index_location=place)
    case(f"v3-shards-nested-{place}", values("<i4"), zarr_format=3, chunks=(8, 12), serializer=nested, compressors=None)
case("v3-shards-compressed", values("<i4"), zarr_format=3, chunks=(8, 15), serializer=ShardingCodec(chunk_shape=(4, 5)), compressors=[GzipCodec()])
TRANSPOSED = {"zarr_format": 3, "chunks": (8, 16), "filters": [TransposeCodec(order=(1, 0))], "compressors": None}
case("v3-shards-after-transpose", values("<i4"), serializer=ShardingCodec(chunk_shape=(4, 4)), **TRANSPOSED)
case("v3-shards-after-transpose-3", CUBE, partly=False, zarr_format=3, chunks=(4, 4, 4), filters=[TransposeCodec(order=(2, 0, 1))],
     serializer=ShardingCodec(chunk_shape=(4, 2, 1), codecs=[TransposeCodec(order=(1, 0, 2)), BytesCodec()]), compressors=None)

TEXTS = np.array([["", "a", "é€😀"], ["b\0c", "x" * 300, "end"]], object)
for v in (2, 3):
    store = MemoryStore()
    a = zarr.create_array(store, shape=(2, 3), chunks=(1, 2), dtype=str, zarr_format=v)
    a[...] = TEXTS
    keep(f"v{v}-texts", store)
    store = MemoryStore()
    a = zarr.create_array(store, shape=(4, 3), chunks=(2, 2), dtype=str, zarr_format=v, fill_value="none")
    a[:2] = TEXTS
    keep(f"v{v}-texts-fill", store)
store = MemoryStore()
a = zarr.create_array(store, shape=(2, 3), shards=(2, 4), chunks=(1, 2), dtype=str, zarr_format=3)
a[...] = TEXTS
keep("v3-texts-shards", store)

for v in (2, 3):
    for consolidated in (False, True):
        store = MemoryStore()
        root = zarr.create_group(store, zarr_format=v, attributes={"title": "é", "list": [1, 2.5, None], "deep": {"a": [True]}})
        inner = root.create_group("inner").create_group("deeper")
        inner.create_array("x", data=values("<i4"), chunks=CHUNKS, attributes={"units": "K"})
        root.create_array("y", data=values("<f8"), chunks=CHUNKS)
        if consolidated:
            zarr.consolidate_metadata(store)
        keep(f"v{v}-groups{'-consolidated' if consolidated else ''}", store)

# netCDF's shuffle: 0 stands for the size of elements; zarr-python reads it wrongly, so the right bytes are those of the plain one.
plain = values("<i4")
shuffled = numcodecs.Shuffle(4)
text = {"zarr_format": 2, "shape": [20, 30], "chunks": [20, 30], "dtype": "<i4", "compressor": {"id": "zlib", "level": 1}, "order": "C",
        "filters": [{"id": "shuffle", "elementsize": 4}], "fill_value": 0}
chunk = bytes(numcodecs.Zlib(1).encode(np.frombuffer(shuffled.encode(plain), "u1")))
document("v2-netcdf-shuffle", (".zarray", json.dumps(text)), [("0.0", chunk)])
right = EXPECTED["v2-netcdf-shuffle"]
text["filters"] = [{"id": "shuffle", "elementsize": 0}]
document("v2-netcdf-shuffle", (".zarray", json.dumps(text)), [("0.0", chunk)])
EXPECTED["v2-netcdf-shuffle"] = right

with open(os.path.join(OUT, "expected.json"), "w") as f:
    json.dump(EXPECTED, f, indent=1, sort_keys=True)
print(f"{len(EXPECTED)} stores", file=sys.stderr)
