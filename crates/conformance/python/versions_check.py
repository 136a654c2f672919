"""What versioned-hdf5 makes of a file with versions that somebody else wrote.

    versions_check.py FILE [GROUP]

prints all versions as versions.py tells them, after it has: opened each with versioned-hdf5, recomputed the tables of hashes,
committed one more version on top, and deleted one. FILE is changed.
"""

import hashlib
import json
import sys

import h5py
import numpy as np
from versioned_hdf5 import VersionedHDF5File, delete_versions

from versions import array, told


def digest(data):
    h = hashlib.sha256()
    if data.dtype == object:
        for text in data.ravel():
            text = text if isinstance(text, bytes) else text.encode()
            h.update(len(text).to_bytes(8, "little") + text)
    else:
        h.update(np.ascontiguousarray(data).tobytes())
    h.update(str(data.shape).encode())
    return h.digest()


def tables(store):
    """Each chunk of each map has its row in the table, with the hash of what it holds."""
    checked = 0
    for version in store["versions"].values():
        def visit(path, d):
            nonlocal checked
            if not isinstance(d, h5py.Dataset):
                return
            group = store[path]
            table, raw = group["hash_table"], group["raw_data"]
            assert table.attrs["largest_index"] == len(table) or len(table) == 1, path
            rows = {tuple(r["shape"]): r["hash"].tobytes() for r in table[: table.attrs["largest_index"]]}
            assert raw.chunks == tuple(d.attrs["chunks"]) == tuple(raw.attrs["chunks"]), path
            for source in d.virtual_sources() if d.is_virtual else []:
                low, high = source.src_space.get_select_bounds()
                here, there = source.vspace.get_select_bounds()
                box = tuple(slice(a, b + 1) for a, b in zip(here, there))
                assert source.src_space.is_regular_hyperslab(), path
                assert rows[(low[0], high[0] + 1)] == digest(d[box]), (version.name, path, here)
                checked += 1

        version.visititems(visit)
    return checked


def main(path, place="/"):
    with h5py.File(path, "r") as f:
        checked = tables(f[place]["_version_data"])
        rows = {}
        f[place]["_version_data"].visititems(
            lambda p, o: rows.__setitem__(p, len(o)) if p.endswith("raw_data") else None)
    before = told(path, place)
    with h5py.File(path, "r+") as f:
        vf = VersionedHDF5File(f[place])
        read = {}
        for name in vf.versions:
            group = vf[name]
            read[name] = {}
            group.visititems(lambda p, d: read[name].__setitem__(p, array(d)) if hasattr(d, "shape") else None)
        current = vf.current_version
        with vf.stage_version("theirs") as g:
            for name in list(read[current]):
                d = g[name]
                if d.dtype.kind in "if" and d.size:
                    d[tuple(0 for _ in d.shape)] = 99
                    d.resize(tuple(n + 1 for n in d.shape))
    extended = told(path, place)
    with h5py.File(path, "r+") as f:
        oldest = min(v["name"] for v in before if v["name"] != current)
        delete_versions(f[place], [oldest])
    with h5py.File(path, "r") as f:
        tables(f[place]["_version_data"])
    left = told(path, place)
    for version in before:
        own = {p: {k: v for k, v in a.items() if k != "attributes"} for p, a in version["arrays"].items()}
        theirs = {p: {k: v for k, v in a.items() if k != "attributes"} for p, a in read[version["name"]].items()}
        assert own == theirs, version["name"]
        assert version["name"] == oldest or version["arrays"] == next(
            v["arrays"] for v in left if v["name"] == version["name"]), version["name"]
    assert len(extended) == len(before) + 1 and len(left) == len(before)
    print(json.dumps({"versions": before, "checked": checked, "rows": rows}))


if __name__ == "__main__":
    main(*sys.argv[1:])
