"""A SWMR writer and a SWMR reader of h5py, for the tests of live reading.

    swmr.py write FILE STEPS [RATE]     appends to the datasets below, flushing after each step, RATE steps a second
    swmr.py read FILE                   reads them until the writer has closed the file; prints a count of wrong values
    swmr.py times FILE STEPS RATE       appends the time to one dataset, RATE times a second; prints the rate reached
    swmr.py objects FILE COUNT          a SWMR file with COUNT datasets that grow, which stays open until it is killed
    swmr.py refresh FILE COUNT TIMES    for each line of input, TIMES in all, refreshes /d0 COUNT times; prints seconds
    swmr.py sums FILE SWMR              what h5py reads of each dataset: SHA-256 of its elements or "error", as JSON
    swmr.py virtual FILE ROWS           FILE is virtual, its sources FILE.0 and FILE.1 grow at different paces
    swmr.py behind FILE ROWS            the same; the second source announces its rows before it writes them, with zeros
    swmr.py in_turn FILE ROWS           the same where rows come from the sources in turn
    swmr.py frame FILE                  announces one frame, and writes it half a second later
    swmr.py dark FILE ROWS              frames of zeros in chunks of one row and half of the columns; the next frame is announced,
                                        and only half of it written; stays open until it is killed
    swmr.py text FILE ROWS              texts of any length, which come to the file later than the rows that name them
    swmr.py cycles FILE COUNT           opens the file, appends one row by SWMR, and closes it, COUNT times
    swmr.py plain FILE ROWS             appends rows without SWMR, and closes the file after each
    swmr.py flushed FILE ROWS           appends rows without SWMR, and flushes after each
    swmr.py parts FILE ROWS SWMR        rows in two halves and two columns of chunks, flushed between; zeros are written too
    swmr.py announced FILE ROWS         announces ten rows, and ten more, before it writes them one by one; zeros too
    swmr.py torn FILE ROWS              rows of 4 MiB, four to a chunk that is written over in place; zeros too
    swmr.py anew FILE ROWS BY           as "write", without an end, and all values higher by BY
    swmr.py zarr FOLDER ROWS            appends rows to a Zarr array
    swmr.py netcdf FILE ROWS            appends records to a netCDF-3 file, and synchronises after each

The writers say "ready" when readers can open the file. Every value follows from its place. Where zeros are not mentioned
none is the fill value.
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


def dark(name, rows):
    f = h5py.File(name, "w", libver="latest")
    d = f.create_dataset("v", (0, 4), "<i8", maxshape=(None, 4), chunks=(1, 2))
    f.swmr_mode = True
    for i in range(rows + 1):
        d.resize((i + 1, 4))
        d[i, : 4 if i < rows else 2] = 0
        d.flush()
    print("ready", flush=True)
    time.sleep(3600)


def refresh(name, count, times):
    with h5py.File(name, "r", swmr=True) as f:
        d = f["d0"]
        print("ready", flush=True)
        for _ in range(times):
            sys.stdin.readline()
            start = time.perf_counter()
            for _ in range(count):
                d.refresh()
                d.shape
            print(time.perf_counter() - start, flush=True)


def sums(name, swmr):
    import hashlib
    import json

    found = {}
    with h5py.File(name, "r", swmr=bool(swmr)) as f:
        for path in f:
            try:
                data = f[path][...]
                raw = repr(data.tolist()).encode() if data.dtype.kind == "O" else data.tobytes()
                found[path] = hashlib.sha256(raw).hexdigest()
            except Exception:
                found[path] = "error"
    print(json.dumps(found), flush=True)


def virtual(name, rows):
    layout = h5py.VirtualLayout((rows, 4), "<i8", maxshape=(None, 4))
    sources = []
    for k in range(2):
        f = h5py.File(f"{name}.{k}", "w", libver="latest")
        d = f.create_dataset("d", (0, 2), "<i8", maxshape=(None, 2), chunks=(4, 2))
        sources.append((f, d))
        source = h5py.VirtualSource(f"{name}.{k}", "d", (rows, 2), maxshape=(None, 2))
        layout[: h5py.h5s.UNLIMITED, 2 * k : 2 * k + 2] = source[: h5py.h5s.UNLIMITED, :]
    with h5py.File(name, "w", libver="latest") as f:
        f.create_virtual_dataset("v", layout)
    for f, _ in sources:
        f.swmr_mode = True
    print("ready", flush=True)
    for step in range(rows):
        for k, (_, d) in enumerate(sources):
            # The second source is behind by some rows, and catches up.
            to = step + 1 if k == 0 or step % 5 == 4 or step + 1 == rows else d.shape[0]
            at = d.shape[0]
            if to > at:
                d.resize((to, 2))
                d[at:] = value(np.arange(at, to)[:, None], np.arange(2 * k, 2 * k + 2)[None, :])
                d.flush()
        time.sleep(0.01)
    for f, _ in sources:
        f.close()


def behind(name, rows, turn=False):
    """Rows of both sources side by side, or in turn; the second source is behind by the time of a few rows."""
    unlimited = h5py.h5s.UNLIMITED
    width = 4 if turn else 2
    layout = h5py.VirtualLayout((rows, 4), "<i8", maxshape=(None, 4))
    sources = []
    for k in range(2):
        f = h5py.File(f"{name}.{k}", "w", libver="latest")
        d = f.create_dataset("d", (0, width), "<i8", maxshape=(None, width), chunks=(4, width))
        sources.append((f, d))
        source = h5py.VirtualSource(f"{name}.{k}", "d", (rows, width), maxshape=(None, width))
        if turn:
            layout[k:unlimited:2, :] = source[:unlimited, :]
        else:
            layout[:unlimited, 2 * k : 2 * k + 2] = source[:unlimited, :]
    with h5py.File(name, "w", libver="latest") as f:
        f.create_virtual_dataset("v", layout)
    for f, _ in sources:
        f.swmr_mode = True
    print("ready", flush=True)
    own = rows // 2 if turn else rows
    lag = 5
    for step in range(own + lag):
        for k, (_, d) in enumerate(sources):
            if step < own:
                d.resize((step + 1, width))
            at = step - (lag if k else 0)
            if 0 <= at < own:
                row = 2 * at + k if turn else at
                d[at] = few(row, np.arange(width) + (0 if turn else 2 * k))
            d.flush()
        time.sleep(0.03)
    for f, _ in sources:
        f.close()


def in_turn(name, rows):
    behind(name, rows, turn=True)


def frame(name):
    f = h5py.File(name, "w", libver="latest")
    d = f.create_dataset("image", (0, 4, 6), "<i4", maxshape=(None, 4, 6), chunks=(1, 4, 6))
    f.swmr_mode = True
    print("ready", flush=True)
    d.resize((1, 4, 6))
    d.flush()
    time.sleep(0.5)
    d[0] = 5
    d.flush()
    time.sleep(0.5)
    f.close()


def text(name, rows):
    f = h5py.File(name, "w", libver="latest")
    d = f.create_dataset("text", (0,), h5py.string_dtype(), maxshape=(None,), chunks=(8,))
    f.swmr_mode = True
    print("ready", flush=True)
    for step in range(rows):
        d.resize((step + 1,))
        d[step] = f"row {step} " + "x" * (step * 37 % 300)
        d.flush()
        if step % 20 == 19:
            f.flush()
        time.sleep(0.01)
    f.close()


def cycles(name, count):
    with h5py.File(name, "w", libver="latest") as f:
        f.create_dataset("one", (0,), "<i8", maxshape=(None,), chunks=(16,))
    print("ready", flush=True)
    for step in range(count):
        f = h5py.File(name, "r+", libver="latest")
        d = f["one"]
        f.swmr_mode = True
        d.resize((step + 1,))
        d[step] = value(step)
        d.flush()
        f.close()


def plain(name, rows):
    with h5py.File(name, "w") as f:
        f.create_dataset("one", (0,), "<i8", maxshape=(None,), chunks=(16,))
    print("ready", flush=True)
    for step in range(rows):
        with h5py.File(name, "a") as f:
            f["one"].resize((step + 1,))
            f["one"][step] = value(step)
        time.sleep(0.06)


def flushed(name, rows):
    with h5py.File(name, "w") as f:
        d = f.create_dataset("one", (0,), "<i8", maxshape=(None,), chunks=(16,))
        f.flush()
        print("ready", flush=True)
        for step in range(rows):
            d.resize((step + 1,))
            d[step] = value(step)
            f.flush()
            time.sleep(0.06)


def few(i, j):
    """Values of which each fifth is the fill value."""
    return (7 * np.asarray(i) + np.asarray(j)) % 5


def parts(name, rows, swmr):
    f = h5py.File(name, "w", libver="latest" if swmr else None)
    d = f.create_dataset("d", (0, 8), "<i4", maxshape=(None, 8), chunks=(4, 4))
    f.flush()
    if swmr:
        f.swmr_mode = True
    print("ready", flush=True)
    pause = 0.005 if swmr else 0.05
    for step in range(rows):
        d.resize((step + 1, 8))
        f.flush()
        # By half of a chunk, so that each chunk is there before its row.
        for first in (0, 4, 2, 6):
            d[step, first : first + 2] = few(step, np.arange(first, first + 2))
            f.flush()
            time.sleep(pause)
    f.close()


def announced(name, rows):
    f = h5py.File(name, "w", libver="latest")
    d = f.create_dataset("d", (0, 8), "<i4", maxshape=(None, 8), chunks=(4, 4))
    f.swmr_mode = True
    print("ready", flush=True)
    for step in range(rows):
        if step % 20 == 0:
            for more in (10, 20):
                d.resize((min(step + more, rows), 8))
                f.flush()
                time.sleep(0.03)
        d[step] = few(step, np.arange(8))
        f.flush()
        time.sleep(0.01)
    f.close()


def torn(name, rows):
    width = 1 << 19
    f = h5py.File(name, "w", libver="latest")
    d = f.create_dataset("d", (0, width), "<i8", maxshape=(None, width), chunks=(4, width))
    f.swmr_mode = True
    print("ready", flush=True)
    columns = np.arange(width)
    for step in range(rows):
        d.resize((step + 1, width))
        d[step] = few(step, columns)
        d.flush()
    f.close()


def anew(name, rows, by):
    f = h5py.File(name, "w", libver="latest")
    d = f.create_dataset("one", (0,), "<i8", maxshape=(None,), chunks=(16,))
    f.swmr_mode = True
    print("ready", flush=True)
    for step in range(rows):
        d.resize((step + 1,))
        d[step] = value(step) + by
        d.flush()
        time.sleep(0.002)
    print("done", flush=True)
    time.sleep(3600)


def zarr(name, rows):
    import zarr as z

    a = z.create_array(name, shape=(0, 3), chunks=(4, 3), dtype="<i8")
    print("ready", flush=True)
    for step in range(rows):
        a.append(value(step, np.arange(3))[None, :].astype("<i8"))
        time.sleep(0.02)


def netcdf(name, rows):
    from netCDF4 import Dataset

    with Dataset(name, "w", format="NETCDF3_64BIT_OFFSET") as f:
        f.createDimension("t", None)
        f.createDimension("x", 3)
        v = f.createVariable("v", "i4", ("t", "x"))
        f.sync()
        print("ready", flush=True)
        for step in range(rows):
            v[step] = value(step, np.arange(3))
            f.sync()
            time.sleep(0.06)


if __name__ == "__main__":
    command, name, *numbers = sys.argv[1:]
    globals()[command](name, *(int(n) for n in numbers))
