"""Compares HDF5 files that hyperslab changed in place with what they were, and lets the HDF5 library add to them.

    python hdf5_edit.py PAIRS

PAIRS is a JSON list of [name, original, edited, [[path of an array that grew, first new row], ...]]. Prints a JSON list of
what differs.
"""

import json
import os
import sys

os.environ["HDF5_EXTFILE_PREFIX"] = "${ORIGIN}"

import h5py
import hdf5plugin  # noqa: F401

import canon
import hdf5_write

ADDED = [f"edited {i}" for i in range(12) if i != 3]


def compare(name, original, edited, grown):
    wrong = []
    grown = dict(grown)
    a, b = canon.dump(original), canon.dump(edited)
    for path, old in a.items():
        new = b.get(path)
        if new is None:
            wrong.append(f"{name}: {path} is gone")
            continue
        new = dict(new)
        if "attrs" in new:
            missing = [n for n in ADDED if n not in new["attrs"]]
            if missing or "edited 3" in new["attrs"]:
                wrong.append(f"{name}: {path}: attributes {missing} are missing")
            new["attrs"] = {k: v for k, v in new["attrs"].items() if k not in ADDED}
        if path in grown:
            with h5py.File(original, "r") as f, h5py.File(edited, "r") as g:
                rows = hdf5_write.at(f, path).shape[0]
                if not (hdf5_write.at(f, path)[...] == hdf5_write.at(g, path)[:rows]).all():
                    wrong.append(f"{name}: {path}: other elements in old rows")
                if not (hdf5_write.at(g, path)[grown[path] :] == 1).all():
                    wrong.append(f"{name}: {path}: other elements in new rows")
                if (hdf5_write.at(g, path)[rows : grown[path]] != hdf5_write.at(f, path).fillvalue).any():
                    wrong.append(f"{name}: {path}: elements nobody wrote are no fill values")
            continue
        if old != new:
            wrong.append(f"{name}: {path}: {old} became {new}"[:600])
    with h5py.File(edited, "r") as g:
        names = {f"d{i}" for i in range(20) if i not in (3, 4)} | {"moved", "copied"}
        there = set(g["~edited"])
        if not names <= there or not there <= names | {"hard", "soft"}:
            wrong.append(f"{name}: the group has {sorted(there)}")
        values = {f"d{i}": i for i in range(20) if i not in (3, 4)} | {"moved": 4, "copied": 5}
        for n, v in values.items():
            if g["~edited"][n][()] != v:
                wrong.append(f"{name}: edited/{n} is another value")
    return wrong


if __name__ == "__main__":
    wrong = []
    for name, original, edited, grown in json.load(open(sys.argv[1])):
        try:
            found = compare(name, original, edited, grown)
            wrong += found or hdf5_write.add(name, edited)
        except Exception as e:
            wrong.append(f"{name}: {type(e).__name__}: {e}")
    json.dump(wrong, sys.stdout)
