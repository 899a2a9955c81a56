"""Requests: fl disk."""

import gdb

from .core import MAX_ITEMS, array_text, command, flags_text, list_of, say, seconds, static

SECTOR_BYTES = 512


def devices():
    return list_of(static("registry", "drivers/block/block.c"), "struct block_device", "all_link")


def gate_of(device):
    """The device's gate, or None. Its struct is gate.c's own, and tests have others of the name."""
    if not int(device["gate"]):
        return None
    own = gdb.lookup_global_symbol("gate_free").type.fields()[0].type
    return device["gate"].cast(own).dereference()


def requests(device):
    """(state, request) for each request that is under way, oldest first in each state."""
    gate = gate_of(device)
    if gate is not None:
        for request in list_of(gate["held"], "struct block_request", "link"):
            yield "held by the gate", request
    for request in list_of(device["pending"], "struct block_request", "link"):
        yield "waits for the driver", request
    for request in list_of(device["queue"]["issued"], "struct block_request", "issued_link"):
        yield "with the driver", request
    if gate is not None:
        for request in list_of(gate["delayed"], "struct block_request", "link"):
            until = seconds(request["deliver_ns"])
            yield f"done by the driver, kept by the gate until {until}", request


def request_pages(request):
    """The struct pages that it reads or writes."""
    part = request["part"]
    if int(part):
        first = int(request["part_first"])
        for i in range(first, first + min(int(request["n_segments"]), MAX_ITEMS)):
            yield part["segments"][i]["page"].dereference()
        return
    for bio in list_of(request["bios"], "struct bio", "link"):
        for i in range(min(int(bio["n_segments"]), MAX_ITEMS)):
            yield bio["segments"][i]["page"].dereference()


def pages_text(request):
    """pages 4 to 7 of /data/file; by files in the order of the request."""
    from .files import cache_title
    runs = []
    for page in request_pages(request):
        cache, index = int(page["cache"]), int(page["index"])
        if not cache:
            runs.append([0, 0, 0, None])
        elif runs and runs[-1][0] == cache and runs[-1][2] + 1 == index:
            runs[-1][2] = index
        else:
            runs.append([cache, index, index, page["cache"].dereference()])
    texts = []
    for cache, first, last, value in runs:
        if not cache:
            texts.append("a page that left its cache")
        else:
            pages = f"page {first}" if first == last else f"pages {first} to {last}"
            texts.append(f"{pages} of {cache_title(value)}")
    return "; ".join(texts) or "no data"


def request_text(state, request):
    flags = flags_text(request["flags"], "enum bio_flags", "BIO_")
    kind = "read" if flags == "none" else flags
    sector, n = int(request["sector"]), int(request["bytes"]) // SECTOR_BYTES
    return (f"{kind}, sectors {sector} to {sector + n - 1} ({int(request['bytes'])} bytes), "
            f"{state}")


def request_of_page(page):
    """(device, state, request) that carries the page, or None."""
    address = int(page.address)
    for device in devices():
        for state, request in requests(device):
            if any(int(p.address) == address for p in request_pages(request)):
                return device, state, request
    return None


def rule_text(rule):
    left = int(rule["left"])
    error = int(rule["error"])
    what = f"ends with error {error}" if error else "is held"
    return (f"the gate: sectors {int(rule['first'])} to {int(rule['last'])}: "
            f"{f'the next {left}' if left else 'what comes'} {what}")


@command("disk")
def disk(words):
    """List the requests in flight.
    fl disk
    For each disk the requests in flight: sectors, where each is (held by the gate,
    waiting, with the driver, kept by the gate's delay), and whose pages it carries; and the gate's
    rules."""
    for device in devices():
        stats, found = device["stats"], list(requests(device))
        say(f"{array_text(device['name'])}: {int(device['sectors'])} sectors, "
            f"{int(stats['in_flight'])} in flight; {int(stats['requests'][0])} reads, "
            f"{int(stats['requests'][1])} writes, {int(stats['errors'])} failed so far")
        gate = gate_of(device)
        if gate is not None:
            delay = gate["delay"]
            if int(delay["latency_ns"]) or int(delay["per_request_ns"]) or int(delay["bandwidth"]):
                say(f"  the gate: latency {int(delay['latency_ns'])} ns, each request "
                    f"{int(delay['per_request_ns'])} ns, bandwidth {int(delay['bandwidth'])} B/s")
            for i in range(min(int(gate["n_rules"]), 16)):
                say("  " + rule_text(gate["rules"][i]))
        for state, request in found:
            say(f"  {request_text(state, request)}")
            say(f"    {pages_text(request)}")
