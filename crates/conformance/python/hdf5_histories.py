"""Compares the ends of random histories with what h5py reads: scripts/hdf5-histories.

    python hdf5_histories.py FOLDER
"""

import glob
import sys

import h5py
import numpy as np


def check(path):
    count = 0
    with h5py.File(path, "r") as f, open(path[:-3] + ".txt") as lines:
        names = {"/"}
        f.visit_links(lambda name: names.add("/" + name) and None)
        for line in lines:
            at, *words = line.rstrip("\n").split(" ")
            at = bytes.fromhex(at).decode() or "/"
            names.discard(at)
            count += 1
            soft = [bytes.fromhex(w[2:]).decode() for w in words if w.startswith("s:")]
            if soft:
                assert f.get(at, getlink=True).path == soft[0], (path, at)
                continue
            obj = f[at]
            wanted = {w.split(":")[1]: bytes.fromhex(w.split(":")[2]) for w in words if w.startswith("a:")}
            assert set(obj.attrs) == set(wanted), (path, at)
            for name, value in wanted.items():
                found = np.zeros((), f"S{len(value)}")
                obj.attrs.get_id(name).read(found)
                assert found.tobytes() == value, (path, at, name)
            dims = [w[2:] for w in words if w.startswith("d:")]
            assert isinstance(obj, h5py.Dataset) == bool(dims), (path, at)
            if not dims:
                continue
            shape = tuple(int(n) for n in dims[0].split(","))
            assert obj.shape == shape, (path, at, obj.shape, shape)
            data = np.zeros([-(-n // c) * c for n, c in zip(shape, (3, 4))], "<i2")
            for w in (w for w in words if w.startswith("c:")):
                _, coord, raw = w.split(":")
                i, j = (int(n) for n in coord.split(","))
                data[3 * i : 3 * i + 3, 4 * j : 4 * j + 4] = np.frombuffer(bytes.fromhex(raw), "<i2").reshape(3, 4)
            assert (obj[...] == data[: shape[0], : shape[1]]).all(), (path, at)
        assert not names, (path, names)
    return count


for path in sorted(glob.glob(sys.argv[1] + "/*.h5")):
    print(f"{path}: {check(path)} objects as the model says")
