"""The worked sequences of FAULTS.md, section 4: how to bring each about, and what it asks for.

SEQUENCES: {name: (arguments of mplay, the line of windows)}; script_lines() is the same as a script
for /tests/oracle, which does all of them in one boot.
"""

FILE = "/data/medium.bin"
FILE_PAGES = 16384
WINDOW = 32
MISS_LIMIT = 100


def line(*windows):
    return "io:" + "".join(f" {w}" for w in windows)


def around(page):
    """Read-around at a page, and the page alone once the misses are over their limit."""
    return f"@{page}:({max(0, page - WINDOW // 2)},{WINDOW})"


def read_around_then_single(pages):
    return line(*(around(page) if number <= MISS_LIMIT else f"@{page}:({page},1)"
                  for number, page in enumerate(pages, 1)))


# 125 pages in no order, so far from each other that no window reaches another.
RANDOM_PAGES = [16 + 131 * (37 * k % 124) for k in range(124)]

# name: (arguments, the line)
SEQUENCES = {
    "read-from-0": (
        ["r:0-91", FILE],
        line("@0:(0,4)", "@1:(4,8)", "@4:(12,16)", "@12:(28,32)", "@28:(60,32)", "@60:(92,32)")),
    "read-from-1000": (
        ["r:1000-1060", FILE],
        line("@1000:(1000,1)", "@1001:(1001,4)", "@1002:(1005,8)", "@1005:(1013,16)",
             "@1013:(1029,32)", "@1029:(1061,32)")),
    "mmap-from-0": (
        ["m:0-95", FILE], line("@0:(0,32)", "@24:(32,32)", "@32:(64,32)", "@64:(96,32)")),
    "mmap-from-1000": (
        ["m:1000-1079", FILE],
        line("@1000:(984,32)", "@1008:(1016,32)", "@1016:(1048,32)", "@1048:(1080,32)")),
    "mmap-random": (
        ["m:" + ",".join(map(str, RANDOM_PAGES)), FILE], read_around_then_single(RANDOM_PAGES)),
    "mmap-stride-100": (
        ["m:0-16300/100", FILE], read_around_then_single(range(0, 16301, 100))),
    "two-mmap-streams": (
        ["m:i1000/5000x80", FILE],
        line("@1000:(984,32)", "@5000:(4984,32)", "@1008:(1016,32)", "@5008:(5016,32)",
             "@1016:(1048,32)", "@5016:(5048,32)", "@1048:(1080,32)", "@5048:(5080,32)")),
    "two-read-streams": (
        ["r:i1000/5000x40", FILE],
        line("@1000:(1000,1)", "@5000:(5000,1)", "@1001:(1001,1)", "@5001:(5001,1)",
             "@1002:(1002,3)", "@5002:(5002,3)", "@1004:(1005,4)", "@5004:(5005,4)",
             "@1005:(1009,10)", "@5005:(5009,10)", "@1009:(1019,22)", "@5009:(5019,22)",
             "@1019:(1041,32)", "@5019:(5041,32)")),
    "read-backward": (
        ["r:400-370", FILE], line(*(f"@{page}:({page},1)" for page in range(400, 369, -1)))),
    "mmap-backward": (
        ["m:400-350", FILE], line("@400:(384,32)", "@383:(367,17)", "@366:(350,17)")),
    "madvise-sequential": (
        ["--advice", "mseq", "m:0-63", FILE], line("@0:(0,32)", "@16:(32,32)", "@32:(64,32)")),
    "read-to-the-end": (
        [f"r:16370-{FILE_PAGES - 1}", FILE],
        line("@16370:(16370,1)", "@16371:(16371,4)", "@16372:(16375,8)", "@16375:(16383,1)")),
    "read-over-a-hole": (
        ["r:0-80", "/data/hole.bin"], line("@0:(0,4)", "@1:(4,6)", "@12:(40,10)")),
    "mmap-over-a-hole": (
        ["m:0-80", "/data/hole.bin"], line("@0:(0,10)", "@24:(40,10)")),
    "around": (
        ["--policy", "around", "m:0-79", FILE],
        line("@0:(0,32)", "@32:(32,16)", "@48:(48,16)", "@64:(64,16)")),
    "none": (
        ["--policy", "none", "m:0-9", FILE], line(*(f"@{page}:({page},1)" for page in range(10)))),
}

MPLAY_OPTIONS = ("--policy", "--advice")  # those used above; each takes a word


def script_line(name):
    arguments, _ = SEQUENCES[name]
    *options, pattern, file = arguments
    chosen = dict(zip(options[::2], options[1::2]))
    assert set(chosen) <= set(MPLAY_OPTIONS)
    return (f"{name} {file} {chosen.get('--advice', 'none')} {chosen.get('--policy', 'ondemand')} "
            f"- - {pattern}")


def script_lines():
    return [script_line(name) for name in SEQUENCES]
