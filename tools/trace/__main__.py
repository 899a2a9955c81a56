"""Runs a program with trace events on, and makes of them pages to look at.

    tools/trace [options] -- PROGRAM ARGS...

Writes FOLDER (build/trace): trace.txt, the events as the kernel told them; trace.json for https://ui.perfetto.dev; and
trace.html, a timeline that any browser shows without a network. Time counts instructions and the disk is in memory behind
the I/O gate's model of one, so running twice gives the same files.
Exit status: the program's; 1 where events were lost or there is no trace; 2 where the call was wrong; tools/qemu's own.
"""

import argparse
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from trace import chrome, model, page, parse  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("BUILD") or "build")
COUNTED, TRACE = "\n==== record: counted ====\n", "==== record: trace ====\n"


def parse_arguments():
    parser = argparse.ArgumentParser(prog="tools/trace", allow_abbrev=False, description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--out", metavar="FOLDER", default=os.path.join(BUILD, "trace"), help="default build/trace")
    add("--image", metavar="IMG", default=os.path.join(BUILD, "small.img"), help="the root (default build/small.img)")
    add("--disk-model", metavar="L,P,B", default="1000000,0,200000000",
        help="latency and time per request in ns, bytes a second (default %(default)s)")
    add("--icount", metavar="SHIFT", default="3", help="an instruction takes 2^SHIFT ns (default %(default)s)")
    add("--smp", metavar="N", default="1", help="CPUs (default 1)")
    add("--mem", metavar="MIB", default="512", help="memory (default 512)")
    add("--buffer-kb", metavar="N", default="16384", help="for the events of each CPU (default %(default)s)")
    add("--append", metavar="WORDS", default="", help="more words for the kernel command line")
    add("--timeout", metavar="S", default="300", help="seconds (default 300)")
    add("program", nargs="+", metavar="PROGRAM ARGS...")
    args = parser.parse_args()
    args.model = args.disk_model.split(",")
    if len(args.model) != 3 or not all(word.isdigit() for word in args.model):
        parser.error(f"--disk-model {args.disk_model}: it is three numbers, as 1000000,0,200000000")
    return args


def run(args):
    """Exit status and output of the boot."""
    latency, per_request, bandwidth = args.model
    words = (f"gate.latency_ns={latency} gate.per_request_ns={per_request} gate.bandwidth={bandwidth} "
             f"{args.append}").strip()
    command = [os.path.join(ROOT, "tools", "qemu"), f"--icount={args.icount}", "--ramdisk", args.image, "--smp", args.smp,
               "--mem", args.mem, "--timeout", args.timeout, "--append", words, "--log",
               os.path.join(args.out, "qemu.log"), "--", "/bin/record", "-b", args.buffer_kb, *args.program]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False)
    return done.returncode, done.stdout.decode("utf-8", "replace").replace("\r\n", "\n")


def write(folder, name, text):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.write(text)


def main():
    args = parse_arguments()
    os.makedirs(args.out, exist_ok=True)
    status, out = run(args)
    said, begin, rest = out.partition(COUNTED)
    counted, trace, text = rest.partition(TRACE)
    sys.stdout.write(said)
    if not begin or not trace:
        print(f"tools/trace: no trace came back (status {status}); the kernel's log is "
              f"{os.path.relpath(os.path.join(args.out, 'qemu.log'))}", file=sys.stderr)
        return status or 1
    record = parse.record(counted, text)
    if record.lost:
        print(f"tools/trace: {record.lost} events were lost: a larger --buffer-kb keeps them", file=sys.stderr)
        return 1
    run_model = model.build(record)
    title = " ".join(args.program)
    write(args.out, "trace.txt", text)
    write(args.out, "trace.json", chrome.text(run_model, title))
    write(args.out, "trace.html", page.text(run_model, title))
    print(f"tools/trace: {len(record.events)} events, {len(run_model.faults)} faults, {len(run_model.requests)} requests: "
          f"{os.path.relpath(args.out)}/trace.html, trace.json (for https://ui.perfetto.dev), trace.txt", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
