"""A SWMR writer and a SWMR reader of h5py, for the tests of live reading.

    swmr.py write FILE STEPS [RATE]     appends to the datasets below, flushing after each step, RATE steps a second
    swmr.py read FILE                   reads them until the writer has closed the file; prints a count of wrong values
    swmr.py times FILE STEPS RATE       appends the time to one dataset, RATE times a second; prints the rate reached
    swmr.py objects FILE COUNT          a SWMR file with COUNT datasets that grow, which stays open until it is killed
    swmr.py refresh FILE COUNT          refreshes /d0 COUNT times; prints seconds

The writers say "ready" when readers can open the file. Every value follows from its place, and none is the fill value.
"""

import sys
import time

import h5py
import numpy as np

COLUMNS = 6


def value(i, j=0):
    return 7 * i + j + 1


def grid(rows, columns):
    return value(np.asarray(rows, "<i8")[:, None], np.asarray(columns, "<i8")[None, :])


def columns_at(step):
    """How many columns the dataset that grows in two directions has."""
    return 1 + min(step // 50, 15)


def write(name, steps, rate=None):
    f = h5py.File(name, "w", libver="latest")
    one = f.create_dataset("one", (0,), "<i8", maxshape=(None,), chunks=(16,))
    rows = f.create_dataset("rows", (0, COLUMNS), "<i8", maxshape=(None, COLUMNS), chunks=(4, 4), compression="gzip")
    both = f.create_dataset("both", (0, 1), "<i8", maxshape=(None, None), chunks=(8, 4))
    f.swmr_mode = True
    print("ready", flush=True)
    start = time.monotonic()
    for step in range(steps):
        one.resize((step + 1,))
        one[step] = value(step)
        one.flush()
        rows.resize((step + 1, COLUMNS))
        rows[step] = value(step, np.arange(COLUMNS))
        rows.flush()
        wide = columns_at(step)
        if wide != both.shape[1]:
            # New columns first, of the rows that are there, so that every extent that is announced is written.
            both.resize((step, wide))
            both[:, wide - 1] = value(np.arange(step), wide - 1)
            both.flush()
        both.resize((step + 1, wide))
        both[step] = value(step, np.arange(wide))
        both.flush()
        if rate:
            time.sleep(max(0, start + (step + 1) / rate - time.monotonic()))
    f.close()
    print(f"done {steps / (time.monotonic() - start):.1f}", flush=True)


def read(name):
    wrong = reads = 0
    with h5py.File(name, "r", swmr=True) as f:
        datasets = [f[name] for name in ("one", "rows", "both")]
        last = [0, 0, 0]
        idle = time.monotonic()
        while time.monotonic() - idle < 5:
            for k, dataset in enumerate(datasets):
                dataset.refresh()
                shape = dataset.shape
                wrong += shape[0] < last[k]
                if shape[0] != last[k]:
                    idle = time.monotonic()
                first = max(0, last[k] - 20)
                found = dataset[first:].reshape(shape[0] - first, -1)
                wrong += int((found != grid(np.arange(first, shape[0]), np.arange(found.shape[1]))).sum())
                last[k] = shape[0]
                reads += 1
            with open(name, "rb") as raw:
                raw.seek(11)
                if raw.read(1) == b"\0":
                    break
    print(f"{wrong} wrong of {reads} reads", flush=True)


def times(name, steps, rate):
    f = h5py.File(name, "w", libver="latest")
    d = f.create_dataset("t", (0, 2), "<f8", maxshape=(None, 2), chunks=(64, 2))
    f.swmr_mode = True
    print("ready", flush=True)
    start = time.monotonic()
    for step in range(steps):
        time.sleep(max(0, start + step / rate - time.monotonic()))
        d.resize((step + 1, 2))
        d[step] = (step + 1, time.time())
        d.flush()
    took = time.monotonic() - start
    f.close()
    print(f"done {steps / took:.3f}", flush=True)


def objects(name, count):
    f = h5py.File(name, "w", libver="latest")
    for i in range(count):
        d = f.create_dataset(f"d{i}", (4,), "<i8", maxshape=(None,), chunks=(16,))
        if i == 0:
            d[...] = 1
    f.swmr_mode = True
    print("ready", flush=True)
    time.sleep(3600)


def refresh(name, count):
    with h5py.File(name, "r", swmr=True) as f:
        d = f["d0"]
        start = time.perf_counter()
        for _ in range(count):
            d.refresh()
            d.shape
        print(time.perf_counter() - start)


if __name__ == "__main__":
    command, name, *numbers = sys.argv[1:]
    globals()[command](name, *(int(n) for n in numbers))
