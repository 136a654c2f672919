"""What versioned-hdf5 does to files with versions, and what h5py sees in them afterwards.

Reads a JSON list of jobs on stdin, [FILE, GROUP, [STEP, ...]], and prints a JSON list with the state of each file after its
steps. Steps are ["delete", [NAME, ...]], ["rebuild"], ["modify", PATH, {KEYWORD: VALUE}], ["extend", NAME], which commits
a version with something new in each array of numbers, and ["touch", NAME], which does to arrays of any type. FILE is changed.
"""

import hashlib
import json
import sys

import h5py
import numpy as np
from versioned_hdf5 import VersionedHDF5File, delete_versions, modify_metadata

from versions import told
from versions_check import tables


def steps(path, place, todo):
    for step in todo:
        with h5py.File(path, "r+") as f:
            if step[0] == "delete":
                delete_versions(f[place], step[1])
            elif step[0] == "rebuild":
                VersionedHDF5File(f[place]).rebuild_hashtables()
            elif step[0] == "modify":
                keywords = dict(step[2])
                if "chunks" in keywords:
                    keywords["chunks"] = tuple(keywords["chunks"])
                if keywords.get("dtype") == "O":
                    keywords["dtype"] = h5py.string_dtype()
                modify_metadata(VersionedHDF5File(f[place]), step[1], **keywords)
            elif step[0] == "extend":
                vf = VersionedHDF5File(f[place])
                with vf.stage_version(step[1]) as g:
                    names = []
                    g.visititems(lambda p, d: names.append(p) if hasattr(d, "shape") else None)
                    for name in names:
                        d = g[name]
                        if d.dtype.kind in "if" and d.size:
                            d[tuple(0 for _ in d.shape)] = 99
                            d.resize(tuple(n + 1 for n in d.shape))
            elif step[0] == "touch":
                # The last element of each array becomes the first, and a row of fill comes behind it.
                vf = VersionedHDF5File(f[place])
                with vf.stage_version(step[1]) as g:
                    names = []
                    g.visititems(lambda p, d: names.append(p) if hasattr(d, "shape") else None)
                    for name in names:
                        d = g[name]
                        if not d.size or name == "padded":
                            continue
                        last = tuple(n - 1 for n in d.shape)
                        d[tuple(0 for _ in d.shape)] = d[last]
                        d.resize((d.shape[0] + 1, *d.shape[1:]))
            else:
                raise ValueError(step)


def digest_of_raw(raw):
    """Each chunk of a stack, padding and all."""
    height = raw.chunks[0]
    out = []
    for start in range(0, raw.shape[0], height):
        data = raw[start : start + height]
        if data.dtype == object:
            out.append([t.decode() for t in data.ravel()])
        else:
            out.append(hashlib.sha256(np.ascontiguousarray(data).tobytes()).hexdigest())
    return out


def state(path, place):
    with h5py.File(path, "r") as f:
        store = f[place]["_version_data"]
        checked = tables(store)
        stacks = {}

        def visit(p, o):
            if p.split("/")[0] == "versions" or not isinstance(o, h5py.Dataset) or not p.endswith("/raw_data"):
                return
            table = o.parent["hash_table"]
            count = int(table.attrs["largest_index"])
            # What versioned-hdf5 adds goes behind so many chunks.
            assert len(o) == count * o.chunks[0], (p, len(o), count)
            stacks[p] = {
                "shape": list(o.shape),
                "chunks": digest_of_raw(o),
                "table": sorted([r["hash"].tobytes().hex(), *map(int, r["shape"])] for r in table[:count]),
                "filters": [o.compression, o.compression_opts if isinstance(o.compression_opts, int) else None,
                            bool(o.shuffle), bool(o.fletcher32), o.scaleoffset],
                "dtype": str(o.dtype),
                "fill": repr(o.fillvalue),
            }

        store.visititems(visit)
        data_version = int(store["versions"].attrs.get("data_version", 1))
        current = store["versions"].attrs["current_version"]
    versions = told(path, place)
    # Each version opens.
    with h5py.File(path, "r") as f:
        vf = VersionedHDF5File(f[place])
        for version in versions:
            vf[version["name"]]
    return {"versions": versions, "stacks": stacks, "checked": checked, "current": current,
            "data_version": data_version}


def jobs():
    out = []
    for path, place, todo in json.load(sys.stdin):
        try:
            steps(path, place, todo)
            out.append(state(path, place))
        except Exception as e:
            raise RuntimeError(f"{path} {todo}: {e!r}") from e
    print(json.dumps(out))


jobs()
