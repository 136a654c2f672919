"""Times one workload on Zarr with a Python reader: python zarr_worker.py READER WORKLOAD STORE REPETITIONS; prints JSON."""

import json
import os
import sys
import time

import numpy as np

reader, workload, store, repetitions = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
boxes = json.load(open(os.path.join(os.path.dirname(store), "boxes.json")))["boxes"]

if reader == "tensorstore":
    import tensorstore

    driver = "zarr3" if os.path.exists(os.path.join(store, "zarr.json")) else "zarr"

    def array():
        spec = {"driver": driver, "kvstore": {"driver": "file", "path": store}}
        return tensorstore.open(spec, read=True).result()

    def read(a, selection):
        return a[selection].read().result()
else:
    import zarr

    if reader == "zarrs-python":
        zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"})

    def array():
        return zarr.open_array(store, mode="r")

    def read(a, selection):
        return a[selection]


def bits(a):
    return int(np.ascontiguousarray(a).view("u4").sum(dtype="u8"))


def run():
    """One repetition: the time, and something to compare the answers by."""
    start = time.perf_counter()
    if workload.endswith("_random"):
        a = array()
        parts = [read(a, np.s_[z : z + 1, y : y + 64, x : x + 64]) for z, y, x in boxes]
        return time.perf_counter() - start, sum(bits(p) for p in parts)
    out = read(array(), ...)
    return time.perf_counter() - start, bits(out)


results = [run() for _ in range(repetitions)]
peak = next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps({"ms": min(r[0] for r in results) * 1000, "sum": results[0][1] % 2**64, "peak": peak}))
