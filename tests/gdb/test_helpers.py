"""The helpers of tools/gdb/fl on a program that the disk keeps in the middle of a fault: at attempt 1
and at attempt 2, each names the right file, page, VMA, waiter and request."""

import re

import pytest

from session import ROOT, run_session, tried

PROGRAM = "heldfault"
FILE = "/data/medium.bin"
FILE_PAGES = 16384
PAGE = 4096
SECTORS = 8  # of a page

LOAD = [f"source {ROOT}/tools/gdb/faultline.py", f"fl user tests/user/{PROGRAM}"]
LOOK = {
    "fault": f"fl fault {PROGRAM}", "tasks": "fl tasks", "bt": f"fl bt {PROGRAM}",
    "locks": "fl locks", "vmas": f"fl vmas {PROGRAM}", "tree": f"fl vmas --tree {PROGRAM}",
    "cache": f"fl cache {FILE}", "readahead": "fl readahead medium.bin", "disk": "fl disk",
    "trace": "fl trace 6",
}
ASLEEP = ["hbreak idle_once", "continue", "delete"]  # the CPU has nothing to do: all tasks sleep


def look(moment):
    """All helpers; steps named MOMENT NAME."""
    return [(f"{moment} {name}", [tried(command)]) for name, command in LOOK.items()]


STEPS = [
    ("load", [*LOAD, "hbreak slow_touch", "continue", "fl trace on",
              'printf "addr = %#lx\\n", page', "delete",
              f"fl stop-at readahead for {PROGRAM}", "continue", "delete",
              f"fl stop-at wait for {PROGRAM}", "continue"]),
    ("printer", ["p *f", "p *page"]),
    ("first asleep", ["delete", *ASLEEP]),
    *look("first"),
    ("absent pte", [tried(f"fl pte 0x401000 {PROGRAM}")]),
    ("retry", [f"fl stop-at retry for {PROGRAM}", "continue", "fl fault", "delete"]),
    ("bad", ["hbreak bad_touch", "continue", 'printf "addr = %#lx\\n", page',
             "delete", f"fl stop-at fault for {PROGRAM}", "continue", "fl fault", "delete"]),
    *((f"phase {i}", [tried("fl step-fault")]) for i in range(7)),
    ("step locks", ["fl locks"]),
    ("second wait", ["fl stop-at wait for nobody", f"fl stop-at wait for {PROGRAM}", "continue"]),
    ("second asleep", ["delete", *ASLEEP]),
    *look("second"),
    ("sigbus", [f"fl stop-at sigbus for {PROGRAM}", "continue", f"fl cache {FILE}", "fl page 0x401000",
                "fl pte 0x401000"]),
]


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    """One boot for the tests of the held program."""
    return run_session(tmp_path_factory.mktemp("gdb"), [f"/tests/{PROGRAM}"], STEPS,
                       append="vm.readahead=none vm.map_around_bytes=4096")


MOMENTS = pytest.mark.parametrize("moment,attempt,page", [("first", 1, 1), ("second", 2, 3)])


def address(session, moment):
    return session.value("load" if moment == "first" else "bad", "addr")


def inode(session):
    return int(re.search(r"\(inode (\d+)\), open file", session.text("first readahead")).group(1))


@MOMENTS
def test_the_fault_is_told_whole(session, moment, attempt, page):
    text = session.text(f"{moment} fault")
    assert re.search(rf"^fault of \d+ {PROGRAM}, attempt {attempt}$", text, re.MULTILINE), text
    assert f"address    {address(session, moment):#x}\n" in text, text
    assert "access     read, by the program\n" in text, text
    area = address(session, moment) - page * PAGE
    assert re.search(rf"VMA +{area:x}-{area + 8 * PAGE:x} r--s 00000000 .* {FILE}$", text,
                     re.MULTILINE), text
    assert f"retries    {attempt - 1}\n" in text, text
    assert f"page       {page} of {FILE} (inode {inode(session)} of fe:00)" in text, text
    assert "locked, referenced, waiters" in text, text
    assert f"waits for  page {page} of inode {inode(session)}, since" in text, text
    assert re.search(r"request    vda: read, sectors \d+ to \d+ \(4096 bytes\), done by the driver, "
                     r"kept by the gate until", text), text
    assert ("reads a failed page again" in text) == (attempt == 2), text
    assert f"lock       {'let go' if attempt == 1 else 'held (vma)'}\n" in text, text


@MOMENTS
def test_tasks_name_the_waiter(session, moment, attempt, page):
    text = session.text(f"{moment} tasks")
    assert re.search(rf"^ +\d+  {PROGRAM} +cpu 0  sleeping, waits for page {page} of inode "
                     rf"{inode(session)}$", text, re.MULTILINE), text
    assert re.search(r"^ +\d+  start +cpu 0  sleeping, waits for process \d+ to end$", text,
                     re.MULTILINE), text
    assert ("holds vma->lock (shared)" in text) == (attempt == 2), text


@MOMENTS
def test_the_backtrace_of_a_sleeper_reaches_main(session, moment, attempt, page):
    frames = session.frames(f"{moment} bt")
    touch = "slow_touch" if moment == "first" else "bad_touch"
    names = ["switch_to", "sched_sleep", "page_wait_unlocked", "sleep_for_page", "fault_file",
             "fault_user", "page_fault_trap", "trap_dispatch", touch, "main"]
    assert [name for name in frames if name in names] == names, session.text(f"{moment} bt")
    assert frames[-1] == "main"
    assert "corrupt" not in session.text(f"{moment} bt")


@MOMENTS
def test_locks(session, moment, attempt, page):
    text = session.text(f"{moment} locks")
    if attempt == 1:
        assert text.strip() == "No task holds a lock."
    else:
        assert re.search(rf"^vma->lock +0x[0-9a-f]+  shared +\d+ {PROGRAM}, taken at \w+\+\d+$", text,
                         re.MULTILINE), text


@MOMENTS
def test_areas(session, moment, attempt, page):
    area = address(session, moment) - page * PAGE
    lines = session.text(f"{moment} vmas").splitlines()
    assert [line for line in lines if line.startswith(f"{area:x}-{area + 8 * PAGE:x} r--s 00000000 "
                                                      f"fe:00 {inode(session)} ")], lines
    assert lines[0].startswith("00400000-") and lines[0].endswith(f" /tests/{PROGRAM}"), lines
    assert any(re.fullmatch(r"7ffff\w+-7ffff\w+ rw-p 00000000 00:00 0 +\[stack\]", line)
               for line in lines), lines
    tree = session.text(f"{moment} tree")
    assert re.search(rf"^\d+ {PROGRAM}: {len([x for x in lines if x])} areas, change \d+$", tree,
                     re.MULTILINE), tree
    assert f"{area:012x}-{area + 8 * PAGE:012x}  {FILE}" in tree, tree


@MOMENTS
def test_the_cache_as_a_map(session, moment, attempt, page):
    text = session.text(f"{moment} cache")
    cached = "ML" if moment == "first" else "MM.L"
    assert (f"{FILE} (inode {inode(session)} of fe:00): {FILE_PAGES * PAGE} bytes, {FILE_PAGES} pages, "
            f"{page + 1 if attempt == 1 else 3} in memory") in text, text
    assert f"\n         0 {cached.ljust(64, '.')}\n" in text, text
    assert f"({FILE_PAGES - 64} absent)" in text, text
    assert f"page {page}: locked, referenced, waiters; refs 2, mapcount 0" in text, text


@MOMENTS
def test_readahead(session, moment, attempt, page):
    text = session.text(f"{moment} readahead")
    assert f"{FILE} (inode {inode(session)}), open file at 0xffff" in text, text
    assert "window     no window yet (at most 32)" in text, text
    windows = page + 1 if attempt == 1 else 3
    assert f"so far     {windows} windows, {windows} pages" in text, text


@MOMENTS
def test_the_request(session, moment, attempt, page):
    text = session.text(f"{moment} disk")
    assert re.search(rf"^vda: \d+ sectors, 1 in flight; .* {attempt - 1} failed so far$", text,
                     re.MULTILINE), text
    assert "the gate: latency 300000000 ns, each request 0 ns, bandwidth 0 B/s" in text, text
    match = re.search(r"read, sectors (\d+) to (\d+) \(4096 bytes\), done by the driver, kept by the "
                      rf"gate until [\d.]+ s\n +page {page} of {FILE} ", text)
    assert match, text
    assert int(match.group(2)) == int(match.group(1)) + SECTORS - 1
    assert ("what comes ends with error -5" in text) == (attempt == 2), text


@MOMENTS
def test_the_trace_ring(session, moment, attempt, page):
    lines = session.text(f"{moment} trace").splitlines()
    pid = re.search(rf"(\d+) {PROGRAM}", session.text("load")).group(1)
    assert len([line for line in lines if line]) == 6 or moment == "first", lines
    assert any(re.fullmatch(rf" *[\d.]+ s  cpu 0  pid {pid}  fault_wait: addr=0x"
                            rf"{address(session, moment):x} page={page} locked={attempt - 1}", line)
               for line in lines), lines


def test_a_stop_tells_why(session):
    said = re.findall(rf"^fl stop-at: (.*): \d+ {PROGRAM}$", session.text("load"), re.MULTILINE)
    assert said == ["a window goes to the disk", "a fault waits for a page"], session.text("load")
    text = session.text("retry")
    assert re.search(rf"^fl stop-at: a fault starts over: \d+ {PROGRAM}$", text, re.MULTILINE)
    assert "attempt 1" in text and "in the cache: frame" in text and "up to date" in text
    assert "fl stop-at: a fault ends with SIGBUS: " in session.text("sigbus")


def test_a_fault_that_only_begins(session):
    text = session.text("bad")
    assert re.search(rf"^fault \d+ of \d+ {PROGRAM}, which begins here$", text, re.MULTILINE), text
    assert f"  address    {address(session, 'second'):#x}\n  access     read, by the program\n" in text, text
    assert f"page       3 of {FILE} (inode" in text and "not in the cache" in text, text


def test_a_fault_phase_by_phase(session):
    said = [line for i in range(7) for line in session.text(f"phase {i}").splitlines()
            if line.startswith("attempt")]
    assert said == [
        "attempt 1: the VMA is found and locked; is the access allowed?",
        "attempt 1: a page of a file",
        "attempt 1: the page is not in the cache",
        "attempt 1: the lock is let go, for the time of the read",
        "attempt 1: the policy has chosen pages to read",
        "attempt 1: a request goes to the disk",
        "attempt 1: waits for the page",
    ], session.output
    assert session.text("step locks").strip() == "No task holds a lock."


def test_structs_are_printed_in_words(session):
    text = session.text("printer")
    line = f"read of {address(session, 'first'):#x}, attempt 1, lock let go = {{mm = 0x"
    assert line in text, text
    assert f"locked, referenced; refs 2; page 1 of {FILE} (inode" in text, text


def test_page_table_and_frame(session):
    text = session.text("absent pte")
    assert re.search(r"PML4 \[  0\]  0x[0-9a-f]{16}  present, writable, user, accessed -> table at 0x",
                     text), text
    assert re.search(r"PT   \[  1\]  0x[0-9a-f]{16}  present, user, accessed -> 4 KiB at frame \d+",
                     text), text
    text = session.text("sigbus")
    frame = re.search(r"^frame (\d+) at 0x([0-9a-f]+), struct page at 0x", text, re.MULTILINE)
    assert int(frame.group(2), 16) == int(frame.group(1)) * PAGE
    assert f"4 KiB at frame {frame.group(1)}\n" in text + "\n"
    assert re.search(rf"owner +page 1 of /tests/{PROGRAM} \(inode", text), text


def test_a_failed_page_is_an_e(session):
    assert f"\n         0 {'MM.E'.ljust(64, '.')}\n" in session.text("sigbus")


REFUSALS = {
    "fl fault": "is in no fault",
    "fl fault nobody": "no task has the number or name nobody",
    "fl bt": "Usage: fl bt TASK",
    "fl bt nobody": "no task has the number or name nobody",
    "fl cache /nothing": "no file /nothing is open or mapped",
    "fl cache 99999999": "no file 99999999 is open or mapped",
    "fl readahead nothing": "no file nothing is open or mapped",
    "fl page": "Usage: fl page PFN|ADDR",
    "fl page banana": "banana is no number",
    "fl page 0x800000000000": "is neither a frame",
    "fl page 0x100000000": "nothing is mapped at 0x100000000",
    "fl pte 0x1000000000000": "is no address",
    "fl pte": "Usage: fl pte ADDR [TASK]",
    "fl vmas grace": "has no address space",
    "fl stop-at nowhere": "Usage: fl stop-at fault|retry|wait|readahead|sigbus [for PROG]",
    "fl trace x": "x is no number",
    "fl nonsense": "fl has no nonsense",
}
NAMES = ("fault", "vmas", "pte", "page", "cache", "readahead", "tasks", "bt", "locks", "trace", "disk",
         "stop-at", "step-fault", "user")
GARBAGE = {
    # command: (what is broken first, what must be said)
    "fl tasks": ("all_tasks.next = 0x1230", "leads to 0x1230, which is no kernel address"),
    "fl locks": ("((struct list *)&all_tasks)->next->next = ((struct list *)&all_tasks)->next",
                 "does not end after 10000"),
    "fl disk": ("registry.next->next = 0xffff900000000000", "memory that cannot be read"),
    "fl vmas gdbtarget": ("((struct cpu *)$gs_base)->current->mm->vmas.root->count = 900",
                          "has 900 entries"),
}


def test_what_cannot_be_is_refused_in_a_line(tmp_path):
    """Bad arguments, bad pointers, lists and trees that are damaged: a sentence, no traceback."""
    steps = [("load", [*LOAD, "hbreak sys_getppid"]),
             ("early", [tried(command) for command in ("fl tasks", "fl fault", "fl page 5", "fl disk")]),
             ("go", ["continue"])]
    steps += [(command, [tried(command)]) for command in REFUSALS]
    steps += [("printers", [tried("p *(struct vma *)0x1234"),
                            tried("p *(struct task *)0xffffffff80100000"),
                            tried("p *(struct fault *)0xffffffff80100000")])]
    for command, (damage, _) in GARBAGE.items():
        place = damage.split(" = ")[0]
        steps.append((f"damaged {command}", [f"set var $saved = {place}", f"set var {damage}",
                                             tried(command), f"set var {place} = $saved"]))
    steps.append(("help", [f"help fl {name}" for name in NAMES]))
    session = run_session(tmp_path, ["/tests/gdbtarget"], steps)
    assert "Traceback" not in session.output and "Python" not in session.output, session.output
    for command, words in REFUSALS.items():
        lines = session.text(command).strip().splitlines()
        assert len(lines) == 1 and lines[0].startswith("refused: ") and words in lines[0], lines
    for command, (_, words) in GARBAGE.items():
        text = session.text(f"damaged {command}")
        assert re.search(rf"^refused: fl \w+: .*{re.escape(words)}", text, re.MULTILINE), text
    for name in NAMES:
        assert re.search(rf"^fl {name}\b", session.text("help"), re.MULTILINE), name
    assert session.text("early").count("refused: ") >= 2, session.text("early")


def test_the_backtrace_of_a_task_whose_space_is_not_loaded(tmp_path):
    """A parent in wait4 while its child runs: down to the system call, and where the program was."""
    session = run_session(tmp_path, ["/tests/forktree"], [
        ("load", [LOAD[0], "fl user tests/user/forktree", "hbreak sys_exit_group", "continue"]),
        ("parent", [tried("fl bt 1")])])
    names = ["switch_to", "process_wait_child", "sys_wait4", "syscall_trap", "trap_syscall"]
    assert [name for name in session.frames("parent") if name in names] == names, session.output
    text = session.text("parent")
    assert re.search(r"^The program is at __syscall_cp_c\+\d+\. This CPU has another address space "
                     "loaded", text, re.MULTILINE), text
    assert "<signal handler called>" in text and "refused" not in text, text


def test_a_request_held_by_the_gate(tmp_path):
    """In a kernel test that holds requests: they are listed as held."""
    session = run_session(tmp_path, [], [
        ("load", [LOAD[0], "hbreak gate_release_all", "continue"]),
        ("disk", ["fl disk"])], options=["--ktest=fault_retry/*"])
    match = re.search(r"^  read, sectors (\d+) to \d+ \(4096 bytes\), held by the gate$\n"
                      r"^    page (\d+) of inode \d+", session.text("disk"), re.MULTILINE)
    assert match, session.output
    assert int(match.group(1)) == SECTORS * int(match.group(2))


def test_an_entry_of_two_megabytes(tmp_path):
    session = run_session(tmp_path, ["/tests/hugemap"], [
        ("load", [LOAD[0], "hbreak fault_huge", "continue", "delete", "fl fault", "fl pte f->addr",
                  "hbreak account_fault_end", "continue", 'printf "addr = %#lx\\n", f->addr']),
        ("pte", ["fl pte f->addr", "fl page 'f->addr + 4096 * 3'"])], append="vm.nr_hugepages=8")
    assert re.search(r"VMA +600000000000-\w+ rw-p .* /anon_hugepage \(deleted\)$", session.text("load"),
                     re.MULTILINE), session.output
    assert re.search(r"PML4 \[192\]  0x0{16}  not present$", session.text("load"), re.MULTILINE)
    match = re.search(r"PD   \[ +\d+\]  0x[0-9a-f]{16}  present, writable, user, no execute "
                      r"-> 2 MiB at frame (\d+)\nframe (\d+) at ", session.text("pte"))
    assert match, session.output
    assert int(match.group(1)) % 512 == 0
    assert int(match.group(2)) == int(match.group(1)) + 3


def test_bits_of_entries_are_those_of_the_header():
    """tools/gdb/fl/memory.py has the numbers of mm/core/page_table.h."""
    header = (ROOT / "mm/core/page_table.h").read_text(encoding="utf-8")
    source = (ROOT / "tools/gdb/fl/memory.py").read_text(encoding="utf-8")
    bits = dict(re.findall(r"#define PTE_(\w+)\s+\\?\s*\(1ul << (\d+)\)", header))
    named = re.findall(r'\(1 << (\d+), "[\w ()-]+", "(\w+)"\)', source)
    assert len(named) == 10
    for bit, name in named:
        assert bits[name] == bit, name
