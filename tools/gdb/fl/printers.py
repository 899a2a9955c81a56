"""How gdb prints the main structs: a line in words, then the fields. `print/r` shows them raw."""

import gdb
import gdb.printing

from .core import enum_text, page_words, reason_of
from .faults import attempt_text, lock_text
from .files import cache_title, mapped_path, window_text
from .memory import maps_line, pfn_of
from .tasks import state_text, title


def fault_line(fault):
    return (f"{enum_text(fault['access'], 'enum fault_access', 'FAULT_')} of "
            f"{int(fault['addr']):#x}, {attempt_text(fault)}, lock {lock_text(fault)}")


def page_line(page):
    text = f"frame {pfn_of(page)}: {page_words(page)}; refs {int(page['refs'])}"
    if int(page["cache"]) and "slab" not in page_words(page):
        text += f"; page {int(page['index'])} of {cache_title(page['cache'].dereference())}"
    return text


def mm_line(mm):
    return (f"{int(mm['n_vmas'])} areas, {int(mm['total_pages'])} pages; in memory "
            f"{int(mm['rss_anon'])} anonymous, {int(mm['rss_file'])} of files; "
            f"{int(mm['users'])} users")


LINES = {
    "fault": fault_line,
    "vma": maps_line,
    "page": page_line,
    "mm": mm_line,
    "readahead": window_text,
    "task": lambda task: f"{title(task)}, {state_text(task)}",
    "mapped_file": mapped_path,
}


class Printer:
    """One struct: its line and its fields."""

    def __init__(self, value):
        self.value = value

    def to_string(self):
        try:
            return LINES[self.value.type.strip_typedefs().tag](self.value)
        except Exception as error:
            return f"garbage? {reason_of(error)}"

    def children(self):
        for field in self.value.type.strip_typedefs().fields():
            if field.name:
                yield field.name, self.value[field]


def lookup(value):
    kind = value.type.strip_typedefs()
    if kind.code == gdb.TYPE_CODE_STRUCT and kind.tag in LINES:
        return Printer(value)
    return None


lookup.name, lookup.enabled = "faultline", True
gdb.printing.register_pretty_printer(None, lookup, replace=True)
