"""Makes netcdf4.nc, classic.nc, times.nc and phony.h5, which the tests of the netCDF view and of `dump` read, and what ncdump
prints of them. Needs netCDF4, h5py, and ncdump (netcdf-bin)."""
import pathlib
import subprocess

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

# A classic file with everything that is hard to print.
with netCDF4.Dataset(here / "classic.nc", "w", format="NETCDF3_CLASSIC") as f:
    f.title = "two\nlines and a 'quote'"
    f.setncattr("2 odd name", np.array([1.5, 1e20, np.nan, np.inf], "f4"))
    f.empty = ""
    f.createDimension("t", None)
    f.createDimension("x", 3)
    f.createDimension("len", 8)
    v = f.createVariable("t", "f8", ("t",))
    v.units = "days since 2000-01-01"
    v[:] = [0.5, 1 / 3, 1e300]
    v = f.createVariable("v", "f4", ("t", "x"), fill_value=-1)
    v[:] = [[1, -1, 3.14159265], [1e-7, np.nan, -np.inf], [0, 1e8, 9.96921e36]]
    v = f.createVariable("formatted", "f4", ("x",))
    v.C_format = "%6.2f"
    v[:] = [1, 2.345, -99.999]
    f.createVariable("data", "i1", ("t",))[:] = [-127, 0, 127]
    v = f.createVariable("text", "S1", ("t", "len"))
    v[:] = np.array([b"plain", b"a\tb\n\xe9", b""], "S8").view("S1").reshape(3, 8)
    f.createVariable("many", "i4", ("x", "len"))[:] = np.arange(24).reshape(3, 8) * 123456789 % 2147483647
    f.createVariable("scalar", "i2", ())[:] = -32767
    f.createVariable("letter", "S1", ())[:] = b"c"

# Times in every calendar, none of which ncdump gets wrong.
with netCDF4.Dataset(here / "times.nc", "w", format="NETCDF3_CLASSIC") as f:
    f.createDimension("t", 5)
    f.createDimension("two", 2)
    v = f.createVariable("time", "f8", ("t",), fill_value=-999)
    v.units, v.bounds = "days since 2000-01-01", "limits"
    v.valid_range = np.array([0, 10.5])
    v[:] = [0, 1.5, -999, 59, 1234.56789]
    f.createVariable("limits", "i4", ("t", "two"))[:] = np.arange(10).reshape(5, 2)
    for calendar in ["standard", "proleptic_gregorian", "julian", "noleap", "all_leap", "360_day"]:
        v = f.createVariable(calendar, "i4", ("t",))
        v.units, v.calendar = "days since 1999-02-27", calendar
        v[:] = [0, 2, 365, 36525, -145000]
    for unit, base in [("seconds", "1990-01-01T00:00:00Z"), ("min", "2000-1-1 6:30"), ("hours", "1-1-1"),
                       ("weeks", "2000-01-01"), ("months", "1900-01-01"), ("years", "1900-01-01"), ("ms", "1970-1-1")]:
        v = f.createVariable(unit, "f4", ("t",))
        v.units = f"{unit} since {base}"
        v[:] = [0, 1, -12, 1000, 7]
    f["seconds"][:] = [0.25, 60, 3600, 86400, -1]

# What ncdump (Debian's netcdf-bin, 4.9.0) prints of them: the options stand in the names.
for name, options in [
    ("classic", []),
    ("classic", ["-h"]),
    ("classic", ["-c"]),
    ("classic", ["-b", "c", "-l", "40"]),
    ("classic", ["-f", "f", "-p", "3,4", "-v", "t,v,formatted,text,many"]),
    ("classic", ["-v", "v,scalar", "-n", "2x"]),
    ("classic", ["-k"]),
    ("times", ["-t"]),
    ("times", ["-i", "-h"]),
    ("times", ["-t", "-f", "c", "-v", "time,limits"]),
    ("netcdf4", []),
    ("netcdf4", ["-s"]),
    ("netcdf4", ["-g", "inner"]),
    ("netcdf4", ["-v", "v"]),
]:
    text = subprocess.run(["ncdump", *options, f"{name}.nc"], cwd=here, check=True, capture_output=True).stdout
    (here / f"{' '.join([name, *options])}.cdl").write_bytes(text)
