"""Running programs under the kernel, and the same binaries on this machine's Linux."""

import os
import signal
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.join(ROOT, os.environ.get("BUILD") or "build")
DISK = os.path.join(BUILD, "disk.img")
SMALL = os.path.join(BUILD, "small.img")
BOOTS_AT_ONCE = 2
HOST_LIMIT_S = 120


@dataclass
class Result:
    status: int
    out: str
    err: str = ""
    log: str = ""

    def explain(self):
        """For an assertion's message: all there is, the log only from its end."""
        tail = "\n".join(self.log.splitlines()[-30:])
        return (f"status {self.status}\n--- stdout\n{self.out}\n--- stderr\n{self.err}\n"
                f"--- the kernel's log\n{tail}")


def text(data):
    return data.decode("utf-8", "replace").replace("\r\n", "\n")


def boot(program, *args, image=SMALL, smp=1, ramdisk=False, icount=False, mem=512, timeout=120,
         append=None, options=()):
    """Boots the kernel for one program of the image; None: for what it starts by itself."""
    command = [os.path.join(ROOT, "tools", "qemu"), "--ramdisk" if ramdisk else "--disk", image,
               "--smp", str(smp), "--mem", str(mem), "--timeout", str(timeout), *options]
    command += ["--icount"] if icount else []
    command += ["--append", append] if append else []
    with tempfile.NamedTemporaryFile(prefix="faultline-", suffix=".log") as log:
        command += ["--log", log.name] + (["--", program, *args] if program else [])
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False,
                              timeout=timeout + 30)
        with open(log.name, "rb") as kernel_log:
            return Result(done.returncode, text(done.stdout), text(done.stderr),
                          text(kernel_log.read()))


def as_from_a_terminal():
    """How a program begins, also where the tests run under nohup or behind `&`, which ignore signals, or under nice."""
    for name in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        signal.signal(name, signal.SIG_DFL)
    if os.geteuid() == 0:
        os.setpriority(os.PRIO_PROCESS, 0, 0)


def on_host(program, *args, cwd=None):
    """Runs the same static binary here. A signal S gives 128 + S, as a shell shows it."""
    folder = {"/bin/": "user", "/tests/": "tests/user"}
    for prefix, place in folder.items():
        if program.startswith(prefix):
            binary = os.path.join(BUILD, place, program[len(prefix):])
    done = subprocess.run([binary, *args], stdin=subprocess.DEVNULL, capture_output=True,
                          check=False, timeout=HOST_LIMIT_S, cwd=cwd, preexec_fn=as_from_a_terminal)
    status = 128 - done.returncode if done.returncode < 0 else done.returncode
    return Result(status, text(done.stdout), text(done.stderr))


class Boots:
    """Boots of one module, two at a time; each is started once and only where a test asks for it."""

    def __init__(self, request, start):
        wanted = []
        for item in request.session.items:
            case = getattr(item, "callspec", None) and item.callspec.params.get("case")
            if case is not None and item.module is request.module and case not in wanted:
                wanted.append(case)
        self.pool = ThreadPoolExecutor(BOOTS_AT_ONCE)
        self.futures = {case: self.pool.submit(start, case) for case in wanted}

    def __getitem__(self, case):
        return self.futures[case].result()

    def close(self):
        self.pool.shutdown(cancel_futures=True)


def numbers_of(out):
    """The lines `name: value` of mplay."""
    values = {}
    for line in out.splitlines():
        name, colon, value = line.partition(":")
        if colon and name.replace("_", "").isalnum():
            values[name] = value.strip()
    return values


def parse_batch(out):
    """What /tests/oracle prints: {name: {"io": line, number's name: value}}"""
    answers = {}
    for line in out.splitlines():
        name, _, rest = line.partition(" ")
        if rest.startswith("io:"):
            answers.setdefault(name, {})["io"] = rest
        elif rest.startswith("touched="):
            answers.setdefault(name, {}).update(word.split("=", 1) for word in rest.split())
    return answers


def io_line(out):
    """The line of windows."""
    for line in out.splitlines():
        if line.startswith("io:"):
            return line
    return None
