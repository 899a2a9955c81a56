"""The fault in hand: fl fault."""

import gdb

from .core import (PAGE_BYTES, Garbage, command, current_cpu, enum_text, flags_text, page_words, say, seconds,
                   text_of, usage)
from .disk import request_of_page, request_text
from .files import cache_title, find_cached
from .memory import find_vma, maps_line, pfn_of
from .tasks import find_task, title, wait_text

FLAG_USER = 1
VMA_HUGETLB = 1 << 20


def attempt_text(fault):
    return f"attempt {int(fault['attempt']) + 1}"


def lock_text(fault):
    if int(fault["locked"]):
        policy = fault["lock"]
        return f"held ({text_of(policy['name'])})" if int(policy) else "held"
    return "let go" if int(fault["let_go_vma"]) else "not taken yet"


def history_text(fault):
    words = []
    if not int(fault["looked"]):
        words.append("has not looked at the cache yet")
    elif int(fault["absent"]):
        words.append("page absent at the first look")
    if int(fault["started_read"]):
        words.append("started the read")
    if int(fault["slept"]):
        words.append(f"slept {seconds(fault['wait_ns'])} for data")
    if int(fault["slept_again"]):
        words.append("again after a retry")
    if int(fault["reread"]):
        words.append("reads a failed page again")
    if int(fault["kept_lock_across_io"]):
        words.append("kept the lock across I/O")
    return "; ".join(words) or "nothing of note"


def say_page(vma, addr):
    """The file page behind the address: in the cache or not, and the request that brings it."""
    index = int(vma["pgoff"]) + (addr - int(vma["start"])) // PAGE_BYTES
    cache = vma["file"]["cache"].dereference()
    say(f"  page       {index} of {cache_title(cache)}")
    page = find_cached(cache, index)
    if page is None:
        say("             not in the cache")
        return
    say(f"             in the cache: frame {pfn_of(page)}, {page_words(page)}")
    found = request_of_page(page)
    if found:
        device, state, request = found
        say(f"  request    {text_of(device['name'])}: {request_text(state, request)}")


def say_what(addr, access, flags, mm):
    """What is asked for; => the VMA there, or None."""
    say(f"  address    {addr:#x}")
    by = "program" if flags & FLAG_USER else "kernel, for the program"
    say(f"  access     {enum_text(access, 'enum fault_access', 'FAULT_')}, by the {by}")
    if flags & ~FLAG_USER:
        say(f"  flags      {flags_text(flags & ~FLAG_USER, 'enum fault_flag', 'FAULT_FLAG_')}")
    vma = find_vma(mm.dereference(), addr)
    say("  VMA        " + ("none at this address" if vma is None else maps_line(vma)))
    return vma


def say_beginning(task):
    """At the first line of fault_user(), which has nothing but its arguments; => whether gdb is there."""
    frame = gdb.newest_frame()
    if frame.name() != "fault_user" or int(current_cpu()["current"]) != int(task.address):
        return False
    arguments = {name: frame.read_var(name) for name in ("addr", "access", "flags", "mm")}
    addr = int(arguments["addr"])
    say(f"fault {int(task['faults']['started']) + 1} of {title(task)}, which begins here")
    vma = say_what(addr, arguments["access"], int(arguments["flags"]), arguments["mm"])
    if vma is not None and int(vma["file"]) and not int(vma["flags"]) & VMA_HUGETLB:
        say_page(vma, addr)
    return True


def say_fault(task, fault):
    addr = int(fault["addr"])
    say(f"fault of {title(task)}, {attempt_text(fault)}")
    vma = say_what(addr, fault["access"], int(fault["flags"]), fault["mm"])
    say(f"  lock       {lock_text(fault)}")
    say(f"  retries    {int(fault['retries'])}")
    say(f"  so far     {history_text(fault)}")
    if vma is not None and int(vma["file"]) and not int(vma["flags"]) & VMA_HUGETLB:
        say_page(vma, addr)
    waits = wait_text(task)
    if waits:
        say(f"  waits for  {waits}, since {seconds(task['wait_since_ns'])}")
    if int(fault["outer"]):
        say(f"  outer      it interrupted the fault at {int(fault['outer']['addr']):#x}")


@command("fault")
def fault_command(words):
    """Show the fault in hand.
    fl fault [TASK]
    The fault in hand of the current task, or of TASK (a number or a name):
    address, access, VMA, attempt, lock, the page and the request that brings it, and what the task
    waits for."""
    if len(words) > 1:
        usage("fl fault [TASK]")
    task = find_task(words[0] if words else "")
    if say_beginning(task):
        return
    if not int(task["fault"]):
        raise Garbage(f"{title(task)} is in no fault; see fl tasks, fl stop-at fault")
    say_fault(task, task["fault"].dereference())
