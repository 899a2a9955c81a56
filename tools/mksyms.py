"""Makes the table by which a panic names functions.

    nm -n first.elf | mksyms.py > ksyms.S
    nm -n final.elf | mksyms.py --check first.map

The table holds every function between __text_start and __text_end, in rising order:

    u32 ksym_count;                                  how many
    struct { u32 offset; u32 name; } ksym_table[];   offset from KERNEL_BASE; index into ksym_names
    char ksym_names[];                               strings, each ended by a zero byte

Without input it makes an empty table, for the first link. --check compares the functions of the
final link with those the table was made from: they must not have moved.
"""

import sys

KERNEL_BASE = 0xFFFFFFFF80000000
CODE_TYPES = "tTwW"


def read_functions(lines):
    """The functions in nm's output, as a rising list of (address, name), one name an address."""
    symbols = []
    bounds = {}
    for line in lines:
        fields = line.split()
        if len(fields) != 3:
            continue
        address, kind, name = int(fields[0], 16), fields[1], fields[2]
        if name in ("__text_start", "__text_end"):
            bounds[name] = address
        elif kind in CODE_TYPES:
            symbols.append((address, name))
    if not symbols:
        return []
    missing = {"__text_start", "__text_end"} - bounds.keys()
    if missing:
        sys.exit(f"mksyms: no symbol {', '.join(sorted(missing))}: is this the kernel's map?")
    low, high = bounds["__text_start"], bounds["__text_end"]
    by_address = {}
    for address, name in sorted(symbols):
        if low <= address < high and not name.startswith(".L"):
            by_address.setdefault(address, name)
    return sorted(by_address.items())


def write_table(functions, out):
    """Prints the table as assembly source."""
    out.write("/* Made by tools/mksyms.py from the first link. */\n")
    out.write('    .section .ksyms, "a"\n')
    out.write("    .globl ksym_count, ksym_table, ksym_names\n")
    out.write(f"    .balign 8\nksym_count:\n    .long {len(functions)}\n")
    out.write("    .balign 8\nksym_table:\n")
    name_offset = 0
    for address, name in functions:
        out.write(f"    .long {address - KERNEL_BASE:#x}, {name_offset}\n")
        name_offset += len(name.encode()) + 1
    out.write("ksym_names:\n")
    for _, name in functions:
        out.write(f'    .asciz "{name}"\n')
    out.write("    .byte 0\n")
    out.write('    .section .note.GNU-stack, "", @progbits\n')


def main():
    arguments = sys.argv[1:]
    functions = read_functions(sys.stdin)
    if len(arguments) == 2 and arguments[0] == "--check":
        with open(arguments[1], encoding="utf-8") as first:
            before = read_functions(first)
        if before != functions:
            moved = sorted(set(before) ^ set(functions))[:4]
            sys.exit(f"mksyms: functions moved between the two links: {moved}")
    elif not arguments:
        write_table(functions, sys.stdout)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
