"""From single events to what they are parts of: faults with their waits, requests, windows, and which request a fault
waited for.

The way from a fault to its request: the wait is for a page of a file; the latest event file_read that covers the page says
where it lies on the disk; the request is the first one that covers that sector and is completed after the file_read.
"""

from dataclasses import dataclass, field
from typing import Optional

SECTORS_PER_PAGE = 8


@dataclass
class Request:
    number: int
    dev: str
    sector: int
    sectors: int
    rwbs: str
    issue_us: int
    complete_us: int
    error: int = 0
    finished: bool = True
    pages: list = field(default_factory=list)  # (file, first page, pages) that it brings


@dataclass
class Wait:
    begin_us: int
    page: int
    locked: bool
    end_us: int = 0
    request: Optional[Request] = None


@dataclass
class Fault:
    pid: int
    addr: int
    access: str
    begin_us: int
    end_us: int = 0
    file: Optional[tuple] = None
    page: int = 0
    outcome: str = ""
    reason: str = ""
    attempts: int = 1
    waited_ns: int = 0
    waits: list = field(default_factory=list)
    retries: list = field(default_factory=list)


@dataclass
class Window:
    time_us: int
    pid: int
    file: tuple
    pattern: str
    kind: str
    start: int
    size: int
    ahead: int  # pages from the mark on
    hit: int
    end_us: int = 0


@dataclass
class Read:
    """Pages of a file and the place where they lie."""
    time_us: int
    file: tuple
    page: int
    pages: int
    dev: str
    sector: int

    def sector_of(self, page):
        return self.sector + (page - self.page) * SECTORS_PER_PAGE


class Model:
    """What happened, in the order of time."""

    def __init__(self, record):
        self.counted = record.counted
        self.threads = {}   # pid: name
        self.faults, self.requests, self.windows, self.reads = [], [], [], []
        self.cached = []    # (time, pages cached)
        self.cached_now = record.counted.get("cached_before", 0)
        self.start_us = record.events[0].time_us if record.events else 0
        self.end_us = record.events[-1].time_us if record.events else 0
        self.open_faults = {}     # pid: faults in hand, the outer ones first
        self.open_requests = {}   # (dev, sector, sectors, rwbs): requests, oldest first
        self.unfinished = 0
        self.requests_at = {}     # (dev, place of a page): requests for it, oldest first
        self.brought = {}         # (file, page): (time asked for, request), oldest first

    # ---- One event after the other ----

    def fault_begin(self, e):
        fault = Fault(e.pid, e.fields["addr"], e.fields["access"], e.time_us)
        self.open_faults.setdefault(e.pid, []).append(fault)

    def fault_in_hand(self, e):
        """None: it began before the record did."""
        stack = self.open_faults.get(e.pid)
        return stack[-1] if stack else None

    def end_wait(self, fault, time_us):
        if fault.waits and not fault.waits[-1].end_us:
            fault.waits[-1].end_us = time_us

    def fault_file(self, e):
        fault = self.fault_in_hand(e)
        if fault:
            self.end_wait(fault, e.time_us)
            fault.file, fault.page = e.fields["file"], e.fields["page"]

    def fault_wait(self, e):
        fault = self.fault_in_hand(e)
        if fault:
            self.end_wait(fault, e.time_us)
            fault.waits.append(Wait(e.time_us, e.fields["page"], bool(e.fields["locked"])))

    def fault_retry(self, e):
        fault = self.fault_in_hand(e)
        if fault:
            self.end_wait(fault, e.time_us)
            fault.retries.append(e.time_us)

    def fault_end(self, e):
        fault = self.fault_in_hand(e)
        if not fault:
            return
        self.end_wait(fault, e.time_us)
        fault.end_us = e.time_us
        fault.outcome, fault.reason = e.fields["outcome"], e.fields["reason"]
        fault.attempts, fault.waited_ns = e.fields["attempts"], e.fields["waited_ns"]
        self.open_faults[e.pid].pop()
        self.faults.append(fault)

    def block_rq_issue(self, e):
        f = e.fields
        request = Request(len(self.requests), f["dev"], f["sector"], f["sectors"], f["rwbs"], e.time_us, 0)
        self.requests.append(request)
        self.open_requests.setdefault((f["dev"], f["sector"], f["sectors"], f["rwbs"]), []).append(request)

    def block_rq_complete(self, e):
        f = e.fields
        waiting = self.open_requests.get((f["dev"], f["sector"], f["sectors"], f["rwbs"]))
        if not waiting:  # the gate ended it before the driver had it
            self.block_rq_issue(e)
            waiting = self.open_requests[f["dev"], f["sector"], f["sectors"], f["rwbs"]]
        request = waiting.pop(0)
        request.complete_us, request.error = e.time_us, int(f["last"])

    def readahead(self, e):
        f = e.fields
        self.windows.append(Window(e.time_us, e.pid, f["file"], f["pattern"], f["kind"], f["start"], f["size"],
                                   f["async"], f["hit"]))

    def file_read(self, e):
        f = e.fields
        self.reads.append(Read(e.time_us, f["file"], f["page"], f["pages"], f["file"][0], f["sector"]))

    def mm_filemap_add_to_page_cache(self, e):
        self.cached_now += 1
        self.cached.append((e.time_us, self.cached_now))

    def mm_filemap_delete_from_page_cache(self, e):
        self.cached_now -= 1
        self.cached.append((e.time_us, self.cached_now))

    def take(self, event):
        if event.name in HANDLED:
            getattr(self, event.name)(event)
        if event.pid:
            self.threads[event.pid] = event.comm

    # ---- What belongs together ----

    def index_requests(self):
        for request in self.requests:
            first, last = request.sector, request.sector + max(request.sectors, 1) - 1
            for place in range(first // SECTORS_PER_PAGE, last // SECTORS_PER_PAGE + 1):
                self.requests_at.setdefault((request.dev, place), []).append(request)

    def request_of(self, read, page):
        """The first request for the page's sector that is done after it was asked for."""
        sector = read.sector_of(page)
        for request in self.requests_at.get((read.dev, sector // SECTORS_PER_PAGE), ()):
            if request.complete_us >= read.time_us and request.sector <= sector < request.sector + request.sectors:
                return request
        return None

    def bring_pages(self):
        """Each page that was read, to the request that brought it."""
        for read in self.reads:
            for page in range(read.page, read.page + read.pages):
                request = self.request_of(read, page)
                if request:
                    self.brought.setdefault((read.file, page), []).append((read.time_us, request))
                    note_page(request, read.file, page)

    def request_of_wait(self, file, wait):
        for asked_us, request in reversed(self.brought.get((file, wait.page), ())):
            if asked_us <= wait.end_us:
                return request
        return None

    def end_of_window(self, window):
        """When the last of its pages is there."""
        end_us = window.time_us
        for page in range(window.start, window.start + window.size):
            done = (request.complete_us for _, request in self.brought.get((window.file, page), ()))
            end_us = max(end_us, next((time_us for time_us in done if time_us >= window.time_us), end_us))
        return end_us

    def connect(self):
        self.index_requests()
        self.bring_pages()
        for fault in self.faults:
            for wait in fault.waits:
                wait.request = self.request_of_wait(fault.file, wait)
        for window in self.windows:
            window.end_us = self.end_of_window(window)


def note_page(request, file, page):
    """One more page that it brings; pages side by side are one entry."""
    if request.pages:
        last_file, first, n = request.pages[-1]
        if last_file == file and first <= page < first + n:
            return
        if last_file == file and first + n == page:
            request.pages[-1] = (file, first, n + 1)
            return
    request.pages.append((file, page, 1))


HANDLED = {name for name in vars(Model) if name.startswith(("fault_", "block_", "mm_"))} - {"fault_in_hand"} \
    | {"readahead", "file_read"}


def build(record):
    model = Model(record)
    for event in record.events:
        model.take(event)
    model.unfinished = sum(map(len, model.open_faults.values()))
    for request in model.requests:
        if not request.complete_us:  # still with the disk when the events were switched off
            request.complete_us, request.finished = model.end_us, False
    model.faults.sort(key=lambda fault: (fault.begin_us, fault.pid))
    model.connect()
    return model
