"""Random operations on staged arrays of versioned-hdf5, and the state after each.

    staged.py FOLDER SEED COUNT

writes FOLDER/cases.json: a list of sequences, each with how the array was made and its operations; after each one the
elements, the chunk map, the extents of all slabs and, after a commit, the hash tables; before an assignment, its plan.
"""

import json
import random
import re
import sys
from pathlib import Path

import numpy as np
from versioned_hdf5.staged_changes import StagedChangesArray

TYPES = {"<i8": "i64le", ">f4": "f32be", "|u1": "u8"}


SPAN = re.compile(r"(\d+):(\d+):(\d+)")


def plain(span):
    """One element is not written with a step."""
    start, stop, step = map(int, span.groups())
    return f"{start}:{stop}" if stop == start + 1 else span.group()


def index(rng, shape):
    """A selection that both take: one for NumPy, and as text."""
    items, words, listed = [], [], False
    for n in shape:
        kind = rng.randrange(8)
        if kind == 0 and n and not listed:
            i = rng.randrange(-n, n)
            items.append(i)
            words.append(str(i))
        elif kind == 1 and n and not listed:
            listed = True
            picked = [rng.randrange(-n, n) for _ in range(rng.randrange(1, 7))]
            items.append(picked)
            words.append(str(picked))
        elif kind == 2 and n and not listed:
            listed = True
            mask = [rng.random() < 0.5 for _ in range(n)]
            items.append(np.array(mask))
            words.append(str(mask))
        elif kind == 3:
            start, stop, step = rng.randrange(0, n + 1), rng.randrange(0, n + 3), rng.randrange(2, 5)
            items.append(slice(start, stop, step))
            words.append(f"{start}:{stop}:{step}")
        elif kind == 4:
            items.append(slice(None))
            words.append(":")
        else:
            start, stop = rng.randrange(-n - 1, n + 1), rng.randrange(-n - 1, n + 3)
            items.append(slice(start, stop))
            words.append(f"{start}:{stop}")
    # An integer beside a list counts as one for NumPy: not both.
    if listed and any(isinstance(i, int) for i in items):
        return index(rng, shape)
    return tuple(items), "[" + ", ".join(words) + "]"


def state(array):
    return {
        "shape": list(array.shape),
        "data": np.ascontiguousarray(array[()]).tobytes().hex(),
        "indices": array.slab_indices.ravel().tolist(),
        "offsets": array.slab_offsets.ravel().tolist(),
        "slabs": [None if s is None else list(s.shape) for s in array.slabs],
        "bases": array.n_base_slabs,
    }


def hashes(array):
    tables = array.hash_tables[: array.n_base_slabs + 1]
    return [None if t is None else [row.tobytes().hex() for row in np.ascontiguousarray(t)] for t in tables]


def sequence(rng):
    rank = rng.randrange(1, 4)
    shape = [rng.randrange(1, 40 if rank == 1 else 11) for _ in range(rank)]
    chunk = [rng.randrange(1, 5) for _ in range(rank)]
    dtype = rng.choice(list(TYPES))
    fill = rng.choice([0, 7])
    how = rng.choice(["full", "base", "staged"])
    data = np.array([rng.randrange(5) for _ in range(int(np.prod(shape)))]).reshape(shape).astype(dtype)
    case = {"shape": shape, "chunk": chunk, "dtype": TYPES[dtype], "fill": fill, "how": how, "steps": []}
    case["data"] = data.tobytes().hex()
    if how == "full":
        array = StagedChangesArray.full(tuple(shape), chunk_size=tuple(chunk), fill_value=fill, dtype=dtype)
    else:
        array = StagedChangesArray.from_array(
            data, chunk_size=tuple(chunk), fill_value=fill, as_base_slabs=how == "base"
        )
    for _ in range(rng.randrange(2, 9)):
        what = rng.choice(["set"] * 6 + ["resize"] * 4 + ["load", "commit", "commit", "copy", "refill", "astype"])
        step = {"what": what}
        if what == "set":
            items, step["selection"] = index(rng, array.shape)
            wanted = array[items].shape
            own = [n if rng.random() < 0.8 else 1 for n in wanted]
            # What is done, without the summary in front and the map behind it. How points are gathered into slices, and in
            # which order, is a choice where they are not evenly spaced.
            even = all(
                len(set(steps := np.diff(np.flatnonzero(item) if isinstance(item, np.ndarray) else np.array(item) % n))) < 2
                and np.all(steps > 0)
                for item, n in zip(items, array.shape)
                if isinstance(item, (list, np.ndarray))
            )
            lines = str(array._setitem_plan(items)).splitlines()
            lines = [SPAN.sub(plain, line) for line in lines if line.startswith(("  s", "  #"))]
            step["plan"] = lines if even else None
            value = np.array([rng.randrange(5) for _ in range(int(np.prod(own)))]).reshape(own).astype(dtype)
            step["values"], step["extents"] = value.tobytes().hex(), own
            array[items] = value
        elif what == "resize":
            new = [max(0, n + rng.choice([0, 0, -4, -2, -1, 1, 2, 3, 5])) for n in array.shape]
            step["shape"] = new
            array.resize(tuple(new))
        elif what == "load":
            array.load()
        elif what == "commit":
            array.commit(np.empty)
            step["hashes"] = hashes(array)
        elif what == "copy":
            array = array.copy()
        elif what == "refill":
            step["fill"] = rng.randrange(9)
            array = array.refill(step["fill"])
        else:
            dtype = rng.choice(list(TYPES))
            step["dtype"] = TYPES[dtype]
            array = array.astype(dtype)
        step["after"] = state(array)
        case["steps"].append(step)
    return case


def main():
    folder, seed, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(seed)
    cases = [sequence(rng) for _ in range(count)]
    (folder / "cases.json").write_text(json.dumps(cases))


main()
