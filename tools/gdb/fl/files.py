"""Files: their page caches and their readahead: fl cache, fl readahead."""

from .core import (MAX_ITEMS, PAGE_SHIFT, Garbage, array_text, at, command, container, list_of,
                   page_words, say, static, usage)

RADIX_BITS = 6
PER_LINE = 64
MAX_LINES = 64
READAHEAD_NONE_YET = -1


# ---- Names -------------------------------------------------------------------------------------

def file_of_mapped(mapped):
    """The struct file around it, or None: a test's own mapped_file."""
    has_path = int(mapped["path"]) == int(static("file_path", "fs/file.c").address)
    return container(mapped.address, "struct file", "mapped") if has_path else None


def mapped_path(mapped):
    if int(mapped["path"]) == int(static("show_path", "mm/huge_file.c").address):
        return "/anon_hugepage (deleted)"
    file = file_of_mapped(mapped)
    return array_text(file["path"]) if file else f"file at {int(mapped.address):#x}"


def processes():
    return list_of(static("all_processes", "kernel/task/process.c"), "struct process", "link")


def open_files():
    """Every mapped_file that a process has open or mapped, once."""
    from .memory import vmas_of
    seen = set()
    for process in processes():
        table = process["files"]
        for fd in range(min(int(table["capacity"]), MAX_ITEMS) if int(table) else 0):
            file = table["entries"][fd]["file"]
            if int(file) and int(file) not in seen:
                seen.add(int(file))
                yield file["mapped"]
        for vma in vmas_of(process["mm"].dereference()) if int(process["mm"]) else ():
            if int(vma["file"]) and int(vma["file"]) not in seen:
                seen.add(int(vma["file"]))
                yield vma["file"].dereference()


def files_named(word):
    """Open files by path, by the end of it, or by inode number; the exact ones first."""
    found = []
    for mapped in open_files():
        path = mapped_path(mapped)
        if word == path or word == str(int(mapped["cache"]["ino"])):
            found.insert(0, mapped)
        elif path.endswith("/" + word.lstrip("/")):
            found.append(mapped)
    return found


def dev_text(dev):
    dev = int(dev)
    return f"{dev >> 8 & 0xFFF:02x}:{dev & 0xFF | dev >> 12 & 0xFFF00:02x}"


def cache_title(cache):
    """/data/file (inode 12 of fe:00); the path where somebody has the file open."""
    text = f"inode {int(cache['ino'])} of {dev_text(cache['dev'])}"
    if int(cache["is_meta"]):
        return f"the disk's blocks ({text})"
    address = int(cache.address)
    path = next((mapped_path(m) for m in open_files() if int(m["cache"]) == address), "")
    return f"{path} ({text})" if path else text


def find_cache(word):
    found = files_named(word)
    if found:
        return found[0]["cache"].dereference()
    if word.isdigit():
        table = static("table", "fs/inode.c")
        low, high = table.type.range()
        for bucket in range(low, high + 1):
            if not int(table[bucket]["next"]):
                continue
            for inode in list_of(table[bucket], "struct inode", "link"):
                if int(inode["ino"]) == int(word):
                    return inode["cache"]
    raise Garbage(f"no file {word} is open or mapped" + ("" if word.isdigit() else
                  "; a closed one is found by its inode's number"))


# ---- The cache ---------------------------------------------------------------------------------

def cache_pages(cache):
    """(index, struct page) of each page in the cache, in order."""
    def visit(node, base, limit):
        shift = int(node["shift"])
        if shift >= limit or shift % RADIX_BITS:
            raise Garbage(f"a node of the cache's tree at {int(node.address):#x} is damaged")
        for i in range(1 << RADIX_BITS):
            slot = int(node["slots"][i])
            if not slot:
                continue
            index = base + (i << shift)
            if shift:
                yield from visit(at(slot, "struct radix_node"), index, shift)
            else:
                yield index, at(slot, "struct page")

    root = cache["pages"]["root"]
    if int(root):
        yield from visit(root.dereference(), 0, 64)


def find_cached(cache, wanted):
    return next((page for index, page in cache_pages(cache) if index == wanted), None)


def page_letter(page):
    """One letter for a page: what matters most of it."""
    flags = page_words(page).split(", ")
    if "locked" in flags and "readahead" in flags:
        return "l"
    for word, letter in (("error", "E"), ("locked", "L"), ("writeback", "W"), ("dirty", "D"),
                         ("readahead", "R")):
        if word in flags:
            return letter
    if "up to date" not in flags:
        return "?"
    return "M" if int(page["mapcount"]) else "u"


def map_lines(letters, n_pages):
    """Lines of PER_LINE letters; runs of lines without a page are one line."""
    lines, skipped = [], 0
    rows = sorted({index // PER_LINE for index in letters})
    last = -1
    for row in rows[:MAX_LINES]:
        skipped = row - last - 1
        if skipped:
            lines.append(f"           ({skipped * PER_LINE} absent)")
        first = row * PER_LINE
        end = max(min(first + PER_LINE, n_pages), max(i for i in letters if i // PER_LINE == row) + 1)
        lines.append(f"  {first:8} " + "".join(letters.get(i, ".") for i in range(first, end)))
        last = row
    if len(rows) > MAX_LINES:
        lines.append(f"           (and {len(rows) - MAX_LINES} lines more)")
    elif (last + 1) * PER_LINE < n_pages:
        lines.append(f"           ({n_pages - (last + 1) * PER_LINE} absent)")
    return lines


def notable_lines(pages, letters):
    """One line for each run of like pages that are locked, marked, failed or dirty."""
    runs = []
    for index in sorted(pages):
        if letters[index] not in "lLREDW?":
            continue
        text = (f"{page_words(pages[index])}; refs {int(pages[index]['refs'])}, "
                f"mapcount {int(pages[index]['mapcount'])}")
        if runs and runs[-1][1] == index - 1 and runs[-1][2] == text:
            runs[-1][1] = index
        else:
            runs.append([index, index, text])
    return [f"  page {first}: {text}" if first == last else f"  pages {first} to {last}: {text}"
            for first, last, text in runs[:MAX_LINES]]


@command("cache")
def cache_command(words):
    """Show which pages of a file are in memory.
    fl cache PATH|INODE
    Which pages of a file are in memory, and in which state, as a map with a
    letter for each page; then each page that is locked, marked, failed or dirty. PATH of an open or
    mapped file, whole or its end."""
    if len(words) != 1:
        usage("fl cache PATH|INODE")
    cache = find_cache(words[0])
    n_pages = (int(cache["size_bytes"]) + 4095) >> PAGE_SHIFT
    pages = {}
    for index, page in cache_pages(cache):
        pages[index] = page
        if len(pages) > MAX_ITEMS * 10:
            raise Garbage("the cache's tree does not end")
    say(f"{cache_title(cache)}: {int(cache['size_bytes'])} bytes, {n_pages} pages, "
        f"{len(pages)} in memory")
    letters = {index: page_letter(page) for index, page in pages.items()}
    for line in map_lines(letters, n_pages):
        say(line)
    say("  . absent  u up to date  M mapped  R marked for readahead  L locked: being read"
        "  l both  E failed  D dirty  W being written")
    for line in notable_lines(pages, letters):
        say(line)


# ---- Readahead ---------------------------------------------------------------------------------

def window_text(readahead):
    start, size = int(readahead["start"]), int(readahead["size"])
    if not size:
        return "no window yet"
    text = f"window of {size} pages, {start} to {start + size - 1}"
    if int(readahead["async"]):
        text += f", mark at page {start + size - int(readahead['async'])}"
    return text


@command("readahead")
def readahead_command(words):
    """Show what is known for reading a file ahead.
    fl readahead FILE
    What each open description of the file knows: its window, the mark, where
    the last read ended, read-around's score, advice, and what was read for it. FILE is a path, its
    end, or an inode's number."""
    if len(words) != 1:
        usage("fl readahead FILE")
    found = files_named(words[0])
    if not found:
        raise Garbage(f"no file {words[0]} is open or mapped")
    for mapped in found:
        ra = mapped["readahead"]
        say(f"{mapped_path(mapped)} (inode {int(mapped['cache']['ino'])}), open file at "
            f"{int(mapped.address):#x}")
        say(f"  window     {window_text(ra)} (at most {int(ra['max_pages'])})")
        prev = int(ra["prev_bytes"])
        say(f"  last read  {'none yet' if prev == READAHEAD_NONE_YET else f'ended at byte {prev}'}")
        advice = [word for word in ("random", "sequential") if int(ra[f"advised_{word}"])]
        say(f"  score      {int(ra['miss'])} (of read-around)")
        say(f"  advice     {', '.join(advice) or 'none'}")
        say(f"  so far     {int(ra['windows'])} windows, {int(ra['window_pages'])} pages")
