"""Readahead: every order of tools/patterns.py under every policy and window, 4 KiB to 4 MiB."""

import patterns
from experiments.machine import Boot, Disk
from experiments.plots import Plot, Series
from experiments.report import Section
from experiments.table import Column, Table, percent, seconds, whole

NAME = "readahead"

POLICIES = ("none", "around", "ondemand", "stream")
WINDOWS = tuple(4 << power for power in range(11))
QUICK_WINDOWS = (32, 128, 1024)
DISK = Disk(latency_ns=100_000, per_request_ns=400_000, bandwidth=70_000_000)
TABLE = "/tests/patterns.txt"  # of tests/user/gen_oracle.py: the table of tools/patterns.py
FREE_PAGES = 700               # for the orders that are to be short of memory,
SHORT_WINDOWS = WINDOWS[3:9]   # under these: larger ones do nothing but drop and read again

ALL = {pattern.name: pattern for pattern in patterns.PATTERNS}
SHORT = [name for name, pattern in ALL.items() if pattern.free_pages]
PLAIN = [name for name in ALL if name not in SHORT]
QUICK = ["mmap-from-0", "mmap-from-1000", "read-from-1000", "mmap-two", "read-four", "mmap-backward", "read-backward",
         "mmap-stride-100", "mmap-sequential-from-1000", "oversized-reads", "mmap-random", "read-random"]
PLOTTED = ["mmap-from-0", "read-from-1000", "read-backward", "read-four", "mmap-stride-17", "mmap-random",
           "mmap-sequential-from-1000", "thrash-mmap"]

FILL = (f"fresh; free=$(awk '/^nr_free_pages/ {{ print $2 }}' /proc/vmstat); "
        f"dd if=/dev/zero of=/tmp/fill bs=4k count=$((free - {FREE_PAGES})) 2>/dev/null\n")


def script(policy, windows, names):
    return (f"knob readahead {policy}; for W in {' '.join(map(str, windows))}; do window $W; "
            "while read name advice around file words; do "
            f"case ' {' '.join(names)} ' in *\" $name \"*) fresh; mark pattern=$name policy={policy} window=$W; "
            f"mplay --advice $advice --map-around $around $words $file;; esac; done <{TABLE}; done")


def tenths_of_ms(us):
    """On a busy host QEMU's clock can be an instruction or two further after a wait (cpu_wait_for_interrupt in
    kernel/cpu/cpu.h): with thousands of waits to a run, the last digits are not the same in every one."""
    return 100 * round(us / 100)


def boots(quick):
    if quick:
        return [Boot(f"readahead-{policy}", script(policy, QUICK_WINDOWS, QUICK), shift=3, disk=DISK)
                for policy in POLICIES[1:]]
    plans = []
    for policy in POLICIES:
        windows = WINDOWS if policy != "none" else (128,)
        plans += [Boot(f"readahead-{policy}-{windows[part]}", script(policy, windows[part:part + 3], PLAIN), shift=3,
                       disk=DISK) for part in range(0, len(windows), 3)]
        plans.append(Boot(f"short-{policy}", FILL + script(policy, [w for w in windows if w in SHORT_WINDOWS], SHORT), mem_mib=128,
                          shift=3, disk=DISK))
    return plans


def row_of(labels, numbers):
    return {**labels, "window": int(labels["window"]), "touched": int(numbers["touched"]),
            "requests": int(numbers["data_requests"]), "pages": int(numbers["data_pages"]),
            "unused": int(numbers["ahead_unused"]), "waits": int(numbers["waits"]) + int(numbers["read_waits"]),
            "metadata": int(numbers["meta_requests"]), "total_us": tenths_of_ms(int(numbers["real_us"]))}


COLUMNS = [
    Column("pattern", "order"), Column("window", "read_ahead_kb", whole), Column("policy", "readahead"),
    Column("touched", "touched", whole), Column("requests", "requests", whole), Column("pages", "pages read", whole),
    Column("unused", "never used", whole), Column("waits", "waits", whole), Column("metadata", "metadata", whole),
    Column("total_us", "time", seconds),
]
AGAINST = [
    Column("pattern", "order"), Column("window", "read_ahead_kb", whole), Column("streams", "streams", whole),
    Column("ondemand_requests", "requests: ondemand", whole), Column("stream_requests", "stream", whole),
    Column("ondemand_waits", "waits: ondemand", whole), Column("stream_waits", "stream", whole),
    Column("ondemand_unused", "never used: ondemand", whole), Column("stream_unused", "stream", whole),
    Column("time_percent", "time of stream in % of ondemand", percent),
]
def against(rows):
    """`stream` beside `ondemand`, each order with the window that belongs to it."""
    table = []
    for pattern in patterns.PATTERNS:
        both = [next((row for row in rows if (row["pattern"], row["policy"], row["window"]) ==
                      (pattern.name, policy, pattern.readahead_kb)), None) for policy in ("ondemand", "stream")]
        if None in both:
            continue
        row = {"pattern": pattern.name, "window": pattern.readahead_kb, "streams": pattern.streams,
               "time_percent": 100 * both[1]["total_us"] / both[0]["total_us"]}
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
    order = list(ALL)
    rows = [row_of(*record) for boot in plan for record in results[boot.name]]
    rows.sort(key=lambda row: (order.index(row["pattern"]), row["window"], POLICIES.index(row["policy"])))
    beside = against(rows)
    within = [row for row in beside if all(row[f"stream_{key}"] <= row[f"ondemand_{key}"] + 2 * row["streams"]
                                           for key in ("requests", "waits"))]
    fewer = [row for row in beside if all(row[f"stream_{key}"] < row[f"ondemand_{key}"] for key in ("requests", "waits"))]
    text = f"""
The orders of `tools/patterns.py`, most of about 1,000 touches or reads, on a file of 16,384 pages. Requests and pages are
those of file data; a page never used was read beyond what was wanted, and nobody touched it until the file was unmapped
or the page was dropped; waits are those of faults and of `read`. The orders that begin with `thrash` have {FREE_PAGES} pages of
memory: windows that are too large are dropped before they are used. `none` reads one page whatever the window is, so it
stands with 128 KiB only.

`stream` against `ondemand`: in {len(within)} of {len(beside)} orders at most two requests and two waits more for each stream
(a random order counts as many streams as touches); in {len(fewer)} fewer of both.
"""
    claims = [f"`stream` against `ondemand`: within two requests and two waits for each stream in {len(within)} of "
              f"{len(beside)} orders, fewer of both in {len(fewer)}."]
    return Section("Readahead: orders, policies and windows", text, plan, [
        Table("readahead-stream", "stream against ondemand", AGAINST, beside),
        Table("readahead", "Every run", COLUMNS, rows)], plots_of(rows), claims)
