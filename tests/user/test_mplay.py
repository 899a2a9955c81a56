"""mplay by itself, on this machine's Linux: the languages, the messages, the checksum, the rows."""

import re

import pytest

import harness

PAGE = 4096
NAMES = ["policy", "readahead_kb", "map_around", "touched", "major", "minor", "waits", "wait_ns",
         "read_waits", "read_wait_ns", "reasons", "retries", "retry_misses", "lock_across_io",
         "lock_hold", "latency", "fault_reads", "fault_read_pages", "windows", "window_pages",
         "ahead", "ahead_unused", "data_requests", "data_pages", "meta_requests", "resident",
         "checksum", "user", "system", "real", "user_us", "system_us", "real_us"]


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """Ten pages and a bit."""
    path = tmp_path_factory.mktemp("mplay") / "file"
    path.write_bytes(bytes((i * i + (i >> 9)) & 255 for i in range(10 * PAGE + 1003)))
    return path


def mplay(*arguments):
    return harness.on_host("/bin/mplay", *map(str, arguments))


def checksum_of(data):
    """The sum as user/lib/checksum.h states it."""
    total, mask = 0x46617566746C696E, (1 << 64) - 1
    for at in range(0, len(data), 8):
        word = int.from_bytes(data[at:at + 8].ljust(8, b"\0"), "little")
        total = ((total ^ word) * 0x9E3779B97F4A7C15) & mask
        total = ((total << 29) | (total >> 35)) & mask
    return f"{total:016x}"


def checksum_of_pages(file, pages):
    data = file.read_bytes()
    pieces = (data[page * PAGE:(page + 1) * PAGE] for page in pages)
    # A page that is not whole is filled up to whole words, wherever it comes.
    return checksum_of(b"".join(piece.ljust(-(-len(piece) // 8) * 8, b"\0") for piece in pieces))


@pytest.mark.parametrize("pattern, pages", [
    ("m:3", [3]),
    ("m:0-10", range(11)),
    ("m:10-0", range(10, -1, -1)),
    ("m:1-10/4", [1, 5, 9]),
    ("m:10-1/4", [10, 6, 2]),
    ("m:i0/5/8x2", [0, 5, 8, 1, 6, 9]),
    ("m:R4,M2,3,d0-9,M7", [4, 2, 3, 7]),
    ("r:0-3,w5-8,1", [0, 1, 2, 3, 1]),
    ("rx3:0-9/3", range(11)),
    ("rx2:9-3/3,20", [9, 10, 6, 7, 3, 4]),
])
def test_a_pattern_sees_its_pages_in_order(file, pattern, pages):
    numbers = harness.numbers_of(mplay(pattern, file).out)
    assert numbers["touched"] == str(len(pages))
    assert numbers["checksum"] == checksum_of_pages(file, pages)


@pytest.mark.parametrize("trace, pages", [
    ("0\n1\n2\n", [0, 1, 2]),
    ("# a comment\n\n 3 2 # of two pages\n\t9\r\n0", [3, 4, 9, 0]),
    ("10 1\n", [10]),
    ("", []),
])
def test_a_trace_sees_its_pages_in_order(file, tmp_path, trace, pages):
    path = tmp_path / "trace"
    path.write_text(trace)
    numbers = harness.numbers_of(mplay("--load", path, file).out)
    assert numbers["touched"] == str(len(pages))
    assert numbers["checksum"] == checksum_of_pages(file, pages)


def test_without_a_pattern_the_whole_file_is_touched(file):
    assert harness.numbers_of(mplay(file).out)["checksum"] == checksum_of(file.read_bytes())


@pytest.mark.parametrize("pattern, column, message", [
    ("", 1, "expected m:, r: or rxN:"),
    ("x:1", 1, "expected m:, r: or rxN:"),
    ("m", 2, "expected ':'"),
    ("m:", 3, "expected a page number"),
    ("m:1,,2", 5, "expected a page number"),
    ("m:1-", 5, "expected a page number"),
    ("m:1-9/0", 7, "must not be 0"),
    ("m:1;2", 4, "expected ','"),
    ("rx0:1", 3, "must not be 0"),
    ("r:M1", 3, "belong into an m: pattern"),
    ("m:i1/2", 7, "number of rounds"),
    ("m:d9-3", 4, "must not lie before"),
    ("m:99999999999999999999", 3, "too large"),
])
def test_a_wrong_pattern_is_shown_with_its_place(file, pattern, column, message):
    result = mplay(pattern, file)
    assert result.status == 2
    assert f"column {column}: " in result.err and message in result.err


@pytest.mark.parametrize("trace, line, column, message", [
    ("1\n2 x\n", 2, 3, "found 'x'"),
    ("1 2 3\n", 1, 5, "two numbers at most"),
    ("1\n\n5 0\n", 3, 3, "must not be 0"),
    ("99999999999999999999\n", 1, 1, "too large"),
])
def test_a_wrong_trace_is_shown_with_its_place(file, tmp_path, trace, line, column, message):
    path = tmp_path / "trace"
    path.write_text(trace)
    result = mplay("--load", path, file)
    assert result.status == 2
    assert f"line {line}, column {column}: " in result.err and message in result.err


@pytest.mark.parametrize("arguments, status", [
    ([], 2), (["--advice", "none"], 2), (["--advice", "odd", "m:0", "f"], 2), (["--what"], 2),
    (["--readahead-kb", "4k", "m:0", "f"], 2), (["m:0", "a", "b"], 2), (["m:0", "/no/such"], 1),
    (["--load", "/no/such", "f"], 1),
])
def test_a_wrong_call_ends_with_a_message(arguments, status):
    result = mplay(*arguments)
    assert result.status == status and result.err and not result.out


def test_every_row_is_there_in_order(file):
    out = mplay("--show-io", "m:0-10", file).out
    lines = out.splitlines()
    assert sum(line.startswith("io:") for line in lines) == 1
    assert [line.split(":")[0] for line in lines if not line.startswith("io:")] == NAMES
    numbers = harness.numbers_of(out)
    for name in ("user", "system", "real"):
        assert re.fullmatch(r"\d+m\d{1,2}\.\d{3}s", numbers[name])
    assert re.fullmatch(r"[0-9a-f]{16}", numbers["checksum"])


def test_a_read_run_causes_no_fault_of_its_own(file):
    numbers = harness.numbers_of(mplay("rx4:0-10/4", file).out)
    assert (numbers["major"], numbers["minor"]) == ("0", "0")


def test_a_touch_behind_the_end_dies_of_sigbus(file):
    assert mplay("m:11", file).status == 128 + 7
