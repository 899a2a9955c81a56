"""Each report of something that died: all parts in their order, every field right. Crimes in the
kernel are tests/kernel/test_panic.c, one boot each."""

import os
import re
import tempfile

import pytest

import harness
from reports import PARTS, Symbols, parse

PANIC, RESET = 70, 71
KERNEL = os.path.join(harness.BUILD, "debug", "faultline.elf")


def boot_crime(name, smp=2):
    if name in ("debug", "release"):
        return harness.boot("/tests/hangs", "/data/medium.bin", "vda", smp=2, timeout=60,
                            options=[f"--{name}"])
    if name == "programs":
        return harness.boot("/tests/dying", *DEATHS, timeout=60)
    options = ["--debug", f"--ktest=panic/{name}"]
    if name != "triple_fault":
        return harness.boot(None, smp=smp, options=options, timeout=60)
    with tempfile.NamedTemporaryFile(prefix="faultline-", suffix=".exceptions") as log:
        return harness.boot(None, smp=smp, options=[*options, f"--exceptions={log.name}"], timeout=60)


@pytest.fixture(scope="module")
def boots(request):
    boots = harness.Boots(request, boot_crime)
    yield boots
    boots.close()


@pytest.fixture(scope="module")
def kernel_symbols():
    return Symbols(KERNEL)


def crime(name):
    return pytest.mark.parametrize("case", [name], ids=[name])


def one_report(result, title):
    """The only report of a boot, with what holds for all of them checked."""
    assert result.status == PANIC, result.explain()
    reports = parse(result.out)
    assert [report.title for report in reports] == [title], result.explain()
    report = reports[0]
    assert list(report.parts) == PARTS, result.explain()
    for part, lines in report.parts.items():
        assert lines, f"nothing under {part}\n{result.explain()}"
    assert "this part of the report failed" not in result.out, result.explain()
    assert result.out.endswith("The machine stops here.\n"), result.explain()
    assert parse(result.log)[0].parts == report.parts, "the log has the same"
    return report


def check_way(report, symbols, *functions):
    """The innermost functions of the way, and that the addresses are theirs."""
    assert report.functions()[:len(functions)] == list(functions)
    for address, name in report.places("how we got here"):
        assert name in symbols.names_at(address - 1) | symbols.names_at(address), hex(address)


def check_at(report, symbols, function):
    address, name = report.places("where")[0]
    assert name == function and function in symbols.names_at(address)


def register(report, name):
    return int(re.search(rf"\b{name} +([0-9a-f]{{16}})", report.text("where")).group(1), 16)


# tests/user/dying.c: its word, the signal.
DEATHS = {"null": 11, "read-only": 11, "behind": 7, "recursion": 11, "abort": 6, "nowhere": 11,
          "divide": 8, "no-room": 11, "caught": 0}

HELD_EVIDENCE = r"evidence 0x[0-9a-f]{16}, taken at culprits_caller\+0x[0-9a-f]+"


@crime("assertion")
def test_a_panic(case, boots, kernel_symbols):
    report = one_report(boots[case], "KERNEL PANIC")
    assert re.fullmatch(r"assertion failed: never == 0 \(tests/kernel/test_panic\.c:\d+\)",
                        report.text("what"))
    check_at(report, kernel_symbols, "culprit_asserts")
    assert re.search(r"CPU [01] of 2, \d+\.\d{6} s after boot", report.text("where"))
    assert re.match(r'\d+ "start", a kernel thread, on CPU [01], running\n', report.text("whose"))
    assert re.search(r'meanwhile CPU [01] ran 0 "idle/[01]", in \w+', report.text("whose"))
    assert re.fullmatch(HELD_EVIDENCE, report.parts["held"][0])
    assert "grace waits for something to free" in report.text("held")
    check_way(report, kernel_symbols, "culprit_asserts", "culprits_caller",
              "ktest_panic_assertion", "run_test")
    assert report.functions()[-1] == "context_start"
    assert '"how we got here"' in report.text("what to try")


@crime("null_pointer")
def test_a_null_pointer(case, boots, kernel_symbols):
    report = one_report(boots[case], "KERNEL OOPS")
    assert report.text("what") == ("kernel mode read from 0x18: nothing is mapped there "
                                   "(page fault, error code 0)")
    check_at(report, kernel_symbols, "culprit_follows_null")
    assert "vector 14 (page fault)  error 0" in report.text("where")
    assert "cr2 0000000000000018" in report.text("where")
    assert 0 in [register(report, name) for name in ("rax", "rdx", "rcx", "rsi", "rdi")]
    check_way(report, kernel_symbols, "culprit_follows_null")
    assert "culprits_caller" in report.text("how we got here")
    assert "NULL" in report.text("what to try")


@crime("oops_in_a_thread")
def test_an_oops_of_a_kernel_thread(case, boots, kernel_symbols):
    report = one_report(boots[case], "KERNEL OOPS")
    assert "read from 0xffffc0ffee000008: nothing is mapped there" in report.text("what")
    check_at(report, kernel_symbols, "culprit_reads_nowhere")
    assert re.match(r'\d+ "test thread", a kernel thread, on CPU', report.text("whose"))
    start, end = (int(word, 16) for word in re.search(
        r"kernel stack (0x\w+) to (0x\w+), \d+ of 16384 bytes used", report.text("whose")).groups())
    assert end - start == 16384 and start < register(report, "rsp") < end
    assert re.fullmatch(HELD_EVIDENCE, report.parts["held"][0])
    check_way(report, kernel_symbols, "culprit_reads_nowhere")
    assert report.functions()[-3:] == ["run_in_thread", "sched_task_entry", "context_start"]
    assert "fl pte" in report.text("what to try")


@crime("exception")
def test_an_exception_of_the_kernel(case, boots, kernel_symbols):
    report = one_report(boots[case], "KERNEL OOPS")
    assert report.parts["what"][0] == "general protection fault in kernel mode, error code 0"
    name, value = re.fullmatch(r"(r\w+) is (0x\w+): no address, since bits 47 to 63 differ",
                               report.parts["what"][1]).groups()
    assert int(value, 16) == register(report, name) == 0x1234567812345678
    check_at(report, kernel_symbols, "culprit_reads_what_no_pointer_can_be")
    check_way(report, kernel_symbols, "culprit_reads_what_no_pointer_can_be")


@crime("stack_overflow")
def test_a_stack_overflow(case, boots, kernel_symbols):
    report = one_report(boots[case], "KERNEL STACK OVERFLOW")
    depth, times = map(int, re.search(
        r"(\d+) functions deep; recursion_without_end is there (\d+) times",
        report.text("what")).groups())
    assert 16384 // 1024 < times == depth - 3
    check_at(report, kernel_symbols, "recursion_without_end")
    start, end, used = re.search(r"kernel stack (0x\w+) to (0x\w+), (\d+) of 16384 bytes used",
                                 report.text("whose")).groups()
    assert int(used) > 16384 and int(end, 16) - int(used) == register(report, "rsp")
    assert int(start, 16) > register(report, "rsp")
    assert re.match(r'\d+ "test thread", a kernel thread', report.text("whose"))
    assert report.parts["held"][0] == "nothing"
    assert f"… {times - 1} times more" in report.text("how we got here")
    assert report.functions()[-3:] == ["overflow", "sched_task_entry", "context_start"]


@crime("lock_order")
def test_an_inverted_lock_order(case, boots, kernel_symbols):
    report = one_report(boots[case], "LOCK ORDER INVERTED")
    assert re.search(r"right hand taken at takes_left_then_right\+\w+ with left hand held "
                     r"\(taken at takes_left_then_right\+\w+\); before, left hand was taken at "
                     r"takes_right_then_left\+\w+ with right hand held", report.text("what"))
    assert [re.match(r"(.*) 0x\w+, taken at (\w+)\+", line).groups()
            for line in report.parts["held"][:2]] == [
                ("evidence", "culprits_caller"), ("left hand", "takes_left_then_right")]
    way = report.parts["how we got here"]
    at = way.index("before, left hand was taken with right hand held, on this way:")
    now, before = (parse_way(report, lines) for lines in (way[:at], way[at:]))
    assert now[:3] == ["takes_left_then_right", "culprits_caller", "ktest_panic_lock_order"]
    check_at(report, kernel_symbols, "takes_left_then_right")
    assert before == ["takes_right_then_left", "sched_task_entry", "context_start"]
    check_way(report, kernel_symbols)
    assert "docs/locking.md" in report.text("what to try")
    assert report.parts["what to try"][-1] == (
        "right hand and left hand have no order there: give them one, and write it down.")


def parse_way(report, lines):
    return type(report)("", {"how we got here": lines}).functions()


@crime("lock_order_documented")
def test_the_documented_order_says_who_is_wrong(case, boots):
    report = one_report(boots[case], "LOCK ORDER INVERTED")
    assert report.parts["what to try"][-1] == (
        "There, mmap_lock comes before vma->lock: the new way is wrong.")


@crime("sleep_with_a_spinlock")
def test_a_broken_lock_rule(case, boots):
    report = one_report(boots[case], "LOCK RULE BROKEN")
    assert "sleeps with a spinlock held: spinning at ktest_panic_sleep_with_a_spinlock" in report.text("what")
    assert report.parts["held"][0].startswith("spinning 0x")


def check_ways(report, symbols, **wanted):
    """The ways `made` and `freed` of misused memory, each by its first functions."""
    way = report.parts["how we got here"]
    for title, functions in wanted.items():
        lines = way[way.index(TITLES[title]) + 1:]
        assert parse_way(report, lines)[:len(functions)] == functions
    check_way(report, symbols)


TITLES = {"made": "the memory was asked for on this way:", "freed": "it was freed on this way:"}


@crime("written_after_free")
def test_memory_written_after_it_was_freed(case, boots, kernel_symbols):
    report = one_report(boots[case], "MEMORY MISUSE")
    assert re.fullmatch(r"memory misuse: ticket: object 0x[0-9a-f]{16} was written after it was "
                        r"freed, at offset 8; freed last by tears_ticket_up", report.text("what"))
    test = "ktest_panic_written_after_free"
    check_ways(report, kernel_symbols, made=["sells_ticket", test, "run_test"],
               freed=["tears_ticket_up", test, "run_test"])
    check_at(report, kernel_symbols, "sells_ticket")
    assert report.functions()[:3] == ["sells_ticket", "finds_it_written_to", "culprits_caller"]
    assert re.search(HELD_EVIDENCE, report.text("held"))
    assert "Who freed it" in report.text("what to try")


@crime("freed_twice")
def test_memory_freed_twice(case, boots, kernel_symbols):
    report = one_report(boots[case], "MEMORY MISUSE")
    assert re.search(r"ticket: object 0x\w+ was freed twice, at offset 0; freed last by "
                     "tears_ticket_up", report.text("what"))
    check_ways(report, kernel_symbols, made=["sells_ticket", "ktest_panic_freed_twice"],
               freed=["tears_ticket_up", "ktest_panic_freed_twice"])
    assert report.functions()[:3] == ["tears_ticket_up", "tears_it_up_again", "culprits_caller"]


@crime("read_after_free")
def test_memory_read_after_it_was_freed(case, boots, kernel_symbols):
    report = one_report(boots[case], "KERNEL OOPS")
    check_at(report, kernel_symbols, "follows_a_freed_pointer")
    assert re.search(r"r\w+ is 0x6b6b6b6b6b6b6b6b: no address", report.text("what"))
    way = report.parts["how we got here"]
    at = way.index("which was freed on this way:")
    assert re.fullmatch(r"r\w+ points into a freed object, 0x\w+ of ticket, at offset 0", way[at - 1])
    assert parse_way(report, way[at:])[:2] == ["tears_ticket_up", "ktest_panic_read_after_free"]


@crime("frame_written_after_free")
def test_a_frame_written_after_it_was_freed(case, boots, kernel_symbols):
    report = one_report(boots[case], "MEMORY MISUSE")
    assert re.search(r"frame \d+ was written at offset 904 after it was freed \(byte 0x01\); freed "
                     "last by gives_frame_back", report.text("what"))
    check_ways(report, kernel_symbols,
               freed=["gives_frame_back", "ktest_panic_frame_written_after_free"])


# ---- The machine -------------------------------------------------------------------------------


@crime("triple_fault")
def test_a_triple_fault(case, boots, kernel_symbols):
    result = boots[case]
    assert result.status == RESET, result.explain()
    reports = parse(result.err)
    assert [report.title for report in reports] == ["MACHINE RESET"], result.explain()
    report = reports[0]
    assert list(report.parts) == PARTS
    assert report.parts["what"][1] == (
        "its interrupt table ends at byte 0x0: no place for most exceptions")
    culprit = "ktest_panic_triple_fault"
    here = rf"at 0x\w+ \({culprit}\+0x\w+\), rsp 0x{register(report, 'rsp'):x}$"
    for line, words in zip(report.parts["what"][3:], (
            f"breakpoint, error 0x0, {here}", f"general protection fault, error 0x32, {here}",
            "while that one was delivered: general protection fault", f"double fault, error 0x0, {here}",
            "while that one was delivered: general protection fault", "and so the triple fault$")):
        assert re.match(words, line), result.explain()
    check_at(report, kernel_symbols, culprit)
    assert re.fullmatch(r'\d+ "start"', report.parts["whose"][0])
    assert re.search(r'meanwhile CPU [01] was at \w+\+0x\w+, 0 "idle/[01]"', report.text("whose"))
    check_way(report, kernel_symbols, culprit, "run_test")
    assert report.functions()[-1] == "context_start"
    assert f"break {culprit}, then stepi" in report.text("what to try")
    assert "triple fault" in result.err.splitlines()[-1]


# ---- Programs ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def deaths(boots):
    """{word of DEATHS: its report}"""
    result = boots["programs"]
    assert result.status == 0, result.explain()
    assert result.out.split() == [word for pair in DEATHS.items() for word in map(str, pair)]
    reports = parse(result.log)
    assert {report.title for report in reports} == {"PROGRAM ENDED"}
    assert all(list(report.parts) == PARTS for report in reports), result.explain()
    assert len(reports) == len(DEATHS) - 1, "the last one has a handler"
    return dict(zip(DEATHS, reports))


program = crime("programs")


@pytest.fixture(scope="module")
def dying():
    return Symbols(os.path.join(harness.BUILD, "tests", "user", "dying"))


def check_program(report, symbols, first_line, *functions, end="main"):
    """What every report of dying.c has; functions: innermost first, those that are certain."""
    assert re.fullmatch(r"process \d+ \(dying\): " + first_line, report.parts["what"][0])
    assert report.functions()[:len(functions)] == list(functions)
    assert not end or report.functions()[-1] == end
    for address, name in report.places("how we got here"):
        assert name in symbols.names_at(address - 1) | symbols.names_at(address), hex(address)
    instruction = re.search(r"at instruction (0x\w+)", report.parts["what"][0]).group(1)
    assert int(instruction, 16) == int(
        re.match(r"at (0x\w+) \(user code\), CPU 0 of 1", report.text("where")).group(1), 16)
    assert re.fullmatch(
        r'(\d+) "dying", a thread of a program, on CPU 0, running\n.*\n'
        r'process \1 "dying", /tests/dying, 1 thread, child of 1', report.text("whose"))
    assert report.text("held") == "not recorded in a release build"


@program
def test_a_program_follows_null(case, deaths, dying):
    report = deaths["null"]
    check_program(report, dying, r"SIGSEGV: write to 0x20 at instruction 0x\w+: not mapped",
                  "inner_of_null", "outer_of_null")
    assert report.parts["what"][1] == (
        "0x20 is in the first page: a NULL pointer, or a small offset from one")
    below = re.match(r"above, 0x3fffe0 bytes away: 00400000-\w+ r--p .* /tests/dying$",
                     report.parts["what"][2])
    assert below and len(report.parts["what"]) == 3
    assert re.search(r"\berror 0x6$", report.text("where"), re.MULTILINE)
    assert register(report, "rdi") == 0, "the argument that is NULL"
    assert "in inner_of_null+" in report.text("where")
    way = report.parts["how we got here"]
    assert re.search(r"die_by\+0x\w+ in /tests/dying \?$", way[2]), "called by pointer: a guess"


@program
def test_a_program_writes_what_is_read_only(case, deaths, dying):
    report = deaths["read-only"]
    check_program(report, dying, r"SIGSEGV: write to 0x[0-9a-f]+07b at instruction 0x\w+: "
                  "mapped, but not writable", "writes_read_only")
    address = int(re.search(r"write to 0x(\w+)", report.text("what")).group(1), 16)
    start, end = re.fullmatch(r"there: (\w+)-(\w+) r--p 00000000 00:00 0 ",
                              report.parts["what"][1]).groups()
    assert int(start, 16) + 0x7b == address == int(end, 16) - 0x1000 + 0x7b


@program
def test_a_program_reads_behind_a_file(case, deaths, dying):
    report = deaths["behind"]
    size = os.path.getsize(os.path.join(harness.BUILD, "data", "small.txt"))
    assert size < 4096
    check_program(report, dying, r"SIGBUS: read of 0x[0-9a-f]+000 at instruction 0x\w+: "
                  "mapped, but there is no such page", "reads_behind_the_file")
    assert report.parts["what"][1].endswith("/data/small.txt")
    assert report.parts["what"][2] == (
        f"page 2 of the file lies behind its end: it has {size} bytes")
    assert "fstat()" in report.text("what to try")


@program
def test_a_program_calls_itself_without_end(case, deaths, dying):
    report = deaths["recursion"]
    check_program(report, dying, r"SIGSEGV: write to 0x7ff\w+ at instruction 0x\w+: not mapped",
                  "recursion", "recursion", end=None)
    assert "the stack would have to grow there" in report.parts["what"][3]
    address = int(re.search(r"write to 0x(\w+)", report.text("what")).group(1), 16)
    for line, below in zip(report.parts["what"][1:3], (True, False)):
        side, distance, start, end = re.match(
            r"(below|above), 0x(\w+) bytes away: (\w+)-(\w+) rw-p", line).groups()
        assert side == ("below" if below else "above")
        assert int(distance, 16) == (address - int(end, 16) if below else int(start, 16) - address)
    assert report.parts["what"][2].endswith("[stack]")
    assert report.parts["how we got here"][2:] == ["… 999 times more", "… and more"]


@program
def test_a_program_aborts(case, deaths, dying):
    report = deaths["abort"]
    check_program(report, dying, r"SIGABRT: at instruction 0x\w+: sent by the program to itself")
    functions = report.functions()
    assert functions[functions.index("abort"):][:2] == ["abort", "gives_up"]
    assert "assert()" in report.text("what to try")


@program
def test_a_program_jumps_nowhere(case, deaths, dying):
    report = deaths["nowhere"]
    check_program(report, dying,
                  r"SIGSEGV: execution of 0x5000 at instruction 0x5000: not mapped")
    way = report.parts["how we got here"]
    assert way[0] == "0x0000000000005000  no code of a file"
    assert re.search(r"jumps_nowhere\+0x\w+ in /tests/dying \?$", way[1])


@program
def test_a_program_divides_by_zero(case, deaths, dying):
    check_program(deaths["divide"], dying, r"SIGFPE: at instruction 0x\w+: integer division by "
                  "zero, or a result too large", "divides")


@program
def test_a_program_has_no_room_for_its_handler(case, deaths, dying):
    report = deaths["no-room"]
    check_program(report, dying, r"SIGSEGV: write to 0x7ff\w+ at instruction 0x\w+: "
                  "no room for the frame of a signal's handler", "recursion", "recursion", end=None)
    assert "the stack would have to grow there" in report.parts["what"][3]


# ---- Tasks that hang ---------------------------------------------------------------------------


def hung_reports(result):
    """{name of the task: its report}"""
    assert (result.status, result.out) == (0, "hangs\ngoes on\n"), result.explain()
    reports = parse(result.log)
    assert [report.title for report in reports] == ["TASK HANGS"] * 2, (
        "each wait once, and none for a pipe or the clock")
    found = {re.match(r'\d+ "(\w+)" waits for', report.parts["what"][0]).group(1): report
             for report in reports}
    for report in reports:
        assert list(report.parts) == PARTS
        waited, since, seen = (float(number) for number in re.search(
            r", for ([\d.]+) s, since ([\d.]+) s after boot\n.*seen ([\d.]+) s",
            report.text("what") + "\n" + report.text("where")).groups())
        assert waited > 1 and since + waited <= seen + 0.002  # milliseconds, cut
        assert "fl bt PID" in report.text("what to try")
    return found


def check_asleep(report, name, symbols, *functions):
    pid = re.match(r"\d+", report.parts["what"][0]).group()
    assert re.match(rf'{pid} "{name}", a thread of a program, on CPU \d, sleeping\n',
                    report.text("whose"))
    assert re.search(r'process 1 "hangs", /tests/hangs, 4 threads', report.text("whose"))
    check_at(report, symbols, "switch_to")
    way = report.functions()
    assert [function for function in way if function in functions] == list(functions)
    check_way(report, symbols)
    assert any(line.startswith("the program was at 0x") and " of /tests/hangs " in line
               for line in report.parts["how we got here"])


@pytest.mark.parametrize("case", ["debug", "release"])
def test_a_task_that_waits_for_too_long(case, boots):
    reports = hung_reports(boots[case])
    symbols = Symbols(os.path.join(harness.BUILD, case, "faultline.elf"))
    reader, mapper = reports["reader"], reports["mapper"]
    assert re.search(r"waits for page 5 of inode \d+, for", reader.text("what"))
    assert "waits for mmap_lock writer, for" in mapper.text("what")
    check_asleep(reader, "reader", symbols, "page_wait_unlocked", "fault_user")
    address = re.search(r"page fault on (0x\w+), in user mode", reader.text("how we got here")).group(1)
    fault = f"in the middle of a page fault: read of {address}, attempt 1, with its lock held"
    assert fault in reader.parts["whose"]
    assert "page fault" not in mapper.text("whose")
    check_asleep(mapper, "mapper", symbols, "mm_mmap", "syscall_trap")
    place = re.search(r"the program was at (0x\w+): byte (0x\w+) of", reader.text("how we got here"))
    program = Symbols(os.path.join(harness.BUILD, "tests", "user", "hangs"))
    assert "touch_page" in program.names_at(int(place.group(1), 16))
    assert int(place.group(1), 16) - int(place.group(2), 16) == 0x400000
    disk = "vda has 1 request under way, 1 of them held by its gate"
    for report in reports.values():
        wanted = report.parts["held"].index("what it waits for:")
        assert report.parts["held"][-1] == disk and wanted < len(report.parts["held"]) - 2
    assert re.search(r"\nthe page is locked by its read, frame \d+\n", reader.text("held"))
    lock = r"mmap_lock \(shared\) 0x\w+, taken at lock_mmap\+0x\w+"
    if case == "debug":
        number = re.match(r"\d+", reader.parts["what"][0]).group()
        assert re.fullmatch(lock, reader.parts["held"][0])
        assert mapper.parts["held"][:3] == ["nothing", "what it waits for:",
                                            f'held by {number} "reader", sleeping:']
        assert re.fullmatch(lock, mapper.parts["held"][3])
    else:
        assert mapper.parts["held"][0] == "not recorded in a release build"
        assert mapper.parts["held"][2] == (
            "held shared, 1 times; a release build does not know by whom")
