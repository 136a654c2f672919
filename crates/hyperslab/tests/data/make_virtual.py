"""Makes virtual/, which the tests of virtual datasets read. Needs h5py.

virtual/expected.txt has a line for each selection: dataset, selection, shape and bytes (hex) of what h5py reads. v0.h5 and
v1.h5 hold the same in the two encodings of mappings; bad.h5 holds what must fail.
"""
import os
import pathlib

import h5py
import numpy as np

here = pathlib.Path(__file__).parent / "virtual"
here.mkdir(exist_ok=True)
os.chdir(here)
U = h5py.h5s.UNLIMITED


def space(shape, *blocks, max=None):
    """A dataspace with hyperslabs (start, count, stride, block) selected."""
    s = h5py.h5s.create_simple(shape, max or shape)
    for k, block in enumerate(blocks):
        s.select_hyperslab(*block, op=h5py.h5s.SELECT_OR if k else h5py.h5s.SELECT_SET)
    return s


def points(shape, *coords):
    s = h5py.h5s.create_simple(shape)
    s.select_elements(coords)
    return s


def virtual(f, name, shape, maps, dtype="i4", max=None, fill=-1):
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_fill_value(np.array(fill, dtype))
    for selection, file, dataset, source in maps:
        plist.set_virtual(selection, file.encode(), dataset.encode(), source)
    dtype = h5py.h5t.py_create(np.dtype(dtype))
    h5py.h5d.create(f.id, name.encode(), dtype, h5py.h5s.create_simple(shape, max or shape), plist)


for i in range(3):
    with h5py.File(f"s{i}.h5", "w") as f:
        f["a"] = (np.arange(48).reshape(6, 8) + 100 * i).astype("i4")
        f["one"] = (np.arange(10) + 100 * i).astype("i2")
        f.create_dataset("gz", data=np.arange(24).reshape(4, 6) + 100 * i, chunks=(3, 4), compression="gzip")
        f["text"] = "abc"
with h5py.File("u.h5", "w") as f:
    f.create_dataset("x", data=np.arange(21).reshape(7, 3), maxshape=(None, 3), chunks=(2, 2))
    f.create_dataset("y", data=np.arange(100, 113), maxshape=(None,), chunks=(4,))

for libver, name in [(("v110", "v110"), "v0.h5"), ("latest", "v1.h5")]:
    with h5py.File(name, "w", libver=libver) as f:
        row = lambda i, n, shape: space(shape, ((i, 0), (1, 1), None, (1, n)))
        whole = space((6, 8))
        stack = [(space((4, 6, 8), ((i, 0, 0), (1, 1, 1), None, (1, 6, 8))), f"s{i}.h5", "a", whole) for i in range(3)]
        virtual(f, "stack", (4, 6, 8), stack)
        virtual(f, "rows", (4, 10), [(row(k, 10, (4, 10)), f"s{i}.h5", "one", space((10,))) for k, i in enumerate([0, 1, 2, 9])])
        columns = [(space((10, 3), ((0, i), (1, 1), None, (10, 1))), f"s{i}.h5", "one", space((10,))) for i in range(3)]
        virtual(f, "columns", (10, 3), columns, dtype=">f8", fill=2.5)
        virtual(f, "strided", (20,), [(space((20,), ((1,), (5,), (2,), (1,))), "s1.h5", "one", space((10,), ((0,), (5,), (2,), (1,))))])
        virtual(f, "flat", (24,), [(space((24,)), "s0.h5", "gz", space((4, 6)))])
        blocks = space((12, 12), ((1, 2), (2, 2), (5, 5), (3, 4)))
        virtual(f, "blocks", (12, 12), [(blocks, "s2.h5", "a", space((6, 8)))])
        union = space((6, 6), ((0, 0), (1, 1), None, (3, 4)), ((2, 2), (1, 1), None, (4, 4)))
        virtual(f, "union", (6, 6), [(union, "s0.h5", "a", space((6, 8), ((0, 0), (1, 1), None, (2, 8)), ((3, 0), (1, 1), None, (1, 8)), ((4, 1), (1, 1), None, (1, 2))))])
        virtual(f, "nested", (2, 4, 10), [(space((2, 4, 10), ((1, 0, 0), (1, 1, 1), None, (1, 4, 10))), ".", "rows", space((4, 10)))], fill=7)
        virtual(f, "overlap", (10,), [(space((10,)), "s0.h5", "one", space((10,))), (space((10,), ((4,), (1,), None, (3,))), "s2.h5", "one", space((10,), ((0,), (1,), None, (3,))))])
        whole_u = space((1, 3), ((0, 0), (U, 1), (1, 1), (1, 3)), max=(U, 3))
        virtual(f, "growing", (1, 3), [(whole_u, "u.h5", "x", space((7, 3), ((0, 0), (U, 1), (1, 1), (1, 3)), max=(U, 3)))], max=(U, 3))
        spread = [
            (space((1, 2), ((1, 0), (U, 1), (5, 1), (2, 1)), max=(U, 2)), "u.h5", "y", space((13,), ((2,), (U,), (3,), (2,)), max=(U,))),
            (space((1, 2), ((0, 1), (U, 1), (1, 1), (1, 1)), max=(U, 2)), "u.h5", "y", space((13,), ((4,), (U,), (1,), (1,)), max=(U,))),
        ]
        virtual(f, "spread", (1, 2), spread, max=(U, 2))
        virtual(f, "numbered", (1, 10), [(space((1, 10), ((0, 0), (U, 1), (1, 1), (1, 10)), max=(U, 10)), "s%b.h5", "one", space((10,)))], max=(U, 10))
        virtual(f, "numbered2", (1, 4), [(space((1, 4), ((1, 0), (U, 1), (3, 1), (2, 4)), max=(U, 4)), "s%b.h5", "a", space((6, 8), ((0, 1), (2, 2), (3, 4), (1, 2))))], max=(U, 4))
        virtual(f, "gone", (4,), [(space((4,)), "nowhere.h5", "x", space((4,)))], fill=5)

selections = ["[...]", "[0:1]", "[1:]", "[::2]", "[1::3]", "[..., ::-1]", "[..., 1:4]", "[[0, 2, 1, 0]]", "[..., [1, 0, 2, 1]]"]
with open("expected.txt", "w") as out:
    # Both files hold the same.
    with h5py.File("v0.h5") as f, h5py.File("v1.h5") as g:
        for key in f:
            elements = f[key][...]
            assert np.array_equal(elements, g[key][...])
            for s in selections:
                try:
                    want = np.ascontiguousarray(eval("elements" + s))
                except IndexError:
                    continue
                dims = ",".join(map(str, want.shape))
                out.write(f"{key} {s.replace(' ', '')} {dims} {want.tobytes().hex()}\n")

# Files that do harm.
with h5py.File("bad.h5", "w", libver="latest") as f:
    same = space((4,))
    virtual(f, "itself", (4,), [(same, ".", "itself", space((4,)))])
    virtual(f, "ping", (4,), [(same, ".", "pong", space((4,)))])
    virtual(f, "pong", (4,), [(same, "bad.h5", "ping", space((4,)))])
    grow = lambda: space((4,), ((0,), (U,), (1,), (1,)), max=(U,))
    virtual(f, "growing", (4,), [(grow(), ".", "growing", grow())], max=(U,))
    virtual(f, "outside", (4,), [(same, "../heaps.h5", "d", space((4,)))])
    virtual(f, "far", (4,), [(same, "s0.h5", "one", space((40,), ((20,), (1,), None, (4,))))])
    virtual(f, "words", (1,), [(space((1,)), "s0.h5", "text", h5py.h5s.create(h5py.h5s.SCALAR))], dtype="i4")
    for i in range(30):
        twice = [(same, ".", f"tree{i + 1}", same), (same, ".", f"/tree{i + 1}", same)]
        virtual(f, f"tree{i}", (4,), twice)
    f["tree30"] = np.arange(4)
