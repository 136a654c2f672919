"""Makes netcdf4.nc and phony.h5, which the tests of the netCDF view read. Needs netCDF4, h5py."""
import pathlib

import h5py
import netCDF4
import numpy as np

here = pathlib.Path(__file__).parent

with netCDF4.Dataset(here / "netcdf4.nc", "w") as f:
    f.zebra = np.int16(1)
    f.apple = "text"
    f.list = ["a", "bc"]
    f.createDimension("time", None)
    f.createDimension("x", 3)
    f.createDimension("bare", 2)
    pair = f.createCompoundType(np.dtype([("a", "i4"), ("b", "f8", (2,))], align=True), "pair")
    enum = f.createEnumType(np.uint8, "sky", {"clear": 0, "cloud": 1})
    f.createVLType(np.int32, "ragged")
    f.createVariable("time", "f8", ("time",))[:] = [0.0, 1.0]
    # Longer than the others, which end in fill values.
    f.createVariable("long", "i4", ("time",))[:] = range(5)
    f.createVariable("x", "f4", ("x",)).units = "m"
    # Of two dimensions, and called like one of them.
    f.createVariable("bare", "i1", ("x", "bare"))
    f.createVariable("pairs", pair, ("x",))
    f.createVariable("skies", enum, ("time",), fill_value=1)
    f.createVariable("names", str, ("x",))
    g = f.createGroup("inner")
    g.createDimension("x", 4)
    g.createVariable("v", "u8", ("time", "x"))
    g.createVariable("c", "S1", ())

with h5py.File(here / "phony.h5", "w") as f:
    f["a"] = np.zeros((2, 2, 3), "i2")
    f["b"] = np.zeros((3, 2), "f4")
    f["half"] = np.zeros(2, "f2")
    f["bool"] = np.zeros(2, bool)
    f["text"] = np.array([b"abc", b"d"])
    f["soft"] = h5py.SoftLink("/b")
    f["dangling"] = h5py.SoftLink("/nothing")
    f["external"] = h5py.ExternalLink("other.h5", "/x")
    f.attrs["table"] = np.zeros((2, 2))
    f["group/c"] = np.zeros(5, "i8")
    f["group/again"] = f["/"]
