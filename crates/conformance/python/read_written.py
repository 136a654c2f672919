"""Reads stores that hyperslab wrote with zarr-python, xarray and netCDF4, and prints what is wrong, one line each.

Element i of every array, in C order, is 7 i mod 101 as its type, or the text "w" and that number.
"""

import sys
import warnings
from pathlib import Path

import netCDF4
import numpy as np
import xarray
import zarr

warnings.simplefilter("ignore")
wrong = []
total = 0


def expected(shape, dtype):
    numbers = np.arange(int(np.prod(shape, dtype=int))) * 7 % 101
    if dtype is None:
        return np.array([f"w{n}" for n in numbers], dtype=object).reshape(shape)
    if dtype.kind in "SU":
        return np.array([f"w{n}" for n in numbers]).astype(dtype).reshape(shape)
    return numbers.astype(dtype).reshape(shape)


def compare(what, found, dtype):
    global total
    total += 1
    found = np.asarray(found)
    wanted = expected(found.shape, dtype)
    if not np.array_equal(found.astype(wanted.dtype), wanted):
        wrong.append(f"{what}: {found.reshape(-1)[:8]} where {wanted.reshape(-1)[:8]} are wanted")


def by_zarr(path):
    group = zarr.open_group(str(path), mode="r")
    for name, array in group.arrays():
        what = f"{path.name}/{name} ({array.metadata.zarr_format})"
        try:
            text = array.dtype.kind in "OT"
            compare(what, array[...], None if text else array.dtype)
            if name != "scalar" and dict(array.attrs).get("number") != 5:
                wrong.append(f"{what}: attributes {dict(array.attrs)}")
        except Exception as e:
            wrong.append(f"{what}: {type(e).__name__}: {e}")


def by_xarray(path):
    global total
    with xarray.open_zarr(str(path), consolidated=True, mask_and_scale=False) as data:
        total += 1
        field = data["field"]
        if field.dims != ("y", "x") or field.attrs.get("units") != "m":
            wrong.append(f"{path.name} in xarray: {field.dims} {field.attrs}")
        compare(f"{path.name} in xarray", field.values, field.dtype)


def by_netcdf(path):
    global total
    with netCDF4.Dataset(f"file://{path}#mode=nczarr,file") as data:
        total += 1
        field = data["field"]
        field.set_auto_maskandscale(False)
        dims = {name: (len(d), d.isunlimited()) for name, d in data.dimensions.items()}
        if field.dimensions != ("y", "x") or dims.get("y") != (7, True) or dims.get("x") != (10, False):
            wrong.append(f"{path.name} in netCDF: {field.dimensions} {dims}")
        if field.units != "m" or field.number.dtype != np.int16 or field.number != 5 or data.title != "é":
            wrong.append(f"{path.name} in netCDF: attributes {field.__dict__} {data.__dict__}")
        compare(f"{path.name} in netCDF", field[...], field.dtype)
        for name in ("bytes", "doubles", "scalar"):
            variable = data[name]
            variable.set_auto_maskandscale(False)
            compare(f"{path.name}/{name} in netCDF", variable[...], variable.dtype)
        if "".join(data["chars"][...].astype(str).reshape(-1)) != "abcde":
            wrong.append(f"{path.name}/chars in netCDF: {data['chars'][...]}")


for path in sorted(Path(sys.argv[1]).iterdir()):
    for reader, kinds in ((by_zarr, ("plain",)), (by_xarray, ("named",)), (by_netcdf, ("netcdf",))):
        if path.name.startswith(kinds):
            try:
                reader(path)
            except Exception as e:
                wrong.append(f"{path.name}: {reader.__name__}: {type(e).__name__}: {e}")

print(total)
print("\n".join(wrong))
