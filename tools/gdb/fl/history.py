"""Back in time, in a recording that is played again (`make replay`): fl last-fault, fl who-wrote."""

import re

import gdb

from .core import (KERNEL_HALF, USER_END, Garbage, command, current_cpu, enum_text, say, symbol_at,
                   usage)
from .stops import KINDS
from .tasks import current_task, name_of, title

TYPES = {1: "unsigned char", 2: "unsigned short", 4: "unsigned int", 8: "unsigned long"}
HITS_MAX = 100  # in other address spaces, before it is given up


class HereBefore(gdb.Breakpoint):
    """Where a page fault begins, of one program or of all; says nothing by itself."""

    def __init__(self, program):
        super().__init__(KINDS["fault"][0], type=gdb.BP_HARDWARE_BREAKPOINT, internal=True)
        self.program = program

    def stop(self):
        try:
            return not self.program or name_of(current_task()) == self.program
        except Exception:  # the kernel is not up: no program has begun
            return not self.program


def instructions_so_far():
    """Where in the recording we are; refuses where QEMU plays none."""
    match = re.search(r"^Replaying .* instruction count = (\d+)",
                      gdb.execute("monitor info replay", to_string=True), re.MULTILINE)
    if not match:
        raise Garbage('there is no history here: make record PROG="...", then make replay')
    return int(match.group(1))


def go_back(how="reverse-continue"):
    """Back to the stop before this. => False where the recording begins before one"""
    gdb.execute(how, to_string=True)
    return instructions_so_far() > 0


def only(point):
    """Switches the other breakpoints off. => those"""
    others = [other for other in gdb.breakpoints() if other.enabled and other != point]
    for other in others:
        other.enabled = False
    return others


def place_text(frame):
    """Function and line of a frame, or what is known of them."""
    sal = frame.find_sal()
    name = frame.name() or symbol_at(frame.pc())
    return f"{name}, {sal.symtab.filename}:{sal.line}" if sal.symtab else f"{name}, at {frame.pc():#x}"


def program_frame():
    """The innermost frame of the program, or None."""
    frame = gdb.newest_frame()
    while frame is not None and frame.pc() >= KERNEL_HALF:
        frame = frame.older()
    return frame


def say_program_place(label):
    try:
        frame = program_frame()
    except gdb.error:
        frame = None
    if frame is not None:
        say(f"  {label} {place_text(frame)}")


@command("last-fault")
def last_fault(words):
    """Run back to the last page fault.
    fl last-fault [for PROG]
    From wherever we are, in a recording (make replay): to where the page fault before this moment
    begins, of any program or of PROG. Then `bt`, `fl step-fault`; again: the one before."""
    if len(words) not in (0, 2) or words and words[0] != "for":
        usage("fl last-fault [for PROG]")
    instructions_so_far()
    point = HereBefore(words[1][:15] if words else "")
    others = only(point)
    try:
        found = go_back()
    finally:
        point.delete()
        for other in others:
            other.enabled = True
    if not found:
        raise Garbage("no page fault before this: here the recording begins")
    frame = gdb.newest_frame()
    access = enum_text(frame.read_var("access"), "enum fault_access", "FAULT_")
    say(f"page fault of {title(current_task())}: {access} of {int(frame.read_var('addr')):#x}")
    say_program_place("in        ")


# ---- fl who-wrote --------------------------------------------------------------------------------

def target(text):
    """(address, its type) of an expression: of what it names, or of 8 bytes at the number it gives."""
    value = gdb.parse_and_eval(text)
    if value.address is None or value.type.strip_typedefs().code == gdb.TYPE_CODE_PTR \
            and text.startswith("&"):
        return int(value) & (1 << 64) - 1, gdb.lookup_type("unsigned long")
    kind = value.type.strip_typedefs()
    if kind.sizeof not in TYPES or kind.code in (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION,
                                                 gdb.TYPE_CODE_ARRAY):
        raise Garbage(f"{text} has {kind.sizeof} bytes; name a member of it, of 1, 2, 4 or 8")
    return int(value.address), value.type


def read(address, kind):
    """The value as text, or that there is none."""
    try:
        value = at_type(address, kind)
        return value.format_string(symbols=False)
    except gdb.error:
        return "(nothing is mapped there)"


def at_type(address, kind):
    value = gdb.Value(address).cast(kind.pointer()).dereference()
    value.fetch_lazy()
    return value


def space():
    """The address space the CPU is in, as a number."""
    return int(gdb.parse_and_eval("$cr3")) & ~0xFFF


@command("who-wrote")
def who_wrote(words):
    """Run back to the instruction that last wrote a variable.
    fl who-wrote ADDR|EXPR
    From wherever we are, in a recording (make replay): to the last store to the variable EXPR, or to
    the 8 bytes at ADDR; it is the next instruction then. Of a program's memory only what is stored
    through this address in this address space: not what came with a page, from a file or a copy."""
    if not words:
        usage("fl who-wrote ADDR|EXPR, for example fl who-wrote vma->flags")
    text = " ".join(words)
    instructions_so_far()
    address, kind = target(text)
    here, new = space(), read(address, kind)
    if new.startswith("("):
        raise Garbage(f"nothing is mapped at {address:#x} now")
    others = only(None)
    watch = None
    try:
        gdb.execute("stepi", to_string=True)  # the store right before this place would not be seen
        watch = gdb.Breakpoint(f"*({TYPES[kind.sizeof]} *){address:#x}", gdb.BP_WATCHPOINT,
                               gdb.WP_WRITE, internal=True)
        for _ in range(HITS_MAX):
            found = go_back()
            if not found or address >= USER_END or space() == here:
                break
        found = found and go_back("reverse-stepi")  # it stops behind the store
    finally:
        if watch:
            watch.delete()
        for other in others:
            other.enabled = True
    if not found:
        raise Garbage(f"no instruction has written {text} before this: here the recording begins"
                      + ("; its value came with its page" if address < USER_END else ""))
    frame = gdb.newest_frame()
    say(f"{text} at {address:#x}: {read(address, kind)} -> {new}")
    say(f"  instruction {gdb.execute('x/i $pc', to_string=True).replace('=>', '').strip()}")
    say(f"  function    {place_text(frame)}")
    if frame.pc() >= KERNEL_HALF:
        say_program_place("program     in")
    try:
        say(f"  task        {title(current_task())}")
    except Garbage:
        say("  task        none yet: the kernel is booting")
