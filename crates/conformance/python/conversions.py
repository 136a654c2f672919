"""Every numeric type read as every other, as HDF5 converts.

    python conversions.py OUT

Writes numbers.h5 with a dataset for each stored type, and expected.json: {dataset: {wanted type: hex of the elements}}.
NaN is read as floats only: C leaves open what it is as an integer. More places are not judged, and stand as "?": a float
that is one more than the largest integer (HDF5 compares with a limit that was rounded up, and C leaves open what follows), a
negative 16-bit float as an unsigned integer (HDF5 wraps where it clamps all others), and a number between the largest 16-bit float
and infinity (HDF5's own two ways of converting differ).
"""

import json
import os
import sys

import h5py
import numpy as np
from h5py import h5s

out = sys.argv[1]
os.makedirs(out, exist_ok=True)
rng = np.random.default_rng(3)
STORED = [o + k for k in ("i2", "i4", "i8", "u2", "u4", "u8", "f2", "f4", "f8") for o in "<>"] + ["i1", "u1"]
WANTED = ["i1", "u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8"]


def samples(t):
    t = np.dtype(t)
    if t.kind == "f":
        info = np.finfo(t)
        edges = [float(s * 2.0**p + d) for s in (1, -1) for p in (7, 8, 15, 16, 31, 32, 63, 64) for d in (0, -1, -0.5, 0.5, 1)]
        values = edges + [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, float(info.max), float(info.min), float(info.tiny), np.inf, -np.inf]
        values += list(rng.normal(0, 1000, 60))
        with np.errstate(over="ignore"):
            return np.array(values, "f8").astype(t)
    info = np.iinfo(t)
    values = [info.min, info.min + 1, info.max, info.max - 1, 0, 1]
    values += [v for p in (7, 8, 15, 16, 24, 31, 32, 53, 63) for d in (-1, 0, 1) for s in (1, -1) if info.min <= (v := s * 2**p + d) <= info.max]
    return np.concatenate([np.array(values, t), rng.integers(info.min, info.max, 60, dtype=t.newbyteorder("=")).astype(t)])


def judged(values, answer):
    """The elements in hex, with those that are not judged as question marks."""
    wide = values.astype("f8")
    open_ = np.zeros(values.shape, bool)
    if values.dtype.kind == "f" and answer.dtype.kind in "iu":
        largest = np.iinfo(answer.dtype).max
        with np.errstate(over="ignore"):
            rounded = np.array(largest, "f8").astype(values.dtype).astype("f8")
        open_ = (wide == rounded) & (int(min(rounded, 2.0**70)) > largest)
        if values.dtype == np.dtype("<f2") and answer.dtype.kind == "u":
            open_ |= wide < 0
    if answer.dtype == np.dtype("<f2"):
        open_ = (np.abs(wide) > 65504) & (np.abs(wide) < 65536)
    width = answer.dtype.itemsize
    return "".join("??" * width if o else a.tobytes().hex() for o, a in zip(open_, answer))


expected = {}
with h5py.File(os.path.join(out, "numbers.h5"), "w") as f:
    for stored in STORED:
        name = stored.replace("<", "le_").replace(">", "be_")
        d = f.create_dataset(name, data=samples(stored))
        expected[name] = {}
        for wanted in WANTED:
            answer = np.zeros(d.shape, wanted)
            d.id.read(h5s.ALL, h5s.ALL, answer)
            expected[name][wanted.strip("<")] = judged(d[...], answer)
    for kind in ("f2", "f4", "f8"):
        d = f.create_dataset("nan_" + kind, data=np.array([np.nan, 1, -np.nan], "<" + kind))
        expected["nan_" + kind] = {}
        for wanted in ("<f2", "<f4", "<f8"):
            answer = np.zeros(d.shape, wanted)
            d.id.read(h5s.ALL, h5s.ALL, answer)
            expected["nan_" + kind][wanted.strip("<")] = answer.tobytes().hex()
with open(os.path.join(out, "expected.json"), "w") as file:
    json.dump(expected, file)
