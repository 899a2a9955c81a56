"""Tasks: who there is, what each waits for, which locks it holds, and how it got there."""

import gdb
from gdb.unwinder import Unwinder

from .core import (KERNEL_HALF, MAX_ITEMS, Garbage, array_text, at, command, current_cpu, enum_text,
                   format_text, list_of, say, static, symbol_at, text_of, usage)

SAVED = ("r15", "r14", "r13", "r12", "rbx", "rbp", "rip")  # from saved_rsp up: context.S
WORD = 8


def all_tasks():
    return list_of(static("all_tasks", "kernel/sched/task.c"), "struct task", "all_link")


def name_of(task):
    return array_text(task["name"])


def title(task):
    return f"{int(task['pid'])} {name_of(task)}"


def current_task():
    task = current_cpu()["current"]
    if not int(task):
        raise Garbage("this CPU runs no task yet")
    return task.dereference()


def find_task(word):
    """By number or name; of several with the name the one in a fault, or else the latest."""
    if not word:
        return current_task()
    found = [task for task in all_tasks() if word in (str(int(task["pid"])), name_of(task))]
    if not found:
        raise Garbage(f"no task has the number or name {word}; see fl tasks")
    return next((task for task in found if int(task["fault"])), found[-1])


def wait_text(task):
    """Its wait reason with the two arguments in their places; empty when it waits for nothing."""
    reason = task["wait_reason"]
    if not int(reason):
        return ""
    return format_text(text_of(reason), [task["wait_args"][0], task["wait_args"][1]])


def state_text(task):
    state = enum_text(task["state"], "enum task_state", "TASK_")
    waits = wait_text(task)
    if state == "sleeping":
        return f"sleeping, waits for {waits}" if waits else "sleeping"
    return state


def held_locks(task):
    """[(class, address, shared, caller)]; empty in builds without the checker."""
    held = task["held"]
    if "n" not in [field.name for field in held.type.fields()]:
        return []
    array = held["held"]
    n = min(int(held["n"]), array.type.range()[1] + 1)
    return [(text_of(array[i]["class"]["name"]), int(array[i]["lock"]), bool(array[i]["shared"]),
             int(array[i]["caller"])) for i in range(n)]


def has_checker():
    return "n" in [field.name for field in gdb.lookup_type("struct lock_held_list").fields()]


@command("tasks")
def tasks(words):
    """List all tasks and what they wait for.
    fl tasks
    Every task: number, name, CPU, state, what it waits for, and the locks it holds
    (debug builds know). A * marks the one that runs on the CPU gdb looks at."""
    here = int(current_cpu()["current"])
    for task in all_tasks():
        mark = "*" if int(task.address) == here else " "
        say(f"{mark}{int(task['pid']):4}  {name_of(task):16} cpu {int(task['cpu'])}  "
            f"{state_text(task)}")
        for lock_class, address, shared, _ in held_locks(task):
            say(f"        holds {lock_class}{' (shared)' if shared else ''} at {address:#x}")


@command("locks")
def locks(words):
    """List the locks that tasks hold.
    fl locks
    Every lock that a task holds: class, address, how, and where it was taken; then
    who sleeps for a lock. Debug builds only."""
    if not has_checker():
        raise Garbage("release builds do not record locks; use the debug kernel")
    n = 0
    for task in all_tasks():
        for lock_class, address, shared, caller in held_locks(task):
            n += 1
            say(f"{lock_class:24} {address:#x}  {'shared' if shared else 'exclusive':9}  "
                f"{title(task)}, taken at {symbol_at(caller)}")
    if not n:
        say("No task holds a lock.")
    for task in all_tasks():
        if "lock" in wait_text(task):
            say(f"{title(task)} waits for {wait_text(task)}")


# ---- fl bt -------------------------------------------------------------------------------------

class SavedContext(Unwinder):
    """While `task` is set, the caller of the CPU's innermost frame is where the task was left."""

    def __init__(self):
        super().__init__("fl-saved-context")
        self.task = None

    def __call__(self, pending):
        if self.task is None or pending.level() != 0:
            return None
        rsp = int(self.task["saved_rsp"])
        unwind = pending.create_unwind_info(NoFrame())
        u64 = gdb.lookup_type("unsigned long")
        for i, register in enumerate(SAVED):
            unwind.add_saved_register(register, at(rsp + i * WORD, "unsigned long"))
        unwind.add_saved_register("rsp", gdb.Value(rsp + len(SAVED) * WORD).cast(u64))
        return unwind


class NoFrame:
    """A frame id below all stacks."""
    sp, pc = gdb.Value(0), gdb.Value(0)


SAVED_CONTEXT = SavedContext()
gdb.unwinder.register_unwinder(None, SAVED_CONTEXT, replace=True)


def kernel_frames():
    """How many frames from the innermost on are the kernel's, and where the next one is (0: none)."""
    frame, n = gdb.newest_frame(), 0
    while frame is not None and n < MAX_ITEMS:
        if n and frame.pc() < KERNEL_HALF:
            return n, frame.pc()
        frame, n = frame.older(), n + 1
    return n, 0


def say_saved_backtrace(task):
    """What bt says from the task's saved context on; its program's stack only where it is loaded."""
    is_loaded = not int(task["space"]) or int(task["space"]["root"]) == root_now()
    SAVED_CONTEXT.task = task
    gdb.invalidate_cached_frames()
    try:
        n, pc = (0, 0) if is_loaded else kernel_frames()
        text = gdb.execute(f"bt {n}" if n else "bt", to_string=True)
    finally:
        SAVED_CONTEXT.task = None
        gdb.invalidate_cached_frames()
    for line in text.splitlines()[1:]:
        if not line.startswith("(More stack"):
            say(line)
    if pc:
        say(f"The program is at {symbol_at(pc)}. This CPU has another address space loaded, so its "
            "stack is not seen.")


def root_now():
    return int(gdb.parse_and_eval("$cr3")) & 0x000FFFFFFFFFF000


@command("bt")
def backtrace(words):
    """Show the backtrace of a task, also of one that sleeps.
    fl bt TASK
    The functions that a task is in, innermost first, through the trap frame to its program (fl user
    PROGRAM loads the program's symbols). TASK is a number or a name; where it does not run, its
    saved context is used."""
    if len(words) != 1:
        usage("fl bt TASK, for example fl bt mplay")
    task = find_task(words[0])
    say(f"{title(task)}: {state_text(task)}")
    if int(task["on_cpu"]):
        if int(task.address) != int(current_cpu()["current"]):
            raise Garbage(f"it runs on CPU {int(task['cpu'])}: thread {int(task['cpu']) + 1}, bt")
        gdb.execute("bt")
        return
    say_saved_backtrace(task)
