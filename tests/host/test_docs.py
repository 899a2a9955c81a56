"""The book under docs/ speaks of things that exist: paths, functions, tests, structures, and the
lists of interfaces, which must be those of the sources."""

import re

import pytest

from conftest import ROOT

CHAPTERS = sorted((ROOT / "docs").glob("*.md"))
FOLDERS = ("boot", "kernel", "mm", "fs", "drivers", "lib", "tests", "tools", "user", "docs")
MAX_COLUMNS = 100

BACKTICKS = re.compile(r"`([^`\n]+)`")
DRAWN_FILE = re.compile(r"(?<![\w/])((?:%s)/[\w/.-]+\.(?:c|h|S|py|md|gdb))\b" % "|".join(FOLDERS))
PLACEHOLDER = re.compile(r"NAME")
CALL = re.compile(r"^([a-z_]\w*)\(\)$")
STRUCTURE = re.compile(r"^(struct|enum) (\w+)$")
KTEST = re.compile(r"^(?:KTEST|FAULT_TEST\w*)\((\w+),\s+(\w+)\)", re.MULTILINE)
FAULT_RACE = re.compile(r"^FAULT_RACE\((\w+),", re.MULTILINE)
STATES = ("complete", "partial", "missing")


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def sources():
    """All sources in one text."""
    files = [path for folder in FOLDERS if folder != "docs" for path in (ROOT / folder).rglob("*")
             if path.suffix in (".c", ".h", ".S", ".py", ".gdb")
             and "__pycache__" not in path.parts]
    return "\n".join(path.read_text(encoding="utf-8") for path in files)


@pytest.fixture(params=CHAPTERS, ids=lambda path: path.stem)
def chapter(request):
    return request.param.read_text(encoding="utf-8")


def quoted(text):
    return BACKTICKS.findall(text)


def table_column(text, heading):
    """What stands in backticks in the first column of the table under a heading."""
    part = text.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    rows = [line for line in part.splitlines() if line.startswith("| `")]
    return [word for row in rows for word in quoted(row.split("|")[1])]


def test_paths_exist(chapter):
    named = set(DRAWN_FILE.findall(chapter))
    for text in quoted(chapter):
        for word in text.split():
            if word.split("/")[0] in FOLDERS and "/" in word:
                named.add(word.rstrip(".,:;"))
    named = {path for path in named if not PLACEHOLDER.search(path)}
    # A program is named without its .c where it is meant as built.
    missing = sorted(path for path in named
                     if not (ROOT / path).exists() and not (ROOT / f"{path}.c").exists())
    assert not missing


def test_functions_exist(chapter, sources):
    names = {match.group(1) for text in quoted(chapter) if (match := CALL.match(text))}
    missing = sorted(name for name in names if not re.search(rf"\b{name}\(", sources))
    assert not missing


def test_breakpoints_exist(chapter, sources):
    names = set(re.findall(r"`break (\w+)", chapter)) | set(re.findall(r"^ +break (\w+)", chapter,
                                                                      re.MULTILINE))
    missing = sorted(name for name in names
                     if not re.search(rf"^[\w *]*\b{name}\(", sources, re.MULTILINE))
    assert not missing


def test_structures_exist(chapter, sources):
    names = {match.groups() for text in quoted(chapter) if (match := STRUCTURE.match(text))}
    missing = sorted(name for kind, name in names
                     if not re.search(rf"^{kind} {name} \{{", sources, re.MULTILINE))
    assert not missing


def test_tests_exist(chapter, sources):
    cases = set(KTEST.findall(sources)) | {("fault_races", name) for name in FAULT_RACE.findall(sources)}
    suites = {suite for suite, _ in cases}
    for text in quoted(chapter):
        suite, _, name = text.partition("/")
        if suite in suites and re.fullmatch(r"\w+", name):
            assert (suite, name) in cases
        if re.fullmatch(r"test_\w+", text):
            assert f"def {text}(" in sources


def test_sync_points_exist():
    named = set(re.findall(r"^\| `(\w+)` \| `\w+/", read("docs/locking.md"), re.MULTILINE))
    there = set()
    for folder in ("mm", "fs", "drivers", "kernel"):
        for path in (ROOT / folder).rglob("*.c"):
            there |= set(re.findall(r"\bSYNC_POINT(?:_SPIN)?\((\w+)\);", path.read_text(encoding="utf-8")))
    assert named == there


def test_order_of_locks():
    """What a report says about the documented order is what the chapter's tree says."""
    rows = re.findall(r'^    \{"[^"]+", "([^"]+)", (\d+)\},$', read("kernel/sync/lockorder_documented.c"),
                      re.MULTILINE)
    tree = read("docs/locking.md").split("\n## The order\n", 1)[1].split("\nProcesses have", 1)[0]
    tree = tree.split("who takes it.", 1)[1]
    found = [re.search(rf"^(.*?)(?:─ |^    ){re.escape(name)}(?=[ ;\n])", tree, re.MULTILINE)
             for name, _ in rows]
    assert [match.start() for match in found] == sorted(match.start() for match in found)
    columns = [len(match.group(1)) for match in found]
    for i in range(1, len(rows)):
        assert (columns[i] > columns[i - 1]) == (rows[i][1] > rows[i - 1][1]), rows[i]


def test_links_lead_somewhere(chapter):
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", chapter.replace("\n", " ")):
        assert (ROOT / "docs" / target).exists(), target


def test_every_chapter_is_in_the_contents():
    contents = read("docs/README.md")
    for path in CHAPTERS:
        assert path.name == "README.md" or f"]({path.name})" in contents


def test_lines_fit(chapter):
    long = [line for line in chapter.splitlines()
            if len(line) > MAX_COLUMNS and not line.startswith("|")]
    assert not long


# ---- docs/interfaces.md ------------------------------------------------------------------------


def test_words_of_the_command_line():
    named = {re.match(r"[\w.]+=?", word).group() for word in
             table_column(read("docs/interfaces.md"), "The kernel command line")}
    options = read("kernel/cmdline.c").split("options[] = {", 1)[1].split("\n};", 1)[0]
    knobs = read("mm/knobs.c").split("struct knob knobs[] = {", 1)[1].split("};", 1)[0]
    there = set(re.findall(r'\{"([\w.]+=?)"', options))
    there |= {f"vm.{name}=" for name in re.findall(r'\{"(\w+)"', knobs)}
    assert named == there


def test_knobs_of_the_fault_chapter():
    knobs = read("mm/knobs.c").split("struct knob knobs[] = {", 1)[1].split("};", 1)[0]
    named = set(table_column(read("docs/fault.md"), "The knobs"))
    assert named == set(re.findall(r'\{"(\w+)"', knobs))


def test_options_of_tools_qemu():
    text = read("docs/interfaces.md").split("\n## tools/qemu\n", 1)[1].split("\n## ", 1)[0]
    named = set(re.findall(r"`(--[\w]+(?:-\w+)*)", text))
    there = set(re.findall(r'(?:add|add_argument)\("(--[\w-]+)"', read("tools/qemu")))
    assert named == there


def test_files_of_proc_and_sys():
    text = read("docs/interfaces.md")
    named = {word for heading in ("/proc", "/sys") for word in table_column(text, heading)}
    names = {path.replace("/PID/", "/self/").split("/", 2)[2] for path in named}
    there = set()
    for source in [*(ROOT / "fs/proc").glob("*.c"), ROOT / "kernel/task/proc_files.c",
                   *(ROOT / "fs/sys").glob("*.c")]:
        there |= set(re.findall(r'\.path = "([\w/]+)"', source.read_text(encoding="utf-8")))
    assert there
    missing = sorted(path for path in there
                     if not any(name == path or name.endswith("/" + path) for name in names))
    assert not missing


def test_system_calls():
    rows = re.findall(r"^\| (`.+?) \| (\w+) \|", read("docs/interfaces.md").split(
        "\n## System calls\n", 1)[1], re.MULTILINE)
    named = {}
    for calls, state in rows:
        assert state in STATES
        for call in quoted(calls):
            assert call not in named, f"{call} is there twice"
            named[call] = state
    table = dict(re.findall(r'\[\d+\] = \{"(\w+)", (\w+)\}', read("kernel/syscall/table.c")))
    assert set(named) == set(table)
    wrong = sorted(call for call, function in table.items()
                   if (function == "NULL") != (named[call] == "missing"))
    assert not wrong
