"""The measured readahead traces of tests/data/readahead.txt, and what ondemand must do instead.

scenarios() gives every scenario that Faultline must reproduce, with the windows in full. Linux 6.12's
answer holds, but for the DEVIATIONS, which follow the rules of the project's FAULTS.md, section 4.
"""

import os
import re
from dataclasses import dataclass

HERE = os.path.dirname(os.path.abspath(__file__))
ORACLE = os.path.join(os.path.dirname(HERE), "data", "readahead.txt")

PAGE_BYTES = 4096
MAP_AROUND_OF_SECTION = {"fault_around 65536": 65536, "fa64k": 65536}
MAP_AROUND_OTHERWISE = 4096
DEFAULT_READAHEAD_KB = 128
# What the measuring program itself added to ru_min where map-around was off.
OWN_MINOR_FAULTS = 2

# (section, name): (where the answer stands instead: section, kernel; why)
DEVIATIONS = {
    ("bdev", "rd-rand400p"): (
        "bdev", "6.1", "the first request is one of 320 pages, the device's largest"),
    ("fault_around 65536", "mm-stride100"): (
        "fault_around 4096", "6.12", "pages mapped around are no hits: read-around ends after 100"),
    ("fault_around 65536", "mm-many"): (
        "fault_around 4096", "6.12", "pages mapped around are no hits: read-around ends after 100"),
}

# The measured files: the file of the image, and which of its pages hold data (None: all of them).
# Windows on the last four were measured in disk pages, from where the file begins.
HOLE_DATA_PAGES = list(range(0, 10)) + list(range(40, 50))
FILES = {
    "/dev/vda": ("/data/medium.bin", None),
    "/mnt/f": ("/data/medium.bin", None),
    "/mnt/odd": ("/data/odd.bin", None),
    "/mnt/tiny": ("/data/tiny.bin", None),
    "/mnt/hole": ("/data/hole.bin", HOLE_DATA_PAGES),
    "/mnt/sp": ("/data/sparse.bin", []),
}

# After these, whether a page is still being read decides the number of misses, and that decides
# what is asked for: only on a disk without delay.
NEAR_THE_MISS_LIMIT = {"mm-hitmiss"}

# Each access misses by itself and waits for its own read: the major faults are exact on a disk.
EVERY_ACCESS_WAITS = re.compile(r"mm-(rand8|stride100|many|str31|str32|mrand|one-ra\d+)")


@dataclass
class Window:
    label: str  # "", "R", "M" or "willneed"
    access: int
    start: int
    pages: int

    def __str__(self):
        return f"@{self.label}{self.access}:({self.start},{self.pages})"


@dataclass
class Scenario:
    section: str
    name: str
    file: str  # in the image
    measured_file: str
    advice: str
    pattern: str
    windows: dict  # kernel: list of Window, in the measured file's pages
    numbers: dict  # kernel: name: value

    @property
    def key(self):
        return f"{self.section.replace(' ', '-')}/{self.name}"

    @property
    def map_around(self):
        return MAP_AROUND_OF_SECTION.get(self.section, MAP_AROUND_OTHERWISE)

    @property
    def readahead_kb(self):
        found = re.search(r"-ra(\d+)$", self.name)
        return int(found.group(1)) if found else DEFAULT_READAHEAD_KB

    @property
    def signals(self):
        """Touches behind the end of the file: `7(7/2)` are seven, SIGBUS with BUS_ADRERR."""
        return int(self.numbers["6.12"].get("sig", "0").partition("(")[0])

    @property
    def script_line(self):
        return (f"{self.key} {self.file} {self.advice} - {self.readahead_kb} {self.map_around} "
                f"{self.pattern}")


WINDOW = re.compile(r"@([A-Za-z]*)(\d+):\((\d+),(\d+)\)R?")
REPEAT = re.compile(r"\.\.\+(-?\d+)/acc\+(-?\d+)")
TIMES = re.compile(r"x(\d+)\.\.")
HEAD = re.compile(r"\[([^]]+)\] (\S+) file=(\S+) advice=(\S+) pattern=(\S+)$")


def parse_window(word):
    label, access, start, pages = WINDOW.fullmatch(word).groups()
    return Window(label, int(access), int(start), int(pages))


def expand(text):
    """Every window of `@a:(s,n) ..+S/acc+A xN.. @b:(t,m) ...`; N counts both ends."""
    windows, words, at = [], text.split(), 0
    while at < len(words):
        repeat = REPEAT.fullmatch(words[at])
        if not repeat:
            windows.append(parse_window(words[at]))
            at += 1
            continue
        step, access_step = map(int, repeat.groups())
        count = int(TIMES.fullmatch(words[at + 1]).group(1))
        first, last = windows[-1], parse_window(words[at + 2])
        for i in range(1, count):
            windows.append(Window(first.label, first.access + i * access_step,
                                  first.start + i * step, first.pages))
        if windows[-1] != last:
            raise ValueError(f"{text}: the run ends at {windows[-1]}, not {last}")
        at += 3
    return windows


def parse_numbers(text):
    numbers = {}
    for word in text.split():
        name, value = word.split("=", 1)
        numbers[name] = int(value) if value.isdigit() else value
    return numbers


def parse(path=ORACLE):
    """All scenarios of the file."""
    found = []
    with open(path, encoding="ascii") as lines:
        for line in lines:
            line = line.rstrip("\n")
            head = HEAD.match(line)
            if head:
                section, name, file, advice, pattern = head.groups()
                found.append(Scenario(section, name, FILES[file][0], file, advice, pattern, {}, {}))
            elif line and not line.startswith("#"):
                take_answer(found[-1], line)
    return found


def take_answer(scenario, line):
    kernel, _, text = line.strip().partition(" ")
    text = text.strip()
    if text.startswith("acc="):
        scenario.numbers[kernel] = parse_numbers(text)
    elif text == "same":
        scenario.windows[kernel] = scenario.windows["6.1"]
    else:
        scenario.windows[kernel] = expand(text)


def in_file_pages(scenario, windows):
    """Windows in pages of the file: those of the ext4 files were measured in pages of the disk."""
    if scenario.section != "ext4" or not windows:
        return windows
    base = windows[0].start
    data = FILES[scenario.measured_file][1]
    return [Window(w.label, w.access, data[w.start - base] if data else w.start - base, w.pages)
            for w in windows]


def scenarios():
    """What is to be run: all."""
    return parse()


def answer_source(scenario):
    """The scenario and the kernel whose answer holds for this one."""
    section, kernel, _ = DEVIATIONS.get((scenario.section, scenario.name),
                                        (scenario.section, "6.12", ""))
    for other in parse():
        if (other.section, other.name) == (section, scenario.name):
            return other, kernel
    raise KeyError(scenario.key)


def expected_windows(scenario):
    source, kernel = answer_source(scenario)
    return in_file_pages(source, source.windows[kernel])


def expected_line(scenario):
    return "io:" + "".join(f" {window}" for window in expected_windows(scenario))


def expected_resident(scenario):
    source, kernel = answer_source(scenario)
    return source.numbers[kernel]["resident"]


def expected_fault_sum(scenario):
    """Major and minor faults together, or None where whether a page is up to date decides."""
    if scenario.map_around != PAGE_BYTES or not scenario.pattern.startswith("m"):
        return None
    numbers = scenario.numbers["6.12"]
    put_there = scenario.signals  # tests/user/oracle.c puts a page where a signal came from
    return numbers["ru_maj"] + numbers["ru_min"] - OWN_MINOR_FAULTS + put_there


def expected_major(scenario):
    """Major faults on a disk that takes its time, or None where its speed decides."""
    if not EVERY_ACCESS_WAITS.fullmatch(scenario.name):
        return None
    return scenario.numbers["6.12"]["ru_maj"]
