"""One page in 100: what a retry costs where nothing else is done (FAULTS.md section 1, published: 0.4 %)."""

from experiments.machine import Boot, Disk
from experiments.report import Section
from experiments.table import Column, Table, percent, seconds, whole

NAME = "stride"

STRIDE = 100
RETRIES = ("hold", "once", "many", "recheck")

# Policy, map-around in bytes, fault_drop, fault_lock: the first is the kernel of the published numbers.
SETTINGS = (
    ("around", 4096, "submit", "vma"),
    ("around", 4096, "submit", "mmap"),
    ("ondemand", 4096, "submit", "vma"),
    ("ondemand", 65536, "submit", "vma"),
    ("ondemand", 65536, "wait", "vma"),
)
PUBLISHED_DISK = Disk(per_request_ns=870_000)
DATA_PAGES = {"disk": 100_000, "small": 16_384}


def script(trace, file, settings):
    lines = [f"{trace} >/tmp/trace", "window 128"]
    for policy, around, drop, lock in settings:
        lines.append(f"knob readahead {policy}; knob map_around_bytes {around}; knob fault_drop {drop}; "
                     f"knob fault_lock {lock}; for r in {' '.join(RETRIES)}; do knob fault_retry $r; fresh; "
                     f"mark policy={policy} around={around} drop={drop} lock={lock} retry=$r; "
                     f"mplay --load /tmp/trace {file}; done")
    return "\n".join(lines)


def boots(quick):
    last = 100_000 if quick else 1_000_000
    image = "small" if quick else "disk"
    data = "medium" if quick else "random"
    sparse = [Boot(f"stride-sparse-{number}", script(f"seq 0 {STRIDE} {last}", "/data/sparse.bin", [setting]),
                   mem_mib=1024 if quick else 2560, shift=3)
              for number, setting in enumerate(SETTINGS[:1] + SETTINGS[3:] if quick else SETTINGS, 1)]
    trace = f"seq 0 {STRIDE} {DATA_PAGES[image] - 1}"
    return sparse + [Boot("stride-disk", script(trace, f"/data/{data}.bin", [("ondemand", 65536, "submit", "vma")]),
                          image=image, mem_mib=1024, shift=3, disk=PUBLISHED_DISK)]


def rows_of(records):
    """Each run beside the first one of its settings, which is `hold`."""
    rows = []
    for labels, numbers in records:
        total, retries = int(numbers["real_us"]), int(numbers["retries"])
        row = {**labels, "touched": int(numbers["touched"]), "retries": retries, "waits": int(numbers["waits"]),
               "user_us": int(numbers["user_us"]), "system_us": int(numbers["system_us"]), "total_us": total}
        if labels["retry"] == "hold":
            hold = total
        else:
            row["cost_percent"] = 100 * (total - hold) / hold
            if retries:
                row["cost_ns"] = round(1000 * (total - hold) / retries)
        rows.append(row)
    return rows


COLUMNS = [
    Column("policy", "readahead"), Column("around", "map_around_bytes"), Column("drop", "fault_drop"),
    Column("lock", "fault_lock"), Column("retry", "fault_retry"), Column("touched", "touched", whole),
    Column("retries", "retries", whole), Column("waits", "waits", whole), Column("user_us", "user", seconds),
    Column("system_us", "system", seconds), Column("total_us", "total", seconds),
    Column("cost_ns", "ns for each retry", whole), Column("cost_percent", "cost", percent),
]


def section(plan, results, quick):
    sparse = [row for boot in plan if boot.name != "stride-disk" for row in rows_of(results[boot.name])]
    disk = rows_of(results["stride-disk"])
    published = next(row for row in sparse if row["retry"] == "once")
    text = f"""
The sparse file of 1000 GiB, touched as `seq 0 {STRIDE} {100_000 if quick else 1_000_000}` says (`mplay --load`). The pages are
holes, so no disk is asked and no time goes by but the kernel's own. Published: 8.706 s without retry and 8.744 s with
it, 0.4 %, 3,800 ns for each of 10,001 faults. That kernel read around every miss and mapped no neighbours; with the same
settings (the first rows) a retry costs {published['cost_ns']:,} ns here, {percent(published['cost_percent'])}.

With the policies of today a touch is one page and not 32, and the same retry is a larger part of less; where the lock is
let go only to wait (`fault_drop=wait`), a hole is never retried. With map-around the second attempt maps the neighbours
that the first one has read, which is more work, but not wasted.

On a disk on which a request takes as long as a published touch, 870,000 ns, each fault waits and is retried, and the
cost disappears (second table; the data file has {disk[0]['touched']:,} pages at this stride).
"""
    return Section("Stride 100 on a sparse file: what a retry costs", text, plan, [
        Table("stride-sparse", "Sparse file, holes only", COLUMNS, sparse),
        Table("stride-disk", "File of random bytes behind a disk", COLUMNS, disk),
    ])
