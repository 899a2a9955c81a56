"""gdb stops in the kernel and walks back to the line of the program: through page faults at every
kind of instruction, through a system call, and with the registers the program had."""

import re

import pytest

from session import BUILD, ROOT, run_session

PAGE = 4096
READ, EXEC = 0, 2  # enum fault_access

FAULT_WALK = ["fault_user", "page_fault_trap"]
SYSCALL_WALK = ["sys_getppid", "syscall_trap", "trap_syscall"]


def fault_in(function, condition=f"access == {READ}"):
    """Stops where the program enters the function, then in the next fault of that kind (the fetch
    of the function's own code may be one before)."""
    return (function, [
        "delete", f"hbreak *{function}", "continue", "echo entered\\n", "bt",
        f"echo \\n=== {function} fault\\n",
        "delete", f"hbreak fault_user if {condition}", "continue", "bt",
        'printf "addr = %#lx\\n", addr', 'printf "access = %d\\n", access',
        "delete",
        f"frame function {function}",
        'printf "rip = %#lx\\n", $rip', 'printf "rsp = %#lx\\n", $rsp',
        'printf "rdi = %#lx\\n", $rdi', f'printf "entry = %#lx\\n", (unsigned long)&{function}',
        *(f'printf "{register} = %#lx\\n", $r{register[1:]}' for register in
          ("rax", "rbx", "rcx", "rdx", "rsi", "rbp", "r8", "r9", "r10", "r11", "r12")),
    ])


STEPS = [
    ("main", [f"source {ROOT}/tools/gdb/faultline.py", "fl user tests/user/gdbtarget",
              "hbreak main", "continue", "bt"]),
    fault_in("inner"),
    ("fault in hand", ["hbreak fault_file", "continue", "fl fault", "delete"]),
    fault_in("first_instruction"),
    fault_in("last_instruction", "addr == (unsigned long)&last_instruction + 1"),
    fault_in("last_load"),
    fault_in("full_registers"),
    ("system call", ["hbreak sys_getppid", "continue", "bt", "delete",
                     "frame function ask_kernel", 'printf "rip = %#lx\\n", $rip',
                     'printf "rsp = %#lx\\n", $rsp', "info symbol $rip"]),
    ("kernel fault", ["hbreak hand_to_kernel", "continue", "delete", "hbreak fault_user if flags == 0",
                      "continue", "bt", 'printf "addr = %#lx\\n", addr', "delete",
                      "frame function hand_to_kernel", 'printf "rsp = %#lx\\n", $rsp', "info symbol $rip"]),
    ("tasks", ["fl tasks"]),
]


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    """One boot for all tests of this file."""
    return run_session(tmp_path_factory.mktemp("gdb"), ["/tests/gdbtarget"], STEPS,
                       append="vm.map_around_bytes=4096")


def assert_order(session, step, names):
    """The backtrace has these functions, in this order."""
    frames = session.frames(step)
    assert all(name in frames for name in names), session.output
    places = [frames.index(name) for name in names]
    assert places == sorted(places), session.output
    assert "corrupt" not in session.text(step), session.output


def test_a_breakpoint_in_the_program_stops_there(session):
    assert session.frames("main")[0] == "main", session.output


def test_a_fault_shows_the_programs_functions(session):
    frames = session.frames("inner fault")
    assert frames[0] == "fault_user", session.output
    assert_order(session, "inner fault", [*FAULT_WALK, "inner", "outer", "main"])


def test_a_fault_has_the_programs_registers(session):
    entry = session.value("inner fault", "entry")
    assert entry < session.value("inner fault", "rip") < entry + 64
    assert session.value("inner fault", "rdi") == session.value("inner fault", "addr")
    assert 0 < session.value("inner fault", "rsp") < 1 << 47


def test_a_fault_at_the_first_instruction_is_unwound(session):
    step = "first_instruction fault"
    assert_order(session, step, [*FAULT_WALK, "first_instruction", "main"])
    assert session.value(step, "rip") == session.value(step, "entry")
    assert session.value(step, "addr") == session.value(step, "rdi")


def test_a_fault_at_the_last_instruction_is_unwound(session):
    step = "last_instruction fault"
    assert_order(session, step, [*FAULT_WALK, "last_instruction", "main"])
    assert session.value(step, "access") == EXEC
    assert session.value(step, "rip") == session.value(step, "addr")
    assert session.value(step, "rip") % PAGE == 0


def test_a_fault_of_the_last_instructions_own_load_is_unwound(session):
    """The function has pushed and popped: at its last instruction its frame is as at the first."""
    step = "last_load fault"
    assert_order(session, step, [*FAULT_WALK, "last_load", "main"])
    assert session.value(step, "addr") == session.value(step, "rdi")
    length = session.value(step, "rip") - session.value(step, "entry")
    assert length == len(bytes.fromhex("53 31db 5b")), session.output  # push, xor, pop


def test_a_fault_of_the_kernel_is_unwound_through_both_frames(session):
    """From the fault handler over the copy to the system call, and over that to the program."""
    step = "kernel fault"
    assert_order(session, step, [*FAULT_WALK, "uaccess_copy_in", *SYSCALL_WALK[1:], "hand_to_kernel",
                                 "main"])
    assert session.text(step).count("<signal handler called>") == 2, session.output
    assert 0 < session.value(step, "rsp") < 1 << 47


def test_all_registers_are_seen_through_the_trap_frame(session):
    step = "full_registers fault"
    assert_order(session, step, [*FAULT_WALK, "full_registers", "main"])
    registers = ("rax", "rbx", "rcx", "rdx", "rsi", "rbp", None, "r8", "r9", "r10", "r11", "r12")
    for number, register in enumerate(registers, start=0x1001):
        if register:
            assert session.value(step, register) == number, register


def test_a_system_call_shows_the_programs_functions(session):
    assert_order(session, "system call", [*SYSCALL_WALK, "ask_kernel", "main"])
    assert 0 < session.value("system call", "rsp") < 1 << 47
    assert "ask_kernel" in session.text("system call").splitlines()[-1], session.output


def test_the_helper_shows_the_fault_in_hand(session):
    text = session.text("fault in hand")
    assert f"address    {session.value('inner fault', 'addr'):#x}\n" in text, session.output
    assert "access     read, by the program\n" in text, session.output


def test_the_helper_lists_tasks(session):
    text = session.text("tasks")
    assert re.search(r"^\* +\d+ +gdbtarget +cpu 0 +running$", text, re.MULTILINE), session.output
    assert re.search(r"^ +\d+ +start +cpu 0 +sleeping, waits for process", text, re.MULTILINE), session.output


def test_a_bad_access_is_stopped_where_it_happens(tmp_path):
    """A condition on the address is enough to find it."""
    session = run_session(tmp_path, ["/tests/badaccess", "read-null"], [
        ("null", [f"add-symbol-file {BUILD}/tests/user/badaccess",
                  "hbreak fault_user if addr == 0", "continue", "bt"])])
    assert_order(session, "null", [*FAULT_WALK, "read_null", "main"])
