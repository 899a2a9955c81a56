"""The experiments in small: the order of the policies and the ratios between them, not the numbers."""

import csv
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import harness

TOOL = os.path.join(harness.ROOT, "tools", "experiments")


def experiments(*arguments):
    return subprocess.run([sys.executable, "-B", TOOL, *map(str, arguments)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False, timeout=600)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """All experiments, in small."""
    out = tmp_path_factory.mktemp("experiments") / "out"
    done = experiments("--quick", "--out", out)
    assert done.returncode == 0, done.stderr
    return out


def number(text):
    try:
        return float(text)
    except ValueError:
        return text


def rows(folder, table, **wanted):
    """The rows of a table with these values, numbers as numbers."""
    with open(folder / f"{table}.csv", encoding="utf-8", newline="") as file:
        found = [{key: number(value) for key, value in row.items()} for row in csv.DictReader(file)]
    found = [row for row in found if all(row[key] == value for key, value in wanted.items())]
    assert found, (table, wanted)
    return found


def row(folder, table, **wanted):
    found = rows(folder, table, **wanted)
    assert len(found) == 1, (table, wanted, found)
    return found[0]


# ---- Pages read in order -----------------------------------------------------------------------


def test_one_stream_is_as_fast_ahead_as_around_and_asks_half_as_often(folder):
    found = {(each["policy"], each["window"]): each for each in rows(folder, "streams", way="short", streams=1)}
    ahead, around = found["ondemand", 128], found["around", 128]
    for name in ("around", "ondemand", "stream"):
        assert found[name, 128]["pages"] in range(8000, 8129)
    assert ahead["total_us"] < found["around", 256]["total_us"] < around["total_us"]
    assert found["stream", 128]["total_us"] < 1.01 * ahead["total_us"]
    assert (round(ahead["mean_kib"]), round(around["mean_kib"])) == (124, 63)
    assert around["waits"] > 2 * ahead["waits"]


def test_several_streams_are_clearly_faster_ahead_than_around(folder):
    found = {(each["policy"], each["window"]): each for each in rows(folder, "streams", way="long", streams=4)}
    for name in ("ondemand", "stream"):
        assert found[name, 128]["total_us"] * 1.5 < found["around", 128]["total_us"]
        assert found[name, 128]["requests"] * 1.8 < found["around", 128]["requests"]


# ---- What a retry costs ------------------------------------------------------------------------


@pytest.mark.parametrize("retry", ["once", "many", "recheck"])
def test_a_retry_costs_less_than_one_percent_of_a_published_touch(folder, retry):
    plain = row(folder, "stride-sparse", policy="around", retry=retry)
    assert plain["retries"] == plain["touched"] == 1001
    assert 0 < plain["cost_percent"] < 1
    disk = row(folder, "stride-disk", retry=retry)
    assert disk["retries"] == disk["touched"]
    assert 0 < disk["cost_percent"] < 1


def test_what_needs_no_wait_is_not_retried_where_the_lock_is_let_go_only_to_wait(folder):
    for found in rows(folder, "stride-sparse", drop="wait"):
        assert found["retries"] == found["waits"] == 0
        assert found["retry"] == "hold" or abs(found["cost_percent"]) < 0.2


# ---- Faults beside mmap and munmap -------------------------------------------------------------


@pytest.mark.parametrize("writer", ["bare", "touch"])
@pytest.mark.parametrize("threads, times", [(1, 100), (4, 100)])
def test_the_loop_of_2010_is_a_hundred_times_as_fast_with_retry(folder, threads, times, writer):
    wanted = {"order": "random", "threads": threads, "writer": writer}
    hold, once = (row(folder, "loops", retry=retry, **wanted) for retry in ("hold", "once"))
    assert once["loops_per_s"] >= times * hold["loops_per_s"]
    assert once["turn_99_ns"] * 100 < hold["turn_99_ns"]
    assert (hold["across"], hold["retries"]) == (hold["requests"], 0)
    assert (once["across"], once["retries"]) == (0, once["requests"])


def test_retry_slows_threads_on_different_pages_by_less_than_published(folder):
    case_1 = row(folder, "loops", order="own", threads=4, writer="none", retry="once")
    assert abs(case_1["slower_percent"]) < 1
    for writer in ("bare", "touch"):
        case_2 = row(folder, "loops", order="own", threads=4, writer=writer, retry="once")
        assert case_2["slower_percent"] < 3 and case_2["times"] > 1.1


def test_what_the_loop_leaves_to_be_freed_is_freed_while_it_runs():
    script = ("echo 18180000 >/sys/block/ram0/gate/per_request_ns; "
              "mloop --threads 2 --touches 20 --writer bare /data/medium.bin; grep ^range_node /proc/slabinfo")
    done = harness.boot("/bin/sh", "-c", script, ramdisk=True, icount=True, options=["--icount=3"])
    numbers = harness.numbers_of(done.out)
    assert done.status == 0 and int(numbers["loops"]) > 10000, done.explain()
    slab_pages = int(done.out.split()[-1])
    assert slab_pages < 100, done.explain()


# ---- All policies of faults --------------------------------------------------------------------


@pytest.mark.parametrize("table", ["matrix", "pressure"])
def test_a_lock_is_held_across_io_only_where_the_policy_says_so(folder, table):
    for found in rows(folder, table):
        if found["retry"] == "hold":
            assert found["across"] >= found["waits"] > 0  # and some while metadata came
        elif found["drop"] == "submit":
            assert found["across"] == 0
        else:  # metadata is read with the lock held: sometimes, and where memory is short perhaps for each fault
            assert 0 < found["across"] <= found["waits"] - (table == "matrix")


def test_with_a_pin_no_restart_misses_its_page_and_without_one_some_do(folder):
    for table in ("matrix", "pressure"):
        assert {found["misses"] for found in rows(folder, table, pin=1)} == {0}
    assert row(folder, "pressure", lock="mmap", retry="once", drop="wait", pin=0)["misses"] > 0


def test_a_lock_for_each_area_lets_the_loop_run_whatever_faults_do(folder):
    loops = [found["loops_per_s"] for found in rows(folder, "matrix", lock="vma")]
    assert min(loops) > 0.95 * max(loops)
    for found in rows(folder, "matrix", lock="mmap", retry="hold"):
        assert found["loops_per_s"] * 100 < min(loops)


# ---- Readahead ---------------------------------------------------------------------------------


def test_stream_learns_within_two_requests_and_two_waits(folder):
    for found in rows(folder, "readahead-stream"):
        for what in ("requests", "waits"):
            assert found[f"stream_{what}"] <= found[f"ondemand_{what}"] + 2 * found["streams"], found


def test_larger_windows_make_fewer_requests_of_a_long_scan(folder):
    for policy in ("around", "ondemand", "stream"):
        found = rows(folder, "readahead", pattern="mmap-from-0", policy=policy)
        assert [each["window"] for each in found] == [32, 128, 1024]
        requests = [each["requests"] for each in found]
        assert requests == sorted(requests, reverse=True) and requests[0] > 5 * requests[2]


def test_read_around_reads_in_vain_where_there_is_no_order(folder):
    around, ahead, stream = (row(folder, "readahead", pattern="mmap-random", policy=policy, window=128)
                             for policy in ("around", "ondemand", "stream"))
    assert around["unused"] > 3 * ahead["unused"] > 3 * stream["unused"]


# ---- The tool ----------------------------------------------------------------------------------


def test_the_report_has_every_table_and_plot(folder):
    report = (folder / "report.md").read_text(encoding="utf-8")
    for path in folder.iterdir():
        assert path.name == "report.md" or path.name in report
    assert "latency 0 ns, per request 870,000 ns, bandwidth infinite" in report


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_twice_gives_the_same_files(tmp_path):
    folders = [tmp_path / "first", tmp_path / "second"]
    with ThreadPoolExecutor(2) as pool:
        ended = list(pool.map(lambda out: experiments("--quick", "--only", "stride", "--out", out), folders))
    assert [done.returncode for done in ended] == [0, 0], ended
    assert contents(folders[0]) == contents(folders[1])
    assert len(contents(folders[0])) >= 3


@pytest.mark.parametrize("arguments, message", [
    (["--only", "nonsense"], "there is no experiment nonsense"),
    (["--fast"], "unrecognized arguments: --fast"),
])
def test_a_wrong_call_is_told(arguments, message):
    done = experiments(*arguments)
    assert done.returncode == 2 and message in done.stderr


def test_a_folder_of_somebody_else_is_left_alone(tmp_path):
    (tmp_path / "thesis").write_text("all of it")
    done = experiments("--quick", "--out", tmp_path)
    assert done.returncode == 2 and "was not made by this tool" in done.stderr
    assert (tmp_path / "thesis").read_text() == "all of it"
