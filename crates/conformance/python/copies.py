"""A file with one of everything that a copy has to account for: OUT/rich.h5."""

import os
import sys

import h5py
import numpy as np

with h5py.File(os.path.join(sys.argv[1], "rich.h5"), "w", track_order=True) as f:
    color = h5py.enum_dtype({"RED": 0, "GREEN": 1, "BLUE": 7}, basetype="<i2")
    f["color"] = color
    f["point"] = np.dtype([("x", "<f4"), ("y", "<i2")])
    g = f.create_group("g")
    g.attrs["title"] = "a group"
    a = g.create_dataset(
        "a", data=np.arange(48, dtype=">i4").reshape(6, 8), chunks=(4, 3), compression="gzip",
        shuffle=True, fletcher32=True, fillvalue=-7,
    )
    a.attrs["matrix"] = np.arange(6, dtype="<i2").reshape(2, 3)
    a.attrs["words"] = np.array(["one", "zwei"], dtype=h5py.string_dtype())
    a.attrs["nothing"] = h5py.Empty("f4")
    a.attrs.create("shade", np.array([7], "<i2"), dtype=f["color"])
    f.create_dataset("shades", data=np.array([0, 7, 1], "<i2"), dtype=f["color"])
    p = np.zeros(3, f["point"].dtype)
    p["x"], p["y"] = [1, 2, 3], [-1, -2, -3]
    f.create_dataset("points", data=p, dtype=f["point"])
    nested = np.dtype([("name", "S6"), ("shade", color), ("at", [("x", "<f8"), ("y", "<f8")])])
    n = np.zeros(2, nested)
    n["name"], n["shade"], n["at"]["y"] = [b"abc", b"zyxwvu"], [7, 1], [0.5, 1.5]
    f.create_dataset("nested", data=n)
    r = f.create_dataset("ragged", (3,), dtype=h5py.vlen_dtype("<i4"))
    r[0], r[2] = [1, 2, 3], [9]
    t = f.create_dataset("texts", (3,), dtype=h5py.string_dtype())
    t[0], t[2] = "été", "b"
    f.create_dataset("opaque", data=np.array([b"abc", b"\x00\x01\x02"], "V3"))
    s = h5py.h5s.create_simple((2,))
    h5py.h5d.create(f.id, b"bits", h5py.h5t.STD_B8LE, s)
    o = f.create_dataset("objects", (3,), dtype=h5py.ref_dtype)
    o[0], o[1] = a.ref, f["color"].ref
    q = f.create_dataset("regions", (2,), dtype=h5py.regionref_dtype)
    q[0] = a.regionref[1:3, 2:5]
    f.attrs.create("main", a.ref, dtype=h5py.ref_dtype)
    x = f.create_dataset("x", data=np.linspace(0, 1, 8))
    x.make_scale("x")
    a.dims[1].attach_scale(x)
    f["soft"] = h5py.SoftLink("/g/a")
    f["hard"] = a
    f["outside"] = h5py.ExternalLink("other.h5", "/z")
