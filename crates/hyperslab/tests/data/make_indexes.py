"""Makes indexes.bin and indexes.txt, which the tests of chunk indexes read. Needs h5py.

indexes.bin is a row of HDF5 files with one chunked dataset each. indexes.txt has a paragraph for each: where the file
lies, the kind of index, and the shape of the dataset; then a line for each stored chunk as libhdf5 finds it: its grid
coordinates, file offset, length and filter mask.
"""
import io
import itertools
import pathlib

import h5py
import numpy as np

here = pathlib.Path(__file__).parent
FILES = []


def add(kind, shape, chunks, write, maxshape=None, dtype="u1", libver="latest", gzip=False, early=False, points=()):
    buffer = io.BytesIO()
    with h5py.File(buffer, "w", libver=libver) as f:
        space = h5py.h5s.create_simple(shape, tuple(h5py.h5s.UNLIMITED if m is None else m for m in maxshape or shape))
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk(chunks)
        if gzip:
            plist.set_deflate(1)
        if early:
            plist.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        d = h5py.Dataset(h5py.h5d.create(f.id, b"d", h5py.h5t.py_create(np.dtype(dtype)), space, plist))
        write(d)
        f.flush()
        element = d.dtype.itemsize
        lines = []

        grid = [range(0, n, c) for n, c in zip(shape, chunks)]
        swizzled = kind == "extensible" and maxshape[0] is not None
        found = []
        for offset in itertools.product(*grid) if np.prod([len(g) for g in grid]) < 5000 else points:
            if swizzled:
                # libhdf5 takes the wrong coordinates where it lists the chunks of such arrays; it reads the right ones.
                mask, raw = d.id.read_direct_chunk(offset)
                found.append((offset, mask, raw))
                continue
            info = d.id.get_chunk_info_by_coord(offset)
            if info.byte_offset is not None:
                at = " ".join(str(o // c) for o, c in zip(offset, chunks))
                lines.append(f"{at} {info.byte_offset} {info.size} {info.filter_mask}")
    for offset, mask, raw in found:
        at = " ".join(str(o // c) for o, c in zip(offset, chunks))
        assert buffer.getvalue().count(raw) == 1
        lines.append(f"{at} {buffer.getvalue().index(raw)} {len(raw)} {mask}")
    FILES.append((kind, shape, maxshape or shape, chunks, element, gzip, lines, buffer.getvalue()))


def each(*points):
    def write(d):
        for p in points:
            d[p] = 1
    return write


def everything(d):
    d[...] = np.arange(np.prod(d.shape, dtype=int)).reshape(d.shape) % 251


def skipped(d):
    everything(d)
    d.id.write_direct_chunk((2, 4), b"\1" * 4, filter_mask=1)


U = None
add("btree1", (3, 40, 3), (1, 1, 1), everything, libver="earliest")
add("btree1", (6, 6), (2, 2), skipped, libver="earliest", gzip=True)
add("single", (5,), (5,), everything)
add("single", (5,), (5,), everything, gzip=True)
add("implicit", (3, 5), (2, 2), everything, maxshape=(5, 9), early=True)
add("fixed", (5, 7), (2, 3), everything, dtype="i2")
add("fixed", (4, 6), (2, 3), each((0, 0), (3, 5)), maxshape=(10, 20))
add("fixed", (6, 6), (2, 2), skipped, gzip=True)
add("fixed", (3000,), (1,), each(0, 1023, 2048, 2999))
add("fixed", (35, 40), (1, 1), each((0, 0), (34, 39)), gzip=True)
slots = [0, 3, 4, 19, 20, 35, 36, 67, 99, 100, 131, 500, 3000, 131059, 131060, 132084, 133108, 140000]
add("extensible", (140001,), (1,), each(*slots), maxshape=(U,), points=[(s,) for s in slots])
add("extensible", (4, 25, 3), (1, 2, 2), everything, maxshape=(4, U, 5), gzip=True)
add("extensible", (2, 3, 40), (1, 2, 1), everything, maxshape=(2, 4, U), dtype="f8")
add("extensible", (7, 3), (2, 2), each((6, 2), (0, 0)), maxshape=(U, 3))
add("btree2", (6, 6), (2, 2), skipped, maxshape=(U, U), gzip=True)
add("btree2", (40, 5), (1, 1), everything, maxshape=(U, U))

with open(here / "indexes.bin", "wb") as data, open(here / "indexes.txt", "w") as text:
    for kind, shape, maxshape, chunks, element, gzip, lines, content in FILES:
        words = lambda t: ",".join("u" if n is None else str(n) for n in t)
        text.write(f"{kind} {data.tell()} {len(content)} {words(shape)} {words(maxshape)} {words(chunks)} "
                   f"{element} {int(gzip)}\n")
        text.writelines(line + "\n" for line in lines)
        text.write("\n")
        data.write(content)
