"""Writes many.h5, virtual datasets of twelve sources, numbered.h5, one of as many as there are, and many_source.h5, which stands for
each of the sources (compressed). Needs h5py and the program zstd.

The sources n00.h5 to n11.h5, and m0.h5 and so on, are many_source.h5 with other elements, which tests put in the place of its marks.
"""
import os
import subprocess

import h5py
import numpy as np

here = os.path.dirname(os.path.abspath(__file__))
with h5py.File(f"{here}/many_source.h5", "w", libver="latest") as f:
    f["d"] = np.full(20_000, 0xAB, np.uint8)
with h5py.File(f"{here}/many.h5", "w", libver="latest") as f:
    for name, step in (("all", 20_000), ("over", 10_000)):
        layout = h5py.VirtualLayout((11 * step + 20_000,), np.uint8)
        for n in range(12):
            source = h5py.VirtualSource(f"n{n:02}.h5", "d", (20_000,))
            layout[n * step : n * step + 20_000] = source
        f.create_virtual_dataset(name, layout, fillvalue=9)
with h5py.File(f"{here}/numbered.h5", "w", libver="latest") as f:
    grows = h5py.h5s.create_simple((20_000,), (h5py.h5s.UNLIMITED,))
    blocks = h5py.h5s.create_simple((20_000,), (h5py.h5s.UNLIMITED,))
    blocks.select_hyperslab((0,), (h5py.h5s.UNLIMITED,), (20_000,), (20_000,))
    made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    made.set_virtual(blocks, b"m%b.h5", b"d", h5py.h5s.create_simple((20_000,)))
    h5py.h5d.create(f.id, b"d", h5py.h5t.STD_U8LE, grows, made)
subprocess.run(["zstd", "-q", "-f", "--rm", "-19", f"{here}/many_source.h5"], check=True)
