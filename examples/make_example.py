#!/usr/bin/env python3
"""Make examples/data/ocean.h5: a year of synthetic sea surface temperature, laid out as netCDF-4 does.

    python examples/make_example.py [OUT]

Needs h5py and numpy. The same versions give the same bytes.
"""
import hashlib
import os
import sys

import h5py
import numpy as np

out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "ocean.h5")
rng = np.random.default_rng(7)

time = np.arange(12) * 30.4375 + 15
lat = np.linspace(-88.5, 88.5, 60, dtype="f4")
lon = np.linspace(1.5, 358.5, 120, dtype="f4")

# Warm at the equator, seasons that swap hemispheres, eddies, and land where a few waves say so.
season = np.sin(2 * np.pi * (time[:, None, None] - 110) / 365.25) * np.sin(np.radians(lat))[None, :, None]
waves = sum(
    np.sin(k * np.radians(lon)[None, None, :] + 0.3 * k * time[:, None, None] / 30 + j * np.radians(lat)[None, :, None])
    for k, j in ((2, 3), (5, 2), (9, 7))
)
sst = 29 * np.cos(np.radians(lat))[None, :, None] ** 1.5 + 6 * season + 0.6 * waves - 1
sst = np.round(sst + rng.normal(0, 0.05, sst.shape), 2).clip(-1.8, 35)
land = np.sin(2 * np.radians(lon))[None, :] + np.cos(3 * np.radians(lat))[:, None] > 1.2
sst = np.where(land[None], np.nan, sst).astype("f4")

station = np.dtype([("name", "S8"), ("lat", "f4"), ("lon", "f4"), ("depth", "i2"), ("active", "?")])
stations = np.array(
    [(b"ALPHA", 12.5, 200.0, -4200, True), (b"BRAVO", 52.75, 325.5, -3100, False), (b"CHARLIE", -40.0, 75.25, -3900, True)],
    station,
)

with h5py.File(out, "w", libver=("v110", "v110")) as f:
    f.attrs["title"] = "Synthetic sea surface temperature"
    f.attrs["Conventions"] = "CF-1.11"
    f.attrs["history"] = "made by examples/make_example.py"

    def put(group, name, data, **kw):
        return group.create_dataset(name, data=data, track_times=False, **kw)

    t = put(f, "time", time, maxshape=(None,), chunks=(12,))
    t.attrs.update({"units": "days since 2024-01-01", "calendar": "standard", "axis": "T"})
    y = put(f, "lat", lat)
    y.attrs.update({"units": "degrees_north", "axis": "Y"})
    x = put(f, "lon", lon)
    x.attrs.update({"units": "degrees_east", "axis": "X"})
    v = put(f, "sst", sst, maxshape=(None, 60, 120), chunks=(3, 30, 60), shuffle=True, compression="gzip",
            compression_opts=6, fletcher32=True, fillvalue=np.float32("nan"))
    v.attrs.update({"long_name": "sea surface temperature", "units": "degC", "valid_range": np.array([-2, 40], "f4")})
    v.attrs["_provenance_creator"] = "examples/make_example.py"
    v.attrs["_provenance_sha256"] = hashlib.sha256(np.ascontiguousarray(sst).tobytes()).hexdigest()
    v.attrs["_provenance_source"] = "numpy, seed 7"
    v.attrs["_provenance_timestamp"] = "2024-12-31T00:00:00Z"
    for d, name in ((t, "time"), (y, "lat"), (x, "lon")):
        d.make_scale(name)
    for i, d in enumerate((t, y, x)):
        v.dims[i].attach_scale(d)

    g = f.create_group("ships")
    s = put(g, "stations", stations)
    s.attrs["comment"] = "positions of the moorings"
    put(g, "notes", np.array(["calm", "fog, then rain", "", "größte Welle 9 m"], object), dtype=h5py.string_dtype())
    put(g, "tracks", np.array([np.arange(3, dtype="i4"), np.arange(5, dtype="i4") * 10], object),
        dtype=h5py.vlen_dtype("i4"))
    g.create_dataset("flag", data=np.array([0, 2, 1, 0], "i1"), track_times=False,
                     dtype=h5py.enum_dtype({"GOOD": 0, "SUSPECT": 1, "BAD": 2}, basetype="i1"))
    f["current"] = h5py.SoftLink("/sst")
