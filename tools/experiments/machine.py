"""One boot of the kernel that runs a shell script, and what comes back: the numbers behind each marker.

Every boot is deterministic: time counts instructions (--icount), and the disk is in memory (--ramdisk) behind the I/O
gate's model of a disk. A script prints a line `== key=value ...` and then lets a program print lines `name: value`.
"""

import os
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("BUILD") or "build")

BOOTS_AT_ONCE = 2
LIMIT_S = 900
MARKER = "== "
SCRIPT_MAX = 3500  # the kernel's command line has 4096 bytes

PRELUDE = ("mark() { echo == $*; }; knob() { echo $2 >/proc/sys/vm/$1; }; "
           "window() { echo $1 >/sys/block/ram0/queue/read_ahead_kb; }; "
           "fresh() { echo 3 >/proc/sys/vm/drop_caches; sleep 1; }\n")


class Failed(Exception):
    """A boot gave no numbers; the text says which and why."""


@dataclass(frozen=True)
class Disk:
    """The three numbers of the model: latency overlaps, the other two occupy the disk. Bandwidth 0 is infinite."""
    latency_ns: int = 0
    per_request_ns: int = 0
    bandwidth: int = 0

    def shell(self):
        return "".join(f"echo {value} >/sys/block/ram0/gate/{name}\n" for name, value in
                       (("latency_ns", self.latency_ns), ("per_request_ns", self.per_request_ns),
                        ("bandwidth", self.bandwidth)))

    def words(self):
        bandwidth = f"{self.bandwidth:,} bytes/s" if self.bandwidth else "infinite"
        return (f"latency {self.latency_ns:,} ns, per request {self.per_request_ns:,} ns, "
                f"bandwidth {bandwidth}")


@dataclass
class Boot:
    name: str
    script: str
    image: str = "small"      # build/NAME.img
    mem_mib: int = 512
    cpus: int = 1
    shift: int = 0            # an instruction takes 2^shift ns
    disk: Disk = field(default_factory=Disk)

    def words(self):
        """The machine in one sentence, for the report."""
        each = 1 << self.shift
        return (f"{self.cpus} CPU{'s' if self.cpus > 1 else ''}, {self.mem_mib} MiB, {each} ns an instruction; "
                f"disk: {self.disk.words()}")


def run(boot):
    """=> the records of the boot: a list of (labels, numbers), both dictionaries of strings."""
    script = PRELUDE + boot.disk.shell() + boot.script
    if len(script) > SCRIPT_MAX:
        raise Failed(f"{boot.name}: the script has {len(script)} bytes, the command line takes {SCRIPT_MAX}")
    with tempfile.NamedTemporaryFile(prefix="faultline-experiment.", suffix=".log") as log:
        command = [os.path.join(ROOT, "tools", "qemu"), f"--icount={boot.shift}", "--smp", str(boot.cpus),
                   "--mem", str(boot.mem_mib), "--ramdisk", os.path.join(BUILD, f"{boot.image}.img"),
                   "--timeout", str(LIMIT_S), "--log", log.name, "--", "/bin/sh", "-c", script]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                              timeout=LIMIT_S + 60, check=False)
    if done.returncode != 0:
        raise Failed(f"{boot.name}: status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return records_of(done.stdout)


def records_of(out):
    records = []
    for line in out.splitlines():
        if line.startswith(MARKER):
            records.append((dict(word.partition("=")[::2] for word in line[len(MARKER):].split()), {}))
            continue
        name, colon, value = line.partition(": ")
        if records and colon and name.replace("_", "").isalnum():
            records[-1][1][name] = value.strip()
    return records


def run_all(boots, say=lambda text: print(text, file=sys.stderr, flush=True)):
    """Runs all boots, two at a time. => {name: records}"""
    lock, ended = threading.Lock(), []

    def one(boot):
        records = run(boot)
        with lock:
            ended.append(boot.name)
            say(f"  {len(ended):3}/{len(boots)}  {boot.name}: {len(records)} runs")
        return records

    with ThreadPoolExecutor(BOOTS_AT_ONCE) as pool:
        futures = {boot.name: pool.submit(one, boot) for boot in boots}
        try:
            return {name: future.result() for name, future in futures.items()}
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
