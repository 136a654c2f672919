"""Files of the HDF5 library with what is rare, for hyperslab to edit; and what they should be then.

    python hdf5_rare.py LIST

LIST is a JSON list of [step, file], where a step is `make` or `edited`. Prints a JSON list of what is wrong.
"""

import ctypes
import json
import sys

import h5py
import numpy as np
from h5py import h5d, h5o, h5p, h5s, h5t, h5z

import canon

wrong = []


def check(what, found, wanted):
    same = np.array_equal(found, wanted) if isinstance(wanted, np.ndarray) else found == wanted
    if not same:
        wrong.append(f"{what}: {found!r} instead of {wanted!r}"[:500])


def comment(file, name):
    """The comment of an object, which h5py sets and does not get."""
    get = canon.HDF5.H5Oget_comment_by_name
    get.argtypes = [ctypes.c_int64, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int64]
    buffer = ctypes.create_string_buffer(100)
    get(file.id.id, name.encode(), buffer, 100, 0)
    return buffer.value


def plain_edges(file, name, maximum):
    """A compressed dataset whose chunks at the edge are stored without filters."""
    plist = h5p.create(h5p.DATASET_CREATE)
    plist.set_chunk((4, 3))
    plist.set_deflate(6)
    plist.set_fill_value(np.array(-1, "i4"))
    # H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS
    canon.HDF5.H5Pset_chunk_opts(plist.id, 2)
    space = h5s.create_simple((10, 7), maximum)
    d = h5py.Dataset(h5d.create(file.id, name, h5t.NATIVE_INT32, space, plist))
    d[...] = np.arange(70, dtype="i4").reshape(10, 7)


def make(path):
    with h5py.File(path, "w", libver="v110") as f:
        plain_edges(f, b"edges", (h5s.UNLIMITED, 20))
        plain_edges(f, b"both", (h5s.UNLIMITED, h5s.UNLIMITED))
        plain_edges(f, b"fixed", (40, 20))
        d = f.create_dataset("texts", (6,), maxshape=(None,), chunks=(4,), dtype=h5py.string_dtype(), fillvalue="fill")
        d[1] = "one"
        d = f.create_dataset("unset", (6,), chunks=(6,), dtype=h5py.string_dtype())
        d[2] = "two"
        g = f.create_group("g", track_order=True)
        d = g.create_dataset("d", data=np.arange(5), track_times=True)
        h5o.set_comment(d.id, b"a comment")
        h5o.set_comment(g.id, b"of the group")
        # A filter that nobody has: optional, so that it was skipped, or not.
        plist = h5p.create(h5p.DATASET_CREATE)
        plist.set_chunk((5,))
        plist.set_filter(32999, h5z.FLAG_OPTIONAL, (1, 2, 3))
        u = h5d.create(g.id, b"unknown", h5t.NATIVE_INT64, h5s.create_simple((5,)), plist)
        u.write_direct_chunk((0,), np.arange(5, dtype="i8").tobytes(), 0)


def edited(path):
    with h5py.File(path, "r+") as f:
        grown = np.full((13, 9), -1, "i4")
        grown[:10, :7] = np.arange(70, dtype="i4").reshape(10, 7)
        grown[:, 2] = 5
        for name in ("edges", "both", "fixed"):
            check(name, f[name][...], grown)
            cut = grown[:6, :5]
            check(f"{name}, cut", f[f"{name} cut"][...], cut)
            for i in range(f[name].id.get_num_chunks()):
                info = f[name].id.get_chunk_info(i)
                edge = info.chunk_offset[0] + 4 > 13 or info.chunk_offset[1] + 3 > 9
                check(f"{name}: mask of {info.chunk_offset}", info.filter_mask, 0)
                check(f"{name}: {info.chunk_offset} is plain", info.size == 48, edge)
            # The library goes on.
            if name != "fixed":
                f[name].resize((16, 9))
                f[name][13:] = 8
                check(f"{name}, then", f[name][...], np.vstack([grown, np.full((3, 9), 8, "i4")]))
        texts = [t.decode() for t in f["texts"][...]]
        check("texts", texts, ["fill", "one", "set", "fill", "fill", "fill", "fill", "fill", "fill"])
        f["texts"][0] = "other"
        texts = [t.decode() for t in f["texts"][...]]
        check("texts then", texts, ["other", "one", "set"] + 6 * ["fill"])
        for old, new in (("g", "copied"), ("g/d", "copied/d")):
            check(f"comment of {new}", comment(f, new), comment(f, old))
            check(f"{new} has one", len(comment(f, new)) > 0, True)
        check("mtime", h5o.get_info(f["copied/d"].id).mtime, h5o.get_info(f["g/d"].id).mtime)
        check("times are there", h5o.get_info(f["g/d"].id).mtime > 0, True)
        old, new = f["g/unknown"].id, f["copied/unknown"].id
        check("unknown filter", new.get_create_plist().get_filter(0), old.get_create_plist().get_filter(0))
        check("unknown chunk", new.read_direct_chunk((0,)), old.read_direct_chunk((0,)))
        v = f["virtual"]
        check("virtual", v.is_virtual, True)
        check("virtual elements", v[...], np.arange(5))


if __name__ == "__main__":
    for step, path in json.load(open(sys.argv[1])):
        try:
            {"make": make, "edited": edited}[step](path)
        except Exception as e:
            wrong.append(f"{step}: {type(e).__name__}: {e}")
    json.dump(wrong, sys.stdout)
