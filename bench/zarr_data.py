"""Makes the Zarr stores of the benchmarks in the folder given, of the array in its gzip.h5, where they are not there yet."""

import os
import sys

import h5py
import numcodecs
import zarr
from zarr.codecs import BloscCodec, ZstdCodec

folder = sys.argv[1]
CHUNK = (16, 64, 64)
STORES = {
    "v3-zstd.zarr": {"zarr_format": 3, "chunks": CHUNK, "compressors": [ZstdCodec(level=3)]},
    "v3-sharded.zarr": {"zarr_format": 3, "chunks": CHUNK, "shards": (128, 256, 256), "compressors": [ZstdCodec(level=3)]},
    "v3-blosc.zarr": {"zarr_format": 3, "chunks": CHUNK, "compressors": [BloscCodec(cname="lz4", clevel=5, shuffle="shuffle")]},
    "v2-zlib.zarr": {
        "zarr_format": 2,
        "chunks": CHUNK,
        "filters": [numcodecs.Shuffle(4)],
        "compressors": numcodecs.Zlib(4),
    },
}

for name, keywords in STORES.items():
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        with h5py.File(os.path.join(folder, "gzip.h5")) as f:
            data = f["d"][...]
        a = zarr.create_array(path + ".part", shape=data.shape, dtype=data.dtype, **keywords)
        a[...] = data
        os.rename(path + ".part", path)
