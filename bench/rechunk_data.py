"""Makes a large netCDF-4 file in chunks of one time step: make FILE GIB; or compares two of them: compare A B. Prints JSON."""

import json
import sys

import netCDF4
import numpy as np

if sys.argv[1] == "make":
    path, steps = sys.argv[2], int(float(sys.argv[3]) * 1024)
    rng = np.random.default_rng(5)
    y, x = np.meshgrid(np.arange(512) / 40, np.arange(512) / 30, indexing="ij")
    field = 280 + 15 * np.sin(y) * np.cos(x) + rng.normal(0, 0.05, (512, 512))
    with netCDF4.Dataset(path, "w") as f:
        for name, length in {"time": steps, "y": 512, "x": 512}.items():
            f.createDimension(name, length)
        v = f.createVariable("t", "f4", ("time", "y", "x"), zlib=True, complevel=1, shuffle=True, chunksizes=(1, 512, 512))
        for step in range(steps):
            moved = np.roll(field, (7 * step, 3 * step), (0, 1)) + 5 * np.sin(step / 50)
            v[step] = np.round(moved * 64).astype("f4") / 64
    print(json.dumps({"steps": steps}))
else:
    with netCDF4.Dataset(sys.argv[2]) as a, netCDF4.Dataset(sys.argv[3]) as b:
        a, b = a["t"], b["t"]
        same = a.shape == b.shape and a.chunking() == b.chunking()
        for row in range(0, a.shape[1], 16):
            same = same and np.array_equal(a[:, row : row + 16], b[:, row : row + 16])
    print(json.dumps({"same": bool(same)}))
