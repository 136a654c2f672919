"""What h5py says that an HDF5 file holds, in the encodings of `hyperslab describe --json`.

Elements of a type without references or variable-length parts are packed: C order, numbers little-endian in 1, 2, 4 or 8
bytes, compounds without padding. All others are JSON text. Both are then given by SHA-256.
"""

import ctypes
import glob
import hashlib
import json
import os

import h5py
import numpy as np
from h5py import h5a, h5d, h5g, h5o, h5s, h5t

# The library that h5py itself has loaded, for the calls that h5py does not pass on.
_folder = os.path.join(os.path.dirname(os.path.dirname(h5py.__file__)), "h5py.libs")
HDF5 = ctypes.CDLL(next(p for p in sorted(glob.glob(os.path.join(_folder, "libhdf5-*"))) if "_hl" not in p))
for _name in ("H5Tget_order", "H5Tset_precision", "H5Tset_offset", "H5Pset_chunk_opts"):
    getattr(HDF5, _name).argtypes = [ctypes.c_int64] + ([] if "get" in _name else [ctypes.c_size_t])
for _name in ("H5Tget_precision", "H5Tget_offset"):
    getattr(HDF5, _name).argtypes = [ctypes.c_int64]
HDF5.H5Tget_precision.restype = ctypes.c_size_t

COMPLEX = getattr(h5t, "COMPLEX", None)


def sha(data):
    return hashlib.sha256(data).hexdigest()


def text(name):
    try:
        return name.decode()
    except UnicodeDecodeError:
        return "hex:" + name.hex()


def is_fixed(t):
    """Whether elements of the type are bytes by themselves."""
    kind = t.get_class()
    if kind == h5t.VLEN or kind == h5t.REFERENCE:
        return False
    if kind == h5t.STRING:
        return not t.is_variable_str()
    if kind == h5t.ARRAY:
        return is_fixed(t.get_super())
    if kind == h5t.COMPOUND:
        return all(is_fixed(t.get_member_type(i)) for i in range(t.get_nmembers()))
    return True


def is_ieee(t):
    usual = {2: (15, 10, 5, 0, 10, 15), 4: (31, 23, 8, 0, 23, 127), 8: (63, 52, 11, 0, 52, 1023)}
    if t.get_size() not in usual or t.get_order() == h5t.ORDER_VAX:
        return False
    sign, epos, esize, mpos, msize, bias = usual[t.get_size()]
    whole = t.get_precision() == 8 * t.get_size() and t.get_offset() == 0
    return whole and t.get_fields() == (sign, epos, esize, mpos, msize) and t.get_ebias() == bias


def pack(t, data):
    """One element of type `t`, stored as `data`, packed."""
    kind, size = t.get_class(), t.get_size()
    if kind == h5t.ENUM:
        return pack(t.get_super(), data)
    if kind in (h5t.INTEGER, h5t.BITFIELD, h5t.TIME):
        little = data[::-1] if size > 1 and HDF5.H5Tget_order(t.id) == h5t.ORDER_BE else data
        if size > 8:
            return little
        precision, offset = HDF5.H5Tget_precision(t.id), HDF5.H5Tget_offset(t.id)
        value = int.from_bytes(little, "little") >> offset & (1 << precision) - 1
        width = next(w for w in (1, 2, 4, 8) if w >= size)
        if kind == h5t.INTEGER and t.get_sign() != h5t.SGN_NONE and value >> precision - 1:
            value -= 1 << precision
        return (value & (1 << 8 * width) - 1).to_bytes(width, "little")
    if kind == h5t.FLOAT:
        return data[::-1] if t.get_order() == h5t.ORDER_BE else data
    if kind == h5t.ARRAY:
        base = t.get_super()
        step = base.get_size()
        return b"".join(pack(base, data[i : i + step]) for i in range(0, size, step))
    if kind == h5t.COMPOUND:
        out = b""
        for i in range(t.get_nmembers()):
            member, at = t.get_member_type(i), t.get_member_offset(i)
            out += pack(member, data[at : at + member.get_size()])
        return out
    if COMPLEX is not None and kind == COMPLEX:
        base, half = t.get_super(), size // 2
        return pack(base, data[:half]) + pack(base, data[half:])
    return data


def plain(t, data):
    """Packs many elements at once where NumPy can."""
    kind, size = t.get_class(), t.get_size()
    if kind == h5t.ENUM:
        return plain(t.get_super(), data)
    whole = kind == h5t.INTEGER and size in (1, 2, 4, 8) and t.get_precision() == 8 * size
    if whole or kind == h5t.FLOAT and is_ieee(t):
        if size > 1 and t.get_order() == h5t.ORDER_BE:
            return np.frombuffer(data, f">u{size}").astype(f"<u{size}").tobytes()
        return bytes(data)
    if kind in (h5t.STRING, h5t.OPAQUE):
        return bytes(data)
    return b"".join(pack(t, data[i : i + size]) for i in range(0, len(data), size))


class Skip(Exception):
    """An element that this dumper does not encode."""


def value(t, data, paths):
    """One element in memory, whose type is not fixed, as JSON."""
    kind, size = t.get_class(), t.get_size()
    if is_fixed(t):
        return pack(t, data).hex()
    if kind == h5t.STRING:
        pointer = int.from_bytes(data[:8], "little")
        return None if pointer == 0 else "s:" + ctypes.string_at(pointer).hex()
    if kind == h5t.VLEN:
        count, pointer = int.from_bytes(data[:8], "little"), int.from_bytes(data[8:16], "little")
        base = t.get_super()
        step = base.get_size()
        raw = ctypes.string_at(pointer, count * step) if count else b""
        parts = [raw[i : i + step] for i in range(0, len(raw), step)]
        if is_fixed(base):
            return b"".join(pack(base, p) for p in parts).hex()
        return [value(base, p, paths) for p in parts]
    if kind == h5t.ARRAY:
        base = t.get_super()
        step = base.get_size()
        return [value(base, data[i : i + step], paths) for i in range(0, size, step)]
    if kind == h5t.COMPOUND:
        out = []
        for i in range(t.get_nmembers()):
            member, at = t.get_member_type(i), t.get_member_offset(i)
            out.append(value(member, data[at : at + member.get_size()], paths))
        return out
    if kind == h5t.REFERENCE and t.equal(h5t.STD_REF_OBJ):
        address = int.from_bytes(data[:8], "little")
        if address == 0:
            return None
        return "p:" + paths[address].encode().hex() if address in paths else "p:?"
    raise Skip(kind)


def elements(owner, paths):
    """(stored elements or None, raw, hashed bytes) of a dataset or attribute identifier."""
    t, space = owner.get_type(), owner.get_space()
    count = space.get_simple_extent_npoints()
    buffer = np.zeros(max(count, 1) * t.get_size(), "u1")
    if count:
        if isinstance(owner, h5d.DatasetID):
            owner.read(h5s.ALL, h5s.ALL, buffer, mtype=t)
        else:
            owner.read(buffer, mtype=t)
    data = buffer[: count * t.get_size()].tobytes()
    if is_fixed(t):
        return data, True, plain(t, data)
    step = t.get_size()
    items = [value(t, data[i : i + step], paths) for i in range(0, len(data), step)]
    return None, False, json.dumps(items, separators=(",", ":")).encode()


def attributes(obj, paths):
    out = {}
    for i in range(h5a.get_num_attrs(obj)):
        attribute = h5a.open(obj, index=i)
        try:
            space = attribute.get_space()
            if space.get_simple_extent_type() == h5s.NULL:
                out[text(attribute.name)] = {"shape": None}
                continue
            _, raw, data = elements(attribute, paths)
            entry = {"shape": list(space.get_simple_extent_dims()), "sha256": sha(data)}
            entry["bytes" if raw else "text"] = data.hex() if raw else data.decode()
            out[text(attribute.name)] = entry
        except Skip:
            pass
    return out


def walk(file):
    """Every object by path, and the path of every object header."""
    objects, paths = {}, {}

    def visit(obj, path):
        address = h5o.get_info(obj).addr
        if address in paths:
            objects[path] = ("hardlink", paths[address])
            return
        paths[address] = path
        kind = type(obj).__name__
        objects[path] = (kind, obj)
        if kind != "GroupID":
            return
        for i in range(obj.get_num_objs()):
            name = obj.get_objname_by_idx(i)
            below = path.rstrip("/") + "/" + text(name)
            link = obj.links.get_info(name)
            if link.type == h5py.h5l.TYPE_HARD:
                visit(h5o.open(obj, name), below)
            else:
                objects[below] = ({0: "hardlink", 1: "softlink", 64: "extlink"}.get(link.type, "udlink"), None)

    visit(h5g.open(file.id, b"/"), "/")
    return objects, paths


def dump(path):
    """Objects of a file: {path: {kind, attrs, shape, sha256, stored}}."""
    out = {}
    with h5py.File(path, "r") as file:
        objects, paths = walk(file)
        for name, (kind, obj) in objects.items():
            if kind == "hardlink":
                out[name] = {"kind": kind, "target": obj}
                continue
            if obj is None:
                out[name] = {"kind": kind}
                continue
            entry = {"attrs": attributes(obj, paths)}
            if kind == "GroupID":
                entry["kind"] = "group"
            elif kind == "DatasetID":
                entry["kind"] = "dataset"
                space = obj.get_space()
                if space.get_simple_extent_type() == h5s.NULL:
                    entry["shape"] = None
                else:
                    entry["shape"] = list(space.get_simple_extent_dims())
                    try:
                        stored, raw, data = elements(obj, paths)
                        entry["raw"], entry["sha256"] = raw, sha(data)
                        if stored is not None:
                            entry["stored"] = sha(stored)
                    except Skip:
                        pass
            else:
                entry["kind"] = "datatype"
            out[name] = entry
    return out
