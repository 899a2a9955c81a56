"""The timeline as one HTML file that needs no network: the data, and tools/trace/page.js which draws them."""

import html
import json
import os

HERE = os.path.dirname(os.path.abspath(__file__))


def data_of(model, title):
    """What the page draws. Times in microseconds from the first event; files by their number in `files`."""
    touches = [fault for fault in model.faults if fault.file]
    files = sorted({fault.file for fault in touches} | {window.file for window in model.windows})
    number = {file: i for i, file in enumerate(files)}

    def at(time_us):
        return time_us - model.start_us

    return {
        "title": title,
        "end": at(model.end_us),
        "counted": model.counted,
        "files": [f"{dev} inode {ino}" for dev, ino in files],
        "touches": [{"t": at(f.begin_us), "e": at(f.end_us), "file": number[f.file], "page": f.page, "who":
                     f"{model.threads.get(f.pid, '?')} {f.pid}", "access": f.access, "reason": f.reason,
                     "attempts": f.attempts, "waited": f.waited_ns, "outcome": f.outcome} for f in touches],
        "waits": [{"t": at(w.begin_us), "e": at(w.end_us), "file": number[f.file], "page": w.page, "locked": w.locked,
                   "request": w.request.number if w.request else None} for f in touches for w in f.waits],
        "requests": [{"t": at(r.issue_us), "e": at(r.complete_us), "file": number[file], "page": page, "n": n,
                      "what": f"{r.rwbs} {r.sector} + {r.sectors} on {r.dev}", "number": r.number}
                     for r in model.requests for file, page, n in r.pages if file in number],
        "windows": [{"t": at(w.time_us), "e": at(w.end_us), "file": number[w.file], "page": w.start, "n": w.size,
                     "ahead": w.ahead, "hit": w.hit, "pattern": w.pattern, "kind": w.kind} for w in model.windows],
    }


def text(model, title):
    with open(os.path.join(HERE, "page.js"), encoding="utf-8") as file:
        script = file.read()
    with open(os.path.join(HERE, "page.html"), encoding="utf-8") as file:
        page = file.read()
    data = json.dumps(data_of(model, title), separators=(",", ":"), sort_keys=True).replace("</", "<\\/")
    return page.replace("@TITLE@", html.escape(title)).replace("@DATA@", data).replace("@SCRIPT@", script)
