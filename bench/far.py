"""Reads files over HTTP with hyperslab, fsspec + h5py and netCDF4 `#mode=bytes`, and counts what they ask of the server.

    far.py HYPERSLAB FOLDER [slice|chunks|list ...]    the program, and a folder with far_netcdf.nc, far_chunks.h5, far_objects.h5

The server runs here. It waits 20 ms before each answer, and sends 20 MiB/s on each connection. Times of readers in Python
leave out the start of Python; those of hyperslab are of the whole process. A wave is a run of requests of which none began
after another had ended: one after the other, waves are round trips.
"""

import concurrent.futures
import http.client
import http.server
import pathlib
import subprocess
import sys
import threading
import time

LATENCY = 0.020
RATE = 20 << 20
REPEAT = 3
# Seconds after which a run is not repeated.
SLOW = 5


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_HEAD(self):
        self.answer(False)

    def do_GET(self):
        self.answer(True)

    def answer(self, body):
        begun = time.monotonic()
        data = self.server.files.get(self.path.split("?")[0])
        time.sleep(LATENCY)
        if data is None:
            self.send_error(404)
            return
        first, end, wanted = 0, len(data), self.headers.get("Range")
        if wanted:
            a, b = wanted.removeprefix("bytes=").split("-")
            first = int(a) if a else len(data) - int(b)
            end = min(int(b) + 1, len(data)) if a and b else len(data)
        self.send_response(206 if wanted else 200)
        if wanted:
            self.send_header("Content-Range", f"bytes {first}-{end - 1}/{len(data)}")
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(end - first))
        self.send_header("ETag", f'"{len(data)}"')
        self.end_headers()
        sent = 0
        try:
            while body and first + sent < end:
                start, piece = time.monotonic(), data[first + sent : min(first + sent + (256 << 10), end)]
                self.wfile.write(piece)
                sent += len(piece)
                time.sleep(max(0.0, len(piece) / RATE - (time.monotonic() - start)))
        except OSError:
            self.close_connection = True
        self.server.log.append((begun, time.monotonic(), sent))

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, folder):
        super().__init__(("127.0.0.1", 0), Handler)
        names = ("far_netcdf.nc", "far_chunks.h5", "far_objects.h5")
        self.files = {f"/{name}": memoryview((folder / name).read_bytes()) for name in names}
        self.log = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def url(self, name):
        return f"http://127.0.0.1:{self.server_address[1]}/{name}"

    def count(self):
        log, self.log = sorted(self.log), []
        waves, end = 0, None
        for begun, ended, _ in log:
            if end is None or begun >= end:
                waves, end = waves + 1, ended
        return len(log), waves, sum(sent for *_, sent in log)


FSSPEC = """
import sys, time, fsspec, h5py
url, work, options = sys.argv[1:]
fs = fsspec.filesystem("http", asynchronous=False)
begun = time.perf_counter()
with fs.open(url, **eval(options)) as raw, h5py.File(raw) as f:
    {
        "slice": lambda: f["var07"][3, 10:20, ::7],
        "chunks": lambda: f["x"][...],
        # A visit ends at the first answer that is something.
        "list": lambda: f.visititems(lambda name, item: [dict(item.attrs), None][1]),
    }[work]()
print(time.perf_counter() - begun)
"""

NETCDF = """
import sys, time, netCDF4
url, work, _ = sys.argv[1:]
begun = time.perf_counter()
def walk(group):
    for item in list(group.variables.values()) + [group]:
        item.__dict__
    for below in group.groups.values():
        walk(below)
with netCDF4.Dataset(url + "#mode=bytes") as f:
    {
        "slice": lambda: f["var07"][3, 10:20, ::7],
        "chunks": lambda: f["x"][...],
        "list": lambda: walk(f),
    }[work]()
print(time.perf_counter() - begun)
"""


def python(script, options="{}"):
    def run(url, work):
        arguments = [sys.executable, "-c", script, url, work, options]
        output = subprocess.run(arguments, capture_output=True, text=True)
        if output.returncode != 0:
            raise RuntimeError(output.stderr.strip().splitlines()[-1])
        return float(output.stdout.split()[-1])

    return run


def hyperslab(program):
    def run(url, work):
        arguments = {
            "slice": ["get", f"{url}::/var07[3, 10:20, ::7]", "--format", "raw"],
            "chunks": ["get", f"{url}::/x", "--format", "raw"],
            "list": ["ls", "-r", url],
        }[work]
        begun = time.perf_counter()
        subprocess.run([program, *arguments], check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - begun

    return run


def bare(url, work):
    """The bytes of the chunks in 24 connections, looked at by nobody."""
    if work != "chunks":
        raise RuntimeError("-")
    host, path = url.removeprefix("http://").split("/", 1)
    local = threading.local()

    def get(i):
        if not hasattr(local, "connection"):
            local.connection = http.client.HTTPConnection(host)
        first = 4016 + (i << 20)
        local.connection.request("GET", "/" + path, headers={"Range": f"bytes={first}-{first + (1 << 20) - 1}"})
        return len(local.connection.getresponse().read())

    begun = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(24) as pool:
        assert sum(pool.map(get, range(100))) == 100 << 20
    return time.perf_counter() - begun


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    server = Server(folder)
    readers = {
        "hyperslab": hyperslab(program),
        "fsspec + h5py": python(FSSPEC),
        "fsspec 512 KiB blocks": python(FSSPEC, "{'block_size': 512 << 10, 'cache_type': 'blockcache'}"),
        "netCDF4 #mode=bytes": python(NETCDF),
        "bare transfer": bare,
    }
    only = sys.argv[3:]
    works = [
        ("slice", "far_netcdf.nc", "open 21 variables (9 MB), read one slice"),
        ("chunks", "far_chunks.h5", "read 100 chunks of 1 MiB"),
        ("list", "far_objects.h5", "list 2,000 objects with attributes"),
    ]
    for work, file, title in works:
        if only and work not in only:
            continue
        print(f"\n{title}\n{'':24}{'requests':>9}{'waves':>7}{'bytes':>12}{'ms':>8}{'times hyperslab':>17}")
        ours = None
        for name, run in readers.items():
            try:
                times = []
                for _ in range(REPEAT):
                    server.count()
                    times.append(run(server.url(file), work))
                    # What was answered is counted when it was sent.
                    time.sleep(0.05)
                    requests, waves, sent = server.count()
                    if times[0] > SLOW:
                        break
            except (RuntimeError, subprocess.CalledProcessError) as e:
                if str(e) != "-":
                    print(f"{name:24} {str(e)[:100]}")
                continue
            best = min(times)
            ours = ours or best
            print(f"{name:24}{requests:>9}{waves:>7}{sent:>12,}{best * 1e3:>8.0f}{best / ours:>17.2f}")


main()
