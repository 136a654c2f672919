"""What h5py, and netCDF4 where it can, say of a copy of rich.h5, as JSON."""

import json
import sys

import h5py
import numpy as np

path, kind = sys.argv[1:3]
said = {}
if kind == "hdf5":
    with h5py.File(path) as f:
        a = f["g/a"]
        # An object may have several names.
        name = lambda r: None if not r else "/g/a" if f[r] == a else f[r].name
        said["objects"] = [name(r) for r in f["objects"][:]]
        region = f["regions"][0]
        said["region"] = [name(region), [int(v) for v in f[region][region].ravel()], bool(f["regions"][1])]
        said["main"] = name(f.attrs["main"])
        said["same"] = f["hard"] == a
        said["soft"] = f.get("soft", getlink=True).path
        out = f.get("outside", getlink=True)
        said["outside"] = [out.filename, out.path]
        of = lambda name: f[name].id.get_type()
        said["committed"] = [of("shades").committed(), of("points").committed(), of("nested").committed(),
                             h5py.h5a.open(a.id, b"shade").get_type().committed()]
        said["filters"] = [a.compression, a.compression_opts, a.shuffle, a.fletcher32, list(a.chunks), int(a.fillvalue)]
        said["scale"] = [a.dims[1][0].name, f["x"].is_scale]
        said["nested"] = [v.tolist() for v in f["nested"][:]].__repr__()
        said["ragged"] = [v.tolist() for v in f["ragged"][:]]
        said["texts"] = [v.decode() for v in f["texts"][:]]
        said["opaque"] = [bytes(v).hex() for v in f["opaque"][:]]
        said["matrix"] = [str(a.attrs["matrix"].dtype), a.attrs["matrix"].tolist()]
        said["nothing"] = isinstance(a.attrs["nothing"], h5py.Empty)
        said["a"] = int(a[...].sum())
else:
    import netCDF4

    with netCDF4.Dataset(path) as d:
        d.set_auto_mask(False)
        said["enums"] = sorted(d.enumtypes)
        said["compounds"] = sorted(d.cmptypes)
        said["vlens"] = sorted(d.vltypes)
        said["shades"] = d["shades"][:].tolist()
        said["points"] = d["points"][:].tolist().__repr__()
        said["ragged"] = [np.asarray(v).tolist() for v in d["ragged"][:]]
        said["texts"] = list(d["texts"][:])
        said["a"] = [int(d["g/a"][...].sum()), list(d["g/a"].dimensions), d["g/a"].chunking()]
print(json.dumps(said))
