"""Writes one workload again and again: python write_worker.py WRITER WORKLOAD FOLDER REPETITIONS; prints JSON.

The writer `check` reads what is there instead, and sums it up.
"""

import json
import os
import shutil
import sys
import time

import h5py
import hdf5plugin
import numpy as np

writer, workload, folder, repetitions = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
path = os.path.join(folder, workload)
CHUNK, SHARD = (16, 64, 64), (128, 256, 256)


def bits(a):
    return int(np.ascontiguousarray(a).view("u4").sum(dtype="u8"))


def remove():
    if os.path.isdir(path):
        shutil.rmtree(path)
    elif os.path.exists(path):
        os.remove(path)


def many(attributes):
    four = np.arange(4, dtype="<i4")
    with h5py.File(path, "w") as f:
        for g in range(100):
            group = f.create_group(f"group_{g:03}")
            for i in range(100):
                d = group.create_dataset(f"dataset_{i:03}", data=four)
                if attributes:
                    d.attrs["index"] = np.int64(100 * g + i)
                    d.attrs["range"] = np.array([0.0, 1.0, i], "<f8")
                    d.attrs["units"] = "kelvin"


def hdf5(data):
    keywords = {
        "write_gzip.h5": {"chunks": CHUNK, "compression": "gzip", "compression_opts": 4, "shuffle": True},
        "write_zstd.h5": {"chunks": CHUNK, "shuffle": True, **hdf5plugin.Zstd(clevel=3)},
        "write_chunked.h5": {"chunks": CHUNK},
        "write_contiguous.h5": {},
    }[workload]
    with h5py.File(path, "w") as f:
        f.create_dataset("d", data=data, **keywords)


def zarr_python(data):
    import zarr
    from zarr.codecs import ZstdCodec

    if writer == "zarrs-python":
        zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"})
    keywords = {"shards": SHARD} if "shards" in workload else {}
    a = zarr.create_array(
        os.path.join(path, "d"), shape=data.shape, dtype=data.dtype, chunks=CHUNK, compressors=[ZstdCodec(level=3)], **keywords
    )
    a[...] = data


def tensorstore(data):
    import tensorstore

    inner = [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "zstd", "configuration": {"level": 3}}]
    codecs, chunk = inner, CHUNK
    if "shards" in workload:
        index = [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]
        sharding = {"chunk_shape": CHUNK, "codecs": inner, "index_codecs": index}
        codecs, chunk = [{"name": "sharding_indexed", "configuration": sharding}], SHARD
    metadata = {
        "shape": data.shape,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
        "data_type": "float32",
        "codecs": codecs,
    }
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": os.path.join(path, "d")}, "metadata": metadata}
    # The file driver syncs unless it is told not to.
    context = tensorstore.Context({"file_io_sync": False})
    a = tensorstore.open(spec, create=True, context=context).result()
    a.write(data).result()


def check():
    if path.endswith(".zarr"):
        import zarr

        size = sum(os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(path) for name in names)
        return bits(zarr.open_array(os.path.join(path, "d"), mode="r")[...]), size
    with h5py.File(path, "r") as f:
        if "d" in f:
            return bits(f["d"][...]), os.path.getsize(path)
        total = 0
        for group in f.values():
            for d in group.values():
                total += int(d[...].sum())
                for value in d.attrs.values():
                    total += len(value) if isinstance(value, str) else int(np.sum(value))
        return total, os.path.getsize(path)


if writer == "check":
    total, size = check()
    print(json.dumps({"sum": total % 2**64, "bytes": size}))
    sys.exit()

with h5py.File(os.path.join(folder, "contiguous.h5"), "r") as f:
    data = f["d"][...]
if workload in ("write_small.h5", "write_listing.h5"):
    write = lambda data: many(workload == "write_listing.h5")
else:
    write = {"h5py": hdf5, "tensorstore": tensorstore}.get(writer, zarr_python)
times = []
for _ in range(repetitions):
    remove()
    start, used = time.perf_counter(), time.process_time()
    write(data)
    times.append((time.perf_counter() - start, time.process_time() - used))
print(json.dumps({"ms": min(t[0] for t in times) * 1000, "cpu": min(t[1] for t in times) * 1000}))
