"""Orders in which a file can be read, each with a name: what readahead policies are compared by.

PATTERNS is the table of our own, by_name() finds one, measured() gives the orders of
tests/data/readahead.txt in the same form. Each is a Pattern:

    name          one word
    words         the order, in the language of mplay (user/lib/pattern.h)
    streams       how many streams it has: that often a policy may have to learn
    advice        as mplay --advice takes it
    readahead_kb  the window, mplay --readahead-kb
    map_around    mplay --map-around
    file          in the images
    free_pages    None, or the memory that it can have, in pages (`leave` in tests/user/oracle.c): less
                  than its streams' windows need
    kind          "" | "long": an order in which `ondemand` can be beaten (FAULTS.md, section 4),
                  with at least 1,000 touches | "random"
    arguments     all that as arguments of mplay, but for the policy and free_pages

The first RANDOM_LEARNING touches of a random order stand by themselves in learning(pattern), so that
what comes after them is the difference of two runs.
"""

import os
import random
import sys
from dataclasses import dataclass, replace

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.join(os.path.dirname(HERE), "tests", "user")

FILE = "/data/medium.bin"
FILE_PAGES = 16384
RANDOM_LEARNING = 16
RANDOM_TOUCHES = 1016
SPARSE_AROUND = 4096
REQUEST_PAGES = 320  # the device's largest


@dataclass(frozen=True)
class Pattern:
    name: str
    words: str
    streams: int = 1
    advice: str = "none"
    readahead_kb: int = 128
    map_around: int = 65536
    file: str = FILE
    free_pages: int = None
    kind: str = ""

    @property
    def arguments(self):
        return ["--advice", self.advice, "--readahead-kb", str(self.readahead_kb),
                "--map-around", str(self.map_around), self.words, self.file]

    def script_line(self, policy):
        """A line for /tests/oracle. Its name is NAME@POLICY."""
        return (f"{self.name}@{policy} {self.file} {self.advice} {policy} {self.readahead_kb} "
                f"{self.map_around} {self.words}")


def pages_at_random(count, seed, pages=FILE_PAGES, apart=1):
    """`count` different page numbers in no order, each a multiple of `apart`."""
    return [apart * page for page in random.Random(seed).sample(range(pages // apart), count)]


def in_order(kind, pages):
    return kind + ":" + ",".join(map(str, pages))


def interleaved(kind, firsts, rounds):
    return f"{kind}:i{'/'.join(map(str, firsts))}x{rounds}"


def learning(pattern):
    """The first touches of a random order."""
    head, _, items = pattern.words.partition(":")
    first = ",".join(items.split(",")[:RANDOM_LEARNING])
    return replace(pattern, name=pattern.name + "-first", words=f"{head}:{first}")


FOUR = (1000, 5000, 9000, 13000)
SIXTEEN = tuple(range(500, 16000, 1000))

WORKED = [
    Pattern("read-from-0", "r:0-999"),
    Pattern("read-from-1000", "r:1000-1999"),
    Pattern("mmap-from-0", "m:0-999"),
    Pattern("mmap-from-1000", "m:1000-1999"),
    Pattern("mmap-two", interleaved("m", FOUR[:2], 500), streams=2),
    Pattern("mmap-four", interleaved("m", FOUR, 250), streams=4),
    Pattern("mmap-sixteen", interleaved("m", SIXTEEN, 100), streams=16),
    Pattern("mmap-stride-100", "m:0-16300/100"),
    Pattern("read-stride-100", "r:0-16300/100"),
    Pattern("mmap-stride-17", "m:1000-10000/17"),
    Pattern("mmap-stride-2", "m:1000-3000/2"),
    Pattern("read-stride-2", "r:1001-3001/2"),
    Pattern("read-stride-8", "r:1000-5000/8"),
    Pattern("mmap-sequential-from-0", "m:0-999", advice="mseq"),
    Pattern("mmap-advised-random", "m:1000-1200", advice="mrand"),
    Pattern("read-advised-sequential", "r:0-999", advice="fseq"),
    Pattern("read-advised-random", "r:1000-1200", advice="frand"),
    Pattern("read-to-the-end", f"r:16000-{FILE_PAGES - 1}"),
    Pattern("mmap-to-the-end", f"m:16000-{FILE_PAGES - 1}"),
    Pattern("read-over-a-hole", "r:0-80", file="/data/hole.bin", streams=2),
    Pattern("mmap-over-a-hole", "m:0-80", file="/data/hole.bin", streams=2),
    Pattern("read-16-pages", "rx16:0-1600/16"),
    Pattern("read-5-pages-from-the-middle", "rx5:1000-3000/5"),
    Pattern("read-20-pages-from-the-middle", "rx20:1000-3000/20"),
    Pattern("read-twice", "r:0-299,0-299", streams=2),
    Pattern("short-runs", "m:" + ",".join(f"{a}-{a + 40}" for a in range(1000, 8000, 300)),
            streams=24),
    Pattern("short-reads", "r:" + ",".join(f"{a}-{a + 40}" for a in range(1000, 8000, 300)),
            streams=24),
]

# The last paragraph of FAULTS.md, section 4, a number for each of its points.
LONG = [
    Pattern("mmap-sequential-from-1000", "m:1000-1999", advice="mseq", kind="long"),
    Pattern("oversized-reads", "rx64:0-4032/64", kind="long"),
    Pattern("oversized-reads-from-1000", "rx64:1000-5000/64", kind="long"),
    Pattern("oversized-reads-1000-times", "rx4:0-3996/4", readahead_kb=8, kind="long"),
    Pattern("willneed-then-read", "r:w0-1499,0-1499", kind="long"),
    Pattern("willneed-then-mmap", "m:w0-1499,0-1499", kind="long"),
    Pattern("read-backward", "r:2000-1001", kind="long"),
    Pattern("read-backward-by-4", "rx4:5000-1004/4", kind="long"),
    Pattern("mmap-backward", "m:2000-1001", kind="long"),
    Pattern("read-two", interleaved("r", FOUR[:2], 1000), streams=2, kind="long"),
    Pattern("read-four", interleaved("r", FOUR, 500), streams=4, kind="long"),
    Pattern("read-sixteen", interleaved("r", SIXTEEN, 200), streams=16, kind="long"),
    Pattern("small-window-mmap", "m:1000-1999", readahead_kb=8, kind="long"),
    Pattern("mmap-after-many-misses",
            in_order("m", pages_at_random(150, 7, apart=100)) + ",5010-5090,6010-6929",
            streams=152, kind="long"),
    Pattern("thrash-mmap", interleaved("m", SIXTEEN, 100), streams=16, free_pages=600,
            kind="long"),
    Pattern("thrash-read", interleaved("r", SIXTEEN, 100), streams=16, free_pages=600,
            kind="long"),
]

RANDOM = [
    Pattern("mmap-random", in_order("m", pages_at_random(RANDOM_TOUCHES, 1)),
            streams=RANDOM_TOUCHES, map_around=SPARSE_AROUND, kind="random"),
    Pattern("mmap-random-around", in_order("m", pages_at_random(RANDOM_TOUCHES, 2)),
            streams=RANDOM_TOUCHES, kind="random"),
    Pattern("read-random", in_order("r", pages_at_random(RANDOM_TOUCHES, 3)),
            streams=RANDOM_TOUCHES, kind="random"),
    Pattern("read-3-random", in_order("rx3", pages_at_random(RANDOM_TOUCHES, 4, apart=3)),
            streams=RANDOM_TOUCHES, kind="random"),
    Pattern("mmap-random-by-8", in_order("m", pages_at_random(RANDOM_TOUCHES, 5, apart=8)),
            streams=RANDOM_TOUCHES, map_around=SPARSE_AROUND, kind="random"),
    Pattern("mmap-random-dense", in_order("m", pages_at_random(RANDOM_TOUCHES, 6, pages=2048)),
            streams=RANDOM_TOUCHES, map_around=SPARSE_AROUND, kind="random"),
]

PATTERNS = WORKED + LONG + RANDOM


def all_runs(missing=()):
    """All orders on files that are there, and the first touches of random ones."""
    runs = measured() + PATTERNS + [learning(pattern) for pattern in RANDOM]
    return [run for run in runs if run.file not in missing]


def by_name(name):
    return next(pattern for pattern in PATTERNS if pattern.name == name)


def streams_of(words):
    """A stream for each range, for each page by itself, and for each request of an announcement."""
    streams = 0
    for item in words.partition(":")[2].split(","):
        if item[0] == "i":
            streams += item.count("/") + 1
        elif item[0] == "w":
            first, _, last = item[1:].partition("-")
            streams += (int(last or first) - int(first)) // REQUEST_PAGES + 1
        elif item[0] != "d":
            streams += 1
    return streams


def script_lines(patterns, policies):
    """The script for /tests/oracle that runs each under each policy, with the memory it is to have."""
    lines, free_pages = ["quiet"], None
    for pattern in sorted(patterns, key=lambda pattern: -(pattern.free_pages or FILE_PAGES)):
        if pattern.free_pages != free_pages:
            free_pages = pattern.free_pages
            lines.append(f"leave {free_pages}")
        lines += [pattern.script_line(policy) for policy in policies]
    return lines


def measured():
    """The orders of tests/data/readahead.txt."""
    sys.path.insert(0, TESTS)
    import readahead_oracle

    return [Pattern(s.key, s.pattern, streams_of(s.pattern), s.advice, s.readahead_kb,
                    s.map_around, s.file) for s in readahead_oracle.parse()]
