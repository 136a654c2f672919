"""Makes the files that the tests of HDF5 structures read. Needs h5py.

heaps.h5   dense links (many, long names) and dense attributes, one of them larger than 64 KiB: fractal heaps with
           nested blocks and huge objects
btree2.h5  1800 chunks of a 5-D dataset in a version 2 B-tree of depth 2
"""
import pathlib

import h5py
import numpy as np

here = pathlib.Path(__file__).parent


def heaps():
    with h5py.File(here / "heaps.h5", "w", libver="latest") as f:
        g = f.create_group("many")
        for i in range(1500):
            g[f"link{i:06}" + "x" * 20] = h5py.SoftLink("/t")
        for i in range(20):
            f.attrs[f"a{i}"] = np.arange(i + 1, dtype="i2")
        f.attrs["large"] = np.arange(9000, dtype="f8")


def btree2():
    with h5py.File(here / "btree2.h5", "w", libver="latest") as f:
        unlimited = (None,) * 5
        d = f.create_dataset("d", (1, 1, 1, 1, 1800), chunks=(1,) * 5, maxshape=unlimited, dtype="u1")
        d[:] = np.arange(1800) % 251


heaps()
btree2()
