"""Makes the zip files beside it: the same content in every layout of NCZarr, which the tests of `dump` read.

    python make.py attributes   # netCDF4 1.7.5 (netCDF-C 4.10.1): everything in .zattrs; and the draft of version 3
    python make.py lower        # netCDF4 1.7.1 (4.9.3-development): _nczarr_* in the documents of Zarr
    python make.py upper        # ncgen of netCDF-C 4.9.0 (Debian's netcdf-bin): _NCZARR_*; and the first layout

No program writes the first layout and the draft any more: they are made from the others by moving members. The layouts
that have strings and unlimited dimensions hold some, in LAYOUT_rich.zip. plain.cdl and rich.cdl say what is in all."""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

here = pathlib.Path(__file__).parent
CDL = """netcdf nczarr {
dimensions:
  x = 4 ;
  n = 3 ;
variables:
  int zebra(x) ;
    zebra:_FillValue = -9 ;
    zebra:units = "m" ;
    zebra:bytes = 1b, -2b ;
    zebra:range = 1.5f, 2.f ;
  char text(x, n) ;
  double apple(n) ;
    apple:big = 18446744073709551614ull ;
    apple:valid = -1s ;
  double scalar ;
  :title = "hello" ;
  :list = 1, 2, 3 ;
  :map = "{\\"a\\": [1,2], \\"b\\": null}" ;
data:
  zebra = 1, 2, _, 4 ;
  text = "abc", "de", "", "f" ;
  apple = 1, 2.5, -3 ;
  scalar = 0.25 ;
group: g {
  dimensions:
    y = 2 ;
    x = 3 ;
  variables:
    ubyte u(/x, y) ;
    short own(x) ;
  :of_group = 2.5 ;
  data:
    u = 1, 2, 3, 4, 5, 6, 7, 8 ;
    own = 1, 2, 3 ;
  group: inner {
    variables:
      int64 deep(y) ;
    data:
      deep = -5, 9007199254740993 ;
  }
}
}
"""


def with_netcdf4(path, rich):
    import netCDF4
    import numpy as np

    with netCDF4.Dataset(f"file://{path}#mode=nczarr,file", "w") as f:
        if rich:
            f.setncattr_string("list", ["p", "qr"])
            f.createDimension("t", None)
            f.createDimension("x", 2)
            f.createVariable("v", "f4", ("t", "x"))[:3] = [[1, 2], [3, 4], [5, 6]]
            f.createVariable("shorter", "i4", ("t",))[:2] = [7, 8]
            names = f.createVariable("names", str, ("x",))
            names[0], names[1] = "one", "zwölf"
            return
        f.title = "hello"
        f.list = np.array([1, 2, 3], "i4")
        f.map = '{"a": [1,2], "b": null}'
        f.createDimension("x", 4)
        f.createDimension("n", 3)
        v = f.createVariable("zebra", "i4", ("x",), fill_value=-9)
        v.units = "m"
        v.bytes = np.array([1, -2], "i1")
        v.range = np.array([1.5, 2], "f4")
        v[:] = [1, 2, -9, 4]
        text = np.array([b"abc", b"de", b"", b"f"], "S3").view("S1").reshape(4, 3)
        f.createVariable("text", "S1", ("x", "n"))[:] = text
        v = f.createVariable("apple", "f8", ("n",))
        v.big = np.uint64(18446744073709551614)
        v.valid = np.int16(-1)
        v[:] = [1, 2.5, -3]
        f.createVariable("scalar", "f8", ())[...] = 0.25
        g = f.createGroup("g")
        g.of_group = 2.5
        g.createDimension("y", 2)
        # Before the group has a dimension of this name, it means the one outside.
        g.createVariable("u", "u1", ("x", "y"))[:] = np.arange(1, 9).reshape(4, 2)
        g.createDimension("x", 3)
        g.createVariable("own", "i2", ("x",))[:] = [1, 2, 3]
        g.createGroup("inner").createVariable("deep", "i8", ("y",))[:] = [-5, 9007199254740993]


def with_ncgen(path):
    cdl = path.parent / "nczarr.cdl"
    cdl.write_text(CDL)
    subprocess.run(["ncgen", "-4", "-o", f"file://{path}#mode=nczarr,file", cdl], check=True)


def load(path):
    return json.loads(path.read_text()) if path.exists() else {}


def first_layout(path):
    """From _NCZARR_* members to documents of their own."""
    for folder in [path, *path.rglob("*")]:
        for name, member, own in [
            (".zgroup", "_NCZARR_GROUP", ".nczgroup"),
            (".zarray", "_NCZARR_ARRAY", ".nczvar"),
            (".zattrs", "_NCZARR_ATTR", ".nczattr"),
        ]:
            if not (folder / name).exists():
                continue
            document = load(folder / name)
            document.pop("_NCZARR_SUPERBLOCK", None)
            if member in document:
                (folder / own).write_text(json.dumps(document.pop(member)))
            (folder / name).write_text(json.dumps(document))
    (path / ".nczarr").write_text('{"zarr_format": 2, "nczarr_version": "1.0.0"}')


NAMES = {"i1": "int8", "i2": "int16", "i4": "int32", "i8": "int64", "u1": "uint8", "u2": "uint16", "u4": "uint32",
         "u8": "uint64", "f4": "float32", "f8": "float64"}


def type_name(code):
    bare = code.lstrip("<>|")
    if code == ">S1":
        return "char"
    return NAMES.get(bare) or ("json" if bare == "J0" else "string")


def draft(path):
    """From version 2 to the draft of version 3."""
    for folder in sorted([path, *(p for p in path.rglob("*") if p.is_dir())]):
        attributes = load(folder / ".zattrs")
        types = attributes.pop("_nczarr_attr", {}).get("types", {})
        attributes["_nczarr_attrs"] = {"attribute_types": {k: type_name(v) for k, v in types.items()}}
        document = {"zarr_format": 3, "node_type": "group", "attributes": attributes}
        if (folder / ".zarray").exists():
            old = load(folder / ".zarray")
            assert not old["compressor"] and not old["filters"]
            kind, fill = type_name(old["dtype"]), old["fill_value"]
            if kind == "char":
                kind, fill, attributes["_nczarr_array"]["nczarr_type"] = "uint8", 0, "char"
            elif kind == "string":
                size = int(old["dtype"][2:])
                kind = {"name": "null_terminated_bytes", "configuration": {"length_bytes": size}}
                attributes["_nczarr_array"]["nczarr_type"] = "string"
            names = attributes["_ARRAY_DIMENSIONS"]
            document |= {
                "node_type": "array", "shape": old["shape"], "data_type": kind, "fill_value": fill,
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": old["chunks"]}},
                "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
                "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}], "dimension_names": names,
            }
            for chunk in [p for p in folder.iterdir() if p.name[0].isdigit()]:
                target = folder.joinpath("c", *chunk.name.split("."))
                target.parent.mkdir(parents=True, exist_ok=True)
                chunk.rename(target)
        (folder / "zarr.json").write_text(json.dumps(document))
        for name in [".zgroup", ".zarray", ".zattrs"]:
            (folder / name).unlink(missing_ok=True)


def pack(path, name):
    with zipfile.ZipFile(here / f"{name}.zip", "w", zipfile.ZIP_DEFLATED) as z:
        for file in sorted(p for p in path.rglob("*") if p.is_file()):
            # Always the same time, so that the same content is the same file.
            z.writestr(zipfile.ZipInfo(str(file.relative_to(path))), file.read_bytes(), zipfile.ZIP_DEFLATED)


with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / "nczarr.zarr"
    layout = sys.argv[1]
    if layout == "upper":
        with_ncgen(path)
        pack(path, "upper")
        first_layout(path)
        pack(path, "first")
    else:
        for rich in [False, True]:
            suffix = "_rich" if rich else ""
            with_netcdf4(path, rich)
            pack(path, layout + suffix)
            if layout == "attributes":
                draft(path)
                pack(path, "draft" + suffix)
            shutil.rmtree(path)
