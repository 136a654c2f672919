"""Makes a file of versions with the versioned-hdf5 that is installed. versions_1.h5, versions_2.h5 and versions_3.h5 are of releases
1.3.14, 1.4.3 and 1.5.0, which write data versions 1, 2 and 3.

    make_old_versions.py FILE
"""

import datetime
import sys

import h5py
import numpy as np
from versioned_hdf5 import VersionedHDF5File

START = datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc)

with h5py.File(sys.argv[1], "w", libver="v110") as f:
    vf = VersionedHDF5File(f)

    def stage(day):
        return vf.stage_version(f"r{day}", timestamp=START + datetime.timedelta(days=day))

    with stage(1) as g:
        g.create_dataset("x", data=np.arange(23, dtype="<i4") % 5, chunks=(5,), fillvalue=-1)
        y = np.add.outer(np.arange(6), np.arange(5)).astype("<f8")
        g.create_dataset("deep/y", data=y, chunks=(4, 2), compression="gzip")
        texts = np.array(["a", "bc", "", "é", "bc"], dtype=object)
        g.create_dataset("t", data=texts, dtype=h5py.string_dtype(), chunks=(2,))
        g["x"].attrs["units"] = "m"
    with stage(2) as g:
        g["x"].resize((30,))
        g["x"][3:9] = 7
        g["deep/y"][1, :] = 7.5
        g["t"][1] = "new"
    with stage(3) as g:
        g["x"].resize((12,))
        del g["t"]
