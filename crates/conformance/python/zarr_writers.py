"""Reads Zarr that hyperslab wrote: `zarr_writers.py COMMAND FOLDER`. Prints how much was compared, then what is wrong.

Where nothing else is said, element i of an array, in C order, is 7 i mod 101.
"""

import json
import os
import sys
import warnings
import zipfile
from pathlib import Path

import numpy as np
import xarray
import zarr

warnings.simplefilter("ignore")
wrong = []
total = 0


def check(what, good, found=""):
    global total
    total += 1
    if not good:
        wrong.append(f"{what}: {found}")


def counted(shape, dtype):
    return (np.arange(int(np.prod(shape, dtype=int))) * 7 % 101).reshape(shape).astype(dtype)


def zip_files(folder):
    for path in sorted(folder.glob("*.zip")):
        with zipfile.ZipFile(path) as archive:
            check(f"{path.name}: sums", archive.testzip() is None)
            names = archive.namelist()
            check(f"{path.name}: names", len(set(names)) == len(names))
            prefix = f"{path.name}/"
            if path.name.startswith("nc"):
                # As netCDF-C looks for them: the folder unpacked is a store.
                check(f"{path.name}: prefix", all(name.startswith(prefix) for name in names), names)
                archive.extractall(folder / "unpacked")
                import netCDF4

                with netCDF4.Dataset(f"file://{folder}/unpacked/{path.name}#mode=nczarr,file") as data:
                    a = data["g/a"]
                    a.set_auto_maskandscale(False)
                    wanted = counted((7, 10), "i4")
                    wanted[3] = 100
                    check(f"{path.name} in netCDF", np.array_equal(a[...], wanted) and a.edited == 1, a[...])
                continue
        store = zarr.storage.ZipStore(path, mode="r")
        group = zarr.open_group(store, mode="r")
        if path.name.startswith("many"):
            check("more than 65535 entries", len(names) > 65535, len(names))
            wanted = counted((67_000,), "u1")
            wanted[-1] = 77
            array = group["many"]
            for part in (slice(0, 40), slice(30_000, 30_040), slice(66_960, 67_000)):
                check(f"many {part}", np.array_equal(array[part], wanted[part]), array[part])
            store.close()
            continue
        wanted = counted((7, 10), "i4")
        wanted[3] = 100
        check(f"{path.name}/g/a", np.array_equal(group["g/a"][...], wanted), group["g/a"][...])
        check(f"{path.name}/g/a edited", dict(group["g/a"].attrs) == {"edited": 1}, dict(group["g/a"].attrs))
        check(f"{path.name}/b", np.array_equal(group["b"][...], counted((300, 300), "f8")))
        store.close()


def no_constant(word):
    raise ValueError(f"{word} is no JSON")


def consolidated(folder):
    for path in sorted(folder.iterdir()):
        documents = {}
        for root, _, names in os.walk(path):
            for name in names:
                if name in ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata"):
                    key = os.path.relpath(os.path.join(root, name), path)
                    text = Path(root, name).read_text()
                    try:
                        documents[key] = json.loads(text, parse_constant=no_constant)
                    except ValueError as e:
                        check(f"{path.name}/{key}", False, e)
        if ".zmetadata" in documents:
            said = documents.pop(".zmetadata")["metadata"]
        else:
            said = documents["zarr.json"].pop("consolidated_metadata")["metadata"]
            documents.pop("zarr.json")
            documents = {key.rpartition("/")[0]: value for key, value in documents.items()}
        check(f"{path.name}", said == documents, sorted(set(said) ^ set(documents)) or "contents differ")
        try:
            with_it = zarr.open_consolidated(str(path), mode="r")
            without = zarr.open_group(str(path), mode="r", use_consolidated=False)
            names = lambda group: sorted((k, type(v).__name__) for k, v in group.members(max_depth=None))
            check(f"{path.name} members", names(with_it) == names(without), names(with_it))
        except Exception as e:
            check(f"{path.name} in zarr-python", False, f"{type(e).__name__}: {e}")


def bucket(folder):
    group = zarr.open_group(str(folder / "b.zarr"), mode="r")
    found = group["w"][...]
    check("b.zarr/w", list(found[:3]) == [1, 7, 3] and found[4] == 9 and len(found) == 5, found)
    check("b.zarr/w units", group["w"].attrs["units"] == "km", dict(group["w"].attrs))
    zarr.open_consolidated(str(folder / "b.zarr"), mode="r")


def xarray_make(folder):
    time = np.arange(10)
    data = xarray.Dataset(
        {
            "field": (("time", "y", "x"), counted((10, 4, 5), "f4"), {"units": "K", "coordinates": "lat"}),
            "level": (("y",), np.array([1, 2, 3, 4], "i2")),
            "one": ((), np.int32(7)),
        },
        coords={"time": ("time", time, {"long_name": "t"}), "x": np.linspace(0, 1, 5), "y": np.arange(4)},
        attrs={"title": "made"},
    )
    data["lat"] = (("y", "x"), np.ones((4, 5)))
    del data["field"].attrs["coordinates"]
    data = data.set_coords("lat")
    data.to_netcdf(folder / "a.nc", unlimited_dims=["time"])
    encoding = {"field": {"chunks": (4, 4, 5)}, "time": {"chunks": (4,)}}
    data.to_zarr(folder / "theirs2.zarr", zarr_format=2, consolidated=True, encoding=encoding)
    data.to_zarr(folder / "theirs3.zarr", zarr_format=3, consolidated=True, encoding=encoding)


def xarray_check(folder):
    with xarray.open_dataset(folder / "a.nc") as wanted:
        wanted.load()
    for version in (2, 3):
        path = folder / f"ours{version}.zarr"
        with xarray.open_zarr(path, consolidated=True) as found:
            found.load()
            check(f"{path.name} dims", dict(found.sizes) == dict(wanted.sizes), dict(found.sizes))
            check(f"{path.name} coords", set(found.coords) == set(wanted.coords), set(found.coords))
            check(f"{path.name}", found.equals(wanted), found)
            check(f"{path.name} attributes", found.attrs == wanted.attrs and found.field.attrs == wanted.field.attrs)
        # Ours, extended by xarray.
        more = wanted.isel(time=slice(0, 5)).assign_coords(time=np.arange(10, 15))
        for name in ("x", "y", "level", "one", "lat"):
            more = more.drop_vars(name)
        more.field.encoding.clear()
        more.time.encoding.clear()
        try:
            more.to_zarr(path, append_dim="time", consolidated=True)
            with xarray.open_zarr(path, consolidated=True) as found:
                check(f"{path.name} extended", list(found.time.values) == list(range(15)), found.time.values)
                check(f"{path.name} rows", np.array_equal(found.field[10:], wanted.field[:5]))
                check(f"{path.name} before", np.array_equal(found.field[:10], wanted.field))
        except Exception as e:
            check(f"{path.name} extended", False, f"{type(e).__name__}: {e}")
        # Theirs, extended by us.
        path = folder / f"theirs{version}.zarr"
        with xarray.open_zarr(path, consolidated=True) as found:
            check(f"{path.name} extended", found.sizes["time"] == 15, dict(found.sizes))
            check(f"{path.name} rows", bool((found.field[10:] == 42).all() and (found.time[10:] == 42).all()))
            check(f"{path.name} before", np.array_equal(found.field[:10], wanted.field))


def nested_make(folder):
    from zarr.codecs import BytesCodec, GzipCodec, ShardingCodec, TransposeCodec, ZstdCodec

    group = zarr.open_group(str(folder / "shards.zarr"), mode="w", zarr_format=3)
    inner = ShardingCodec(chunk_shape=(2, 2), codecs=[BytesCodec(), ZstdCodec()])
    codecs = {
        "nested": [ShardingCodec(chunk_shape=(4, 4), codecs=[inner])],
        "compressed": [ShardingCodec(chunk_shape=(4, 2), codecs=[BytesCodec()]), GzipCodec()],
        "turned": [TransposeCodec(order=(1, 0)), ShardingCodec(chunk_shape=(4, 2), codecs=[BytesCodec()])],
        "all": [
            TransposeCodec(order=(1, 0)),
            ShardingCodec(
                chunk_shape=(8, 4),
                codecs=[
                    TransposeCodec(order=(1, 0)),
                    ShardingCodec(chunk_shape=(2, 4), codecs=[BytesCodec()], index_location="start"),
                    GzipCodec(),
                ],
            ),
            ZstdCodec(),
        ],
        "cut": [ShardingCodec(chunk_shape=(4, 4), codecs=[inner])],
    }
    for name, list_ in codecs.items():
        array = zarr.create(
            shape=(16, 16), chunks=(8, 8), dtype="i4", codecs=list_, zarr_format=3, fill_value=9,
            store=str(folder / "shards.zarr" / name), overwrite=True,
        )
        array[...] = counted((16, 16), "i4")
    path = folder / "objects.zarr"
    (path / "texts").mkdir(parents=True)
    (path / "mixed").mkdir()
    (path / ".zgroup").write_text('{"zarr_format": 2}')
    import numcodecs

    codec = numcodecs.JSON()
    for name, values in (("texts", [["a", "b"], ["c", "d"]]), ("mixed", [[1, "b"], ["c", None]])):
        document = {
            "zarr_format": 2, "shape": [2, 4], "chunks": [2, 2], "dtype": "|O", "fill_value": "", "order": "C",
            "compressor": {"id": "zlib", "level": 1}, "filters": [codec.get_config()],
        }
        (path / name / ".zarray").write_text(json.dumps(document))
        chunk = numcodecs.Zlib().encode(codec.encode(np.array(values, dtype=object)))
        (path / name / "0.0").write_bytes(chunk)


def nested(folder):
    group = zarr.open_group(str(folder / "shards.zarr"), mode="r")
    wanted = counted((16, 16), "i4")
    wanted[1:7, 3:6] = 200
    for name in ("nested", "compressed", "turned", "all"):
        check(name, np.array_equal(group[name][...], wanted), group[name][...])
    wanted = counted((16, 16), "i4")
    wanted[5:] = 9
    check("cut", np.array_equal(group["cut"][...], wanted), group["cut"][...])
    import numcodecs

    for key, wanted in (("0.0", [["a", "b"], ["c", 'new "é"']]), ("0.1", [["", ""], ["", ""]])):
        path = folder / "objects.zarr/texts" / key
        if not path.exists():
            check(key, all(v == "" for row in wanted for v in row))
            continue
        chunk = numcodecs.JSON().decode(numcodecs.Zlib().decode(path.read_bytes()))
        check(key, chunk.tolist() == wanted, chunk)


command, folder = sys.argv[1], Path(sys.argv[2])
commands = {
    "bucket": bucket,
    "nested": nested,
    "nested-make": nested_make,
    "consolidated": consolidated,
    "xarray": xarray_check,
    "xarray-make": xarray_make,
    "zip": zip_files,
}
commands[command](folder)
print(total)
print("\n".join(wrong))
