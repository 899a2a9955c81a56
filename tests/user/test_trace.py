"""make trace: what tools/trace writes is whole, agrees with what the kernel counted, and is the same in every run."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from harness import ROOT

# The second one drops the file's pages first, so they leave the cache and are read again.
PROGRAM = ["sh", "-c", "mplay m:0-199,900,901,902,3000 /data/medium.bin; mplay m:0-99 /data/medium.bin"]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
THREADS, DISKS = 1, 2
PAGE_TEST = """
<script>
const at = (type, o, more) => canvas.dispatchEvent(new MouseEvent(type, {clientX: x(o.t), clientY:
    canvas.getBoundingClientRect().top + y(o.page + 0.5), bubbles: true, ...more}));
const touch = of(layers[3])[5];
at("mousemove", touch);
document.body.dataset.tip = tip.textContent;
const span = view.t1 - view.t0;
canvas.dispatchEvent(new WheelEvent("wheel", {clientX: x(touch.t), clientY: 300, deltaY: -800, shiftKey: true}));
document.body.dataset.zoom = ((view.t1 - view.t0) / span).toFixed(3);
document.body.dataset.zoomed = document.body.dataset.touches;
showAll();
const pixels = new Set(pen.getImageData(0, 0, canvas.width, canvas.height).data);
document.body.dataset.colours = pixels.size;
layers[3].shown = false;
at("mousemove", touch);
document.body.dataset.hidden = tip.textContent.includes("touch") || tip.textContent.includes("attempts");
</script>
"""


def run(folder, *options):
    done = subprocess.run([sys.executable, "-B", os.path.join(ROOT, "tools", "trace"), "--out", str(folder), *options, "--", *PROGRAM],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stderr + done.stdout
    return done


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trace")
    return folder, run(folder)


@pytest.fixture(scope="module")
def trace(made):
    return json.loads((made[0] / "trace.json").read_text())


def slices(trace, category):
    return [e for e in trace["traceEvents"] if e["ph"] == "X" and e["cat"] == category]


def counted(trace, name):
    return int(trace["otherData"][name])


def is_of_others(event, trace):
    return event["tid"] != counted(trace, "own_pid")


def test_the_programs_output_and_where_the_files_are(made):
    assert re.search(r"^touched: 204$", made[1].stdout, re.MULTILINE)
    assert "fault_begin" not in made[1].stdout
    assert re.search(r"\d+ events, \d+ faults, \d+ requests", made[1].stderr)


def test_faults_are_as_many_as_the_kernel_counted(trace):
    faults = [f for f in slices(trace, "fault") if is_of_others(f, trace) and f["args"]["outcome"] == "done"]
    assert len(faults) == counted(trace, "faults") > 20
    assert sum(f["args"]["reason"] in ("io", "other_io") for f in faults) == counted(trace, "major") > 3
    retries = [e for e in trace["traceEvents"] if e["ph"] == "i" and e["name"] == "retry"]
    assert len(retries) == counted(trace, "fault_retries") > 3


def test_requests_have_a_beginning_and_an_end_and_do_not_overlap_on_a_track(trace):
    requests = slices(trace, "request")
    assert len(requests) == counted(trace, "disk_data_requests") + counted(trace, "disk_meta_requests") > 10
    assert all(r["dur"] > 0 and r["pid"] == DISKS and r["args"]["error"] == 0 for r in requests)
    assert all(r["args"]["finished"] and r["dur"] >= 1000 for r in requests)  # the model's latency
    for track in {r["tid"] for r in requests}:
        there = sorted((r["ts"], r["ts"] + r["dur"]) for r in requests if r["tid"] == track)
        assert all(a[1] <= b[0] for a, b in zip(there, there[1:]))


def test_each_retried_fault_has_an_arrow_from_a_request(trace):
    arrows = [e for e in trace["traceEvents"] if e.get("cat") == "flow"]
    starts = {e["id"]: e for e in arrows if e["ph"] == "s"}
    ends = {e["id"]: e for e in arrows if e["ph"] == "f"}
    assert len(starts) + len(ends) == len(arrows) and starts.keys() == ends.keys()
    assert all(starts[i]["ts"] <= ends[i]["ts"] for i in starts)
    assert all(any(r["tid"] == e["tid"] and r["ts"] <= e["ts"] <= r["ts"] + r["dur"] for r in slices(trace, "request"))
               for e in starts.values())
    retried = [f for f in slices(trace, "fault") if f["args"]["attempts"] > 1]
    assert retried
    for fault in retried:
        assert any(e["tid"] == fault["tid"] and fault["ts"] <= e["ts"] <= fault["ts"] + fault["dur"]
                   for e in ends.values()), fault


def test_the_arrow_comes_from_the_request_that_brought_the_page(trace):
    """Where the program slept, the request ends within the wait, and brings the page."""
    starts = {e["id"]: e for e in trace["traceEvents"] if e.get("cat") == "flow" and e["ph"] == "s"}
    waits = [w for w in slices(trace, "wait") if w["dur"] > 100]
    ends = {(e["tid"], e["ts"]): e["id"] for e in trace["traceEvents"] if e.get("cat") == "flow" and e["ph"] == "f"}
    assert waits
    for wait in waits:
        start = starts[ends[wait["tid"], wait["ts"] + wait["dur"]]]
        request = next(r for r in slices(trace, "request") if (r["tid"], r["ts"]) == (start["tid"], start["ts"]))
        assert wait["ts"] < request["ts"] + request["dur"] <= wait["ts"] + wait["dur"]
        page = int(wait["name"].rsplit(" ", 1)[1])
        assert any(int(p) <= page < int(p) + int(n) for words in request["args"]["pages"]
                   for p, n in re.findall(r" (\d+) \+ (\d+)$", words)), (wait, request)


def test_cached_pages_end_where_the_kernel_says(trace):
    counters = [e for e in trace["traceEvents"] if e["ph"] == "C"]
    assert counters[-1]["args"]["pages"] == counted(trace, "cached_before") + counted(trace, "nr_file_pages")
    assert all(a["ts"] < b["ts"] for a, b in zip(counters, counters[1:]))


def test_running_twice_gives_the_same_files(made, tmp_path):
    run(tmp_path)
    for name in ("trace.txt", "trace.json", "trace.html"):
        assert (tmp_path / name).read_bytes() == (made[0] / name).read_bytes(), name


def test_lost_events_are_an_error(tmp_path):
    done = subprocess.run([sys.executable, "-B", os.path.join(ROOT, "tools", "trace"), "--out", str(tmp_path), "--buffer-kb", "8", "--", *PROGRAM],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 1
    assert re.search(r"\d+ events were lost: a larger --buffer-kb keeps them", done.stderr)


def page_data(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL).group(1))


def test_the_page_stands_alone(made):
    page = (made[0] / "trace.html").read_text()
    assert not re.search(r"(?:src|href)\s*=|https?:|@import|url\(", page)
    data = page_data(page)
    assert data["touches"] and data["waits"] and data["requests"] and data["windows"]


def test_the_page_in_a_browser(made, tmp_path):
    """It draws all there is of the file with the most touches; the pointer finds a touch; the wheel zooms."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if not browser:
        pytest.skip("no Chromium here")
    page = (made[0] / "trace.html").read_text()
    checked = tmp_path / "page.html"
    checked.write_text(page.replace("</body>", PAGE_TEST + "</body>"))
    done = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/profile",
                           "--window-size=1200,700", "--virtual-time-budget=5000", "--dump-dom", checked.as_uri()],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stderr
    seen = dict(re.findall(r'data-(\w+)="([^"]*)"', re.search(r"<body[^>]*>", done.stdout).group(0)))
    data = page_data(page)
    shown = max(range(len(data["files"])), key=lambda i: sum(t["file"] == i for t in data["touches"]))
    for layer in ("touches", "waits", "requests", "windows"):
        assert int(seen[layer]) == sum(o["file"] == shown for o in data[layer]) > 0, (layer, seen)
    touch = [t for t in data["touches"] if t["file"] == shown][5]
    assert f"page {touch['page']}" in seen["tip"] and "attempts" in seen["tip"]
    assert float(seen["zoom"]) < 0.2 and 0 < int(seen["zoomed"]) < int(seen["touches"])
    assert int(seen["colours"]) > 10 and seen["hidden"] == "false"
