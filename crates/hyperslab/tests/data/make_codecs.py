"""Writes codecs.txt and codecs.bin: chunks as h5py and hdf5plugin encode them, with what they decode to.

    python make_codecs.py            the committed fixtures
    python make_codecs.py --all DIR  many more parameters, for a long run

A line of codecs.txt has, between tabs: name; filters as `id:parameter,parameter` joined by `;`; filter mask; chunk
extents; element size; offset and length of the encoded bytes in codecs.bin; offset and length of the decoded ones.
Decoded bytes are those of the same chunk in a dataset without filters.
"""

import itertools
import os
import sys

import h5py
import hdf5plugin
import numpy as np
from h5py import h5d, h5p, h5s, h5t, h5z

BLOSC = ["blosclz", "lz4", "lz4hc", "zlib", "zstd", "snappy"]
BLOSC2 = ["blosclz", "lz4", "lz4hc", "zlib", "zstd"]


def samples(dtype, n, kind, seed=0):
    """n elements of a kind: `smooth`, `noise`, `constant`, `zero`, `runs`."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if kind == "noise":
        return np.frombuffer(rng.bytes(n * dtype.itemsize), dtype)
    if kind == "zero":
        return np.zeros(n, dtype)
    if dtype.kind == "V":
        ramp = (np.arange(n)[:, None] // 5 + np.arange(dtype.itemsize)) % 256
        return np.ascontiguousarray(ramp.astype("u1")).view(dtype).reshape(n)
    if kind == "constant":
        return np.full(n, 42, dtype)
    if kind == "runs":
        return np.repeat(rng.integers(0, 100, n // 50 + 1), 50)[:n].astype(dtype)
    x = 60 + 50 * np.sin(np.arange(n) / 37) + rng.normal(0, 0.5, n)
    return np.round(x, 2).astype(dtype)


def plist(chunk):
    p = h5p.create(h5p.DATASET_CREATE)
    p.set_chunk(chunk)
    return p


class Pack:
    def __init__(self, folder):
        self.folder, self.lines, self.blob, self.seen = folder, [], bytearray(), {}
        self.file = h5py.File("memory", "w", driver="core", backing_store=False, libver="latest")
        self.count = 0

    def put(self, data):
        if data not in self.seen:
            self.seen[data] = len(self.blob)
            self.blob += data
        return self.seen[data], len(data)

    def create(self, ftype, p, shape):
        self.count += 1
        name = f"d{self.count}".encode()
        return h5d.create(self.file.id, name, ftype, h5s.create_simple(shape), p)

    def add(self, name, data, configure, ftype=None, mtype=None):
        """Encodes `data`, one whole chunk, and records it. `configure` sets the filters of a property list."""
        ftype = ftype or h5t.py_create(data.dtype)
        mtype = mtype or h5t.py_create(data.dtype)
        p = plist(data.shape)
        configure(p)
        d = self.create(ftype, p, data.shape)
        d.write(h5s.ALL, h5s.ALL, data, mtype)
        # Closed and opened again, so that the cache of chunks does not answer for the filters.
        name_in_file = h5py.h5i.get_name(d)
        del d
        self.file.flush()
        d = h5d.open(self.file.id, name_in_file)
        # Read as stored, and stored again without filters.
        stored = np.empty(data.shape, f"V{ftype.get_size()}")
        try:
            d.read(h5s.ALL, h5s.ALL, stored, ftype)
        except OSError as e:
            print(name, "cannot be read back:", e)
            return
        plain = self.create(ftype, plist(data.shape), data.shape)
        plain.write(h5s.ALL, h5s.ALL, stored, ftype)
        self.file.flush()
        origin = (0,) * data.ndim
        mask, encoded = d.read_direct_chunk(origin)
        _, decoded = plain.read_direct_chunk(origin)
        stored_p = d.get_create_plist()
        filters = []
        for i in range(stored_p.get_nfilters()):
            code, _, values, _ = stored_p.get_filter(i)
            filters.append(f"{code}:{','.join(str(v & 0xFFFFFFFF) for v in values)}")
        fields = [name, ";".join(filters), mask, ",".join(map(str, data.shape)), ftype.get_size()]
        fields += [*self.put(bytes(encoded)), *self.put(bytes(decoded))]
        self.lines.append("\t".join(map(str, fields)))

    def plugin(self, name, data, options):
        def configure(p):
            p.set_filter(options.filter_id, h5z.FLAG_OPTIONAL, options.filter_options)

        self.add(name, data, configure)

    def save(self):
        with open(os.path.join(self.folder, "codecs.txt"), "w") as f:
            f.write("\n".join(self.lines) + "\n")
        with open(os.path.join(self.folder, "codecs.bin"), "wb") as f:
            f.write(self.blob)


def basic(pack, sizes, kinds):
    for n, kind in itertools.product(sizes, kinds):
        data = samples("<f4", n, kind)
        tag = f"{kind}-{n}"
        pack.add(f"deflate-{tag}", data, lambda p: p.set_deflate(4))
        pack.add(f"shuffle-deflate-{tag}", data, lambda p: (p.set_shuffle(), p.set_deflate(4)))
        pack.add(f"fletcher32-{tag}", samples("u1", n, kind), lambda p: p.set_fletcher32())
        pack.add(f"fletcher32-deflate-{tag}", data, lambda p: (p.set_fletcher32(), p.set_deflate(1)))
        pack.add(f"deflate-fletcher32-{tag}", data, lambda p: (p.set_deflate(1), p.set_fletcher32()))
        pack.add(f"lzf-{tag}", data, lambda p: p.set_filter(h5z.FILTER_LZF, h5z.FLAG_OPTIONAL))
        pack.add(
            f"shuffle-lzf-{tag}",
            data,
            lambda p: (p.set_shuffle(), p.set_filter(h5z.FILTER_LZF, h5z.FLAG_OPTIONAL)),
        )
        pack.plugin(f"zstd-{tag}", data, hdf5plugin.Zstd(clevel=3))
        pack.plugin(f"bzip2-{tag}", data, hdf5plugin.BZip2(blocksize=1))
        for block in [0, 1000, 100]:
            pack.plugin(f"lz4-{block}-{tag}", data, hdf5plugin.LZ4(nbytes=block))


def bitshuffle(pack, dtypes, sizes, kinds):
    for dtype, n, kind in itertools.product(dtypes, sizes, kinds):
        data = samples(dtype, n, kind)
        for cname, block in [("none", 0), ("lz4", 0), ("zstd", 0), ("lz4", 64), ("none", 64)]:
            pack.plugin(
                f"bitshuffle-{cname}-{block}-{dtype}-{kind}-{n}",
                data,
                hdf5plugin.Bitshuffle(cname=cname, nelems=block),
            )


def blosc(pack, dtypes, sizes, kinds, levels, cnames=BLOSC):
    for dtype, n, kind, cname, shuffle, level in itertools.product(dtypes, sizes, kinds, cnames, [0, 1, 2], levels):
        try:
            options = hdf5plugin.Blosc(cname=cname, clevel=level, shuffle=shuffle)
        except ValueError:
            continue
        data = samples(dtype, n, kind)
        pack.plugin(f"blosc-{cname}-{level}-{shuffle}-{dtype}-{kind}-{n}", data, options)


def blosc2(pack, dtypes, shapes, kinds, levels, cnames=BLOSC2, filters=(0, 1, 2, 3, 4)):
    for dtype, shape, kind, cname, code, level in itertools.product(dtypes, shapes, kinds, cnames, filters, levels):
        if code == 4 and np.dtype(dtype).kind != "f":
            continue
        data = samples(dtype, int(np.prod(shape)), kind).reshape(shape)
        options = hdf5plugin.Blosc2(cname=cname, clevel=level, filters=code)
        tag = "x".join(map(str, shape))
        pack.plugin(f"blosc2-{cname}-{level}-{code}-{dtype}-{kind}-{tag}", data, options)


def integer_type(size, order, signed, precision, offset):
    t = h5t.STD_I8LE.copy() if signed else h5t.STD_U8LE.copy()
    t.set_size(size)
    t.set_order(h5t.ORDER_BE if order == ">" else h5t.ORDER_LE)
    t.set_precision(precision)
    t.set_offset(offset)
    return t


def nbit(pack, n):
    cases = [
        (1, "<", True, 5, 2), (2, "<", False, 9, 3), (2, ">", True, 9, 3), (4, "<", True, 17, 8), (4, ">", False, 17, 7),
        (4, "<", False, 3, 20), (8, "<", True, 33, 5), (8, ">", True, 33, 5), (4, "<", True, 32, 0), (4, ">", True, 1, 0),
    ]  # fmt: skip
    for size, order, signed, precision, offset in cases:
        t = integer_type(size, order, signed, precision, offset)
        low, high = (-(1 << (precision - 1)), (1 << (precision - 1)) - 1) if signed else (0, (1 << precision) - 1)
        values = np.random.default_rng(size).integers(low, high, n, endpoint=True).astype("i8")
        pack.add(f"nbit-{size}{order}{signed}-{precision}-{offset}", values, nbit_filter, t)
    half = h5t.IEEE_F32LE.copy()
    half.set_fields(26, 20, 6, 7, 13)
    half.set_offset(7)
    half.set_precision(20)
    half.set_size(4)
    half.set_ebias(31)
    pack.add("nbit-float20", samples("f4", n, "smooth"), nbit_filter, half)
    small = integer_type(2, ">", True, 11, 2)
    byte = integer_type(1, "<", False, 3, 1)
    inner = h5t.create(h5t.COMPOUND, 5)
    inner.insert(b"x", 0, small)
    inner.insert(b"y", 3, byte)
    array = h5t.array_create(small, (2, 3))
    t = h5t.create(h5t.COMPOUND, 64)
    t.insert(b"a", 1, small)
    t.insert(b"b", 4, array)
    t.insert(b"c", 17, inner)
    t.insert(b"s", 40, fixed_string(6))
    t.insert(b"f", 48, half)
    t.insert(b"g", 56, h5t.IEEE_F64BE)
    # Last, as libhdf5 loses its place in the parameters behind an array of compounds.
    t.insert(b"d", 24, h5t.array_create(inner, (3,)))
    rng = np.random.default_rng(5)
    stored = np.frombuffer(rng.bytes(64 * n), "V64")
    pack.add("nbit-compound", clean(pack, stored, t), nbit_filter, t, t)
    t = h5t.array_create(byte, (7,))
    pack.add("nbit-array", clean(pack, np.frombuffer(rng.bytes(7 * n), "V7"), t), nbit_filter, t, t)


def fixed_string(n):
    t = h5t.C_S1.copy()
    t.set_size(n)
    return t


def clean(pack, stored, t):
    """Elements whose bits outside the fields are zero, as n-bit restores them."""
    return mask_bits(np.frombuffer(stored.tobytes(), "u1").reshape(len(stored), -1).copy(), t).view(stored.dtype).reshape(-1)


def mask_bits(raw, t):
    keep = np.zeros(raw.shape[1], "u1")

    def walk(t, at):
        c = t.get_class()
        if c == h5t.COMPOUND:
            for i in range(t.get_nmembers()):
                walk(t.get_member_type(i), at + t.get_member_offset(i))
        elif c == h5t.ARRAY:
            base = t.get_super()
            for i in range(t.get_size() // base.get_size()):
                walk(base, at + i * base.get_size())
        elif c in (h5t.INTEGER, h5t.FLOAT):
            size = t.get_size()
            bits = ((1 << t.get_precision()) - 1) << t.get_offset()
            keep[at : at + size] = list(bits.to_bytes(size, "big" if t.get_order() == h5t.ORDER_BE else "little"))
        else:
            keep[at : at + t.get_size()] = 255

    walk(t, 0)
    return raw & keep


def nbit_filter(p):
    p.set_filter(h5z.FILTER_NBIT, h5z.FLAG_OPTIONAL)


def scaleoffset(pack, n):
    for dtype in ["<i1", "<u1", "<i2", ">i2", "<u2", "<i4", ">u4", "<i8", ">u8"]:
        for kind in ["smooth", "noise", "constant"]:
            for bits in [0, 5]:
                for fill in [None, 42]:
                    data = samples(dtype, n, kind)

                    def configure(p):
                        if fill is not None:
                            p.set_fill_value(np.array(fill, dtype))
                        p.set_scaleoffset(h5z.SO_INT, bits)

                    pack.add(f"scaleoffset-{dtype}-{kind}-{bits}-{fill}", data, configure)
    for dtype in ["<f4", ">f4", "<f8", ">f8"]:
        for kind in ["smooth", "constant"]:
            for digits in [0, 2, 5]:
                for fill in [None, 42]:
                    data = samples(dtype, n, kind)
                    if kind == "smooth" and fill is not None:
                        data[::7] = 42

                    def configure(p):
                        if fill is not None:
                            p.set_fill_value(np.array(fill, dtype))
                        p.set_scaleoffset(h5z.SO_FLOAT_DSCALE, digits)

                    pack.add(f"scaleoffset-{dtype}-{kind}-{digits}-{fill}", data, configure)


def szip(pack, dtypes, shapes, kinds, blocks):
    for dtype, shape, kind, block in itertools.product(dtypes, shapes, kinds, blocks):
        for name, option in [("ec", h5z.SZIP_EC_OPTION_MASK), ("nn", h5z.SZIP_NN_OPTION_MASK)]:
            data = samples(dtype, int(np.prod(shape)), kind).reshape(shape)
            tag = "x".join(map(str, shape))
            try:
                pack.add(
                    f"szip-{name}-{block}-{dtype}-{kind}-{tag}", data, lambda p: p.set_szip(option, block)
                )
            except (ValueError, OSError, RuntimeError) as e:
                if block <= shape[-1]:
                    print("skipped", name, block, dtype, shape, e)


def zfp(pack, dtypes, shapes, kinds):
    for dtype, shape, kind in itertools.product(dtypes, shapes, kinds):
        data = samples(dtype, int(np.prod(shape)), kind).reshape(shape)
        tag = f"{dtype}-{kind}-{'x'.join(map(str, shape))}"
        modes = {"rate": {"rate": 10}, "precision": {"precision": 17}, "reversible": {"reversible": True}}
        if np.dtype(dtype).kind == "f":
            modes["accuracy"] = {"accuracy": 0.01}
        for mode, option in modes.items():
            pack.plugin(f"zfp-{mode}-{tag}", data, hdf5plugin.Zfp(**option))


def main():
    if sys.argv[1:2] == ["--all"]:
        pack = Pack(sys.argv[2])
        basic(pack, [1, 7, 100, 1003, 70001], ["smooth", "noise", "zero", "runs"])
        types = ["u1", "<i2", "V3", "<f4", "<f8", "V12", "V16", "V24"]
        bitshuffle(pack, types, [1, 8, 9, 100, 1003, 40001], ["smooth", "noise"])
        blosc(pack, types, [1, 9, 100, 5003, 100001], ["smooth", "noise", "zero"], [1, 5, 9])
        shapes = [(1,), (9,), (5003,), (200001,), (7, 13), (200, 301), (3, 5, 7), (40, 50, 60), (5, 6, 7, 8)]
        blosc2(pack, types, shapes, ["smooth", "noise", "zero", "constant"], [1, 5, 9], filters=(0, 1, 2, 3, 4))
        nbit(pack, 1003)
        scaleoffset(pack, 1003)
        shapes = [(64,), (1000,), (7, 100), (3, 5000), (20, 33)]
        szip(pack, ["u1", "<i2", ">i2", "<i4", ">u4", "<f4", "<i8", ">f8"], shapes, ["smooth", "noise", "zero", "runs"], [2, 8, 16, 32])
        zfp(pack, ["<f4", "<f8", "<i4", "<i8"], [(1,), (50,), (9, 10), (64, 64), (5, 6, 7), (3, 4, 5, 6)], ["smooth", "noise", "zero"])
    else:
        pack = Pack(os.path.dirname(os.path.abspath(__file__)))
        basic(pack, [203], ["smooth"])
        bitshuffle(pack, ["<i2", "<f8", "V3"], [203], ["smooth"])
        blosc(pack, ["<f4"], [1003], ["smooth"], [5])
        blosc(pack, ["V3", "<f8"], [203], ["noise", "zero"], [5], ["lz4"])
        blosc2(pack, ["<f4"], [(203,), (12, 17)], ["smooth"], [5])
        blosc2(pack, ["<f8"], [(5, 6, 7)], ["zero", "noise"], [5], ["lz4"])
        nbit(pack, 23)
        scaleoffset(pack, 33)
        szip(pack, ["u1", "<i2", ">i4", "<f8"], [(4, 37)], ["smooth"], [8])
        zfp(pack, ["<f4", "<f8", "<i4", "<i8"], [(21,), (5, 6), (5, 6, 7)], ["smooth"])
    pack.save()
    print(len(pack.lines), "chunks,", len(pack.blob), "bytes")


if __name__ == "__main__":
    main()
