"""Makes the files that the tests of HDF5 object headers, groups and attributes read.

    python make_objects.py        (h5py on HDF5 2.0 or later; run in this folder)

Committed types below /types carry their expected notation in the attribute "notation".
"""
import ctypes as C
import os
import shutil
import tempfile

import h5py
import numpy as np
from h5py import h5p, h5t

lib = None
for line in open("/proc/self/maps"):
    path = line.split()[-1]
    if os.path.basename(path).startswith(("libhdf5-", "libhdf5.so")):
        lib = C.CDLL(path)


def function(name, *arguments):
    f = getattr(lib, name)
    f.restype, f.argtypes = C.c_int, list(arguments)

    def call(*values):
        assert f(*values) >= 0, name

    return call


hid = C.c_int64
sohm_indexes = function("H5Pset_shared_mesg_nindexes", hid, C.c_uint)
sohm_index = function("H5Pset_shared_mesg_index", hid, C.c_uint, C.c_uint, C.c_uint)
sohm_phase = function("H5Pset_shared_mesg_phase_change", hid, C.c_uint, C.c_uint)
set_sizes = function("H5Pset_sizes", hid, C.c_size_t, C.c_size_t)
ref_object = function("H5Rcreate_object", hid, C.c_char_p, hid, C.c_void_p)
ref_region = function("H5Rcreate_region", hid, C.c_char_p, hid, hid, C.c_void_p)
ref_attr = function("H5Rcreate_attr", hid, C.c_char_p, C.c_char_p, hid, C.c_void_p)
write = function("H5Dwrite", hid, hid, hid, hid, hid, C.c_void_p)
commit = function("H5Tcommit2", hid, C.c_char_p, hid, hid, hid, hid)


class ImageConfig(C.Structure):
    _fields_ = [("version", C.c_int), ("generate", C.c_bool), ("resize", C.c_bool), ("age", C.c_int)]


cache_image = function("H5Pset_mdc_image_config", hid, C.POINTER(ImageConfig))


def predefined(name):
    return C.c_int64.in_dll(lib, name).value


def types():
    """Pairs of notation and datatype identifier."""
    keep = []

    def t(notation, tid):
        keep.append(tid)
        found.append((notation, tid.id))

    found = []
    t("i8", h5t.STD_I8LE)
    t("u16be", h5t.STD_U16BE)
    t("i32le", h5t.STD_I32LE)
    t("u64be", h5t.STD_U64BE)
    t("f16le", h5t.IEEE_F16LE)
    t("f32be", h5t.IEEE_F32BE)
    t("f64le", h5t.IEEE_F64LE)
    odd = h5t.STD_I32LE.copy()
    odd.set_precision(17)
    odd.set_offset(3)
    t("i32le[p=17,o=3]", odd)
    bfloat = h5t.IEEE_F32LE.copy()
    bfloat.set_fields(15, 7, 8, 0, 7)
    bfloat.set_size(2)
    bfloat.set_ebias(127)
    t("float16le[p=16,o=0,s=15,e=7:8,m=0:7,b=127,n=implied]", bfloat)
    found.append(("float32vax[p=32,o=0,s=31,e=23:8,m=0:23,b=129,n=implied]", predefined("H5T_VAX_F32_g")))
    found.append(("time32le", predefined("H5T_UNIX_D32LE_g")))
    t("b16le", h5t.STD_B16LE)
    s = h5t.C_S1.copy()
    s.set_size(7)
    t("str7:ascii:nullterm", s)
    s = s.copy()
    s.set_strpad(h5t.STR_SPACEPAD)
    s.set_cset(h5t.CSET_UTF8)
    t("str7:utf8:spacepad", s)
    v = h5t.C_S1.copy()
    v.set_size(h5t.VARIABLE)
    v.set_cset(h5t.CSET_UTF8)
    t("vstr:utf8:nullterm", v)
    o = h5t.create(h5t.OPAQUE, 5)
    o.set_tag(b"five bytes")
    t('opaque5:"five bytes"', o)
    e = h5t.enum_create(h5t.STD_I16BE)
    e.enum_insert(b"low", -2)
    e.enum_insert(b"high", 300)
    t('enum<i16be>{"low"=-2,"high"=300}', e)
    a = h5t.array_create(h5t.STD_U8LE, (2, 3))
    t("array[2,3]<u8>", a)
    t("vlen<f32le>", h5t.vlen_create(h5t.IEEE_F32LE))
    t("vlen<vlen<i8>>", h5t.vlen_create(h5t.vlen_create(h5t.STD_I8LE)))
    c = h5t.create(h5t.COMPOUND, 40)
    c.insert(b"a", 1, h5t.STD_I32LE)
    c.insert(b"a longer name", 9, a)
    c.insert(b"s", 24, v)
    inner = h5t.create(h5t.COMPOUND, 40)
    inner.insert(b"x", 0, h5t.IEEE_F64BE)
    text = '"a":i32le,"a longer name":array[2,3]<u8>,"s":vstr:utf8:nullterm'
    t("compound{" + text + "}", c)
    n = h5t.create(h5t.COMPOUND, 48)
    n.insert(b"inner", 0, inner)
    n.insert(b"end", 40, h5t.STD_I64LE)
    t('compound{"inner":compound{"x":f64be},"end":i64le}', n)
    t("ref:obj", h5t.STD_REF_OBJ)
    t("ref:reg", h5t.STD_REF_DSETREG)
    return found, keep


def type_folder(f, new):
    found, keep = types()
    if new:
        found.append(("ref:std", predefined("H5T_STD_REF_g")))
        found.append(("complex<f64le>", predefined("H5T_COMPLEX_IEEE_F64LE_g")))
    folder = f.create_group("types")
    copy = lib.H5Tcopy
    copy.restype, copy.argtypes = hid, [hid]
    for i, (notation, tid) in enumerate(found):
        name = f"t{i:02d}"
        commit(folder.id.id, name.encode(), copy(tid), 0, 0, 0)
        folder[name].attrs.create("notation", np.bytes_(notation))


def common(f):
    """Links and datasets of both styles of file."""
    f.create_group("a/b/c")
    f["a"].attrs["order"] = np.arange(4, dtype="i4")
    f["hard"] = f["a/b"]
    f["soft"] = h5py.SoftLink("/a/b/c")
    f["dangling"] = h5py.SoftLink("nowhere")
    many = f.create_group("many")
    for i in range(30):
        many[f"link {i * 7 % 30:02d}"] = h5py.SoftLink(f"/target {i * 7 % 30}")
    f.id.links.create_soft(b"not \xff text", b"bytes \xfe")
    d = f.create_dataset("data/chunked", shape=(7, 5), maxshape=(None, 9), chunks=(2, 3), dtype="<f4", fillvalue=2.5,
                         shuffle=True, compression="gzip", compression_opts=4, fletcher32=True)
    d.attrs["units"] = "m/s"
    d.attrs["null"] = h5py.Empty("f4")
    d[0, 0] = 1
    f.create_dataset("data/scalar", data=np.int16(-3))
    f.create_dataset("data/null", data=h5py.Empty("i8"))
    p = h5p.create(h5p.DATASET_CREATE)
    p.set_layout(h5py.h5d.COMPACT)
    space = h5py.h5s.create_simple((3,))
    h5py.h5d.create(f["data"].id, b"compact", h5t.STD_I32LE, space, p).write(space, space, np.arange(3, dtype="<i4"))
    p = h5p.create(h5p.DATASET_CREATE)
    p.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    p.set_fill_value(np.array(7, "<i4"))
    h5py.h5d.create(f["data"].id, b"never", h5t.STD_I32LE, space, p)
    f["data/object"] = f["data/chunked"].ref
    f["data/region"] = f["data/chunked"].regionref[1:5:2, 0:2]


def old():
    with h5py.File("objects_old.h5", "w", libver="earliest", userblock_size=512) as f:
        common(f)
        type_folder(f, False)


def new():
    with h5py.File("objects_new.h5", "w", libver="latest", track_order=True) as f:
        common(f)
        type_folder(f, True)
        f["external"] = h5py.ExternalLink("other.h5", "/inside")
        dense = f["a"]
        for i in range(12):
            dense.attrs[f"dense {i:02d}"] = i
        refs = ((C.c_ubyte * 64) * 4)()
        ref_object(f.id.id, b"/a/b", 0, refs[0])
        region = h5py.h5s.create_simple((7, 5))
        region.select_hyperslab((1, 0), (2, 1), (2, 1), (1, 2))
        ref_region(f.id.id, b"/data/chunked", region.id, 0, refs[1])
        ref_attr(f.id.id, b"/data/chunked", b"units", 0, refs[2])
        space = h5py.h5s.create_simple((4,))
        create = lib.H5Dcreate2
        create.restype, create.argtypes = hid, [hid, C.c_char_p, hid, hid, hid, hid, hid]
        d = create(f.id.id, b"/data/standard", predefined("H5T_STD_REF_g"), space.id, 0, 0, 0)
        write(d, predefined("H5T_STD_REF_g"), 0, 0, 0, C.byref(refs))
        lib.H5Dclose(hid(d))


def small():
    """The smallest files that still have everything: hosts of mutations."""
    with h5py.File("tiny_old.h5", "w", libver="earliest") as f:
        f["g/x"] = np.arange(3)
        f["g"].attrs["a"] = "text"
        f["s"] = h5py.SoftLink("/g/x")
    with h5py.File("tiny_new.h5", "w", libver="latest", track_order=True) as f:
        g = f.create_group("g", track_order=True)
        g["x"] = np.arange(3)
        for i in range(9):
            g[f"n{i}"] = h5py.SoftLink("/g")
            g["x"].attrs[f"a{i}"] = i


def shared():
    for name, list_max in (("sohm_list.h5", 50), ("sohm_btree.h5", 0)):
        fcpl = h5p.create(h5p.FILE_CREATE)
        sohm_indexes(fcpl.id, 2)
        sohm_index(fcpl.id, 0, 0x02 | 0x08 | 0x20 | 0x800, 16)
        sohm_index(fcpl.id, 1, 0x1000, 16)
        sohm_phase(fcpl.id, list_max, 0)
        fapl = h5p.create(h5p.FILE_ACCESS)
        fapl.set_libver_bounds(h5py.h5f.LIBVER_LATEST, h5py.h5f.LIBVER_LATEST)
        with h5py.File(h5py.h5f.create(name.encode(), h5py.h5f.ACC_TRUNC, fcpl, fapl)) as f:
            for i in range(4):
                d = f.create_dataset(f"d{i}", (6, 5), "<f8", chunks=(3, 5), compression="gzip", fillvalue=4.5)
                d.attrs["same"] = np.arange(5, dtype="<i4")
            for i in range(10):
                f["d0"].attrs[f"dense {i}"] = "the same text"


def image():
    fapl = h5p.create(h5p.FILE_ACCESS)
    fapl.set_libver_bounds(h5py.h5f.LIBVER_LATEST, h5py.h5f.LIBVER_LATEST)
    cache_image(fapl.id, C.byref(ImageConfig(1, True, False, -1)))
    with h5py.File(h5py.h5f.create(b"cache_image.h5", h5py.h5f.ACC_TRUNC, fapl=fapl)) as f:
        f["g/x"] = np.arange(3)
        f["g"].attrs["a"] = 1


def sizes():
    for address, length in ((2, 2), (4, 8), (8, 4)):
        fcpl = h5p.create(h5p.FILE_CREATE)
        set_sizes(fcpl.id, address, length)
        with h5py.File(h5py.h5f.create(f"sizes_{address}{length}.h5".encode(), h5py.h5f.ACC_TRUNC, fcpl)) as f:
            f.create_dataset("g/x", data=np.arange(6, dtype="<i2").reshape(2, 3), chunks=(1, 3))
            f["g"].attrs["a"] = np.int16(5)


def paged():
    with h5py.File("paged.h5", "w", libver="latest", fs_strategy="page", fs_persist=True, fs_page_size=512) as f:
        f["x"] = np.arange(3)
        f["y"] = np.arange(300)
        del f["y"]


def family():
    """Only the first of several files."""
    with tempfile.TemporaryDirectory() as folder:
        with h5py.File(f"{folder}/%d.h5", "w", driver="family", memb_size=1024, libver="latest") as f:
            f["d"] = range(300)
        shutil.copy(f"{folder}/0.h5", "family.h5")


for make in (old, new, small, shared, image, sizes, paged, family):
    make()
