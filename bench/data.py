"""Makes the files of the benchmarks in the folder given, where they are not there yet."""

import json
import os
import sys

import h5py
import hdf5plugin
import numpy as np

folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)


def path(name):
    return os.path.join(folder, name)


def make(name, fill):
    if not os.path.exists(path(name)):
        with h5py.File(path(name + ".part"), "w") as f:
            fill(f)
        os.rename(path(name + ".part"), path(name))


def field():
    """A smooth field with some noise, as a model writes it: gzip with shuffle brings it to about a quarter."""
    rng = np.random.default_rng(7)
    z, y, x = (np.linspace(0, n, n, endpoint=False, dtype="f4") for n in (512, 256, 256))
    smooth = 280 + 15 * np.sin(z / 40)[:, None, None] * np.cos(y / 25)[None, :, None] + 10 * np.sin(x / 30)[None, None, :]
    return np.round((smooth + rng.normal(0, 0.05, smooth.shape)) * 64).astype("<f4") / 64


data = None
for name, keywords in {
    "gzip.h5": {"chunks": (16, 64, 64), "compression": "gzip", "compression_opts": 4, "shuffle": True},
    "small.h5": {"chunks": (4, 16, 16), "compression": "gzip", "compression_opts": 4, "shuffle": True},
    "zstd.h5": {"chunks": (16, 64, 64), "shuffle": True, **hdf5plugin.Zstd(clevel=3)},
    "contiguous.h5": {},
}.items():
    if not os.path.exists(path(name)):
        data = field() if data is None else data
        make(name, lambda f, k=keywords: f.create_dataset("d", data=data, **k))

def classic(name, records):
    """The field as a classic netCDF file: in one piece, or in records between those of another variable."""
    import netCDF4

    with netCDF4.Dataset(path(name + ".part"), "w", format="NETCDF3_64BIT_OFFSET") as f:
        f.set_fill_off()
        values = field()
        for dimension, length in zip("zyx", values.shape):
            f.createDimension(dimension, None if records and dimension == "z" else length)
        f.createVariable("d", "f4", ("z", "y", "x"))
        if records:
            f.createVariable("other", "f4", ("z", "x"))
        f["d"][:] = values
    os.rename(path(name + ".part"), path(name))


for name, records in {"netcdf3.nc": False, "netcdf3-records.nc": True}.items():
    if not os.path.exists(path(name)):
        classic(name, records)


def listing(f):
    for g in range(100):
        group = f.create_group(f"group_{g:03}")
        for i in range(100):
            d = group.create_dataset(f"dataset_{i:03}", data=np.arange(4, dtype="<i4"))
            d.attrs["index"] = np.int64(100 * g + i)
            d.attrs["range"] = np.array([0.0, 1.0, i], "<f8")
            d.attrs["units"] = "kelvin"


make("listing.h5", listing)

if not os.path.exists(path("boxes.json")):
    rng = np.random.default_rng(11)
    boxes = [[int(rng.integers(0, 512)), int(rng.integers(0, 193)), int(rng.integers(0, 193))] for _ in range(1000)]
    with h5py.File(path("gzip.h5")) as f:
        d = f["d"]
        chunks = [d.id.get_chunk_info(i) for i in range(d.id.get_num_chunks())]
        print("gzip file: compressed %.2f times" % (d.size * 4 / d.id.get_storage_size()), file=sys.stderr)
    with open(path("boxes.json"), "w") as out:
        json.dump({"boxes": boxes, "chunks": [[c.byte_offset, c.size] for c in chunks]}, out)
