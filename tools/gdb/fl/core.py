"""What all helpers stand on: commands that end with a sentence, careful reading, names."""

import re

import gdb

PAGE_SHIFT = 12
PAGE_BYTES = 1 << PAGE_SHIFT
DIRECT_MAP_BASE = 0xFFFF800000000000
KERNEL_IMAGE_BASE = 0xFFFFFFFF80000000
KERNEL_HALF = 0xFFFF800000000000
USER_END = 0x00007FFFFFFFF000
MAX_ITEMS = 10000  # of a list or tree: a longer one is taken for garbage
NS_PER_S = 1000000000


class Garbage(Exception):
    """Memory that is not what it should be."""


def reason_of(error):
    """One line for what went wrong."""
    if isinstance(error, gdb.MemoryError):
        return f"memory that cannot be read ({error}): is the kernel up, is the pointer good?"
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    text = " ".join(str(error).split())
    return text or type(error).__name__


class Command(gdb.Command):
    """A subcommand of fl: a function of a list of words."""

    def __init__(self, name, function):
        self.__doc__ = function.__doc__
        self.name, self.function = name, function
        super().__init__(name, gdb.COMMAND_DATA)

    def invoke(self, argument, from_tty):
        try:
            load_types()
            self.function(gdb.string_to_argv(argument))
        except gdb.GdbError:
            raise
        except (Exception, KeyboardInterrupt) as error:
            raise gdb.GdbError(f"{self.name}: {reason_of(error)}") from None


def command(name):
    """Makes a function `fl NAME`; its docstring is the help."""
    def register(function):
        Command(f"fl {name}", function)
        return function
    return register


def usage(text):
    raise gdb.GdbError(f"Usage: {text}")


def say(text=""):
    gdb.write(text + "\n")


# ---- Types, variables --------------------------------------------------------------------------

def load_types():
    """Where a file only declares a struct, gdb takes what another file says of it; but not before
    it has read that file's symbols."""
    for name in ("mm", "process", "fault", "file", "fd_table", "inode", "bio", "page",
                 "block_queue", "vma", "range_node", "mapped_file", "fault_lock_policy"):
        gdb.lookup_type(f"struct {name}")


def kernel_type(name):
    return gdb.lookup_type(name)


def static(name, file):
    """A variable by its file, since `table` is the name of several."""
    symbols = list(gdb.lookup_static_symbols(name))
    symbol = gdb.lookup_global_symbol(name)
    if symbol:
        symbols.append(symbol)
    for symbol in symbols:
        if symbol.symtab and symbol.symtab.filename.endswith(file):
            return symbol.value()
    raise Garbage(f"no variable {name} of {file}: is this the debug kernel?")


def pointer(address, type_name):
    return gdb.Value(int(address) & (1 << 64) - 1).cast(kernel_type(type_name).pointer())


def at(address, type_name):
    return pointer(address, type_name).dereference()


def offset_of(type_name, member):
    for field in kernel_type(type_name).fields():
        if field.name == member:
            return field.bitpos // 8
    raise Garbage(f"{type_name} has no {member}")


def container(address, type_name, member):
    return at(int(address) - offset_of(type_name, member), type_name)


def text_of(value, limit=256):
    """A string in memory; what is no string in it shows as ?."""
    return value.string(encoding="utf-8", errors="replace", length=-1)[:limit]


def text_at(address, limit=256):
    data = bytes(gdb.selected_inferior().read_memory(int(address), limit)) \
        if int(address) % PAGE_BYTES <= PAGE_BYTES - limit else \
        text_of(pointer(address, "char")).encode()
    return data.split(b"\0")[0].decode("utf-8", "replace")


def array_text(value):
    """A char array of the kernel as a string."""
    return text_at(int(value.address), value.type.sizeof)


def list_of(head, type_name, member):
    """The structs on a struct list; a list that does not end is garbage."""
    first, link = int(head.address), int(head["next"])
    for _ in range(MAX_ITEMS):
        if link == first:
            return
        if link < KERNEL_HALF or link % 8:
            raise Garbage(f"a list of {type_name} leads to {link:#x}, which is no kernel address")
        item = container(link, type_name, member)
        yield item
        link = int(item[member]["next"])
    raise Garbage(f"a list of {type_name} does not end after {MAX_ITEMS}")


# ---- Enums and flags ---------------------------------------------------------------------------

def enum_names(type_name, prefix):
    return {field.enumval: field.name[len(prefix):].lower().replace("_", " ")
            for field in kernel_type(type_name).fields() if field.name.startswith(prefix)}


def enum_text(value, type_name, prefix):
    return enum_names(type_name, prefix).get(int(value), f"{int(value)} (no such {type_name})")


def flags_text(value, type_name, prefix):
    """Flags in words, and what has no word in hex."""
    value, words = int(value), []
    for bit, name in enum_names(type_name, prefix).items():
        if bit and value & bit == bit:
            words.append(name)
            value &= ~bit
    if value:
        words.append(f"{value:#x}?")
    return ", ".join(words) or "none"


def page_words(page):
    """What a page's flags say."""
    return flags_text(page["flags"], "enum page_flag", "PAGE_").replace("uptodate", "up to date")


# ---- Text --------------------------------------------------------------------------------------

def format_text(template, arguments):
    """A printf format of the kernel with its u64 arguments in their places."""
    arguments = iter(arguments)

    def put(match):
        conversion = match.group()
        if conversion == "%%":
            return "%"
        argument = int(next(arguments, 0))
        if conversion[-1] == "s":
            try:
                return text_at(argument, 64)
            except gdb.MemoryError:
                return f"?{argument:#x}"
        if conversion[-1] in "xp":
            return f"{argument:x}"
        if conversion[-1] == "d" and argument >> 63:
            argument -= 1 << 64
        return str(argument)

    return re.sub(r"%%|%#?0?\d*l*[sudxpc]", put, template)


def symbol_at(address):
    """function+offset"""
    text = gdb.execute(f"info symbol {int(address):#x}", to_string=True)
    if text.startswith("No symbol"):
        return f"{int(address):#x}"
    return re.sub(r" (in section|of) .*", "", text).strip().replace(" + ", "+")


def seconds(ns):
    return f"{int(ns) // NS_PER_S}.{int(ns) % NS_PER_S // 1000:06} s"


def number(text):
    try:
        return int(gdb.parse_and_eval(text))
    except gdb.error as error:
        raise Garbage(f"{text} is no number: {error}") from None


# ---- The machine -------------------------------------------------------------------------------

def current_cpu():
    """struct cpu of the CPU that gdb looks at."""
    for register in ("$gs_base", "$k_gs_base"):  # in the kernel; in a program
        base = int(gdb.parse_and_eval(register)) & (1 << 64) - 1
        if base >= KERNEL_HALF:
            return at(base, "struct cpu")
    raise Garbage("this CPU has no struct cpu yet: the kernel is not up")


def cpus():
    """Those that are registered."""
    array = static("cpus", "kernel/cpu/cpu.c")
    low, high = array.type.range()
    return [array[i].dereference() for i in range(low, high + 1) if int(array[i])]


def percpu(name, file, cpu):
    variable = static(name, file)
    return at(int(variable.address) + int(cpu["percpu_delta"]), str(variable.type.unqualified()))
