"""Makes the files that the tests of `check` read. Needs h5py.

external_near.h5   data in two files beside it, which are not there
external_out.h5    data in a file elsewhere
unknown_filter.h5  two chunks through filter 40000, which nobody has
"""
import os

import h5py

os.chdir(os.path.dirname(os.path.abspath(__file__)))
latest = {"mode": "w", "libver": "latest"}

with h5py.File("external_near.h5", **latest) as f:
    f.create_dataset("d", (16,), "u1", external=[("a.bin", 0, 8), ("b.bin", 0, 8)])
with h5py.File("external_out.h5", **latest) as f:
    f.create_dataset("d", (10,), "u1", external=[("/etc/passwd", 0, 10)])

# The checksummed header names the filter: written in the old form, which has no checksums, the number can be changed.
with h5py.File("unknown_filter.h5", "w", libver="earliest") as f:
    f.create_dataset("d", (8,), "u1", chunks=(4,), fletcher32=True)[:] = range(8)
with open("unknown_filter.h5", "r+b") as f:
    stored = f.read()
    name = b"fletcher32"
    found = [i for i in range(len(stored)) if stored[i : i + len(name)] == name]
    at = found[0] - 8 if found else None
    if at is None or stored[at : at + 2] != b"\x03\0":
        raise SystemExit("the filter was not found")
    f.seek(at)
    f.write((40000).to_bytes(2, "little"))
