"""The trace: fl trace."""

import gdb

from .core import (array_text, command, cpus, kernel_type, number, pointer, say, seconds,
                   static, text_of, usage)

DEFAULT_EVENTS = 32
ADDRESSES = {"addr", "address", "ip", "pfn"}


def records():
    """(CPU, record) of all CPUs in the order of time."""
    found = []
    for cpu in cpus():
        where = static("trace_ring", "kernel/log/trace.c").address
        ring = gdb.Value(int(where) + int(cpu["percpu_delta"])).cast(where.type).dereference()
        if not int(ring):
            continue
        page_type = kernel_type("struct trace_page")
        slots = page_type.fields()[0].type.range()[1] + 1
        n_pages, after = int(ring["n_pages"]), int(ring["next"])
        for n in range(max(0, after - n_pages * slots), after):
            slot = ring["pages"][n // slots % n_pages]["slots"][n % slots]
            if int(slot["seq"]) == (n + 1) << 1:
                record = slot["record"]
                found.append((int(record["time_ns"]), int(cpu["index"]), n, record))
    return [(cpu, record) for _, cpu, _, record in sorted(found, key=lambda item: item[:3])]


def field_text(name, value):
    """name=value, as far as possible as the kernel's own text has it."""
    kind = value.type.strip_typedefs()
    if kind.code == gdb.TYPE_CODE_PTR:
        return f"{name}={text_of(value) if int(value) else '(none)'}"
    if kind.code == gdb.TYPE_CODE_STRUCT:
        return f"{name}={array_text(value['text'])}"
    if kind.code == gdb.TYPE_CODE_ARRAY:
        return f"{name}={array_text(value)!r}"
    return f"{name}={int(value):#x}" if name in ADDRESSES else f"{name}={int(value)}"


def event_text(record):
    name = text_of(static("trace_events", "kernel/log/trace_table.c")[int(record["type"])]["name"])
    struct = kernel_type(f"struct trace_{name}")
    fields = pointer(int(record["fields"].address), f"struct trace_{name}").dereference()
    return " ".join([f"{name}:", *(field_text(f.name, fields[f.name]) for f in struct.fields())])


def switch(value):
    """All events on or off: gdb writes what the kernel tests."""
    flags = gdb.parse_and_eval("trace_enabled")
    first = int(gdb.parse_and_eval("TRACE_ID_print")) + 1
    for i in range(first, flags.type.range()[1] + 1):
        gdb.execute(f"set var trace_enabled[{i}] = {value}")


@command("trace")
def trace(words):
    """Show the last events of the trace.
    fl trace [N] | on | off
    The last N events (32) of all CPUs, oldest first. `fl trace on` switches all events on, as
    echo 1 >/proc/trace does; /sys/kernel/tracing has them one by one."""
    if words in (["on"], ["off"]):
        switch(int(words == ["on"]))
        return
    if len(words) > 1:
        usage("fl trace [N] | on | off")
    events = records()[-max(1, number(words[0]) if words else DEFAULT_EVENTS):]
    for cpu, record in events:
        say(f"{seconds(record['time_ns']):>14}  cpu {cpu}  pid {int(record['pid'])}  "
            f"{event_text(record)}")
    if not events:
        say("The trace is empty: fl trace on switches all events on.")
