"""mloop by itself, on this machine's Linux: what it touches, what it prints, what it refuses."""

import pytest

import harness

PAGE = 4096
PAGES = 24


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """Pages whose first byte is their number."""
    path = tmp_path_factory.mktemp("mloop") / "file"
    path.write_bytes(b"".join(bytes([page]) * PAGE for page in range(PAGES)))
    return path


def mloop(*arguments):
    return harness.on_host("/bin/mloop", *map(str, arguments))


@pytest.mark.parametrize("order, step, pages", [
    ("own", 1, [0, 1, 2, 3, 4, 12, 13, 14, 15, 16]),
    ("own", 5, [0, 5, 10, 3, 8, 12, 17, 22, 15, 20]),
    ("same", 1, [0, 1, 2, 3, 4] * 2),
    ("same", 7, [0, 7, 14, 21, 4] * 2),
])
def test_each_thread_touches_the_pages_of_its_order(file, order, step, pages):
    done = mloop("--threads", 2, "--touches", 5, "--order", order, "--step", step, file)
    numbers = harness.numbers_of(done.out)
    assert done.status == 0 and numbers["touched"] == "10"
    assert int(numbers["checksum"], 16) == sum(pages)
    assert "loops" not in numbers


def test_at_random_is_the_same_in_every_run(file):
    sums = {harness.numbers_of(mloop("--touches", 50, file).out)["checksum"] for _ in range(2)}
    assert len(sums) == 1 and sums != {"0" * 16}


@pytest.mark.parametrize("writer", ["bare", "touch"])
def test_the_loop_runs_until_the_others_have_ended(file, writer):
    numbers = harness.numbers_of(mloop("--writer", writer, "--touches", 100000, "--sum", file).out)
    assert int(numbers["loops"]) > 0
    assert 0 < int(numbers["turn_median_ns"]) <= int(numbers["turn_99_ns"]) <= int(numbers["turn_longest_ns"])
    assert int(numbers["first_end_us"]) <= int(numbers["last_end_us"]) <= int(numbers["real_us"])


def test_pressure_ends_at_its_limit_and_that_is_told(file, tmp_path):
    """Ten million touches take more than a second of any processor."""
    scanned = tmp_path / "scanned"
    with open(scanned, "wb") as holes:
        holes.truncate(64 << 20)
    numbers = [harness.numbers_of(mloop("--threads", 1, "--touches", touches, "--sum", "--scan", scanned,
                                        "--scan-limit", 1, file).out)["scanners_over"] for touches in (1, 10_000_000)]
    assert numbers == ["0", "1"]


@pytest.mark.parametrize("arguments, status, message", [
    ([], 2, "there must be one FILE"),
    (["--threads", "0", "x"], 2, "not a number from 1 on that fits: 0"),
    (["--threads", "65", "x"], 2, "not a number from 1 on that fits: 65"),
    (["--touches", "many", "x"], 2, "not a number from 1 on that fits: many"),
    (["--scan-limit", "0", "x"], 2, "not a number from 1 on that fits: 0"),
    (["--order", "upward", "x"], 2, "there is no such order or writer: upward"),
    (["--writer", "fast", "x"], 2, "there is no such order or writer: fast"),
    (["--speed", "x"], 2, "this call is not understood"),
    (["/nowhere"], 1, "cannot open /nowhere: No such file or directory"),
    (["--threads", "30", "FILE"], 1, "has fewer than 30 whole pages"),
])
def test_a_wrong_call_is_told(file, arguments, status, message):
    done = mloop(*[str(file) if word == "FILE" else word for word in arguments])
    assert (done.status, done.out) == (status, "")
    assert message in done.err


def test_help_is_no_mistake():
    done = mloop("--help")
    assert done.status == 0 and done.out.startswith("Usage: mloop")
