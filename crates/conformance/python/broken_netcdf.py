"""Writes netCDF-4 files and NCZarr stores that contradict themselves, and `expected.json`: words that `check` has to say of each.

    python broken_netcdf.py OUT
"""

import json
import pathlib
import sys

import h5py
import netCDF4
import numpy as np

OUT = pathlib.Path(sys.argv[1]).absolute()
EXPECTED = {}


def fill(f):
    f.createDimension("x", 3)
    f.createDimension("y", 2)
    f.createDimension("t", None)
    f.createVariable("x", "f4", ("x",))[:] = [1, 2, 3]
    f.createVariable("v", "i4", ("y", "x"))[:] = np.arange(6).reshape(2, 3)
    f.createVariable("r", "i4", ("t", "x"))[:2] = np.arange(6).reshape(2, 3)
    g = f.createGroup("g")
    g.createVariable("w", "i2", ("x",))[:] = 1
    g.one = np.int32(1)


def hdf5(name, words, change):
    path = OUT / f"{name}.nc"
    with netCDF4.Dataset(path, "w") as f:
        fill(f)
    with h5py.File(path, "r+") as f:
        change(f)
    EXPECTED[path.name] = words


def shrink(f):
    del f["y"]
    f.create_dataset("y", shape=(5,), dtype="f4").make_scale("This is a netCDF dimension but not a netCDF variable.         5")
    f["y"].attrs["_Netcdf4Dimid"] = np.int32(1)
    f["v"].dims[0].attach_scale(f["y"])


def coordinates(f):
    f["r"].attrs["_Netcdf4Coordinates"] = np.array([2, 9], "i4")


hdf5("same_number", ["_Netcdf4Dimid is 0", "/y"], lambda f: f["y"].attrs.modify("_Netcdf4Dimid", np.int32(0)))
hdf5("no_scale", ["/v", "DIMENSION_LIST of axis 0"], lambda f: f.__delitem__("y"))
hdf5("not_a_scale", ["/v", "DIMENSION_LIST of axis 0", "no dimension scale"], lambda f: f["y"].attrs.__delitem__("CLASS"))
hdf5("other_length", ["/v", "axis 0 has 2 elements", "/y has 5"], shrink)
hdf5("no_such_number", ["/r", "names the dimension 9"], coordinates)


def nczarr(name, words, key, change):
    store = OUT / f"{name}.nczarr"
    with netCDF4.Dataset(f"file://{store}#mode=nczarr,file", "w") as f:
        fill(f)
    path = store / key
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    EXPECTED[store.name] = words


def member(name, key):
    return lambda d: d["_nczarr_group"][name].__delitem__(key)


nczarr("lost_dimension", ["/v", "/y is not declared"], ".zattrs", member("dimensions", "y"))
nczarr("other_size", ["/v", "/y has length 7"], ".zattrs", lambda d: d["_nczarr_group"]["dimensions"].update(y=7))
nczarr("short_unlimited", ["/r", "/t has 1"], ".zattrs", lambda d: d["_nczarr_group"]["dimensions"]["t"].update(size=1))
nczarr("lost_array", ["/gone", "lists it"], ".zattrs", lambda d: d["_nczarr_group"]["arrays"].append("gone"))
nczarr("lost_group", ["/g/gone", "lists it"], "g/.zattrs", lambda d: d["_nczarr_group"]["groups"].append("gone"))
nczarr("unknown_dimension", ["/v", "/z is not declared"], "v/.zattrs",
       lambda d: d["_nczarr_array"].update(dimension_references=["/z", "/x"]))
nczarr("too_few_dimensions", ["/v", "1 dimensions of an array of 2 axes"], "v/.zattrs",
       lambda d: d["_nczarr_array"].update(dimension_references=["/x"]))
nczarr("names_and_axes", ["/v", "_ARRAY_DIMENSIONS names 1"], "v/.zattrs", lambda d: d.update(_ARRAY_DIMENSIONS=["x"]))
nczarr("not_of_its_type", ["/g:one", "300", "<i1"], "g/.zattrs",
       lambda d: (d.update(one=300), d["_nczarr_attr"]["types"].update(one="<i1")))

(OUT / "expected.json").write_text(json.dumps(EXPECTED, indent=1))
