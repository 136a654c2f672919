"""The workloads that `bench versions` times, done by versioned-hdf5 with h5py.

    versions_worker.py make FOLDER         makes FOLDER/{line,plane}{0,100}.h5: the first version, and a hundred more
    versions_worker.py FOLDER REPETITIONS

prints one JSON object: the median times in ms of each workload, on the clock and of the processor, the first run left out.
versioned-hdf5 never syncs.
"""

import json
import os
import shutil
import statistics
import sys
import time

import h5py
import numpy as np
from versioned_hdf5 import VersionedHDF5File, delete_versions

SHAPES = {"line": ((10_000_000,), (4096,), "<i8"), "plane": ((2000, 2000), (100, 100), "<f8")}


def whole(name):
    shape, _, kind = SHAPES[name]
    return np.arange(np.prod(shape), dtype=kind).reshape(shape)


# The same places as in versions.rs.
def spot(name, i):
    at = (i * 7919 * 1237) % int(np.prod(SHAPES[name][0]))
    return np.unravel_index(at, SHAPES[name][0])


def first(path, name, data):
    with h5py.File(path, "w") as f:
        with VersionedHDF5File(f).stage_version("r0") as g:
            g.create_dataset("x", data=data, chunks=SHAPES[name][1])


def more(path, name, numbers):
    with h5py.File(path, "r+") as f:
        vf = VersionedHDF5File(f)
        for i in numbers:
            with vf.stage_version(f"r{i}") as g:
                g["x"][spot(name, i)] = -i


def look(path, name, version):
    with h5py.File(path, "r") as f:
        x = VersionedHDF5File(f)[version]["x"]
        return x[:5] if name == "line" else x[:5, :5]


def all_of(path, version):
    with h5py.File(path, "r") as f:
        return VersionedHDF5File(f)[version]["x"][()]


def delete(path):
    with h5py.File(path, "r+") as f:
        delete_versions(f, [f"r{i}" for i in range(1, 100, 2)])


def make(folder):
    for name in SHAPES:
        paths = [os.path.join(folder, f"{name}{n}.h5") for n in (0, 100)]
        if os.path.exists(paths[1]):
            continue
        first(paths[0], name, whole(name))
        shutil.copyfile(paths[0], paths[1] + ".part")
        more(paths[1] + ".part", name, range(1, 101))
        os.rename(paths[1] + ".part", paths[1])


def run(folder, repetitions):
    times = {}

    def measure(title, prepare, work, count=repetitions):
        taken = []
        for _ in range(count + 1):
            prepare()
            start = time.perf_counter(), time.process_time()
            kept = work()
            taken.append(((time.perf_counter() - start[0]) * 1000, (time.process_time() - start[1]) * 1000))
            del kept
        times[title] = [statistics.median(column) for column in zip(*taken[min(1, count - 1) :])]

    scratch = os.path.join(folder, "theirs.h5")

    def fresh(name, n):
        # A file of its own, so that nothing of an earlier one is kept.
        if os.path.exists(scratch):
            os.remove(scratch)
        if n is not None:
            shutil.copyfile(os.path.join(folder, f"{name}{n}.h5"), scratch)

    for name in SHAPES:
        many = os.path.join(folder, f"{name}100.h5")
        data = whole(name)
        measure(f"open_{name}", lambda: None, lambda: look(many, name, "r50"), 5 * repetitions)
        measure(f"whole_{name}", lambda: None, lambda: all_of(many, "r50"))
        measure(f"first_{name}", lambda: fresh(name, None), lambda: first(scratch, name, data))
        measure(f"one_{name}", lambda: fresh(name, 0), lambda: more(scratch, name, [1]))
        measure(f"hundred_{name}", lambda: fresh(name, 0), lambda: more(scratch, name, range(1, 101)), 1)
        measure(f"delete_{name}", lambda: fresh(name, 100), lambda: delete(scratch), 1)
    os.remove(scratch)
    print(json.dumps(times))


if sys.argv[1] == "make":
    make(sys.argv[2])
else:
    run(sys.argv[1], int(sys.argv[2]))
