"""The table of 2007: 100,000 pages read in order by mmap, under four policies, by 1, 2, 4 and 8 streams at once."""

from experiments.machine import Boot, Disk
from experiments.plots import Plot, Series
from experiments.report import Section
from experiments.table import Column, Table, decimal, percent, seconds, whole

NAME = "streams"

PAGES = 100_000
QUICK_PAGES = 8_000
KIB_PER_PAGE = 4
STREAMS = (1, 2, 4, 8)
POLICIES = (("around", 128), ("around", 256), ("ondemand", 128), ("stream", 128))
# About the disk of 2007: a way of the arm for each request, short where all are for one stream, long where each is for
# another, then 70 MB a second.
DISKS = {"short": Disk(latency_ns=100_000, per_request_ns=400_000, bandwidth=70_000_000),
         "long": Disk(latency_ns=100_000, per_request_ns=4_000_000, bandwidth=70_000_000)}


def script(streams, policies, file, pages):
    runs = "".join(
        f"knob readahead {policy}; window {window}; fresh; mark policy={policy} window={window} streams={streams}; "
        f"mloop --threads {streams} --touches {pages // streams} --order own --sum {file}\n" for policy, window in policies)
    return runs


def boots(quick):
    if quick:
        return [Boot(f"streams-{way}-{n}", script(n, POLICIES, "/data/medium.bin", QUICK_PAGES), shift=3, disk=DISKS[way])
                for way, n in (("short", 1), ("long", 4))]
    return [Boot(f"streams-{way}-{n}", script(n, POLICIES, "/data/random.bin", PAGES), image="disk", mem_mib=1280, shift=3,
                 disk=DISKS[way]) for way in DISKS for n in STREAMS]


def row_of(way, labels, numbers):
    user, system, total = (int(numbers[name]) for name in ("user_us", "system_us", "real_us"))
    requests, pages = int(numbers["disk_data_requests"]), int(numbers["disk_data_pages"])
    return {**labels, "way": way, "window": int(labels["window"]), "streams": int(labels["streams"]), "touched": int(numbers["touched"]),
            "user_us": user, "system_us": system, "cpu_percent": 100 * (user + system) / total, "total_us": total,
            "requests": requests, "mean_kib": KIB_PER_PAGE * pages / requests, "pages": pages,
            "waits": int(numbers["fault_waits"]), "metadata": int(numbers["disk_meta_requests"])}


COLUMNS = [
    Column("way", "way of the arm"), Column("streams", "streams", whole), Column("policy", "readahead"), Column("window", "read_ahead_kb", whole),
    Column("user_us", "user", seconds), Column("system_us", "system", seconds), Column("cpu_percent", "cpu", percent),
    Column("total_us", "total", seconds), Column("requests", "requests", whole),
    Column("mean_kib", "mean request in KiB", decimal), Column("waits", "waits", whole),
    Column("pages", "pages read", whole), Column("metadata", "metadata", whole),
]


def section(plan, results, quick):
    rows = [row_of(boot.name.split("-")[1], *record) for boot in plan for record in results[boot.name]]

    def total(way, streams, policy, window=128):
        return next((row["total_us"] for row in rows if (row["way"], row["streams"], row["policy"], row["window"]) ==
                     (way, streams, policy, window)), None)

    most = max(row["streams"] for row in rows)
    text = f"""
A file of random bytes, {QUICK_PAGES if quick else PAGES:,} pages of it touched in order and looked at byte by byte, through
mmap. Several streams are threads that read equal parts of the file at the same time, each through a descriptor of its own.
Published for one stream: 11.838 s with read-around of 128 KiB, 11.976 s with 256 KiB, 11.607 s with readahead of 128 KiB
(user 3.224, 3.170, 3.117 s; system 2.554, 2.392, 2.448 s). The disk here is made to be about as fast as that one; the
order, and the size of the requests (read-around gets half of each window, since the other half is cached), is what can be
compared.

One stream, a short way of the arm: `ondemand` {seconds(total('short', 1, 'ondemand'))}, `around`
{seconds(total('short', 1, 'around'))} with 128 KiB and {seconds(total('short', 1, 'around', 256))} with 256 KiB, `stream`
{seconds(total('short', 1, 'stream'))}: who reads around waits for each window, who reads ahead works meanwhile.
{most} streams, a long way: {seconds(total('long', most, 'ondemand'))}, {seconds(total('long', most, 'around'))},
{seconds(total('long', most, 'around', 256))} and {seconds(total('long', most, 'stream'))}. The disk is never idle then, and
what counts is how often it is asked: `around` asks twice as often with the same window, and needs one twice as large to ask
as seldom as the others.
"""
    plots = {}
    for way in dict.fromkeys(row["way"] for row in rows):
        names = list(dict.fromkeys((row["policy"], row["window"]) for row in rows))
        counts = sorted({row["streams"] for row in rows if row["way"] == way})
        plots[f"streams-{way}.svg"] = Plot(
            f"Pages read in order by mmap, {way} way of the arm", "streams", "seconds in all",
            [Series(f"{policy} {window}", [(str(n), total(way, n, policy, window) / 1e6) for n in counts])
             for policy, window in names]).bars()
    claims = [f"Pages in order, one stream: `ondemand` takes "
              f"{percent(100 * total('short', 1, 'ondemand') / total('short', 1, 'around'))} of the time of `around` with the same "
              f"window; {most} streams: {percent(100 * total('long', most, 'ondemand') / total('long', most, 'around'))}."]
    return Section("Sequential mmap reads: the table of 2007, and several streams", text, plan,
                   [Table("streams", "Every run", COLUMNS, rows)], plots, claims)
