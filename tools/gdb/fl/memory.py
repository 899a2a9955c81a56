"""Page tables, frames, areas: fl pte, fl page, fl vmas."""

import gdb

from .core import (DIRECT_MAP_BASE, KERNEL_HALF, KERNEL_IMAGE_BASE, MAX_ITEMS, PAGE_SHIFT, USER_END,
                   Garbage, at, command, number, page_words, say, usage)
from .tasks import current_task, find_task, root_now, title

ADDRESS_MASK = 0x000FFFFFFFFFF000
LEVELS = (("PML4", 39), ("PDPT", 30), ("PD", 21), ("PT", 12))
PRESENT, LARGE, NONE_PROT = 1 << 0, 1 << 7, 1 << 10
# Bits of an entry (mm/core/page_table.h; Intel SDM vol. 3, 4.5).
PTE_WORDS = ((1 << 1, "writable", "WRITE"), (1 << 2, "user", "USER"),
             (1 << 3, "write-through", "WRITE_THROUGH"), (1 << 4, "uncached", "CACHE_DISABLE"),
             (1 << 5, "accessed", "ACCESSED"), (1 << 6, "dirty", "DIRTY"),
             (1 << 8, "global", "GLOBAL"), (1 << 9, "zero page", "ZERO_PAGE"),
             (1 << 11, "lazily freed", "LAZY_FREE"), (1 << 63, "no execute", "NX"))
PROT = ((1, "r"), (2, "w"), (4, "x"))
VMA_SHARED, VMA_HEAP, VMA_STACK, VMA_GROWSDOWN = 1 << 0, 1 << 3, 1 << 2, 1 << 1
RANGE_MAX_DEPTH = 20


# ---- Page tables -------------------------------------------------------------------------------

def entry_words(entry, is_leaf=True):
    if not entry & PRESENT:
        return "kept through PROT_NONE" if entry & NONE_PROT else "not present"
    words = ["present"]
    for bit, word, _ in PTE_WORDS:
        if entry & bit and (is_leaf or bit not in (1 << 6, 1 << 8, 1 << 9, 1 << 11)):
            words.append(word)
    key = entry >> 59 & 15
    if key:
        words.append(f"key {key}")
    return ", ".join(words)


def walk(root, addr):
    """[(level name, index, entry, is the last)], down to what maps addr or to what is missing."""
    table, steps = root, []
    for name, shift in LEVELS:
        index = addr >> shift & 511
        entry = int(at(DIRECT_MAP_BASE + table + index * 8, "unsigned long"))
        is_last = not entry & PRESENT or shift == 12 or (shift != 39 and bool(entry & LARGE))
        steps.append((name, index, entry, shift, is_last))
        if is_last:
            return steps
        table = entry & ADDRESS_MASK
    return steps


def root_of(task):
    return int(task["mm"]["space"]["root"]) if int(task["mm"]) else root_now()


def translate(root, addr):
    """The physical address, or None."""
    _, _, entry, shift, _ = walk(root, addr)[-1]
    if not entry & PRESENT:
        return None
    return (entry & ADDRESS_MASK & ~((1 << shift) - 1)) | addr & (1 << shift) - 1


@command("pte")
def pte(words):
    """Walk the page tables to an address.
    fl pte ADDR [TASK]
    The walk through the page tables to ADDR, level by level, the bits in
    words. Without TASK in the space of the current task. ADDR may be an expression, in quotes where
    it has spaces."""
    if not 1 <= len(words) <= 2:
        usage("fl pte ADDR [TASK]")
    addr = number(words[0]) & (1 << 64) - 1
    if USER_END < addr < KERNEL_HALF:
        raise Garbage(f"{addr:#x} is no address: bits 48 to 63 must equal bit 47")
    task = find_task(words[1] if len(words) > 1 else "")
    root = root_of(task)
    say(f"{addr:#x} in the space of {title(task)}, root at {root:#x}")
    for name, index, entry, shift, is_last in walk(root, addr):
        text = f"  {name:4} [{index:3}]  {entry:#018x}  {entry_words(entry, is_last)}"
        if entry & PRESENT and not is_last:
            text += f" -> table at {entry & ADDRESS_MASK:#x}"
        elif entry & PRESENT:
            size = {12: "4 KiB", 21: "2 MiB", 30: "1 GiB"}[shift]
            frame = (entry & ADDRESS_MASK & ~((1 << shift) - 1)) >> PAGE_SHIFT
            text += f" -> {size} at frame {frame}"
        say(text)


# ---- Frames ------------------------------------------------------------------------------------

def page_array():
    array = gdb.parse_and_eval("page_array")
    end = int(gdb.parse_and_eval("page_array_end"))
    if not int(array):
        raise Garbage("there are no frames yet: the kernel is not up")
    return array, end


def page_of_pfn(pfn):
    array, end = page_array()
    if not 0 <= pfn < end:
        raise Garbage(f"frame {pfn} is beyond the last, {end - 1}")
    return array[pfn]


def pfn_of(page):
    """Of a struct page; one that is not in the array is garbage."""
    array, end = page_array()
    distance = int(page.address) - int(array)
    if distance % 64 or not 0 <= distance // 64 < end:
        raise Garbage(f"{int(page.address):#x} is no struct page")
    return distance // 64


def page_at(value):
    """By frame number, struct page, or address."""
    array, end = page_array()
    value &= (1 << 64) - 1
    if value < end:
        return array[value]
    if int(array) <= value < int(array) + end * 64:
        return page_of_pfn((value - int(array)) // 64)
    if value >= KERNEL_IMAGE_BASE:
        return page_of_pfn((value - KERNEL_IMAGE_BASE) >> PAGE_SHIFT)
    if value >= KERNEL_HALF and (value - DIRECT_MAP_BASE) >> PAGE_SHIFT < end:
        return page_of_pfn((value - DIRECT_MAP_BASE) >> PAGE_SHIFT)
    if USER_END <= value < KERNEL_HALF:
        raise Garbage(f"{value:#x} is neither a frame (there are {end}) nor an address")
    phys = translate(root_of(current_task()), value)
    if phys is None:
        raise Garbage(f"nothing is mapped at {value:#x}; see fl pte {value:#x}")
    return page_of_pfn(phys >> PAGE_SHIFT)


def owner_text(page):
    from .files import cache_title
    if int(page["cache"]) and not int(page["flags"]) & 0xA00:  # PAGE_SLAB, PAGE_FREE
        return f"page {int(page['index'])} of {cache_title(page['cache'].dereference())}"
    flags = page_words(page)
    for word, owner in (("slab", "a slab"), ("anon", "a program's anonymous memory"),
                        ("table", "a page table"), ("free", "nobody: it is free"),
                        ("cpu list", "nobody: free, in a CPU's list"),
                        ("reserved", "the kernel or the firmware, for good")):
        if word in flags.split(", "):
            return owner
    return "the kernel" if int(page["refs"]) else "nobody"


@command("page")
def page_command(words):
    """Show a frame: flags, references, owner.
    fl page PFN|ADDR
    A frame: flags in words, references, entries that map it, owner. A number below that of all
    frames is a frame's; above, an address, of the program, of the kernel, or of a struct page."""
    if len(words) != 1:
        usage("fl page PFN|ADDR")
    page = page_at(number(words[0]))
    pfn = pfn_of(page)
    say(f"frame {pfn} at {pfn << PAGE_SHIFT:#x}, struct page at {int(page.address):#x}")
    say(f"  flags      {page_words(page)}")
    say(f"  refs       {int(page['refs'])}")
    say(f"  mapcount   {int(page['mapcount'])}")
    say(f"  owner      {owner_text(page)}")


# ---- Areas -------------------------------------------------------------------------------------

def mm_of(task):
    if not int(task["mm"]):
        raise Garbage(f"{title(task)} has no address space: it is a kernel thread")
    return task["mm"].dereference()


def vma_nodes(mm):
    """(depth, node) of the tree, parents first."""
    def visit(node, depth):
        if depth > RANGE_MAX_DEPTH:
            raise Garbage("the tree of areas is deeper than it can be")
        count = int(node["count"])
        if count > 16:
            raise Garbage(f"a node of the tree at {int(node.address):#x} has {count} entries")
        yield depth, node
        if int(node["level"]):
            for i in range(count):
                yield from visit(at(int(node["slot"][i]), "struct range_node"), depth + 1)

    root = mm["vmas"]["root"]
    if int(root):
        yield from visit(root.dereference(), 0)


def vmas_of(mm):
    """The areas in rising order."""
    n = 0
    for _, node in vma_nodes(mm):
        for i in range(0 if int(node["level"]) else int(node["count"])):
            n += 1
            if n > MAX_ITEMS * 10:
                raise Garbage("the tree of areas does not end")
            yield at(int(node["slot"][i]), "struct vma")


def find_vma(mm, addr):
    return next((vma for vma in vmas_of(mm) if int(vma["start"]) <= addr < int(vma["end"])), None)


def vma_name(vma):
    from .files import mapped_path
    flags = int(vma["flags"])
    if int(vma["file"]):
        return mapped_path(vma["file"].dereference())
    if flags & VMA_HEAP:
        return "[heap]"
    top = int(vma["mm"]["stack_top"]) - 1
    if flags & VMA_STACK or flags & VMA_GROWSDOWN and int(vma["start"]) <= top < int(vma["end"]):
        return "[stack]"
    return ""


def maps_line(vma):
    """As /proc/PID/maps has it."""
    prot, flags = int(vma["prot"]), int(vma["flags"])
    letters = "".join(letter if prot & bit else "-" for bit, letter in PROT)
    letters += "s" if flags & VMA_SHARED else "p"
    offset = dev = ino = 0
    if int(vma["file"]):
        cache = vma["file"]["cache"]
        offset, dev, ino = int(vma["pgoff"]) << PAGE_SHIFT, int(cache["dev"]), int(cache["ino"])
    major, minor = dev >> 8 & 0xFFF, dev & 0xFF | dev >> 12 & 0xFFF00
    line = (f"{int(vma['start']):08x}-{int(vma['end']):08x} {letters} {offset:08x} "
            f"{major:02x}:{minor:02x} {ino} ")
    name = vma_name(vma)
    return line.ljust(73) + name if name else line


@command("vmas")
def vmas(words):
    """List the areas of an address space.
    fl vmas [--tree] [PID|NAME]
    The areas of a task's address space, as /proc/PID/maps shows
    them; --tree: as the nodes of the B-tree, with the largest gap below each."""
    tree = "--tree" in words
    words = [word for word in words if word != "--tree"]
    if len(words) > 1:
        usage("fl vmas [--tree] [PID|NAME]")
    task = find_task(words[0] if words else "")
    mm = mm_of(task)
    if not tree:
        for vma in vmas_of(mm):
            say(maps_line(vma))
        return
    say(f"{title(task)}: {int(mm['vmas']['count'])} areas, change {int(mm['change_count'])}")
    for depth, node in vma_nodes(mm):
        indent, level = "  " * (depth + 1), int(node["level"])
        say(f"{indent}{'node' if level else 'leaf'} {int(node.address):#x}, "
            f"{int(node['count'])} of 16, generation {int(node['generation'])}")
        for i in range(int(node["count"])):
            text = f"{indent}  {int(node['start'][i]):012x}-{int(node['end'][i]):012x}"
            if level:
                text += f"  largest gap {int(node['gap'][i]):#x}"
            else:
                text += f"  {vma_name(at(int(node['slot'][i]), 'struct vma'))}"
            say(text.rstrip())
