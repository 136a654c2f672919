"""Makes versions.h5 with h5py alone: versions as versioned-hdf5 lays them out, and maps that it would not write.

    make_versions.py FOLDER
"""

import sys
from pathlib import Path

import h5py
import numpy as np


def versioned(where, data_version, attributes):
    f = where.file
    root = "" if where.name == "/" else where.name
    store = where.create_group("_version_data")
    versions = store.create_group("versions")
    if data_version:
        versions.attrs["data_version"] = data_version
    versions.create_group("__first_version__").attrs["timestamp"] = "2024-01-01 00:00:00.000000+0000"
    parent = "__first_version__"
    for day, name in enumerate(["first", "second", "dead"], 2):
        group = versions.create_group(name)
        group.attrs["prev_version"] = parent
        group.attrs["committed"] = name != "dead"
        if name != "dead":
            group.attrs["timestamp"] = f"2024-01-0{day} 00:00:00.000000+0000"
        parent = name
    # A writer that died in its commit.
    versions.attrs["current_version"] = "dead"

    def raw(name):
        data = np.array([1, 2, 3, 4, 5, 0, 9, 4], "<i4")
        group = store.create_group(name)
        d = group.create_dataset("raw_data", data=data, chunks=(2,), maxshape=(None,))
        d.attrs["chunks"] = [2]
        return d

    def array(version, name, mappings):
        source = f"{root}/_version_data/{name}/raw_data"
        layout = h5py.VirtualLayout((5,), "<i4")
        dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        space, stack = h5py.h5s.create_simple((5,)), h5py.h5s.create_simple((8,), (h5py.h5s.UNLIMITED,))
        for (low, end), start in mappings:
            space.select_hyperslab((low,), (1,), None, (end - low,))
            stack.select_hyperslab((start,), (1,), None, (end - low,))
            dcpl.set_virtual(space, b".", source.encode(), stack)
        dcpl.set_fill_value(np.array(0, "<i4"))
        made = h5py.h5d.create(versions[version].id, name.encode(), h5py.h5t.STD_I32LE, space, dcpl)
        if attributes:
            h5py.Dataset(made).attrs["raw_data"] = source
            h5py.Dataset(made).attrs["chunks"] = [2]

    raw("x")
    array("first", "x", [((0, 2), 0), ((2, 4), 2), ((4, 5), 4)])
    array("second", "x", [((0, 2), 0), ((2, 4), 6), ((4, 5), 4)])
    if root:
        return
    for name in ["merged", "half", "twice", "unsorted", "lost"]:
        raw(name)
    array("second", "merged", [((0, 4), 0), ((4, 5), 4)])
    array("second", "half", [((1, 2), 1), ((2, 4), 2), ((4, 5), 4)])
    array("second", "twice", [((0, 2), 0), ((0, 2), 2)])
    array("second", "unsorted", [((4, 5), 4), ((0, 2), 0), ((2, 4), 2)])
    array("second", "lost", [((0, 2), 0)])
    del store["lost"]
    f["real"] = np.array([42], "<i4")
    versions["second"]["outside"] = h5py.SoftLink("/real")


with h5py.File(Path(sys.argv[1]) / "versions.h5", "w") as f:
    versioned(f, 4, True)
    versioned(f.create_group("old"), None, False)
    newer = f.create_group("newer/_version_data/versions")
    newer.attrs["data_version"] = 5
    newer.attrs["current_version"] = "__first_version__"
