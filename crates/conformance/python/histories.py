"""Compares files of random histories with what the reference libraries read in them: scripts/histories.

    python histories.py FOLDER
"""

import glob
import json
import os
import sys

import netCDF4
import numpy as np
import zarr


def classic(path):
    with netCDF4.Dataset(path) as f:
        f.set_auto_maskandscale(False)
        arrays = {name: v[...] for name, v in f.variables.items()}
        attributes = {("", name): f.getncattr(name) for name in f.ncattrs()}
        for name, v in f.variables.items():
            attributes |= {(name, a): v.getncattr(a) for a in v.ncattrs()}
    return arrays, attributes


def stored(path):
    root = zarr.open_group(zarr.storage.ZipStore(path, mode="r") if path.endswith("zip") else path, mode="r")
    arrays = {name: a[...] for name, a in root.arrays()}
    attributes = {("", name): value for name, value in root.attrs.items()}
    for name, a in root.arrays():
        attributes |= {(name, key): value for key, value in a.attrs.items()}
    return arrays, attributes


def check(model):
    (path,) = [p for p in glob.glob(glob.escape(model[:-5]) + ".*") if not p.endswith(".json")]
    with open(model) as f:
        wanted = json.load(f)
    arrays, attributes = (classic if path.endswith(".nc") else stored)(path)
    assert set(arrays) == set(wanted["arrays"]), (path, set(arrays), set(wanted["arrays"]))
    for name, array in wanted["arrays"].items():
        assert list(arrays[name].shape) == array["shape"], (path, name, arrays[name].shape)
        data = np.array(array["data"], "i4").reshape(array["shape"])
        assert np.array_equal(arrays[name], data), (path, name)
    found = {key: int(np.ravel(value)[0]) for key, value in attributes.items() if key[1].startswith("n")}
    assert found == {(o, n): v for o, n, v in wanted["attributes"]}, (path, found, wanted["attributes"])
    return len(arrays)


models = sorted(glob.glob(os.path.join(glob.escape(sys.argv[1]), "*.json")))
print(f"{len(models)} files, {sum(map(check, models))} arrays are as the model says")
assert models
