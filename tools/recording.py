"""Recordings: what tools/qemu --record keeps in a folder, and what --replay needs from it.

QEMU's record/replay takes one CPU, and the same machine both times; every disk lies behind its driver
blkreplay. In the folder:
    replay.bin      what the machine heard from outside, and at which instruction (QEMU's)
    faultline.elf   the kernel
    run.json        the options, and by what it is seen that the disk's image has changed since
"""

import json
import os
import shutil

SHIFT = 3  # an instruction is 2^3 ns
OPTIONS = ("disk", "mem", "cpu", "icount", "append", "ktest", "program")


class Unusable(Exception):
    """It cannot be recorded or played; the text says why and what to do."""


def check_options(args):
    """Refuses what QEMU does not record; fills in --icount."""
    option = "--record" if args.record else "--replay"
    if args.smp > 1 or args.accel != "tcg":
        raise Unusable(f"{option} is for one CPU under --accel tcg")
    if args.iso or args.uefi or args.write or args.ramdisk or args.disk2:
        raise Unusable(f"{option} boots the kernel directly, with one --disk that is not written to")
    if args.replay and (args.program or args.append or args.ktest is not None):
        raise Unusable("--replay runs what was recorded; the program stands in the recording")
    if args.icount is None:
        args.icount = SHIFT


def stamp_of(path):
    status = os.stat(path)
    return [status.st_size, status.st_mtime_ns]


def save(args):
    """Keeps the kernel and the options; it is the kept kernel that runs."""
    os.makedirs(args.record, exist_ok=True)
    if os.path.exists(os.path.join(args.record, "replay.bin")):
        os.unlink(os.path.join(args.record, "replay.bin"))  # of other options
    kept = os.path.join(args.record, "faultline.elf")
    if os.path.realpath(args.kernel) != os.path.realpath(kept):
        shutil.copyfile(args.kernel, kept)
    args.kernel = kept
    run = {name: getattr(args, name) for name in OPTIONS}
    if args.disk:
        run["disk"] = os.path.abspath(args.disk)
        run["disk_stamp"] = stamp_of(args.disk)
    with open(os.path.join(args.record, "run.json"), "w", encoding="utf-8") as file:
        json.dump(run, file, indent=4)


def load(args):
    """Sets the options as they were."""
    folder = os.path.relpath(args.replay)
    try:
        with open(os.path.join(args.replay, "run.json"), encoding="utf-8") as file:
            run = json.load(file)
        os.stat(os.path.join(args.replay, "replay.bin"))
    except (OSError, ValueError):
        raise Unusable(f'no recording in {folder}; make record PROG="..." makes one') from None
    for name in OPTIONS:
        setattr(args, name, run[name])
    args.kernel = os.path.join(args.replay, "faultline.elf")
    if args.disk and not (os.path.isfile(args.disk) and stamp_of(args.disk) == run["disk_stamp"]):
        raise Unusable(f"{os.path.relpath(args.disk)} has changed since {folder} was recorded; "
                       "record it again")
    args.disk = args.disk or "none"


def escaped(text):
    """A value inside a QEMU option, where a comma is written twice."""
    return text.replace(",", ",,")


def icount_option(args):
    """Without sleep=off: with it an idle machine would never look at a disk's completions."""
    mode, folder = ("record", args.record) if args.record else ("replay", args.replay)
    return f"shift={args.icount},rr={mode},rrfile={escaped(os.path.join(folder, 'replay.bin'))}"


def disk_options(args):
    return ["-drive", f"if=none,id=image0,format=raw,snapshot=on,file={escaped(args.disk)}",
            "-drive", "if=none,id=disk0,driver=blkreplay,image=image0",
            "-device", "virtio-blk-pci,drive=disk0,disable-legacy=on,num-queues=1,queue-size=512"]
