"""fl: helpers for gdb on the Faultline kernel, a command and its subcommands (help fl)."""

import os

import gdb

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__)))))
BUILD = os.path.join(ROOT, os.environ.get("BUILD") or "build")


class Prefix(gdb.Command):
    """Faults, page cache, tasks and disk of the Faultline kernel, in words; memory is only read."""

    def __init__(self):
        super().__init__("fl", gdb.COMMAND_DATA, prefix=True)

    def invoke(self, argument, from_tty):
        if argument:
            raise gdb.GdbError(f"fl has no {argument.split()[0]}; help fl lists what there is")
        gdb.execute("help fl")


Prefix()

from . import (disk, faults, files, history, memory, printers, stops, tasks, trace)  # noqa: E402,F401
from .core import command, usage  # noqa: E402


@command("user")
def user(words):
    """Load a program's symbols beside the kernel's.
    fl user PROGRAM
    PROGRAM is its path in the build folder: fl user user/mplay."""
    if len(words) != 1:
        usage("fl user PROGRAM, for example fl user tests/user/gdbtarget")
    gdb.execute(f"add-symbol-file {os.path.join(BUILD, words[0])}")


for name in ("user", "fault", "tasks"):
    gdb.execute(f"alias fl-{name} = fl {name}")
