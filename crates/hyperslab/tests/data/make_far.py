"""Makes the files that tests read from far away: large, with elements that are all zero, so that they compress to little.

Needs h5py, netCDF4 and the program zstd. Run in this folder; what it writes depends on nothing else.
"""

import os
import subprocess

import h5py
import netCDF4
import numpy as np


def netcdf(name):
    """21 variables, 9 MB."""
    with netCDF4.Dataset(name, "w") as f:
        f.title = "a made-up ocean"
        f.createDimension("time", None)
        f.createDimension("lat", 64)
        f.createDimension("lon", 128)
        for d in ("time", "lat", "lon"):
            v = f.createVariable(d, "f8", (d,))
            v.units, v.long_name, v.axis = "degrees", "the axis " + d, d[0].upper()
        for i in range(18):
            v = f.createVariable(f"var{i:02}", "f4", ("time", "lat", "lon"), chunksizes=(1, 64, 128))
            v.long_name, v.units, v.standard_name = f"variable {i}", "K", f"made_up_{i}"
            v.missing_value, v.valid_min, v.valid_max = np.float32(-9999), np.float32(0), np.float32(400)
            v.cell_methods, v.coordinates, v.grid_mapping, v.comment = "time: mean", "lat lon", "crs", "c" * 60
        f["lat"][:], f["lon"][:] = np.arange(64), np.arange(128)
        for t in range(15):
            f["time"][t] = t
            for i in range(18):
                f[f"var{i:02}"][t] = np.zeros((64, 128), "f4")


def objects(name):
    """2,000 objects in groups three deep, their data between them."""
    with h5py.File(name, "w") as f:
        for g in range(40):
            group = f.create_group(f"session{g:02}/processing")
            for k in range(24):
                d = group.create_dataset(f"d{k:02}", data=np.zeros(500))
                d.attrs["unit"], d.attrs["description"] = "V", "something " * 3
                group.create_group(f"g{k:02}").attrs["neurodata_type"] = "TimeSeries"


def chunks(name):
    """100 chunks of 1 MiB."""
    with h5py.File(name, "w") as f:
        f.create_dataset("x", data=np.zeros((100, 1 << 18), "i4"), chunks=(1, 1 << 18))


for name, make in [("far_netcdf.nc", netcdf), ("far_objects.h5", objects), ("far_chunks.h5", chunks)]:
    make(name)
    print(name, os.path.getsize(name))
    subprocess.run(["zstd", "-q", "-f", "--rm", "-19", name], check=True)
