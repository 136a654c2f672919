"""The staged operations that `bench staged` times, done by versioned-hdf5 on arrays in memory.

    staged_worker.py REPETITIONS

prints one JSON object: the median time in ms of each operation, the first run left out.
"""

import json
import statistics
import sys
import time

import numpy as np
from versioned_hdf5.staged_changes import StagedChangesArray

REPETITIONS = int(sys.argv[1])
times = {}


def measure(name, prepare, work):
    taken = []
    for _ in range(REPETITIONS + 1):
        array = prepare()
        start = time.perf_counter()
        kept = work(array)
        taken.append((time.perf_counter() - start) * 1000)
        del kept
    times[name] = statistics.median(taken[1:])


# The same places as in staged.rs.
def corner(i, n):
    return i * 7919 % n


def whole(array):
    return array[()]


def assign(array, index, value):
    array[index] = value


plane = np.arange(4_000_000, dtype="f8").reshape(2000, 2000)
line = np.arange(10_000_000, dtype="i8")
small, run = np.ones((37, 53)), np.ones(1000, "i8")
rows = np.arange(0, 2000, 10)
mixed = np.array([i * 1237 % 2000 for i in range(200)])
mask = np.arange(2000) % 10 == 0
points = np.array([i * 7919 * 13 % 10_000_000 for i in range(5000)])
corners = [(corner(i, 1960), corner(i * 31, 1940)) for i in range(100)]
starts = [corner(i * 977, 9_999_000) for i in range(100)]


def plane_base(shape=(2000, 2000)):
    data = plane if shape == plane.shape else np.resize(plane, shape)
    return StagedChangesArray.from_array(data, chunk_size=(100, 100), fill_value=0)


def line_base():
    return StagedChangesArray.from_array(line, chunk_size=(4096,), fill_value=0)


def loaded(make):
    array = make()
    array.load()
    return array


def boxes(array):
    for y, x in corners:
        array[y : y + 37, x : x + 53] = small


def runs(array):
    for start in starts:
        array[start : start + 1000] = run


def read_boxes(array):
    return [array[y : y + 37, x : x + 53] for y, x in corners]


def read_runs(array):
    return [array[start : start + 1000] for start in starts]


def commit(array):
    array.commit(np.empty)


def same():
    array = StagedChangesArray.full((2000, 2000), chunk_size=(100, 100), fill_value=0.0, dtype="f8")
    array[()] = 1.0
    return array


edges = plane_base((2050, 2050))
measure("assign_100", plane_base, boxes)
measure("assign_100_1d", line_base, runs)
measure("assign_100_staged", lambda: loaded(plane_base), boxes)
measure("assign_100_staged_1d", lambda: loaded(line_base), runs)
measure("assign_one", plane_base, lambda a: assign(a, (777, 777), 5.0))
measure("assign_whole", plane_base, lambda a: assign(a, (), plane))
measure("assign_whole_1d", line_base, lambda a: assign(a, (), line))
measure("assign_strided", plane_base, lambda a: assign(a, (slice(None, None, 7), slice(None, None, 5)), 5.0))
measure("assign_rows", plane_base, lambda a: assign(a, rows, 5.0))
measure("assign_rows_unsorted", plane_base, lambda a: assign(a, mixed, 5.0))
measure("assign_rows_mask", plane_base, lambda a: assign(a, mask, 5.0))
measure("assign_points_1d", line_base, lambda a: assign(a, points, 5))
measure("read_100", plane_base, read_boxes)
measure("read_100_1d", line_base, read_runs)
measure("read_whole", plane_base, whole)
measure("read_whole_1d", line_base, whole)
measure("read_strided", plane_base, lambda a: a[::7, ::5])
measure("read_rows", plane_base, lambda a: a[rows])
measure("read_rows_unsorted", plane_base, lambda a: a[mixed])
measure("read_points_1d", line_base, lambda a: a[points])
measure("resize_up", plane_base, lambda a: a.resize((2080, 2080)))
measure("resize_up_1d", line_base, lambda a: a.resize((10_000_300,)))
measure("resize_up_edges", lambda: edges.copy(), lambda a: a.resize((2080, 2080)))
measure("resize_down", plane_base, lambda a: a.resize((1950, 1950)))
measure("resize_down_1d", line_base, lambda a: a.resize((9_999_000,)))
measure("load", plane_base, lambda a: a.load())
measure("load_1d", line_base, lambda a: a.load())
measure("commit", lambda: loaded(plane_base), commit)
measure("commit_1d", lambda: loaded(line_base), commit)
measure("commit_same", same, commit)
print(json.dumps(times))
