#!/usr/bin/env python3
"""Compare `hyperslab dump` with `ncdump`, byte for byte, on every netCDF file below a folder.

    cdl.py ROOT [--tool target/release/hyperslab] [--min PCT] [--show N]

Needs ncdump (Debian: netcdf-bin). Each file that ncdump opens is printed as a header, in full, and as a header with
special attributes. Lines in which we say what netCDF can't show are passed over. The last line is the figure; exit 0 if
at least PCT % are equal and nothing crashed.
"""
import argparse
import os
import subprocess
import sys

MODES = [["-h"], [], ["-s", "-h"]]
MAGIC = (b"CDF\x01", b"CDF\x02", b"CDF\x05", b"\x89HDF")


def run(command, path):
    try:
        return subprocess.run(command + [path], capture_output=True, timeout=120)
    except subprocess.TimeoutExpired:
        return None


def files(root):
    for folder, folders, names in os.walk(root):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(folder, name)
            with open(path, "rb") as f:
                if f.read(4) in MAGIC:
                    yield path


def is_netcdf(path):
    """All netCDF-3 files, and HDF5 files that say they are netCDF by name or mark."""
    with open(path, "rb") as f:
        head = f.read()
    named = path.rsplit(".", 1)[-1].lower() in ("nc", "nc4", "nc3", "ncd", "cdf", "ncdf")
    return head[:3] == b"CDF" or named or b"_NCProperties" in head or b"_nc3_strict" in head


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("root")
    parser.add_argument("--tool", default="target/release/hyperslab")
    parser.add_argument("--min", type=float, default=95.0)
    parser.add_argument("--show", type=int, default=10)
    a = parser.parse_args()
    total = equal = crashed = shown = 0
    for path in files(a.root):
        if not is_netcdf(path):
            continue
        for mode in MODES:
            theirs = run(["ncdump"] + mode, path)
            ours = run([a.tool, "dump"] + mode, path)
            if ours is None or ours.returncode < 0 or ours.returncode > 2 or b"panicked" in ours.stderr:
                crashed += 1
                print("CRASH", mode, path)
            if theirs is None or theirs.returncode != 0 or ours is None:
                continue
            total += 1
            kept = b"".join(l for l in ours.stdout.splitlines(True) if b"// not shown" not in l)
            if kept == theirs.stdout:
                equal += 1
            elif shown < a.show:
                shown += 1
                print("DIFF", " ".join(mode), path, ours.stderr[:200].decode("utf-8", "replace"))
                mine, other = kept.split(b"\n"), theirs.stdout.split(b"\n")
                pairs = [(i, m, o) for i, (m, o) in enumerate(zip(mine, other)) if m != o]
                for i, m, o in pairs[:3]:
                    print(f"  line {i + 1}\n    ours   {m[:200]!r}\n    ncdump {o[:200]!r}")
                if not pairs:
                    print(f"  {len(mine)} lines, {len(other)} of ncdump")
    pct = 100.0 * equal / total if total else 0.0
    print(f"{equal} of {total} dumps equal ({pct:.2f} %), {crashed} crashes; want {a.min} % and 0")
    sys.exit(0 if total and pct >= a.min and not crashed else 1)


main()
