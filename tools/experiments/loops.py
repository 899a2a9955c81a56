"""Threads that fault beside one that maps and unmaps memory in a loop: case 1 and 2 of 2009, and the loop of 2010."""

from experiments.machine import Boot, Disk
from experiments.plots import Plot, Series
from experiments.report import Section
from experiments.table import Column, Table, decimal, milliseconds, percent, seconds, whole

NAME = "loops"

REQUEST_NS = 18_180_000  # 55 requests a second
DISKS = {"serial": Disk(per_request_ns=REQUEST_NS), "overlapping": Disk(latency_ns=REQUEST_NS)}
RETRIES = ("hold", "once", "many", "recheck")
THREADS = (1, 2, 4, 8)
WRITERS = ("none", "bare", "touch")
ORDERS = {"random": "at random", "own": "each its own part, every 100th page"}
TOUCHES = 120  # by all threads together
FILE = "/data/medium.bin"


def script(order, threads, retries):
    return ("knob readahead none; knob fault_lock mmap\n"
            f"for r in {' '.join(retries)}; do knob fault_retry $r; for w in {' '.join(WRITERS)}; do fresh; "
            f"mark order={order} threads={threads} retry=$r writer=$w; mloop --threads {threads} "
            f"--touches {TOUCHES // threads} --order {order} --step 100 --writer $w {FILE}; done; done")


def boots(quick):
    threads, retries, disks = (((1, 4), RETRIES[:2], ("serial",)) if quick else (THREADS, RETRIES, DISKS))
    return [Boot(f"loops-{disk}-{order}-{n}", script(order, n, retries), shift=3, disk=DISKS[disk])
            for disk in disks for order in ORDERS for n in threads]


def rows_of(records, disk):
    rows, baseline = [], {}
    for labels, numbers in records:
        writer, threads = labels["writer"], int(labels["threads"])
        row = {**labels, "disk": disk, "threads": threads, "end_us": int(numbers["last_end_us"]),
               "retries": int(numbers["fault_retries"]), "across": int(numbers["fault_lock_across_io"]),
               "requests": int(numbers["disk_data_requests"]), "metadata": int(numbers["disk_meta_requests"])}
        if writer != "none":
            row |= {"loops": int(numbers["loops"]), "loops_per_s": int(numbers["loops_per_1000_s"]) / 1000,
                    "turn_99_ns": int(numbers["turn_99_ns"]), "turn_longest_ns": int(numbers["turn_longest_ns"])}
        if labels["retry"] == "hold":
            baseline[writer] = row
        else:
            hold = baseline[writer]
            row["slower_percent"] = 100 * (row["end_us"] - hold["end_us"]) / hold["end_us"]
            if writer != "none":
                row["times"] = row["loops_per_s"] / hold["loops_per_s"]
        rows.append(row)
    return rows


COLUMNS = [
    Column("disk", "disk"), Column("order", "touches"), Column("threads", "threads", whole),
    Column("writer", "loop"), Column("retry", "fault_retry"), Column("end_us", "faulters done", seconds),
    Column("slower_percent", "slower than hold", percent), Column("loops_per_s", "loops/s", decimal),
    Column("times", "times hold", decimal), Column("turn_99_ns", "99 % of turns within", milliseconds),
    Column("turn_longest_ns", "longest turn", milliseconds), Column("retries", "retries", whole),
    Column("across", "lock held across I/O", whole), Column("requests", "requests", whole),
    Column("metadata", "metadata", whole),
]


def bars(title, rows, writer):
    """Loops a second over the number of threads, a series for each policy."""
    chosen = [row for row in rows if row["writer"] == writer and row["order"] == "random" and row["disk"] == "serial"]
    names = list(dict.fromkeys(row["retry"] for row in chosen))
    return Plot(title, "faulting threads", "loops a second", log_y=True,
                series=[Series(name, [(str(row["threads"]), row["loops_per_s"]) for row in chosen
                                      if row["retry"] == name]) for name in names]).bars()


def section(plan, results, quick):
    rows = [row for boot in plan for row in rows_of(results[boot.name], boot.name.split("-")[1])]

    def find(**wanted):
        return next(row for row in rows if all(row[key] == value for key, value in wanted.items()))

    hold, once = (find(disk="serial", order="random", threads=4, writer="bare", retry=retry) for retry in ("hold", "once"))
    touch = find(disk="serial", order="random", threads=4, writer="touch", retry="once")
    plain = find(disk="serial", order="own", threads=4, writer="none", retry="once")
    busy = find(disk="serial", order="own", threads=4, writer="bare", retry="once")
    text = f"""
Threads touch pages of a file of 64 MiB, {TOUCHES} in all, on a disk that takes 18.18 ms for a request: one after the other
(serial, the disk of 2010), or all at once (overlapping). A thread beside them maps and unmaps a page in a loop, bare or
with a store to it. One lock for the address space (`fault_lock=mmap`) and one page a miss (`readahead=none`), as each
touch was one request then. One CPU, since with two the parts of a second in which QEMU runs one of them are larger than
what is measured. Published, 2009: case 1 (threads on different pages, no loop) below 1 % slower with retry; case 2
(with the loop) below 3 % slower. 2010 (at random, with the loop): 55 loops a second without retry, 15,000 with it.

With four threads at random and the bare loop: {decimal(hold['loops_per_s'])} loops a second without retry and
{decimal(once['loops_per_s'])} with it, {decimal(once['times'])} times as many; where the loop also stores,
{decimal(touch['times'])} times. Case 1 with four threads: {percent(plain['slower_percent'])} slower; case 2:
{percent(busy['slower_percent'])}. One thread beside the loop is slower by more: there is one CPU, the loop has it when the
thread's page arrives, and keeps it to the end of its slice. Without retry the loop sleeps for the lock meanwhile.
"""
    claims = [f"mmap and munmap in a loop beside four threads that fault at random: {decimal(hold['loops_per_s'])} loops a second "
              f"without retry, {decimal(once['loops_per_s'])} with it, {decimal(once['times'])}-fold; with a store in the loop "
              f"{decimal(touch['times'])}-fold."]
    return Section("Faults beside mmap and munmap", text, plan, [Table("loops", "Every run", COLUMNS, rows)],
                   {"loops-bare.svg": bars("mmap and munmap beside faults", rows, "bare"),
                    "loops-touch.svg": bars("mmap, store and munmap beside faults", rows, "touch")}, claims)
