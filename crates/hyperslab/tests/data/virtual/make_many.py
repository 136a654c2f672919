"""Writes many.h5, a virtual dataset of twelve sources, and many_source.h5, which stands for each of them (compressed). Needs h5py and
the program zstd.

The sources n00.h5 to n11.h5 are many_source.h5 with other elements, which tests put in the place of its marks.
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
subprocess.run(["zstd", "-q", "-f", "--rm", "-19", f"{here}/many_source.h5"], check=True)
