"""The trace ring: fl trace."""

from .core import command, cpus, format_text, number, percpu, say, seconds, text_of, usage

DEFAULT_EVENTS = 32


def records():
    """The records of all CPUs in the order of time."""
    found = []
    for cpu in cpus():
        ring = percpu("trace_ring", "kernel/log/trace.c", cpu)
        size = ring["records"].type.range()[1] + 1
        written = int(ring["n_written"])
        for n in range(max(0, written - size), written):
            record = ring["records"][n % size]
            found.append((int(record["time_ns"]), n, record))
    return [record for _, _, record in sorted(found, key=lambda item: item[:2])]


@command("trace")
def trace(words):
    """Show the last events of the trace ring.
    fl trace [N]
    The last N events (32) of the trace ring, of all CPUs, oldest first. Switch it
    on with `set var trace_on = 1`, or in the kernel with echo 1 >/proc/trace."""
    if len(words) > 1:
        usage("fl trace [N]")
    events = records()[-max(1, number(words[0]) if words else DEFAULT_EVENTS):]
    for record in events:
        if not int(record["format"]):
            continue
        text = format_text(text_of(record["format"]), [record["args"][i] for i in range(4)])
        say(f"{seconds(record['time_ns']):>14}  cpu {int(record['cpu'])}  "
            f"pid {int(record['pid'])}  {text}")
    if not events:
        say("The trace ring is empty: set var trace_on = 1 switches it on.")
