"""What netCDF4-python, scipy and ncdump read in files of classic netCDF, and edits of them by netCDF4-python.

    netcdf3_write.py check FOLDER    compares each file with FOLDER/expected.json; prints what differs
    netcdf3_write.py edit FILE       a record more, another attribute, another variable; prints what is there then
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys

import netCDF4
import numpy as np
from scipy.io import netcdf_file


def sha(values):
    values = np.asarray(values)
    return hashlib.sha256(values.astype(values.dtype.newbyteorder(">")).tobytes()).hexdigest()


def attribute(value):
    return value if isinstance(value, str) else [value.dtype.str[1:], sha(np.atleast_1d(value))]


def by_netcdf(path):
    with netCDF4.Dataset(path) as file:
        file.set_auto_maskandscale(False)
        return {
            "model": file.data_model,
            "dimensions": {d.name: [len(d), d.isunlimited()] for d in file.dimensions.values()},
            "attributes": {name: attribute(file.getncattr(name)) for name in file.ncattrs()},
            "variables": {
                v.name: [
                    v.dtype.str[1:],
                    list(v.dimensions),
                    sha(v[...]),
                    {name: attribute(v.getncattr(name)) for name in v.ncattrs()},
                ]
                for v in file.variables.values()
            },
        }


def by_scipy(path):
    with netcdf_file(path, mmap=False, maskandscale=False) as file:
        return {name: sha(v.data if v.shape else v.data.reshape(())) for name, v in file.variables.items()}


def check(folder):
    expected = json.load(open(os.path.join(folder, "expected.json")))
    count = 0
    for name, wanted in sorted(expected.items()):
        path = os.path.join(folder, name)
        found = by_netcdf(path)
        for part in wanted:
            count += 1
            if found[part] != wanted[part]:
                print(f"{name}: {part}: {wanted[part]} expected, netCDF4 found {found[part]}")
        if wanted["model"] != "NETCDF3_64BIT_DATA":
            found = by_scipy(path)
            for variable, (_, _, data, _) in wanted["variables"].items():
                count += 1
                if found.get(variable) != data:
                    print(f"{name}: scipy finds other values of {variable}")
        if shutil.which("ncdump"):
            count += 1
            run = subprocess.run(["ncdump", path], capture_output=True)
            if run.returncode != 0:
                print(f"{name}: ncdump: {run.stderr.decode()}")
            else:
                open(path + ".cdl", "wb").write(run.stdout)
    print(f"compared {count}", file=sys.stderr)


def edit(path):
    with netCDF4.Dataset(path, "a") as file:
        file.set_auto_maskandscale(False)
        unlimited = [d for d in file.dimensions.values() if d.isunlimited()]
        for v in file.variables.values():
            if unlimited and v.dimensions[:1] == (unlimited[0].name,) and v.dtype.kind != "S":
                shape = v.shape[1:]
                v[len(unlimited[0]) if v is None else v.shape[0]] = np.arange(np.prod(shape, dtype=int)).reshape(shape)
                break
        file.setncattr("edited", "by netCDF4-python, at some length")
        v = file.createVariable("added", "i4", tuple(file.dimensions)[:1])
        v[...] = 7
    print(json.dumps(by_netcdf(path)))


if __name__ == "__main__":
    {"check": check, "edit": edit}[sys.argv[1]](sys.argv[2])
