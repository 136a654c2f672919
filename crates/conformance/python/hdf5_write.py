"""Compares HDF5 files that hyperslab wrote with those that it read, and lets the HDF5 library add to them.

    python hdf5_write.py PAIRS

PAIRS is a JSON list of [name, original, written, paths left out]. Prints a JSON list of what differs.
"""

import json
import os
import sys

os.environ["HDF5_EXTFILE_PREFIX"] = "${ORIGIN}"

import h5py
import hdf5plugin  # noqa: F401
import numpy as np
from h5py import h5a, h5d, h5s, h5t

import canon


def at(file, path):
    """The object at a path as `canon.text` spells it."""
    names = (bytes.fromhex(n[4:]) if n.startswith("hex:") else n.encode() for n in path.split("/"))
    return file[b"/".join(names) or b"/"]


_value = canon.value


def value(t, data, paths):
    # A text that was never written is an empty one: the model in between does not tell them apart.
    found = _value(t, data, paths)
    return "s:" if found is None and t.get_class() == h5t.STRING else found


canon.value = value


def properties(obj):
    """What a dataset is beside its elements."""
    p = obj.get_create_plist()
    out = {"filters": [p.get_filter(i)[:3] for i in range(p.get_nfilters())], "layout": p.get_layout()}
    space = obj.get_space()
    if p.get_layout() == h5d.CHUNKED:
        out["chunk"] = p.get_chunk()
        out["max"] = space.get_simple_extent_dims(True)
    out["fill"] = (p.fill_value_defined(), p.get_fill_time())
    if canon.is_fixed(obj.get_type()) and p.fill_value_defined() == 2:
        value = np.zeros(obj.get_type().get_size(), "u1")
        canon.HDF5.H5Pget_fill_value(p.id, obj.get_type().id, value.ctypes.data)
        out["fill value"] = value.tobytes()
    out["committed"] = obj.get_type().committed()
    out["committed attributes"] = [
        a.name for a in (h5a.open(obj, index=i) for i in range(h5a.get_num_attrs(obj))) if a.get_type().committed()
    ]
    if p.get_layout() == h5d.VIRTUAL:
        out["mappings"] = [
            (p.get_virtual_filename(i), p.get_virtual_dsetname(i)) for i in range(p.get_virtual_count())
        ]
    return out


canon.HDF5.H5Pget_fill_value.argtypes = [canon.ctypes.c_int64, canon.ctypes.c_int64, canon.ctypes.c_void_p]


def compare(name, original, written, left_out):
    wrong = []
    skipped = {path.split(", attribute")[0] for path in left_out}
    a, b = canon.dump(original), canon.dump(written)
    for path in sorted(set(a) | set(b)):
        if path in skipped or any(path.startswith(s + "/") for s in skipped):
            continue
        old, new = a.get(path), b.get(path)
        if old and old.get("kind") == "udlink":
            continue
        if old != new:
            wrong.append(f"{name}: {path}: {old} became {new}"[:600])
    with h5py.File(original, "r") as f, h5py.File(written, "r") as g:
        for path, (kind, obj) in canon.walk(f)[0].items():
            if kind != "DatasetID" or path in skipped:
                continue
            new = at(g, path).id
            if not obj.get_type().equal(new.get_type()):
                wrong.append(f"{name}: {path}: another type")
            old, now = properties(obj), properties(new)
            if old["layout"] == h5d.CONTIGUOUS and obj.get_space().get_simple_extent_type() != h5s.SIMPLE:
                old.pop("layout"), now.pop("layout")
            if old != now:
                wrong.append(f"{name}: {path}: {old} became {now}"[:600])
    return wrong


def add(name, written):
    """The library changes what hyperslab wrote: everything that was there stays, what is added is there."""
    before = canon.dump(written)
    with h5py.File(written, "r+") as f:
        if f.id.get_create_plist().get_sizes()[0] < 4:
            # The library adds more than 64 KiB, and does not see where its addresses end.
            return []
        # A few of many are enough.
        objects = canon.walk(f)[0].items()
        groups = [path for path, (kind, _) in objects if kind == "GroupID"][:5]
        arrays = [path for path, (kind, _) in objects if kind == "DatasetID"][:8]
        grown = {}
        for path in groups:
            for i in range(12):
                at(f, path).create_dataset(f"added {i}", data=i)
                at(f, path).attrs[f"added {i}"] = i
            del at(f, path)["added 3"]
            del at(f, path).attrs["added 3"]
        for path in arrays:
            for i in range(12):
                at(f, path).attrs[f"added {i}"] = f"text {i}"
            d = at(f, path)
            if d.chunks and d.maxshape[0] is None and d.dtype.kind in "iuf" and 0 not in d.shape and not d.external:
                old = d.shape[0]
                d.resize(old + 3 * d.chunks[0] + 1, axis=0)
                try:
                    d[old:] = 1
                except OSError as e:
                    # A filter that this library only reads.
                    if "filter" not in str(e):
                        raise
                    d.resize(old, axis=0)
                    continue
                grown[path] = old
    wrong = []
    with h5py.File(written, "r+") as f:
        for path in groups:
            names = [f"added {i}" for i in range(12) if i != 3]
            if not all(n in at(f, path) and n in at(f, path).attrs for n in names) or "added 3" in at(f, path):
                wrong.append(f"{name}: {path}: additions are missing")
            for n in names:
                if at(f, path)[n][()] != int(n.split()[1]):
                    wrong.append(f"{name}: {path}/{n}: another value")
                del at(f, path)[n]
                del at(f, path).attrs[n]
        for path in arrays:
            for i in range(12):
                if at(f, path).attrs[f"added {i}"] != f"text {i}":
                    wrong.append(f"{name}: {path}: an added attribute is another")
                del at(f, path).attrs[f"added {i}"]
            if path in grown:
                if not (at(f, path)[grown[path] :] == 1).all():
                    wrong.append(f"{name}: {path}: other elements in new rows")
                at(f, path).resize(grown[path], axis=0)
    after = canon.dump(written)
    for path in sorted(set(before) | set(after)):
        if before.get(path) != after.get(path):
            wrong.append(f"{name}: {path}: after additions {before.get(path)} became {after.get(path)}"[:600])
    return wrong


if __name__ == "__main__":
    wrong = []
    for name, original, written, left_out in json.load(open(sys.argv[1])):
        try:
            wrong += compare(name, original, written, left_out)
            wrong += add(name, written)
        except Exception as e:
            wrong.append(f"{name}: {type(e).__name__}: {e}")
    json.dump(wrong, sys.stdout)
