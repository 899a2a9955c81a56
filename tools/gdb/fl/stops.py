"""Where to stop: fl stop-at, fl step-fault."""

import gdb

from .core import Garbage, array_text, command, current_cpu, reason_of, say, usage
from .tasks import find_task, title

SIGBUS = "FAULT_SIGBUS_ADRERR"

# What to stop at: (location, condition on the arguments, what it means)
KINDS = {
    "fault": ("fault.c:fault_user", None, "a fault begins"),
    "retry": ("fault.c:start_over", None, "a fault starts over"),
    "wait": ("fault_wait.c:sleep_for_page", None, "a fault waits for a page"),
    "readahead": ("readahead.c:readahead_submit", None, "a window goes to the disk"),
    "sigbus": ("account.c:account_fault_end", SIGBUS, "a fault ends with SIGBUS"),
}

# The phases of a fault, for fl step-fault.
PHASES = {
    "fault.c:check_access": "the VMA is found and locked; is the access allowed?",
    "fault_anon.c:fault_anon": "a page of anonymous memory",
    "fault_anon.c:fault_write_protected": "a store to an entry that is not writable",
    "fault_file.c:fault_file": "a page of a file",
    "fault_huge.c:fault_huge": "a page of 2 MiB",
    "fault_file.c:read_absent": "the page is not in the cache",
    "fault.c:fault_let_go": "the lock is let go, for the time of the read",
    "readahead.c:readahead_submit": "the policy has chosen pages to read",
    "request.c:block_request_submit": "a request goes to the disk",
    "fault_wait.c:sleep_for_page": "waits for the page",
    "fault.c:fault_take_back": "the wait is over: take the lock back, or start over?",
    "fault.c:start_over": "starts over, from nothing",
    "fault_file.c:map_page": "the page is there and locked: its entry is stored",
    "fault_anon.c:fault_install_anon": "a page is stored in the entry",
    "account.c:account_fault_end": "the end; it is counted",
}


class Stop(gdb.Breakpoint):
    """Stops for the tasks of one program, or for one task; tells why."""

    def __init__(self, location, what, program="", task=0, result="", kind=None):
        super().__init__(location, type=kind or gdb.BP_HARDWARE_BREAKPOINT, internal=bool(task))
        self.what, self.program, self.of_task, self.result = what, program, task, result
        self.was_hit = False
        self.silent = bool(task)  # a phase is told in words

    def stop(self):
        try:
            task = current_cpu()["current"]
            if self.of_task and int(task) != self.of_task:
                return False
            if self.program and array_text(task["name"]) != self.program:
                return False
            if self.result and str(gdb.parse_and_eval("result")) != self.result:
                return False
            self.was_hit = True
            if not self.of_task:
                say(f"fl stop-at: {self.what}: {title(task.dereference())}")
        except Exception as error:  # stop where it cannot be decided
            say(f"fl stop-at: {reason_of(error)}")
        return True


@command("stop-at")
def stop_at(words):
    """Set a breakpoint with a meaning.
    fl stop-at fault|retry|wait|readahead|sigbus [for PROG]
    Where a fault begins, starts over, waits for a page, has a window read ahead, or ends with
    SIGBUS; for the programs named PROG only. `info breakpoints` and `delete` as for any other."""
    if not (len(words) == 1 or len(words) == 3 and words[1] == "for") or words[0] not in KINDS:
        usage(f"fl stop-at {'|'.join(KINDS)} [for PROG]")
    location, result, what = KINDS[words[0]]
    Stop(location, what, program=words[2][:15] if len(words) == 3 else "", result=result or "")


@command("step-fault")
def step_fault(words):
    """Run on to the next phase of a fault.
    fl step-fault [TASK]
    Of the fault in hand of the current task or of TASK (a number or a name), or of its next fault.
    The phases: VMA locked, page looked for, lock let go, request sent, wait, retry, entry stored,
    end. Other tasks run meanwhile."""
    if len(words) > 1:
        usage("fl step-fault [TASK]")
    task = find_task(words[0] if words else "")
    if not int(task["mm"]):
        raise Garbage(f"{title(task)} has no address space, and so no faults; see fl tasks")
    stops = [Stop(location, what, task=int(task.address), kind=gdb.BP_BREAKPOINT)
             for location, what in PHASES.items()]
    try:
        gdb.execute("continue", to_string=True)
        hit = next((stop for stop in stops if stop.was_hit), None)
    finally:
        for stop in stops:
            stop.delete()
    if hit is None:
        say("Stopped before the next phase, by something else.")
        return
    fault = find_task("")["fault"]
    say(f"attempt {int(fault['attempt']) + 1}: {hit.what}")
