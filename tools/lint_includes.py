"""Checks that no #include points up the floors (DESIGN.md section 2).

    lint_includes.py        status 1 where one does

A file may include headers of its own floor and of those below. Headers are named from the root.
"""

import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# From the top to the bottom. The longest name that fits decides; a folder's name ends with a slash.
FLOORS = (
    ("kernel/", "tests/kernel/"),
    ("kernel/syscall/",),
    ("kernel/task/",),
    ("fs/",),
    ("mm/",),
    ("drivers/",),
    ("kernel/sched/",),
    ("mm/core/", "boot/"),
    ("kernel/cpu/", "kernel/sync/", "kernel/log/"),
    ("lib/", "boot/boot_info.h"),
)
# Beside the house: what each may include.
APART = {
    "user/": ("user/",),
    "tests/user/": ("user/", "tests/user/"),
    "tests/host/": ("lib/", "mm/", "fs/", "drivers/", "tests/host/", "user/lib/"),
}
# A system header in the kernel is one that the compiler brings; lib/ is built on the host too.
FREESTANDING = {"stdarg.h", "stdbool.h", "stddef.h", "stdint.h", "limits.h", "stdalign.h",
                "stdnoreturn.h", "float.h", "iso646.h"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def longest_match(path, names):
    fitting = [name for name in names if path == name or (name.endswith("/") and path.startswith(name))]
    return max(fitting, key=len, default=None)


def floor_of(path):
    """The floor's number from the top, or None for what stands on none."""
    where = {name: number for number, names in enumerate(FLOORS, 1) for name in names}
    name = longest_match(path, where)
    return where[name] if name else None


def check_include(path, quote, header):
    """What is wrong with this include, or None."""
    apart = longest_match(path, APART)
    if quote == "<":
        hosted = path.startswith("lib/") or floor_of(path) is None
        if not hosted and header not in FREESTANDING:
            return f"<{header}> is no header of a freestanding compiler"
        return None
    if not os.path.isfile(os.path.join(ROOT, header)):
        return f'"{header}" is not there; headers are named from the root'
    if apart:
        return None if header.startswith(APART[apart]) else f'"{header}" is out of reach of {apart}'
    own, other = floor_of(path), floor_of(header)
    if own is None:
        return "this file stands on no floor"
    if other is None or other < own:
        return f'"{header}" (floor {other}) lies above (own floor {own})'
    return None


def sources():
    for top in ("boot", "kernel", "mm", "fs", "drivers", "lib", "user", "tests"):
        for folder, _, files in os.walk(os.path.join(ROOT, top)):
            for name in files:
                if name.endswith((".c", ".h", ".S")):
                    yield os.path.relpath(os.path.join(folder, name), ROOT)


def main():
    problems = 0
    count = 0
    for path in sorted(sources()):
        count += 1
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                match = INCLUDE.match(line)
                problem = match and check_include(path, match.group(1), match.group(2))
                if problem:
                    problems += 1
                    print(f"{path}:{number}: {problem}")
    print(f"lint: {count} files, {problems} includes that point where they must not")
    return 1 if problems or not count else 0


if __name__ == "__main__":
    sys.exit(main())
