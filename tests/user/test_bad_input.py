"""What is wrong with the input is said in words, and the machine ends in order: never by a reset, and
never by the time limit."""

import os
import random
import struct
import subprocess
import sys

import pytest

import harness

CANNOT_RUN, PANIC = 127, 70
SIGSEGV_STATUS = 128 + 11
BOOT_LIMIT_S = 60
MIB = 1 << 20
PROGRAM = "/tests/hello"
GREETING = "hello, world\n"
NO_FILE = "there is no such file"
NOT_EXT2 = "no file system was found there"
NO_PROGRAM = "it is not a program that runs here"

# name: (options of harness.boot, what the console must say)
MACHINES = {
    "no-disk": (dict(image="none"), "There is no disk to take programs from"),
    "empty-disk": (dict(image="empty"), "There is no disk to take programs from"),
    "random-bytes": (dict(image="random"), NOT_EXT2),
    "fat": (dict(image="fat"), NOT_EXT2),
    "ext2-cut-short": (dict(image="cut"), "cannot be used"),
    "no-programs": (dict(program=None, image="bare"), "none of /sbin/init, /bin/sh and /bin/demo"),
    "not-there": (dict(program="/nonexistent"), NO_FILE),
    "not-by-path": (dict(program="hello"), "named by its whole path"),
    "below-a-file": (dict(program="/data/small.txt/hello"), "not a directory"),
    "text": (dict(program="/data/small.txt"), NO_PROGRAM),
    "a-directory": (dict(program="/data"), "it is not a plain file"),
    "no-such-root": (dict(append="root=nosuch"), 'There is no disk "nosuch"'),
    "root-without-module": (dict(append="root=ram0"), 'There is no disk "ram0"'),
}

# Words that are no use: one is named in the log, and the program runs all the same.
BAD_WORDS = {
    "foo=bar": '"foo=bar" is not known here',
    "baz": '"baz" is not known here',
    "icount=3": '"icount=3" is not known here',
    "maxcpus=abc": '"maxcpus=abc" needs a number',
    "gate.latency_ns=-3": '"gate.latency_ns=-3" needs a number',
    "read_ahead_kb=7q": '"read_ahead_kb=7q" needs a number',
    "sync.seed=99999999999999999999999": "needs a number",
    "vm.readahead=xyz": "vm.readahead=xyz: that value is not one of its values",
    "vm.map_around_bytes=5000": "that value is not one of its values",
    "vm.map_around_bytes=99999999999999999999999": "that value is not one of its values",
    "vm.nosuch=1": "vm.nosuch=1: there is no such knob",
    "vm.fault_retry": '"vm.fault_retry" needs a value',
}


def elf_with(offset, form, value):
    """A program with one field of its header changed."""
    def change(program):
        struct.pack_into(form, program, offset, value)
    return change


def segment_with(index, offset, form, value):
    """A program with one field of a PT_LOAD header changed."""
    def change(program):
        table, count = struct.unpack_from("<Q", program, 32)[0], struct.unpack_from("<H", program, 56)[0]
        headers = [table + 56 * i for i in range(count)]
        loads = [at for at in headers if struct.unpack_from("<I", program, at)[0] == 1]
        struct.pack_into(form, program, loads[index] + offset, value)
    return change


def dynamically_linked(good):
    """The program with a PT_INTERP header in place of its last one."""
    program = bytearray(good)
    table, count = struct.unpack_from("<Q", program, 32)[0], struct.unpack_from("<H", program, 56)[0]
    path = LINKER.encode() + b"\0"
    struct.pack_into("<IIQQQQQQ", program, table + 56 * (count - 1), 3, 4, len(program), 0, 0, len(path), len(path), 1)
    return bytes(program) + path


# name: (change, what the log must say)
BROKEN_PROGRAMS = {
    "another-machine": (elf_with(18, "<H", 183), "it is for another kind of machine"),
    "entry-in-the-kernel": (elf_with(24, "<Q", 0xFFFFFFFF80000000), "its entry point"),
    "entry-nowhere": (elf_with(24, "<Q", 1 << 63), "its entry point"),
    "headers-far-away": (elf_with(32, "<Q", 1 << 62), "it ends too early"),
    "headers-without-end": (elf_with(56, "<H", 65535), "its program headers"),
    "headers-of-wrong-size": (elf_with(54, "<H", 1), "its program headers"),
    "segment-in-the-kernel": (segment_with(0, 16, "<Q", 0xFFFFFFFF80000000), "outside user memory"),
    "segment-at-zero": (segment_with(0, 16, "<Q", 0), "outside user memory"),
    "segment-huge": (segment_with(0, 40, "<Q", (1 << 63) - 1), "outside user memory"),
    "more-bytes-than-memory": (segment_with(0, 32, "<Q", (1 << 64) - 1), "larger in the file"),
    "not-aligned": (segment_with(0, 8, "<Q", 123), "not aligned"),
}
LINKER = "/lib/no-such-linker.so"
CUTS = {0: "not an ELF file", 4: "not an ELF file", 64: "ends too early", 1000: "outside the file",
        20000: "outside the file"}
SHORT_BROKEN = ("entry-in-the-kernel", "segment-huge", "cut-1000")


def write_broken_programs(folder):
    with open(os.path.join(harness.BUILD, "tests", "user", "hello"), "rb") as file:
        good = file.read()
    for name, (change, _) in BROKEN_PROGRAMS.items():
        program = bytearray(good)
        change(program)
        (folder / name).write_bytes(program)
    for size in CUTS:
        (folder / f"cut-{size}").write_bytes(good[:size])
    os.symlink("loop", folder / "loop")
    (folder / "wants-a-linker").write_bytes(dynamically_linked(good))


def make_image(folder, image):
    subprocess.run([sys.executable, os.path.join(harness.ROOT, "tools", "mkimage"), folder, image],
                   check=True, stdin=subprocess.DEVNULL, capture_output=True)
    return image


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """{name: path} of the disks that these tests bring."""
    place = tmp_path_factory.mktemp("images")
    programs = place / "broken" / "bin"
    programs.mkdir(parents=True)
    write_broken_programs(programs)
    (place / "bare").mkdir()
    found = {"broken": make_image(place / "broken", place / "broken.img"),
             "bare": make_image(place / "bare", place / "bare.img")}
    fat_sector = b"\xeb\x3c\x90MSDOS5.0" + struct.pack("<HBHBHHBH", 512, 4, 1, 2, 512, 8192, 248, 32)
    contents = {
        "random": random.Random(2007).randbytes(MIB),
        "empty": b"",
        "fat": fat_sector.ljust(510, b"\0") + b"\x55\xaa" + b"\xf8\xff\xff\xff".ljust(4 * MIB, b"\0"),
        "cut": found["bare"].read_bytes()[:3000],
    }
    for name, data in contents.items():
        found[name] = place / f"{name}.img"
        found[name].write_bytes(data)
    return found


def start(images, program=PROGRAM, image=None, **options):
    if image != "none":
        image = images[image] if image else harness.SMALL
    return harness.boot(program, image=str(image), timeout=BOOT_LIMIT_S, **options)


@pytest.fixture(scope="module")
def boots(request, images):
    boots = harness.Boots(request, lambda case: start(images, **case_options(*case)))
    yield boots
    boots.close()


def case_options(kind, name):
    if kind == "machine":
        return MACHINES[name][0]
    return dict(program=f"/bin/{name}", image="broken")


def cases(kind, names, short=None):
    return pytest.mark.parametrize("case", [
        pytest.param((kind, name), id=name,
                     marks=[] if short is None or name in short else pytest.mark.long)
        for name in names])


def check_gave_up(result, words):
    assert result.status == CANNOT_RUN, result.explain()
    assert words in result.out, result.explain()
    assert words in result.log, "what the console says stands in the log too"


@cases("machine", MACHINES)
def test_what_cannot_be_run_is_said(case, boots):
    check_gave_up(boots[case], MACHINES[case[1]][1])


@cases("program", [*BROKEN_PROGRAMS, *(f"cut-{size}" for size in CUTS)], SHORT_BROKEN)
def test_a_broken_program_is_refused(case, boots):
    result = boots[case]
    check_gave_up(result, NO_PROGRAM)
    name = case[1]
    reason = CUTS[int(name[4:])] if name.startswith("cut-") else BROKEN_PROGRAMS[name][1]
    assert reason in result.log, result.explain()


@cases("program", ["wants-a-linker"])
def test_a_program_without_its_interpreter_is_told_from_one_that_is_not_there(case, boots):
    result = boots[case]
    check_gave_up(result, "The program is there, but not the interpreter that it names")
    assert f"cannot be run: its interpreter {LINKER} cannot be opened: there is no such file" in result.log


@cases("program", ["loop"])
def test_links_in_a_circle_are_refused(case, boots):
    check_gave_up(boots[case], "circles")


def test_words_that_are_no_use_are_named_and_ignored():
    result = harness.boot(PROGRAM, append=" ".join(BAD_WORDS), timeout=BOOT_LIMIT_S)
    assert (result.status, result.out) == (0, GREETING), result.explain()
    for word, message in BAD_WORDS.items():
        lines = [line for line in result.log.splitlines()
                 if "command line: " in line and word in line and message in line]
        assert lines, f"{word}\n{result.explain()}"


@pytest.mark.parametrize("mem", [8, 16])
def test_too_little_memory_is_said_in_numbers(mem):
    result = harness.boot(PROGRAM, mem=mem, timeout=BOOT_LIMIT_S)
    assert result.status == PANIC, result.explain()
    assert "too little memory" in result.out and "32 MiB" in result.out, result.explain()


def test_without_a_disk_the_ramdisk_is_enough():
    result = harness.boot(PROGRAM, ramdisk=True, timeout=BOOT_LIMIT_S)
    assert (result.status, result.out) == (0, GREETING), result.explain()
    assert "no disk found" in result.log


def test_suites_that_do_not_exist_are_no_success():
    result = harness.boot(None, options=["--ktest=nosuch"], timeout=BOOT_LIMIT_S)
    assert result.status == 1, result.explain()
    assert '1..0\n# no test is called "nosuch"' in result.out, result.explain()
