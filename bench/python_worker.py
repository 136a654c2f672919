"""Times one workload with h5py, or netCDF4-python for netCDF-3: python python_worker.py WORKLOAD FOLDER REPETITIONS; prints JSON."""

import json
import os
import sys
import time

import h5py
import hdf5plugin  # noqa: F401 (registers filters)
import numpy as np

workload, folder, repetitions = sys.argv[1], sys.argv[2], int(sys.argv[3])
boxes = json.load(open(os.path.join(folder, "boxes.json")))["boxes"]


def bits(a):
    return int(np.ascontiguousarray(a).view("u4").sum(dtype="u8"))


def read(name, selection):
    if name.startswith("netcdf3"):
        import netCDF4

        with netCDF4.Dataset(os.path.join(folder, name + ".nc")) as f:
            f.set_auto_mask(False)
            return f["d"][selection]
    with h5py.File(os.path.join(folder, name + ".h5"), "r") as f:
        return f["d"][selection]


def run():
    """One repetition: the time, and something to compare the answers by."""
    start = time.perf_counter()
    if workload == "random":
        with h5py.File(os.path.join(folder, "gzip.h5"), "r") as f:
            d = f["d"]
            parts = [d[z : z + 1, y : y + 64, x : x + 64] for z, y, x in boxes]
        seconds = time.perf_counter() - start
        return seconds, sum(bits(p) for p in parts)
    if workload == "listing":
        total = 0
        with h5py.File(os.path.join(folder, "listing.h5"), "r") as f:
            for group in f.values():
                for d in group.values():
                    for value in d.attrs.values():
                        total += len(value) if isinstance(value, str) else int(np.sum(value))
        return time.perf_counter() - start, total
    name, kind = workload.rsplit("_", 1)
    step = slice(None, None, 7)
    out = read(name, (step, step, step) if kind == "strided" else ...)
    return time.perf_counter() - start, bits(out)


results = [run() for _ in range(repetitions)]
peak = next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps({"ms": min(r[0] for r in results) * 1000, "sum": results[0][1] % 2**64, "peak": peak}))
