"""Random selections of random arrays, as NumPy answers them.

    python selections.py OUT SEED COUNT

Writes arrays.h5 with arrays of many ranks, types and layouts, and cases.json: [dataset, mode, selection, shape, sha256 of the
elements in C order] with the selection in NumPy's syntax; mode is "numpy", or "outer" where each list picks along its own axis.
"""

import hashlib
import json
import os
import sys

import h5py
import numpy as np

out, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
os.makedirs(out, exist_ok=True)
rng = np.random.default_rng(seed)
TYPES = ["<i4", ">i2", "u1", "<f8", ">f4", "<i8", "<f2"]


def make(f, name):
    rank = int(rng.integers(0, 6))
    shape = tuple(int(rng.choice([0, 1, 2, 3, 5, 7, 12, 30], p=[0.03, 0.07, 0.1, 0.15, 0.2, 0.2, 0.15, 0.1])) for _ in range(rank))
    data = rng.integers(0, 120, shape).astype(rng.choice(TYPES))
    keywords = {}
    if rank and rng.random() < 0.75:
        limit = [None if rng.random() < 0.3 else n + int(rng.integers(0, 9)) for n in shape]
        keywords["chunks"] = tuple(int(rng.integers(1, max(n, 1) + 1)) for n in shape)
        keywords["maxshape"] = tuple(m if m != 0 else None for m in limit)
        if rng.random() < 0.5:
            keywords.update(compression="gzip", shuffle=bool(rng.random() < 0.5))
    f.create_dataset(name, data=data, **keywords)
    return data


def number(n):
    return int(rng.integers(-n, n))


def a_slice(n):
    ends = [None if rng.random() < 0.4 else int(rng.integers(-n - 3, n + 4)) for _ in range(2)]
    step = int(rng.choice([1, 1, 2, 3, 7, -1, -1, -2, -5]))
    return slice(ends[0], ends[1], None if step == 1 and rng.random() < 0.5 else step)


def a_list(n, size=None):
    size = int(rng.integers(0, 7)) if size is None else size
    return [number(n) for _ in range(size)] if n else []


def a_mask(n):
    return [bool(b) for b in rng.random(n) < rng.choice([0.1, 0.5, 0.9])]


def words(item):
    if isinstance(item, slice):
        text = f"{'' if item.start is None else item.start}:{'' if item.stop is None else item.stop}"
        return text if item.step is None else f"{text}:{item.step}"
    if item is Ellipsis:
        return "..."
    return str(item)


def random_case(data):
    """A selection that NumPy takes, and its answer."""
    shape = data.shape
    mode = "outer" if rng.random() < 0.3 else "numpy"
    items, axis = [], 0
    length = int(rng.integers(0, 5))
    lists = 0
    ellipsis = rng.random() < 0.25
    while axis < len(shape):
        n, kind = shape[axis], rng.random()
        if rng.random() < 0.07:
            items.append(None)
        if ellipsis and rng.random() < 0.3:
            ellipsis = False
            items.append(Ellipsis)
            axis += int(rng.integers(0, len(shape) - axis + 1))
            continue
        if kind < 0.25 and n:
            items.append(number(n))
        elif kind < 0.6:
            items.append(a_slice(n))
        elif kind < 0.8:
            items.append(a_list(n, length if mode == "numpy" and lists else None))
            length = len(items[-1])
            lists += 1
        elif kind < 0.9 and (mode == "outer" or not lists):
            mask = a_mask(n)
            if mode == "numpy":
                length = sum(mask)
            items.append(mask)
            lists += 1
        elif rng.random() < 0.5:
            break
        else:
            items.append(slice(None))
        axis += 1
    # What was passed over by an ellipsis must not be asked for again.
    if any(isinstance(i, list) and not i for i in items) and mode == "numpy":
        arrays = tuple(np.array(i, "i8") if isinstance(i, list) and not i else i for i in items)
    else:
        arrays = tuple(items)
    if mode == "numpy":
        answer = data[arrays]
    else:
        answer, at = data, 0
        # Integers and slices by NumPy, lists one axis after the other.
        basic = tuple(slice(None) if isinstance(i, list) else i for i in items)
        answer = data[basic]
        position, passed = 0, sum(1 for i in items if i is not None and i is not Ellipsis)
        for item in items:
            if item is Ellipsis:
                position += data.ndim - passed
            elif isinstance(item, list):
                answer = answer.take(np.flatnonzero(item) if item and isinstance(item[0], bool) else np.array(item, "i8"), axis=position) if item else answer.take(np.array([], "i8"), axis=position)
                position += 1
            elif not isinstance(item, int):
                position += 1
    return mode, "[" + ", ".join(words(i) for i in items) + "]", answer


cases = []
with h5py.File(os.path.join(out, "arrays.h5"), "w", libver="latest") as f:
    arrays = {f"a{i}": make(f, f"a{i}") for i in range(max(count // 25, 10))}
while len(cases) < count:
    name = f"a{int(rng.integers(0, len(arrays)))}"
    try:
        mode, text, answer = random_case(arrays[name])
    except IndexError:
        continue
    answer = np.asarray(answer)
    little = answer.astype(answer.dtype.newbyteorder("<"))
    cases.append([name, mode, text, list(answer.shape), hashlib.sha256(little.tobytes()).hexdigest()])
with open(os.path.join(out, "cases.json"), "w") as file:
    json.dump(cases, file)
print(len(cases), "cases")
