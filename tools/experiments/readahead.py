"""Readahead: every pattern of FAULTS.md section 4 under every policy and window, 4 KiB to 4 MiB."""

from experiments.machine import Boot, Disk
from experiments.plots import Plot, Series
from experiments.report import Section
from experiments.table import Column, Table, percent, seconds, whole

NAME = "readahead"

POLICIES = ("none", "around", "ondemand", "stream")
WINDOWS = tuple(4 << power for power in range(11))
QUICK_WINDOWS = (32, 128, 1024)
DISK = Disk(latency_ns=100_000, per_request_ns=400_000, bandwidth=70_000_000)
FILE = "/data/medium.bin"  # 16,384 pages
RANDOM = "R"               # stands for 1,024 pages by the guest's generator
FREE_PAGES = 2048          # for the pattern that is short of memory

# Name, streams in it, advice, pattern of mplay. Each has 1,024 touches but for those that say so.
PATTERNS = (
    ("mmap-from-0", 1, "none", "m:0-1023"),
    ("mmap-from-5000", 1, "none", "m:5000-6023"),
    ("read-from-0", 1, "none", "r:0-1023"),
    ("read-from-5000", 1, "none", "r:5000-6023"),
    ("mmap-backward", 1, "none", "m:6023-5000"),
    ("read-backward", 1, "none", "r:6023-5000"),
    ("mmap-2-streams", 2, "none", "m:i1000/9000x512"),
    ("read-2-streams", 2, "none", "r:i1000/9000x512"),
    ("mmap-every-16th", 1, "none", "m:0-16383/16"),
    ("mmap-every-100th", 1, "none", "m:0-16383/100"),  # 164 touches
    ("sequential-from-0", 1, "mseq", "m:0-1023"),
    ("sequential-from-5000", 1, "mseq", "m:5000-6023"),
    ("reads-of-64", 1, "none", "rx64:0-16383/64"),     # 256 reads
    ("willneed-1024", 1, "none", "m:w5000-6023,5000-6023"),
    ("mmap-random", 0, "none", f"m:{RANDOM}"),
    ("read-random", 0, "none", f"r:{RANDOM}"),
)
# 32 streams of 32 touches each, half a MiB apart: with large windows more than fits.
SHORT = ("mmap-32-streams-short", 32, "none", f"m:i{'/'.join(str(512 * n) for n in range(32))}x32")

GENERATE = ("R=$(awk 'BEGIN { srand(7); for (i = 0; i < 1024; i++) "
            "printf \"%s%d\", i ? \",\" : \"\", int(rand() * 16384) }')\n")
FILL = (f"fresh; free=$(awk '/^nr_free_pages/ {{ print $2 }}' /proc/vmstat); "
        f"dd if=/dev/zero of=/tmp/fill bs=4k count=$((free - {FREE_PAGES})) 2>/dev/null\n")


def script(policy, windows, patterns):
    runs = "; ".join(f"run {name} {advice} {pattern.replace(RANDOM, '$R')}" for name, _, advice, pattern in patterns)
    return (f"{GENERATE}run() {{ fresh; mark pattern=$1 policy={policy} window=$W; mplay --advice $2 $3 {FILE}; }}\n"
            f"knob readahead {policy}; for W in {' '.join(map(str, windows))}; do window $W; {runs}; done")


def boots(quick):
    if quick:
        return [Boot(f"readahead-{policy}", script(policy, QUICK_WINDOWS, PATTERNS), shift=3, disk=DISK)
                for policy in POLICIES[1:]]
    plans = []
    for policy in POLICIES:
        windows = WINDOWS if policy != "none" else (128,)
        for part in range(0, len(windows), 4):
            plans.append(Boot(f"readahead-{policy}-{windows[part]}", script(policy, windows[part:part + 4], PATTERNS),
                              shift=3, disk=DISK))
        plans.append(Boot(f"short-{policy}", FILL + script(policy, [w for w in windows if w >= 32], [SHORT]), mem_mib=108,
                          shift=3, disk=DISK))
    return plans


def row_of(labels, numbers):
    return {**labels, "window": int(labels["window"]), "touched": int(numbers["touched"]),
            "requests": int(numbers["data_requests"]), "pages": int(numbers["data_pages"]),
            "unused": int(numbers["ahead_unused"]), "waits": int(numbers["waits"]) + int(numbers["read_waits"]),
            "metadata": int(numbers["meta_requests"]), "total_us": int(numbers["real_us"])}


COLUMNS = [
    Column("pattern", "pattern"), Column("window", "read_ahead_kb", whole), Column("policy", "readahead"),
    Column("touched", "touched", whole), Column("requests", "requests", whole), Column("pages", "pages read", whole),
    Column("unused", "never used", whole), Column("waits", "waits", whole), Column("metadata", "metadata", whole),
    Column("total_us", "time", seconds),
]
AGAINST = [
    Column("pattern", "pattern"), Column("streams", "streams", whole),
    Column("ondemand_requests", "requests: ondemand", whole), Column("stream_requests", "stream", whole),
    Column("ondemand_waits", "waits: ondemand", whole), Column("stream_waits", "stream", whole),
    Column("ondemand_unused", "never used: ondemand", whole), Column("stream_unused", "stream", whole),
    Column("time_percent", "time of stream in % of ondemand", percent),
]
PLOTTED = ("mmap-from-0", "read-from-5000", "read-backward", "read-2-streams", "mmap-every-16th", "mmap-random",
           "sequential-from-5000", SHORT[0])


def against(rows):
    """`stream` beside `ondemand` with the window that is the default."""
    table = []
    for name, streams, _, _ in (*PATTERNS, SHORT):
        both = [next((row for row in rows if (row["pattern"], row["policy"], row["window"]) == (name, policy, 128)), None)
                for policy in ("ondemand", "stream")]
        if None in both:
            continue
        row = {"pattern": name, "streams": streams, "time_percent": 100 * both[1]["total_us"] / both[0]["total_us"]}
        for policy, values in zip(("ondemand", "stream"), both):
            row |= {f"{policy}_{key}": values[key] for key in ("requests", "waits", "unused")}
        table.append(row)
    return table


def plots_of(rows):
    plots = {}
    for pattern in PLOTTED:
        chosen = [row for row in rows if row["pattern"] == pattern and row["policy"] != "none"]
        if chosen:
            plots[f"readahead-{pattern}.svg"] = Plot(
                pattern.replace("-", " "), "window in KiB", "milliseconds", log_x=True, log_y=True,
                series=[Series(policy, [(row["window"], row["total_us"] / 1000) for row in chosen
                                        if row["policy"] == policy]) for policy in POLICIES[1:]]).lines()
    return plots


def section(plan, results, quick):
    order = [name for name, *_ in (*PATTERNS, SHORT)]
    rows = [row_of(*record) for boot in plan for record in results[boot.name]]
    rows.sort(key=lambda row: (order.index(row["pattern"]), row["window"], POLICIES.index(row["policy"])))
    text = """
Each pattern on a file of 16,384 pages, 1,024 touches or reads of one page (`mmap-every-100th`: 164 touches; `reads-of-64`: 256
reads of 64 pages). Requests and pages are those of file data; a page never used was read beyond what was wanted, and
nobody touched it until the file was unmapped or the page was dropped; waits are those of faults and of `read`. In the
last pattern 32 streams take turns with 2,048 pages of memory free: windows that are too large are dropped before they
are used. `none` reads one page whatever the window is, so it stands with 128 KiB only.
"""
    return Section("Readahead: patterns, policies and windows", text, plan, [
        Table("readahead-stream", "stream against ondemand, window 128 KiB", AGAINST, against(rows)),
        Table("readahead", "Every run", COLUMNS, rows)], plots_of(rows))
