"""The trace through tracefs: the program tests/user/tracer.c uses nothing but Linux's files, and sees here what it saw on
Linux 6.12 (tests/data/tracer.txt, what `tools/linux --smp 2 --disk build/small.img -- /tests/tracer /data/medium.bin` said)."""

import os
import re
import subprocess

import pytest

from harness import ROOT, SMALL, boot

PROGRAM = ["/tests/tracer", "/data/medium.bin"]
WHO = r" +(?:[^ ]+|<idle>|<\.\.\.>)-\d+ +\[\d{3}\] [d.][N.][hsH.]\S\S +\d+\.\d{6}: "
DEVICE = r"\d+,\d+ [RWFAMS]+ "
SHAPES = {  # of the lines of the trace, on both kernels
    "tracing_mark_write": r"(?:first|second) words",
    "block_bio_queue": DEVICE + r"\d+ \+ \d+ \[\S+\]",
    "block_rq_issue": DEVICE + r"\d+ \(\) \d+ \+ \d+ \w+,\d+,\d+ \[\S+\]",
    "block_rq_complete": DEVICE + r"\(\) \d+ \+ \d+ \w+,\d+,\d+ \[0\]",
    "sched_switch": r"prev_comm=\S+ prev_pid=\d+ prev_prio=\d+ prev_state=[RSDIX]\+? ==> next_comm=\S+ "
                    r"next_pid=\d+ next_prio=\d+",
    "sched_waking": r"comm=\S+ pid=\d+ prio=\d+ target_cpu=\d{3}",
    "mm_filemap_add_to_page_cache": r"dev \d+:\d+ ino [0-9a-f]+ pfn=0x[0-9a-f]+ ofs=\d+ order=0",
    "mm_filemap_delete_from_page_cache": r"dev \d+:\d+ ino [0-9a-f]+ pfn=0x[0-9a-f]+ ofs=\d+ order=0",
}


def recorded():
    with open(os.path.join(ROOT, "tests", "data", "tracer.txt"), encoding="utf-8") as file:
        return file.read()


def answers(out):
    """All lines but those of the trace, whose header counts too."""
    return [line for line in out.splitlines() if not re.match(r"\| +\S+-\d", line)]


def check_shapes(out):
    lines = [line[2:] for line in out.splitlines() if re.match(r"\| +\S+-\d", line)]
    seen = set()
    for line in lines:
        match = re.match(WHO + r"(\w+): (.*)", line)
        assert match, line
        assert re.fullmatch(SHAPES[match.group(1)], match.group(2)), line
        seen.add(match.group(1))
    assert seen == set(SHAPES)


@pytest.fixture(scope="module")
def here():
    result = boot(*PROGRAM, smp=2, options=["--debug"])
    assert result.status == 0, result.explain()
    return result.out


def test_a_program_sees_what_it_saw_on_linux(here):
    assert answers(here) == answers(recorded())


def test_lines_have_the_shape_of_those_of_linux(here):
    check_shapes(recorded())
    check_shapes(here)


def test_the_recorded_answers_are_those_of_linux(request):
    if not request.config.getoption("--long"):
        pytest.skip("boots Linux: --long")
    done = subprocess.run([os.path.join(ROOT, "tools", "linux"), "--smp", "2", "--disk", SMALL, "--", *PROGRAM],
                          capture_output=True, text=True, check=False, timeout=150)
    if done.returncode in (72, 124):
        pytest.skip(f"no Linux here: {done.stderr}")
    assert answers(done.stdout) == answers(recorded())
    check_shapes(done.stdout)


FIELD = re.compile(r"\tfield:(?P<type>[^;]+?) \*?(?P<name>\w+)(?P<array>\[\d*\])?;\toffset:(?P<offset>\d+);"
                   r"\tsize:(?P<size>\d+);\tsigned:(?P<signed>[01]);")


def test_every_format_file_parses():
    """Fields lie one behind the other, and the text names no field that is not there."""
    script = "cd /sys/kernel/tracing/events; cat */*/format; cat ../available_events"
    result = boot("/bin/sh", "-c", script)
    assert result.status == 0, result.explain()
    head, *events = result.out.split("name: ")
    assert head == "" and len(events) >= 16
    listed = {line.split(":")[1] for line in events[-1].splitlines() if re.fullmatch(r"\w+:\w+", line)}
    ids = set()
    for event in events:
        lines = event.splitlines()
        assert re.fullmatch(r"ID: \d+", lines[1])
        ids.add(lines[1])
        fields = [FIELD.fullmatch(line) for line in lines if line.startswith("\t")]
        assert all(fields), event
        end = 0
        for field in fields:
            assert int(field["offset"]) >= end and int(field["size"]) > 0, event
            end = int(field["offset"]) + int(field["size"])
        assert end <= 64
        text = next(line for line in lines if line.startswith("print fmt: "))
        assert set(re.findall(r"REC->(\w+)", text)) <= {field["name"] for field in fields}, text
    assert len(ids) == len(events)
    assert listed | {"print"} == {event.splitlines()[0] for event in events}


def test_the_kernels_own_events_tell_a_faults_life():
    """A fault on a page that is not there, from its trap to its end."""
    script = ("cd /sys/kernel/tracing; echo 1 >events/enable; /bin/mplay --help >/dev/null; "
              "echo 0 >events/enable; cat trace")
    result = boot("/bin/sh", "-c", script, append="gate.latency_ns=3000000")
    assert result.status == 0, result.explain()
    names = "page_fault_user fault_begin fault_file .*file_read block_bio_queue block_rq_issue .*readahead " \
            "fault_wait sched_switch .*block_rq_complete .*sched_waking .*fault_retry fault_file .*fault_end"
    events = " ".join(re.findall(r"\d+\.\d{6}: (\w+): ", result.out))
    assert re.search(names, events), events[:3000]
    assert re.search(r"fault_end: addr=0x[0-9a-f]+ outcome=done reason=io attempts=2 waited_ns=[1-9]\d*\n", result.out)
    assert re.search(r"readahead: dev 254:0 ino [0-9a-f]+ pattern=(?:initial|around|sequential) kind=fault start=\d+ size=\d+ "
                     r"async=\d+ hit=\d+\n", result.out)


def test_the_longest_mark_fits_the_smallest_ring():
    """trace_pipe does not wait for a beginning that the mark's own end has overwritten."""
    script = ("cd /sys/kernel/tracing; echo 1 >buffer_size_kb; cat buffer_size_kb; "
              "head -c 4096 /dev/zero | tr '\\0' x >trace_marker; echo short >trace_marker; "
              "cat trace_pipe >/tmp/out & sleep 1; kill $!; wait $! 2>/dev/null; "
              "tr -cd x </tmp/out | wc -c; grep -o 'short' /tmp/out")
    result = boot("/bin/sh", "-c", script, timeout=60)
    assert (result.status, re.sub("Terminated\n", "", result.out)) == (0, "8\n4096\nshort\n"), result.explain()


def test_a_size_that_no_ring_can_have_is_refused():
    script = ("cd /sys/kernel/tracing; echo 64 >buffer_size_kb; "
              "echo 18446744073709551615 >buffer_size_kb || cat buffer_size_kb")
    result = boot("/bin/sh", "-c", script)
    assert (result.status, result.out.splitlines()[-1]) == (0, "64"), result.explain()


def test_programs_that_wait_for_events_and_others_that_resize_the_rings_at_once():
    """The timer that looks for readers of trace_pipe is armed by one at a time; rings go away while interrupts record."""
    script = ("cd /sys/kernel/tracing; echo 1 >events/enable; pids=; "
              "for i in 1 2 3 4; do cat trace_pipe >/dev/null & pids=\"$pids $!\"; done; "
              "for n in 8 64 1408 8 64 1408; do echo $n >buffer_size_kb; cat /data/medium.bin >/dev/null; "
              "echo 3 >/proc/sys/vm/drop_caches; done; echo 0 >events/enable; "
              "kill $pids; wait 2>/dev/null; cat buffer_size_kb")
    result = boot("/bin/sh", "-c", script, smp=2, timeout=60)
    assert (result.status, result.out.splitlines()[-1:]) == (0, ["1408"]), result.explain()
