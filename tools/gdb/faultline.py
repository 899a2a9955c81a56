"""Helpers for gdb on the Faultline kernel; `make gdb` loads them.

    fl-user PROGRAM   a program's symbols beside the kernel's, for example fl-user user/mplay
    fl-fault          the fault that the current CPU's task is in
    fl-tasks          every task: its number, name, CPU, and what it waits for
"""

import os
import re

import gdb

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("BUILD") or "build")


def string_at(address):
    return gdb.Value(int(address)).cast(gdb.lookup_type("char").pointer()).string()


def number_or_string(conversion, argument):
    return string_at(argument) if conversion.endswith("s") else str(int(argument))


def wait_text(task):
    """A task's wait reason with its two arguments in their places."""
    arguments = iter([task["wait_args"][0], task["wait_args"][1]])
    return re.sub(r"%l?[sudx]", lambda match: number_or_string(match.group(), next(arguments)),
                  task["wait_reason"].string())


def all_tasks():
    """Every struct task, by the list that kernel/sched/task.c keeps."""
    task_type = gdb.lookup_type("struct task")
    offset = next(field.bitpos // 8 for field in task_type.fields() if field.name == "all_link")
    head = gdb.lookup_static_symbol("all_tasks").value()
    link = head["next"]
    while link != head.address:
        yield gdb.Value(int(link) - offset).cast(task_type.pointer()).dereference()
        link = link["next"]


def state_text(task):
    state = task["state"].cast(gdb.lookup_type("enum task_state"))
    if str(state) == "TASK_SLEEPING" and int(task["wait_reason"]):
        return "waits: " + wait_text(task)
    return str(state)


class UserSymbols(gdb.Command):
    """fl-user PROGRAM: load a program's symbols, from the build folder (fl-user user/mplay)."""

    def __init__(self):
        super().__init__("fl-user", gdb.COMMAND_FILES, gdb.COMPLETE_FILENAME)

    def invoke(self, argument, from_tty):
        if not argument:
            raise gdb.GdbError("Usage: fl-user PROGRAM, for example fl-user tests/user/gdbtarget")
        gdb.execute(f"add-symbol-file {os.path.join(BUILD, argument.strip())}", from_tty)


class FaultInHand(gdb.Command):
    """fl-fault: the fault that the current CPU's task is in. Stop in kernel code first."""

    def __init__(self):
        super().__init__("fl-fault", gdb.COMMAND_DATA)

    def invoke(self, argument, from_tty):
        # In kernel code the GS base of a CPU is its struct cpu.
        fault = gdb.parse_and_eval("((struct cpu *)$gs_base)->current->fault")
        gdb.write(f"{fault.dereference()}\n" if int(fault) else "This CPU serves no fault now.\n")


class Tasks(gdb.Command):
    """fl-tasks: every task, where it is, and what it waits for."""

    def __init__(self):
        super().__init__("fl-tasks", gdb.COMMAND_DATA)

    def invoke(self, argument, from_tty):
        for task in all_tasks():
            gdb.write(f"{int(task['pid']):4}  {task['name'].string():16} cpu {int(task['cpu'])}  "
                      f"{state_text(task)}\n")


UserSymbols()
FaultInHand()
Tasks()
gdb.write("fl-user PROGRAM   fl-fault   fl-tasks   (help NAME says more)\n")
