"""One page in 100: what a retry costs where nothing else is done (FAULTS.md section 1, published: 0.4 %)."""

from experiments.machine import Boot, Disk
from experiments.report import Section
from experiments.table import Column, Table, percent, seconds, whole

NAME = "stride"

STRIDE = 100
LAST, QUICK_LAST = 1_000_000, 100_000
RETRIES = ("hold", "once", "many", "recheck")

# Policy, its window in KiB, map-around in bytes, fault_drop, fault_lock: the first two are the kernel of the published
# numbers.
SETTINGS = (
    ("around", 256, 4096, "submit", "vma"),
    ("around", 128, 4096, "submit", "vma"),
    ("around", 128, 4096, "submit", "mmap"),
    ("ondemand", 128, 4096, "submit", "vma"),
    ("ondemand", 128, 65536, "submit", "vma"),
    ("ondemand", 128, 65536, "wait", "vma"),
)
QUICK_SETTINGS = SETTINGS[:1] + SETTINGS[4:]
PUBLISHED_TOUCH_NS = 870_000
PUBLISHED_DISK = Disk(per_request_ns=PUBLISHED_TOUCH_NS)
DATA_PAGES = {"disk": 100_000, "small": 16_384}


def script(trace, file, settings):
    lines = [f"{trace} >/tmp/trace"]
    for policy, window, around, drop, lock in settings:
        lines.append(f"window {window}; knob readahead {policy}; knob map_around_bytes {around}; knob fault_drop {drop}; "
                     f"knob fault_lock {lock}; for r in {' '.join(RETRIES)}; do knob fault_retry $r; fresh; "
                     f"mark policy={policy} window={window} around={around} drop={drop} lock={lock} retry=$r; "
                     f"mplay --load /tmp/trace {file}; done")
    return "\n".join(lines)


def boots(quick):
    last = QUICK_LAST if quick else LAST
    image = "small" if quick else "disk"
    data = "medium" if quick else "random"
    sparse = [Boot(f"stride-sparse-{number}", script(f"seq 0 {STRIDE} {last}", "/data/sparse.bin", [setting]),
                   mem_mib=1024 if quick else 4096, shift=3)
              for number, setting in enumerate(QUICK_SETTINGS if quick else SETTINGS, 1)]
    trace = f"seq 0 {STRIDE} {DATA_PAGES[image] - 1}"
    return sparse + [Boot("stride-disk", script(trace, f"/data/{data}.bin", SETTINGS[4:5]),
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
    Column("policy", "readahead"), Column("window", "read_ahead_kb"), Column("around", "map_around_bytes"), Column("drop", "fault_drop"),
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
The sparse file of 1000 GiB, touched as `seq 0 {STRIDE} {QUICK_LAST if quick else LAST}` says (`mplay --load`). The pages are holes, so no
disk is asked and no time goes by but the kernel's own. Published: 8.706 s without retry and 8.744 s with it, 0.4 %:
3,800 ns more for each of 10,001 faults, which took {PUBLISHED_TOUCH_NS:,} ns each. That kernel read around every miss and mapped no
neighbours. With the same settings (the first rows; retry off is `hold`) a retry costs {published['cost_ns']:,} ns here,
{percent(published['cost_percent'])} of a touch, and {percent(100 * published['cost_ns'] / PUBLISHED_TOUCH_NS)} of a touch as slow as the published one.

With the policies of today a touch reads one page and not 32 or 64, and the same retry is a larger part of less. Where
the lock is let go only to wait (`fault_drop=wait`), a hole is never retried. With map-around the second attempt maps the
neighbours that the first one has read: more work, but not wasted.

On a disk on which a request takes as long as a published touch each fault waits and is retried, and the cost disappears
(second table; at this stride the data file has {disk[0]['touched']:,} pages).
"""
    claims = [f"Stride 100 on holes, with the settings of the published kernel: a retry costs {published['cost_ns']:,} ns, "
              f"{percent(published['cost_percent'])}; behind a disk {percent(disk[1]['cost_percent'])}."]
    return Section("Stride 100 on a sparse file: what a retry costs", text, plan, [
        Table("stride-sparse", "Sparse file, holes only", COLUMNS, sparse),
        Table("stride-disk", "File of random bytes behind a disk", COLUMNS, disk),
    ], claims=claims)
