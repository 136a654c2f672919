"""netCDF4 reads what hyperslab wrote, adds to it, and reads what hyperslab added then.

    python hdf5_netcdf.py PAIRS

PAIRS is a JSON list of [step, file]. Prints a JSON list of what is wrong.
"""

import json
import sys

import h5py
import netCDF4
import numpy as np

wrong = []


def check(what, found, wanted):
    same = np.array_equal(found, wanted) if isinstance(wanted, np.ndarray) else found == wanted
    if not same:
        wrong.append(f"{what}: {found!r} instead of {wanted!r}")


def new(path):
    """The file is as it was made; then it grows."""
    with netCDF4.Dataset(path) as f:
        check("dimensions", list(f.dimensions), ["t", "x", "lonely"])
        check("lengths", [len(d) for d in f.dimensions.values()], [2, 4, 3])
        check("unlimited", [d.isunlimited() for d in f.dimensions.values()], [True, False, False])
        check("variables", list(f.variables), ["x", "temp", "deep", "lonely"])
        check("x", f["x"].dimensions, ("x",))
        check("temp", f["temp"].dimensions, ("t", "x"))
        check("lonely", f["lonely"].dimensions, ("x",))
        check("data", np.asarray(f["temp"][:]), np.arange(8, dtype="i4").reshape(2, 4))
        check("x data", np.asarray(f["x"][:]), np.arange(4, dtype="i4") * 10)
        check("group", f["g"]["v"].dimensions, ("x", "z"))
        check("group dimension", list(f["g"].dimensions), ["z"])
        check("attribute", f["temp"].units, "K")
        check("deep", f["deep"].dimensions, ("t", "x", "t"))
    with netCDF4.Dataset(path, "a") as f:
        f["temp"][2:5] = np.full((3, 4), 7)
        f.createDimension("added", 6)
        v = f.createVariable("w", "f8", ("t", "added"), zlib=True)
        v[:] = 1.5
        v.long_name = "added by netCDF"
        f["temp"].comment = "added too"
        f.createGroup("h").createVariable("u", str, ("x",))[:] = np.array(["a", "b", "", "d"], object)
        f.renameVariable("x", "xx")
        f.renameVariable("xx", "x")


def grown(path):
    """What hyperslab added to what netCDF added."""
    with netCDF4.Dataset(path) as f:
        check("t", len(f.dimensions["t"]), 6)
        wanted = np.concatenate([np.arange(8).reshape(2, 4), np.full((3, 4), 7), np.full((1, 4), 9)]).astype("i4")
        check("data", np.asarray(f["temp"][:]), wanted)
        check("late", f["late"].dimensions, ("t", "added", "n"))
        check("new dimension", len(f.dimensions["n"]), 2)
        check("late data", int(np.asarray(f["late"][0, 0, 0])), 5)
        check("w", float(f["w"][4, 5]), 1.5)
        check("texts", list(f["h"]["u"][:]), ["a", "b", "", "d"])
    with netCDF4.Dataset(path, "a") as f:
        f["late"][5, :, :] = 8
        f["temp"][6] = [1, 2, 3, 4]
        f["late"].note = "once more"
    with netCDF4.Dataset(path) as f:
        check("last", np.asarray(f["temp"][6]), np.array([1, 2, 3, 4], "i4"))
        check("late again", np.asarray(f["late"][5]), np.full((6, 2), 8, "i4"))


def rows(path):
    """Rows that came in many sessions, their first column their number; the library adds some and reads all."""
    with h5py.File(path, "r+") as f:
        for name, d in f.items():
            count = d.shape[0]
            flat = d[...].reshape(count, -1)
            check(name, flat[:, 0], np.arange(count, dtype="i4"))
            d.resize(count + 200, axis=0)
            d[count:] = np.arange(count, count + 200, dtype="i4").reshape((200,) + (1,) * (d.ndim - 1))
    with h5py.File(path, "r") as f:
        for name, d in f.items():
            check(name + " later", d[...].reshape(d.shape[0], -1)[:, 0], np.arange(d.shape[0], dtype="i4"))


for step, path in json.load(open(sys.argv[1])):
    try:
        {"new": new, "grown": grown, "rows": rows}[step](path)
    except Exception as e:
        wrong.append(f"{step}: {type(e).__name__}: {e}")
json.dump(wrong, sys.stdout)
