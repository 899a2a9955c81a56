"""The text of /sys/kernel/tracing/trace, and the numbers that user/record.c writes before it."""

import re
from dataclasses import dataclass

LINE = re.compile(r" *(?P<comm>.+)-(?P<pid>\d+) +\[(?P<cpu>\d+)\] \S{5} +(?P<s>\d+)\.(?P<us>\d{6}): (?P<name>\w+): "
                  r"(?P<rest>.*)")
FIELD = re.compile(r"(\w+)=(\S+)")
FILE = re.compile(r"dev (\d+):(\d+) ino ([0-9a-f]+)")
BLOCK = re.compile(r"(\d+),(\d+) (\w+) (?:(?:\d+ )?\(\) )?(\d+) \+ (\d+) (?:\w+,\d+,\d+ )?\[(.*)\]")
HEADER = re.compile(r"# entries-in-buffer/entries-written: (\d+)/(\d+)")


class Malformed(Exception):
    """A line is not what the kernel writes."""


@dataclass(frozen=True)
class Event:
    time_us: int
    cpu: int
    comm: str
    pid: int
    name: str
    fields: dict  # numbers are integers; "file" is (device, inode)


@dataclass(frozen=True)
class Record:
    events: list
    counted: dict
    lost: int


def number(word):
    """An integer where it is one."""
    for base in (10, 16):
        if base == 10 or word.startswith("0x"):
            try:
                return int(word, base)
            except ValueError:
                pass
    return word


def block_fields(rest):
    match = BLOCK.fullmatch(rest)
    if not match:
        raise Malformed(rest)
    major, minor, rwbs, sector, sectors, last = match.groups()
    return {"dev": f"{major}:{minor}", "rwbs": rwbs, "sector": int(sector), "sectors": int(sectors), "last": last}


def fields_of(name, rest):
    if name.startswith("block_"):
        return block_fields(rest)
    fields = {key: number(value) for key, value in FIELD.findall(rest)}
    match = FILE.search(rest)
    if match:
        fields["file"] = (f"{match.group(1)}:{match.group(2)}", int(match.group(3), 16))
    return fields


def events(text):
    """All events of the text, in its order; a mark of several lines keeps its first."""
    found = []
    for line in text.splitlines():
        match = LINE.fullmatch(line)
        if not match:
            continue
        fields = {} if match["name"] == "tracing_mark_write" else fields_of(match["name"], match["rest"])
        found.append(Event(int(match["s"]) * 1000000 + int(match["us"]), int(match["cpu"]), match["comm"],
                           int(match["pid"]), match["name"], fields))
    return found


def record(counted, text):
    header = HEADER.search(text)
    if not header:
        raise Malformed("a trace without its header")
    numbers = {name: int(value) for name, value in re.findall(r"^(\w+): (-?\d+)$", counted, re.MULTILINE)}
    kept, written = int(header.group(1)), int(header.group(2))
    return Record(events(text), numbers, written - kept)
