"""What programs that never heard of hyperslab say of files that it wrote.

    python judges.py FILES [PART]

FILES is a JSON list of [name, written, original, same]. Whatever a judge reads in the original it has to read in the written
file, and to find the same there: if same is "all"; judges that know netCDF only, if it is "netCDF"; nobody, if it is
"nothing". Without an original (null) every judge that is made for such files has to read it. PART, 1 if it is not given, is
of how many files one is shown to the judges that take long. Prints a JSON object: how many verdicts each judge gave, and a
list of what is wrong.

The judges: h5dump and h5stat of HDF5 1.10, ncdump of netCDF-C, and of Python netCDF4, h5netcdf and xarray. Programs that are
not on the machine give no verdict.
"""

import collections
import hashlib
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import h5netcdf
import h5py
import hdf5plugin
import netCDF4
import numpy as np
import xarray

warnings.simplefilter("ignore")
# The filters that h5dump is built without.
ENVIRONMENT = {**os.environ, "HDF5_PLUGIN_PATH": hdf5plugin.PLUGINS_PATH, "HDF5_USE_FILE_LOCKING": "FALSE"}


def run(*command, cwd=None):
    """What a program prints, if it is content."""
    done = subprocess.run(command, capture_output=True, env=ENVIRONMENT, cwd=cwd, timeout=300)
    if done.returncode:
        raise RuntimeError(f"exit code {done.returncode}: {done.stderr[-300:].decode(errors='replace').strip()}")
    return done.stdout


def by_h5dump(path):
    # From its folder, so that what it names is found.
    text = run("h5dump", os.path.basename(path), cwd=os.path.dirname(path))
    text = text.split(b"\n", 1)[1]
    # References are shown with an address, and each file has its own.
    return re.sub(rb"\b(DATASET|GROUP|NAMED_DATATYPE|DATATYPE) +\d+", rb"\1", text)


def by_h5stat(path):
    text = run("h5stat", os.path.basename(path), cwd=os.path.dirname(path))
    return re.findall(rb"# of unique [a-z ]+: \d+", text)


def by_ncdump(path):
    # In which order objects are kept is for the writer to choose where it is not netCDF.
    return b"\n".join(sorted(run("ncdump", "-n", "n", path).split(b"\n")))


def plain(value):
    """A value as text that says type and content."""
    if isinstance(value, bytes):
        return repr(bytes(value))
    if isinstance(value, str) or value is None:
        return repr(value)
    value = np.asanyarray(value)
    if np.ma.isMaskedArray(value):
        return "masked " + plain(value.filled()) + plain(np.asarray(np.ma.getmaskarray(value)))
    if value.dtype.hasobject:
        parts = value.tolist() if value.dtype.names else [plain(v) for v in value.reshape(-1)]
        return f"{value.dtype.str} {value.shape} {parts!r}"
    return f"{value.dtype.descr} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"


def netcdf_group(group, path, out):
    for name, d in group.dimensions.items():
        out[f"{path}{name} (dimension)"] = f"{len(d)} {d.isunlimited()}"
    for name in group.ncattrs():
        out[f"{path}@{name}"] = plain(group.getncattr(name))
    for name, v in group.variables.items():
        v.set_auto_maskandscale(False)
        v.set_auto_chartostring(False)
        out[f"{path}{name}"] = f"{v.dimensions} {plain(v[...])}"
        for key in v.ncattrs():
            out[f"{path}{name}@{key}"] = plain(v.getncattr(key))
    for name, inner in group.groups.items():
        netcdf_group(inner, f"{path}{name}/", out)


def by_netcdf4(path):
    out = {}
    with netCDF4.Dataset(path) as data:
        netcdf_group(data, "/", out)
    return out


def by_h5netcdf(path):
    out = {}

    def group(g, at):
        for name, d in g.dims.items():
            out[f"{at}{name} (dimension)"] = str(d.size)
        for name in g.attrs:
            out[f"{at}@{name}"] = plain(g.attrs[name])
        for name, v in g.variables.items():
            out[f"{at}{name}"] = f"{v.dimensions} {plain(v[...])}"
            for key in v.attrs:
                out[f"{at}{name}@{key}"] = plain(v.attrs[key])
        for name, inner in g.groups.items():
            group(inner, f"{at}{name}/")

    with h5netcdf.File(path, "r", phony_dims="access") as data:
        group(data, "/")
    return out


def by_xarray(path):
    classic = open(path, "rb").read(3) == b"CDF"
    engine = "netcdf4" if classic else "h5netcdf"
    options = {} if classic else {"phony_dims": "access"}
    out = {}
    with xarray.open_dataset(path, engine=engine, decode_cf=False, **options) as data:
        out["attributes"] = {k: plain(v) for k, v in data.attrs.items()}
        for name, v in data.variables.items():
            out[name] = f"{v.dims} {plain(v.values)} { {k: plain(a) for k, a in v.attrs.items()} }"
    return out


# The judges, the program that each needs, and whether they are made for HDF5 files alone.
JUDGES = {
    "h5dump": (by_h5dump, "h5dump", True),
    "h5stat": (by_h5stat, "h5stat", True),
    "ncdump": (by_ncdump, "ncdump", False),
    "netCDF4": (by_netcdf4, None, False),
    "h5netcdf": (by_h5netcdf, None, True),
    "xarray": (by_xarray, None, False),
}


def ask(judge, path):
    try:
        return judge(path), None
    except Exception as e:
        return None, f"{type(e).__name__}: {e}"


def ask_apart(judge, path):
    """Asks in a process of its own: libraries die of some files."""
    answers, answer = os.pipe()
    child = os.fork()
    if child == 0:
        with open(answer, "wb") as out:
            pickle.dump(ask(judge, path), out)
        os._exit(0)
    os.close(answer)
    with open(answers, "rb") as file:
        said = file.read()
    _, status = os.waitpid(child, 0)
    return pickle.loads(said) if status == 0 else (None, f"died of signal {status}")


def difference(old, new):
    if isinstance(old, dict):
        for key in [*old, *new]:
            if old.get(key) != new.get(key):
                return f"{key}: {old.get(key)} became {new.get(key)}"
    if isinstance(old, bytes):
        a, b = old.decode(errors="replace").split("\n"), new.decode(errors="replace").split("\n")
        for x, y in zip(a + [""], b + [""]):
            if x != y:
                return f"{x.strip()!r} became {y.strip()!r}"
    return f"{old} became {new}"


def main():
    with open(sys.argv[1]) as file:
        files = json.load(file)
    part = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    verdicts, wrong = collections.Counter(), []
    for label, (judge, program, of_hdf5) in JUDGES.items():
        if program and not shutil.which(program):
            print(f"{program} is not on this machine and judges nothing", file=sys.stderr)
            continue
        here = [f for f in files[:: 1 if program else part] if not of_hdf5 or h5py.is_hdf5(f[1])]
        paths = list({p for f in here for p in f[1:3] if p})
        one = ask if program else ask_apart
        with ThreadPoolExecutor(2) as pool:
            said = dict(zip(paths, pool.map(lambda p: one(judge, p), paths)))
        for name, written, original, same in here:
            (old, unread), (new, fault) = said.get(original, (None, None)), said[written]
            if unread:
                continue
            verdicts[label] += 1
            if fault:
                wrong.append(f"{label}: {name}: {fault}"[:600])
            elif old != new and (same == "all" or same == "netCDF" and label not in ("h5dump", "h5stat")):
                wrong.append(f"{label}: {name}: {difference(old, new)}"[:600])
    print(json.dumps({"verdicts": verdicts, "wrong": wrong}))


main()
