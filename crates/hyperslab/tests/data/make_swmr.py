"""Writes the copies of one SWMR file for the tests: early.h5, later.h5 (both taken while its writer had it open) and
closed.h5, which are kept here as swmr_*.h5.zst. Needs h5py. Usage: make_swmr.py FOLDER

Every value follows from its place: see `value` in the tests.
"""

import shutil
import sys
from pathlib import Path

import h5py
import numpy as np

folder = Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
work = folder / "work.h5"

f = h5py.File(work, "w", libver="latest")
one = f.create_dataset("one", (0,), "<i4", maxshape=(None,), chunks=(4,))
rows = f.create_dataset("rows", (0, 6), "<i4", maxshape=(None, 6), chunks=(2, 3), compression="gzip", shuffle=True)
both = f.create_dataset("both", (0, 0), "<i4", maxshape=(None, None), chunks=(4, 4))
text = f.create_dataset("text", (0,), h5py.string_dtype(), maxshape=(None,), chunks=(4,))
fixed = f.create_dataset("fixed", (4, 6), "<i4", chunks=(2, 3), compression="gzip")
single = f.create_dataset("single", (4, 6), "<i4", chunks=(4, 6), compression="gzip")
whole = f.create_dataset("whole", (4, 6), "<i4")
sparse = f.create_dataset("sparse", (8,), "<i4", maxshape=(None,), chunks=(2,), fillvalue=-1)
one.attrs["units"] = "counts"
one.attrs["list"] = np.arange(3)
f.create_group("group")["inner"] = np.arange(5, dtype="<i4")
f["soft"] = h5py.SoftLink("/one")
f.flush()
f.swmr_mode = True


def value(i, j=0):
    return 1000 * i + j + 1


def grid(a, b):
    return np.array([[value(i, j) for j in range(b)] for i in range(a)], "<i4").reshape(a, b)


def grow(n):
    """Makes everything that grows `n` long."""
    m = one.shape[0]
    one.resize((n,))
    one[m:] = [value(i) for i in range(m, n)]
    rows.resize((n, 6))
    rows[m:] = grid(n, 6)[m:]
    both.resize((n, n // 2))
    both[...] = grid(n, n // 2)
    text.resize((n,))
    text[m:] = [f"text {i}" for i in range(m, n)]
    # Flushing datasets alone leaves the stored end of the file and the texts themselves, in the global heap, behind.
    for dataset in (one, rows, both, text, fixed, single, whole, sparse):
        dataset.flush()


fixed[...] = grid(4, 6)
single[...] = grid(4, 6)
whole[...] = grid(4, 6)
sparse[4:6] = [value(4), value(5)]
grow(10)
shutil.copy(work, folder / "early.h5")
grow(30)
f.flush()
grow(37)
shutil.copy(work, folder / "later.h5")
f.close()
for name in ("early", "later"):
    data = bytearray((folder / f"{name}.h5").read_bytes())
    print(name, len(data), "bytes, end of file at", int.from_bytes(data[28:36], "little"))
work.rename(folder / "closed.h5")
