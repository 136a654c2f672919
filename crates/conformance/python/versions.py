"""Files of versioned-hdf5, and what each of their versions holds.

    versions.py FOLDER

writes FOLDER/*.h5 and FOLDER/cases.json: for each file the group that is versioned, and for each version its name, parent,
time, arrays (extents, type, elements in hex or as a list of texts, attributes) and groups.
"""

import datetime
import json
import random
import sys
from pathlib import Path

import h5py
import numpy as np
from versioned_hdf5 import VersionedHDF5File, delete_versions

START = datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc)


class Writer:
    """A file and what was committed to it, kept beside it by NumPy."""

    def __init__(self, path, group="/", **options):
        self.file = h5py.File(path, "w", **options)
        self.place = group
        where = self.file if group == "/" else self.file.create_group(group)
        self.versions = VersionedHDF5File(where)
        self.where = where
        self.step = 0

    def stage(self, name, **options):
        self.step += 1
        options.setdefault("timestamp", START + datetime.timedelta(hours=self.step))
        return self.versions.stage_version(name, **options)

    def close(self):
        self.file.close()


def edges(w):
    """One to four axes, edge chunks on all of them, resized both ways."""
    rng = np.random.default_rng(1)
    arrays = {
        "one": ((23,), (5,)),
        "two": ((13, 11), (4, 3)),
        "deep/three": ((7, 6, 5), (3, 4, 2)),
        "deep/er/four": ((4, 3, 5, 2), (3, 2, 2, 2)),
        "small": ((3,), (10,)),
        "exact": ((8, 8), (4, 4)),
    }
    with w.stage("first") as g:
        for name, (shape, chunk) in arrays.items():
            data = rng.integers(0, 100, shape).astype("<i4")
            g.create_dataset(name, data=data, chunks=chunk)
    with w.stage("grown") as g:
        for name in arrays:
            d = g[name]
            d.resize(tuple(n + 2 for n in d.shape))
            d[tuple(slice(n - 1, None) for n in d.shape)] = 77
    with w.stage("shrunken") as g:
        for name in arrays:
            d = g[name]
            d.resize(tuple(max(n - 3, 1) for n in d.shape))
    with w.stage("rewritten") as g:
        for name in arrays:
            d = g[name]
            d[..., ::2] = -5
    with w.stage("empty") as g:
        g["one"].resize((0,))
        g["two"].resize((0, 11))
    with w.stage("again") as g:
        g["one"].resize((9,))
        g["one"][2:4] = [1, 2]


def kinds(w):
    """Element types, fill values, filters, attributes."""
    rng = np.random.default_rng(2)
    pair = np.dtype([("i", "<i2"), ("f", ">f8"), ("v", "<u4", (3,)), ("s", "S3")])
    padded = np.dtype([("a", "u1"), ("b", "<f8")], align=True)
    with w.stage("a") as g:
        g.create_dataset("be", data=np.arange(10, dtype=">i4"), chunks=(4,))
        g.create_dataset("f2", data=np.linspace(-1, 1, 9).astype("<f2"), chunks=(4,))
        g.create_dataset("nan", data=np.array([0.0, -0.0, np.nan, np.inf, 1e300]), chunks=(2,))
        g.create_dataset("complex", data=np.arange(6) * (1 + 2j), chunks=(4,))
        g.create_dataset("bool", data=rng.integers(0, 2, (5, 4)).astype(bool), chunks=(2, 3))
        g.create_dataset("fixed", data=np.array([b"ab", b"", b"xyz", b"q"], "S4"), chunks=(3,))
        g.create_dataset("opaque", data=np.array([b"abc", b"de\0", b"xyz"], "V3"), chunks=(2,))
        words = np.array(["", "é", "long " * 9, "x", "y"], object)
        g.create_dataset("text", data=words, dtype=h5py.string_dtype(), chunks=(2,))
        rows = np.zeros(5, pair)
        rows["i"], rows["f"], rows["v"], rows["s"] = 3, 2.5, [7, 8, 9], b"hi"
        g.create_dataset("pair", data=rows, chunks=(2,))
        spaced = np.zeros(5, padded)
        spaced["a"], spaced["b"] = range(5), 1.5
        g.create_dataset("padded", data=spaced, chunks=(2,))
        g.create_dataset("filled", shape=(40, 6), dtype="<i2", chunks=(7, 4), fillvalue=-3)
        g.create_dataset("nanfill", shape=(9,), dtype="<f8", chunks=(4,), fillvalue=np.nan)
        noise = (rng.random((50, 4)) * 9).round(1)
        g.create_dataset("gzip", data=noise, chunks=(16, 3), compression="gzip", compression_opts=4)
        g.create_dataset("lzf", data=noise, chunks=(16, 3), compression="lzf")
        g.create_dataset("many", data=noise, chunks=(16, 3), compression="gzip", shuffle=True, fletcher32=True)
        g.create_dataset("offset", data=(noise * 3).astype("i4"), chunks=(16, 3), scaleoffset=0)
        g["gzip"].attrs["units"] = "K"
        g["gzip"].attrs["range"] = [1.5, 2.5]
        g["lzf"].attrs["note"] = "of one version"
        sub = g.create_group("sub/below")
        sub.attrs["who"] = "me"
        g.create_group("nothing in it")
    with w.stage("b") as g:
        g["filled"][3:9, 2] = 5
        g["nanfill"][8] = 1.0
        g["text"][1:3] = np.array(["new", ""], object)
        g["pair"][3] = np.array((1, -1.0, [1, 2, 3], b"no"), pair)
        g["gzip"].attrs["units"] = "degC"
        del g["lzf"].attrs["note"]
        g["many"].resize((61, 4))
        g["many"][55] = 9.0
    with w.stage("c") as g:
        g["filled"][...] = -3
        del g["offset"]
        g["nan"][0] = -0.0
        g.create_dataset("late", data=np.arange(3.0), chunks=(2,))


def graph(w):
    """Branches, times that are the same, versions that were deleted."""
    with w.stage("base") as g:
        g.create_dataset("x", data=np.arange(100), chunks=(10,))
    same = START + datetime.timedelta(days=1)
    for name in ["zeta", "alpha", "mid"]:
        with w.stage(name, timestamp=same) as g:
            g["x"][ord(name[0]) % 10] = len(name)
    with w.stage("branch", prev_version="base", make_current=False) as g:
        g["x"].resize((105,))
    with w.stage("rootless", prev_version="", make_current=False) as g:
        g.create_dataset("y", data=np.arange(5), chunks=(3,))
    with w.stage("tip") as g:
        g["x"][50:60] = np.arange(10)
    try:
        with w.stage("failed") as g:
            g["x"][0] = 9
            raise RuntimeError
    except RuntimeError:
        pass


def deleted(w):
    rng = np.random.default_rng(3)
    with w.stage("r0") as g:
        g.create_dataset("x", data=np.arange(200), chunks=(16,))
        g.create_dataset("gone", data=np.arange(3), chunks=(2,))
    for i in range(1, 12):
        with w.stage(f"r{i}") as g:
            if "gone" in g:
                del g["gone"]
            g["x"][rng.integers(0, 200, 5)] = i
    delete_versions(w.where, ["r0", "r3", "r4", "r11"])
    with w.stage("after") as g:
        g["x"].resize((190,))


def many(w):
    with w.stage("v000") as g:
        g.create_dataset("x", data=np.zeros(60), chunks=(8,))
    for i in range(1, 200):
        with w.stage(f"v{i:03}") as g:
            g["x"][i % 60] = i


def same(w):
    """What the test of writing does, too."""
    y = np.add.outer(np.arange(6), np.arange(5)).astype("<f8")
    with w.stage("v1") as g:
        x = (np.arange(23) % 5).astype("<i4")
        g.create_dataset("x", data=x, chunks=(5,), compression="gzip", compression_opts=4, fillvalue=-1)
        g.create_dataset("deep/y", data=y, chunks=(4, 2))
        texts = np.array(["a", "bc", "", "é", "a", "bc", "z"], object)
        g.create_dataset("t", data=texts, dtype=h5py.string_dtype(), chunks=(2,))
        g.create_dataset("sparse", shape=(100, 7), dtype="<i2", chunks=(10, 3), fillvalue=4)
        g["x"].attrs["units"] = "m"
    with w.stage("v2") as g:
        g["x"].resize((30,))
        g["x"][3:9] = 5
        g["deep/y"][1, :] = 7.5
        g["t"][1:2] = np.array(["new"], object)
        g["sparse"][15:25, 2:5] = 3
    with w.stage("v3") as g:
        g["x"].resize((23,))
        g["x"][3:9] = np.array([3, 4, 0, 1, 2, 3], "<i4")
        g["deep/y"][...] = y
        del g["t"]
        g["sparse"][...] = 4
        g["x"].attrs["units"] = "km"


def wander(w, seed):
    """Random steps."""
    rng = random.Random(seed)
    with w.stage("s0") as g:
        for k in range(4):
            shape = tuple(rng.randrange(1, 9) for _ in range(k + 1))
            chunk = tuple(rng.randrange(1, 5) for _ in range(k + 1))
            data = np.array(rng.choices(range(5), k=int(np.prod(shape))), "<i2").reshape(shape)
            if rng.random() < 0.5:
                g.create_dataset(f"d{k}", data=data, chunks=chunk, compression="gzip")
            else:
                g.create_dataset(f"d{k}", shape=shape, dtype="<i2", chunks=chunk, fillvalue=2)
    for i in range(1, 15):
        with w.stage(f"s{i}") as g:
            for k in range(4):
                name = f"d{k}"
                if name not in g:
                    continue
                d = g[name]
                if rng.random() < 0.4:
                    d.resize(tuple(rng.randrange(0, 10) for _ in d.shape))
                if rng.random() < 0.6 and d.size:
                    spans = []
                    for n in d.shape:
                        a = rng.randrange(n)
                        spans.append(slice(a, rng.randrange(a, n) + 1, rng.randrange(1, 3)))
                    d[tuple(spans)] = rng.randrange(4)
                if rng.random() < 0.03:
                    del g[name]


def value(v):
    if isinstance(v, np.ndarray):
        return [value(item) for item in v] if v.dtype.kind in "OS" else v.tolist()
    if isinstance(v, bytes):
        return v.decode()
    return v.item() if isinstance(v, np.generic) else v


def array(d):
    own = {k: value(v) for k, v in d.attrs.items() if k not in ("raw_data", "chunks")}
    out = {"shape": list(d.shape), "attributes": own}
    if h5py.check_string_dtype(d.dtype) and d.dtype.kind == "O":
        out["texts"] = [t.decode() for t in d[()].ravel()]
    else:
        # Padding is nobody's business.
        packed = d[()]
        out["bytes"] = np.ascontiguousarray(packed).tobytes().hex()
    return out


def told(path, place):
    """All versions, read by h5py alone: what the file holds."""
    found = []
    with h5py.File(path, "r") as f:
        versions = f[place]["_version_data/versions"]
        current = versions.attrs["current_version"]
        for name, group in versions.items():
            if name == "__first_version__" or not group.attrs["committed"]:
                continue
            arrays, groups = {}, {}

            def visit(p, o):
                if isinstance(o, h5py.Dataset):
                    arrays[p] = array(o)
                else:
                    groups[p] = {k: value(v) for k, v in o.attrs.items()}

            group.visititems(visit)
            parent = group.attrs["prev_version"]
            found.append({
                "name": name,
                "parent": None if parent in ("__first_version__", "") else parent,
                "time": group.attrs["timestamp"],
                "current": name == current,
                "arrays": arrays,
                "groups": groups,
            })
    return found


def main(folder):
    folder = Path(folder)
    cases = []
    jobs = [
        ("edges", edges, "/", {}),
        ("edges_latest", edges, "/", {"libver": "latest"}),
        ("edges_v112", edges, "/", {"libver": ("v112", "v112")}),
        ("kinds", kinds, "/", {}),
        ("kinds_latest", kinds, "/some/group", {"libver": "latest", "userblock_size": 1024}),
        ("graph", graph, "/lab", {}),
        ("deleted", deleted, "/", {}),
        ("many", many, "/", {}),
        ("same", same, "/", {}),
    ]
    jobs += [(f"wander{seed}", lambda w, seed=seed: wander(w, seed), "/", {}) for seed in range(6)]
    for name, make, place, options in jobs:
        path = folder / f"{name}.h5"
        w = Writer(path, place, **options)
        make(w)
        w.close()
        cases.append({"file": path.name, "place": place, "versions": told(path, place)})
    (folder / "cases.json").write_text(json.dumps(cases))


if __name__ == "__main__":
    main(sys.argv[1])
