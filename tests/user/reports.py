"""Reads the reports that the kernel prints when something dies (kernel/log/report.h), and checks
addresses in them against the symbols of what died."""

import bisect
import re
import subprocess
from dataclasses import dataclass, field

PARTS = ["what", "where", "whose", "held", "how we got here", "what to try"]
LOG_PREFIX = re.compile(r"^\[ *\d+\.\d{6}\] ")
TITLE = re.compile(r"^==== (.+) ====$")
PLACE = re.compile(r"0x([0-9a-f]{16})\W+([A-Za-z_]\w*)\+")


@dataclass
class Report:
    title: str
    parts: dict = field(default_factory=dict)  # name: lines, in the order they came

    def text(self, part):
        return "\n".join(self.parts[part])

    def functions(self, part="how we got here"):
        """The names in a backtrace, without those that are only possible (`name ?`)."""
        return [match.group(2) for line in self.parts[part]
                if (match := PLACE.search(line)) and not line.endswith("?")]

    def places(self, part):
        """[(address, function)] of all lines."""
        return [(int(match.group(1), 16), match.group(2)) for line in self.parts[part]
                for match in PLACE.finditer(line)]


def parse(text):
    """All reports in a text, in their order."""
    reports, part = [], None
    for raw in text.splitlines():
        line = LOG_PREFIX.sub("", raw)
        if match := TITLE.match(line):
            reports.append(Report(match.group(1)))
            part = None
        elif reports and line.endswith(":") and line[:-1] in PARTS:
            part = reports[-1].parts.setdefault(line[:-1], [])
        elif part is not None and line.startswith("  "):
            part.append(line[2:])
        elif part is not None and line.startswith("The machine stops"):
            part = None
    return reports


class Symbols:
    """Functions of an ELF file."""

    def __init__(self, path):
        out = subprocess.run(["nm", "-n", path], check=True, capture_output=True, text=True).stdout
        rows = [line.split() for line in out.splitlines()]
        self.table = [(int(row[0], 16), row[2]) for row in rows
                      if len(row) == 3 and row[1] in "tTwW"]
        self.starts = [start for start, _ in self.table]

    def names_at(self, address):
        """All names of the function in which the address lies."""
        start = self.starts[bisect.bisect_right(self.starts, address) - 1]
        return {name for at, name in self.table if at == start}
