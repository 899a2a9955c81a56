"""Every policy of faults with every other, with memory to spare and with files eight times the memory."""

import itertools

from experiments.loops import DISKS, FILE
from experiments.machine import Boot
from experiments.report import Section
from experiments.table import Column, Table, decimal, milliseconds, percent, seconds, whole

NAME = "matrix"

RETRIES = ("hold", "once", "many", "recheck")
DROPS = ("submit", "wait")
PINS = (1, 0)
LOCKS = ("vma", "mmap")
FREE_PAGES = 2048  # of FILE's 16,384
PRESSURE_LIMIT_S = 60  # where threads get nowhere under it: most need 10 s

# Leaves FREE_PAGES free: a file in /tmp takes the rest.
FILL = (f"free=$(awk '/^nr_free_pages/ {{ print $2 }}' /proc/vmstat); "
        f"dd if=/dev/zero of=/tmp/fill bs=4k count=$((free - {FREE_PAGES})) 2>/dev/null\n")


def script(retries, lock, command):
    return (f"knob fault_lock {lock}; for r in {' '.join(retries)}; do for d in {' '.join(DROPS)}; do "
            f"for p in {' '.join(map(str, PINS))}; do knob fault_retry $r; knob fault_drop $d; knob fault_pin $p; fresh; "
            f"mark lock={lock} retry=$r drop=$d pin=$p; {command}; done; done; done")


def boots(quick):
    """A boot for each lock and retry, so that two run at a time."""
    plain = (f"mloop --threads 4 --touches {10 if quick else 30} --order random --writer bare {FILE}")
    short = (f"mloop --threads 8 --touches {10 if quick else 30} --order random --writer touch "
             f"--scan /data/sparse.bin --scan-limit {PRESSURE_LIMIT_S} {FILE}")
    retries = RETRIES[:2] if quick else RETRIES
    pressed = [("mmap", "once")] if quick else itertools.product(LOCKS, retries)
    return ([Boot(f"matrix-{lock}-{retry}", "knob readahead none\n" + script([retry], lock, plain), shift=3,
                  disk=DISKS["serial"]) for lock, retry in itertools.product(LOCKS, retries)] +
            [Boot(f"pressure-{lock}-{retry}", "fresh; knob readahead around\n" + FILL + script([retry], lock, short),
                  mem_mib=128, shift=3, disk=DISKS["serial"]) for lock, retry in pressed])


def row_of(labels, numbers):
    waits, retries, misses = (int(numbers[f"fault_{name}"]) for name in ("waits", "retries", "retry_misses"))
    return {**labels, "end_us": int(numbers["last_end_us"]), "loops_per_s": int(numbers["loops_per_1000_s"]) / 1000,
            "turn_99_ns": int(numbers["turn_99_ns"]), "turn_longest_ns": int(numbers["turn_longest_ns"]),
            "retries": retries, "waits": waits, "misses": misses,
            "miss_percent": 100 * misses / waits if waits else None,
            "across": int(numbers["fault_lock_across_io"]), "requests": int(numbers["disk_data_requests"]),
            "metadata": int(numbers["disk_meta_requests"]), "starved": int(numbers.get("scanners_over", 0))}


def setting_of(row):
    return f"`{row['retry']}` with `fault_lock={row['lock']}`, `fault_drop={row['drop']}` and `fault_pin={row['pin']}`"


COLUMNS = [
    Column("lock", "fault_lock"), Column("retry", "fault_retry"), Column("drop", "fault_drop"), Column("pin", "fault_pin"),
    Column("loops_per_s", "loops/s", decimal), Column("turn_99_ns", "99 % of turns within", milliseconds),
    Column("turn_longest_ns", "longest turn", milliseconds), Column("end_us", "faulters done", seconds),
    Column("waits", "waits", whole), Column("retries", "retries", whole), Column("misses", "retry misses", whole),
    Column("miss_percent", "misses of waits", percent), Column("across", "lock held across I/O", whole),
    Column("requests", "requests", whole), Column("metadata", "metadata", whole),
]


def section(plan, results, quick):
    rows = {kind: [row_of(*record) for boot in plan if boot.name.startswith(kind) for record in results[boot.name]]
            for kind in ("matrix", "pressure")}

    def find(kind, **wanted):
        return next(row for row in rows[kind] if all(row[key] == value for key, value in wanted.items()))

    missing, kept = (find("pressure", lock="mmap", retry="once", drop="wait", pin=pin) for pin in "01")
    submit = find("pressure", lock="mmap", retry="once", drop="submit", pin="0")
    text = f"""
First table: four threads at random beside the bare loop, with memory to spare, on the serial disk; one page a miss
(`readahead=none`). Second table: eight threads at random beside the loop that stores, with {FREE_PAGES:,} pages free and a file
of 16,384, read around (128 KiB), while another process goes through 64 MiB of holes over and over. Each setting starts
with an empty page cache, and block numbers have to be read, too (metadata).

A lock is held across I/O only where the policy says so: with `hold`, and with `fault_drop=wait` where a block number must
be read. With a lock for each VMA (`vma`) even that does not stop the loop, which works on other VMAs.

A page that a fault has waited for can be gone when it looks again: the fault needs its lock back first, and gets it only
after a writer that waits for somebody who reads a block number with the lock held (`mmap`, `wait`). Short of memory the
page is dropped meanwhile: without a pin {missing['misses']} of {missing['waits']} waits were for nothing
({percent(missing['miss_percent'])}) and the threads needed {seconds(missing['end_us'])}, with it {kept['misses']} and
{seconds(kept['end_us'])}. Where the lock is let go before the disk is asked (`submit`), nobody waits for it long enough:
{submit['misses']} misses without a pin.
"""
    starved = [row for row in rows["pressure"] if row["starved"]]
    if starved:
        text += f"""
A fault that lets go as often as it likes can be starved: after {PRESSURE_LIMIT_S} s the pressure ended, and only so the threads got to
their end, in {len(starved)} of {len(rows["pressure"])} runs: {", ".join(setting_of(row) for row in starved)}. With
`once` the second attempt keeps its lock, which bounds the work.
"""
    both = rows["matrix"] + rows["pressure"]
    claims = [f"Retry misses with `fault_pin=1`: {sum(row['misses'] for row in both if row['pin'] == '1')} in "
              f"{sum(row['waits'] for row in both if row['pin'] == '1'):,} waits; without: "
              f"{sum(row['misses'] for row in both if row['pin'] == '0')} in "
              f"{sum(row['waits'] for row in both if row['pin'] == '0'):,}.",
              f"Locks held across I/O, but with `hold`, and under `fault_drop=wait`: "
              f"{sum(row['across'] for row in both if row['retry'] != 'hold' and row['drop'] == 'submit')}."]
    return Section("All policies of faults", text, plan, [
        Table("matrix", "Memory to spare", COLUMNS, rows["matrix"]),
        Table("pressure", "A file eight times the memory", COLUMNS, rows["pressure"]),
    ], claims=claims)
