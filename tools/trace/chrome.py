"""The Chrome trace format (JSON), which Perfetto opens: a track for each thread, with its faults and their waits; tracks for
each disk's requests, as many as overlap; arrows from requests to the faults that waited for them; pages in the cache."""

import json

THREADS, DISKS = 1, 2  # the two groups of tracks; Chrome calls them processes
LANES = 1000           # at most, of one disk
INSTANT = 0.001        # what is over in the same microsecond is still seen


def slice_of(group, track, name, category, begin_us, end_us, args):
    return {"ph": "X", "pid": group, "tid": track, "name": name, "cat": category, "ts": begin_us,
            "dur": max(end_us - begin_us, INSTANT), "args": args}


def name_of(kind, group, track, name):
    return {"ph": "M", "pid": group, "tid": track, "name": kind, "args": {"name": name}}


def file_name(file):
    return f"{file[0]} inode {file[1]}"


class Writer:
    """Events in the order in which they are made; times begin at 0."""

    def __init__(self, model):
        self.model = model
        self.events = []
        self.track_of = {}  # request's number: its track

    def at(self, time_us):
        return time_us - self.model.start_us

    def threads(self):
        self.events.append(name_of("process_name", THREADS, 0, "threads"))
        for pid, comm in sorted(self.model.threads.items()):
            self.events.append(name_of("thread_name", THREADS, pid, f"{comm} {pid}"))

    def fault(self, fault):
        args = {"address": f"{fault.addr:#x}", "access": fault.access, "outcome": fault.outcome,
                "reason": fault.reason, "attempts": fault.attempts, "waited_ns": fault.waited_ns}
        if fault.file:
            args.update(file=file_name(fault.file), page=fault.page)
        self.events.append(slice_of(THREADS, fault.pid, f"fault: {fault.reason}", "fault", self.at(fault.begin_us),
                                    self.at(fault.end_us), args))
        for wait in fault.waits:
            self.events.append(slice_of(THREADS, fault.pid, f"wait for page {wait.page}", "wait", self.at(wait.begin_us),
                                        self.at(wait.end_us), {"locked": wait.locked}))
        for time_us in fault.retries:
            self.events.append({"ph": "i", "s": "t", "pid": THREADS, "tid": fault.pid, "name": "retry",
                                "cat": "fault", "ts": self.at(time_us)})

    def requests(self):
        """Each on the first track of its disk that is free."""
        disks = sorted({request.dev for request in self.model.requests})
        free_at = {disk: [] for disk in disks}
        self.events.append(name_of("process_name", DISKS, 0, "disks"))
        for request in sorted(self.model.requests, key=lambda r: (r.issue_us, r.number)):
            lanes = free_at[request.dev]
            lane = next((i for i, end in enumerate(lanes) if end <= request.issue_us), len(lanes))
            lanes[lane:lane + 1] = [max(request.complete_us, request.issue_us + INSTANT)]
            track = self.track_of[request.number] = disks.index(request.dev) * LANES + lane + 1
            self.events.append(slice_of(
                DISKS, track, f"{request.rwbs} {request.sector} + {request.sectors}", "request",
                self.at(request.issue_us), self.at(request.complete_us),
                {"error": request.error, "finished": request.finished, "pages": [f"{file_name(f)} {p} + {n}" for f, p, n in request.pages]}))
        for i, disk in enumerate(disks):
            for lane in range(len(free_at[disk])):
                self.events.append(name_of("thread_name", DISKS, i * LANES + lane + 1, f"disk {disk} #{lane + 1}"))

    def flows(self):
        """From the request a fault waited for to the end of that wait."""
        number = 0
        for fault in self.model.faults:
            for wait in fault.waits:
                if not wait.request:
                    continue
                number += 1
                common = {"name": "brings", "cat": "flow", "id": number}
                self.events.append({**common, "ph": "s", "pid": DISKS, "tid": self.track_of[wait.request.number],
                                    "ts": self.at(wait.request.issue_us)})
                self.events.append({**common, "ph": "f", "bp": "e", "pid": THREADS, "tid": fault.pid,
                                    "ts": self.at(wait.end_us)})

    def windows(self):
        for w in self.model.windows:
            self.events.append({"ph": "i", "s": "t", "pid": THREADS, "tid": w.pid, "name": f"readahead: {w.pattern}",
                                "cat": "readahead", "ts": self.at(w.time_us),
                                "args": {"file": file_name(w.file), "kind": w.kind, "start": w.start, "size": w.size,
                                         "async": w.ahead, "hit": w.hit}})

    def cached(self):
        last = {}
        for time_us, pages in self.model.cached:
            last[time_us] = pages
        for time_us, pages in last.items():
            self.events.append({"ph": "C", "pid": THREADS, "tid": 0, "name": "cached pages", "ts": self.at(time_us),
                                "args": {"pages": pages}})


def text(model, title):
    writer = Writer(model)
    writer.threads()
    for fault in model.faults:
        writer.fault(fault)
    writer.requests()
    writer.flows()
    writer.windows()
    writer.cached()
    head = {"displayTimeUnit": "ns", "otherData": {"program": title, **{k: str(v) for k, v in model.counted.items()}}}
    lines = ",\n".join(json.dumps(event, separators=(",", ":"), sort_keys=True) for event in writer.events)
    return json.dumps(head, sort_keys=True)[:-1] + ', "traceEvents": [\n' + lines + "\n]}\n"
