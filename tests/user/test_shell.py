"""Debian's BusyBox shell in front of a person: a terminal, job control, and the usual commands."""

import hashlib
import os
import re
import time

import harness
import pexpect
import pytest

PROMPT = "@@ "
ROWS, COLUMNS = 40, 160
BOOT_LIMIT_S = 60
COMMAND_LIMIT_S = 60
SUMS_LIMIT_S = 240
SETTLE_S = 0.7  # until a program that was just started waits for keys
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[78=>]")
IMAGE_FOLDER = os.path.join(harness.BUILD, "image-small")
HAS_SHELL = os.path.exists(os.path.join(IMAGE_FOLDER, "bin", "busybox"))

pytestmark = pytest.mark.skipif(not HAS_SHELL, reason="the image has no shell: no busybox-static")


def start(log, *options, smp=1):
    """Boots to the prompt, as a person at a terminal would."""
    command = [os.path.join(harness.ROOT, "tools", "qemu"), "--disk", harness.SMALL, "--smp",
               str(smp), "--timeout", "600", "--log", str(log), *options]
    child = pexpect.spawn(command[0], command[1:], timeout=COMMAND_LIMIT_S, encoding="utf-8",
                          codec_errors="replace", dimensions=(ROWS, COLUMNS))
    child.expect("BusyBox", timeout=BOOT_LIMIT_S)
    child.expect(r"# ", timeout=BOOT_LIMIT_S)
    child.sendline("PS1='@''@ '")
    child.expect_exact(PROMPT)
    return child


class Shell:
    def __init__(self, child):
        self.child = child

    def output(self, limit=COMMAND_LIMIT_S):
        """What came up to the next prompt, without the line that was typed."""
        self.child.expect_exact(PROMPT, timeout=limit)
        text = ESCAPES.sub("", self.child.before)
        return "\n".join(line.rstrip("\r") for line in text.split("\n")[1:]).rstrip("\n")

    def run(self, line, limit=COMMAND_LIMIT_S):
        self.child.sendline(line)
        return self.output(limit)

    def status(self):
        return self.run("echo $?")

    def begin(self, line):
        """Starts a command that then waits for keys."""
        self.child.sendline(line)
        time.sleep(SETTLE_S)


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    child = start(tmp_path_factory.mktemp("shell") / "log")
    yield Shell(child)
    child.close(force=True)


def test_pipelines(shell):
    assert shell.run("echo one two | tr a-z A-Z") == "ONE TWO"
    assert shell.run("seq 1 1000 | grep 7 | wc -l") == "271"
    assert shell.run("yes | head -n 3 | tr '\\n' ,; echo") == "y,y,y,"


def test_redirection_to_tmp(shell):
    assert shell.run("echo hello > /tmp/a; echo more >> /tmp/a; wc -l < /tmp/a") == "2"
    assert shell.run("cat < /tmp/a") == "hello\nmore"
    assert "No such file" in shell.run("ls /nope 2> /tmp/err; cat /tmp/err")
    assert shell.run("cat <<E\nhere $((6 * 7))\nE").splitlines()[-1] == "here 42"
    assert "Read-only" in shell.run("echo x > /etc/x")


def test_background_jobs(shell):
    shell.run("sleep 1 & p=$!")
    assert shell.run("wait $p; echo ended $?").splitlines()[0] == "ended 0"
    assert "3" in shell.run("(sleep 0; exit 3) & wait $!; echo $?").splitlines()


def test_interrupt_ends_the_foreground_job(shell):
    shell.begin("sleep 1000")
    shell.child.send("\x03")
    shell.output()
    assert shell.status() == "130"


def test_interrupt_ends_a_program_that_only_writes(shell):
    shell.begin("yes")
    shell.child.send("\x03")
    shell.child.expect_exact("^C")
    shell.output()
    assert shell.status() == "130"


def test_quit(shell):
    shell.begin("sleep 1000")
    shell.child.send("\x1c")
    shell.output()
    assert shell.status() == "131"


def test_stop_and_go_on_in_the_foreground(shell):
    shell.begin("sleep 1000")
    shell.child.send("\x1a")
    assert "Stopped" in shell.output()
    assert "Stopped" in shell.run("jobs")
    shell.begin("fg")
    shell.child.send("\x03")
    shell.output()
    assert shell.status() == "130"
    assert shell.run("jobs") == ""


def test_a_background_reader_is_stopped(shell):
    shell.run("cat > /tmp/never &")
    time.sleep(SETTLE_S)
    assert "Stopped" in shell.run("jobs")
    shell.run("kill -9 %1; wait")


def test_lines_are_edited_before_a_program_reads_them(shell):
    shell.begin("cat")
    shell.child.send("abx\x7fc\r")
    shell.child.expect_exact("\nabc")
    shell.child.send("gone\x15kept\r")
    shell.child.expect_exact("\nkept")
    shell.child.send("\x04")
    shell.output()
    assert shell.status() == "0"


def test_the_window_is_as_large_as_ours(shell):
    assert shell.run("stty size") == f"{ROWS} {COLUMNS}"
    assert shell.run("tty") == "/dev/console"
    assert "-icanon" not in shell.run("stty -a")


def test_raw_reads_wait_as_min_and_time_say(shell):
    begin = time.monotonic()
    assert shell.run("stty -icanon min 0 time 10; dd bs=9 count=1 2>/dev/null | wc -c; stty sane"
                     ) == "0"
    assert time.monotonic() - begin > 1
    shell.begin("stty -icanon min 3; dd bs=9 count=1 2>/dev/null | wc -c; stty sane")
    shell.child.send("ab")
    time.sleep(SETTLE_S)
    shell.child.send("c")
    assert shell.output().endswith("3")


def test_waiting_for_a_key_ends_by_time_or_by_the_key(shell):
    assert shell.run("read -t 1 x; echo $?") == "1"
    shell.begin("read -n 3 x; echo; echo got $x")
    shell.child.send("xyz")
    assert shell.output().endswith("got xyz")


def test_output_stops_and_starts(shell):
    shell.begin("sleep 1; echo shown")
    shell.child.send("\x13")
    assert shell.child.expect_exact(["\nshown", pexpect.TIMEOUT], timeout=3) == 1
    shell.child.send("\x11")
    assert shell.output().endswith("shown")


def test_globbing(shell):
    assert shell.run("echo /etc/p*") == "/etc/passwd /etc/profile"
    assert shell.run("cd /etc; echo [gh]*; cd") == "group hostname hosts"
    assert shell.run("echo /nothing*") == "/nothing*"


def test_vi_edits_a_file(shell):
    shell.begin("vi /tmp/note")
    shell.child.send("ifirst line\rsecond line\x1b")
    time.sleep(SETTLE_S)
    shell.child.send("ggxixy\x1b")
    time.sleep(SETTLE_S)
    shell.child.send(":wq\r")
    shell.output()
    assert shell.run("cat /tmp/note") == "xyirst line\nsecond line"


def test_ps(shell):
    rows = shell.run("ps").splitlines()
    assert rows[0].split()[:2] == ["PID", "USER"]
    programs = {row.split()[0]: row.split(None, 2)[2] for row in rows[1:]}
    assert "init" in programs["1"]
    assert "-sh" in programs.values() and "{ps} -sh" in programs.values()  # applets do not exec


def test_top(shell):
    out = shell.run("top -b -n1")
    assert re.search(r"^Mem: \d+K used, \d+K free", out, re.M), out
    assert re.search(r"^CPU: .*% idle", out, re.M), out
    assert re.search(r"^Load average: \d+\.\d\d ", out, re.M), out
    assert re.search(r"^ +\d+ +\d+ root .* top -b -n1$", out, re.M), out


def test_free(shell):
    numbers = re.search(r"^Mem: +(\d+) +(\d+) +(\d+)", shell.run("free"), re.M)
    total, used, free = map(int, numbers.groups())
    assert 400_000 < total < 524_288 and 0 < used < total and 0 < free < total


def test_maps_of_itself(shell):
    maps = shell.run("cat /proc/self/maps")
    assert re.search(r"^[0-9a-f]+-[0-9a-f]+ r-xp .* /bin/busybox$", maps, re.M), maps
    assert "[stack]" in maps and "[heap]" in maps


def test_time(shell):
    assert re.search(r"^real\s+0m 1\.\d+s$", shell.run("time sleep 1"), re.M)


def test_dd(shell):
    out = shell.run("dd if=/dev/zero of=/tmp/zeros bs=64k count=16")
    assert "16+0 records in" in out and "16+0 records out" in out
    assert shell.run("wc -c < /tmp/zeros; rm /tmp/zeros") == str(16 * 65536)


def image_files():
    for folder, _, names in os.walk(IMAGE_FOLDER):
        for name in names:
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                yield path


def test_find_counts_the_files_of_the_image(shell):
    assert int(shell.run("find / -xdev -type f | wc -l")) == len(list(image_files()))


def test_every_file_has_the_sum_it_has_here(shell):
    def md5(path):
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "md5").hexdigest() if hasattr(
                hashlib, "file_digest") else hashlib.md5(file.read()).hexdigest()

    wanted = {"/" + os.path.relpath(path, IMAGE_FOLDER): md5(path) for path in image_files()
              if not path.endswith("/sparse.bin")}  # 1000 GiB, nearly all hole
    shell.run("find / -xdev -type f ! -name sparse.bin | xargs md5sum > /tmp/sums",
              limit=SUMS_LIMIT_S)
    out = shell.run("cat /tmp/sums", limit=SUMS_LIMIT_S)
    found = dict(reversed(line.split(None, 1)) for line in out.splitlines())
    assert found == wanted


def test_a_script_of_its_own(shell):
    shell.run("printf '#!/bin/sh\\necho \"$0 has $#: $*\"\\n' > /tmp/script; chmod +x /tmp/script")
    assert shell.run("/tmp/script a 'b c'") == "/tmp/script has 2: a b c"


@pytest.fixture(scope="module")
def small_shell(tmp_path_factory):
    child = start(tmp_path_factory.mktemp("small") / "log", "--mem", "64", smp=2)
    yield Shell(child)
    child.close(force=True)


def is_usable(shell):
    assert shell.run("echo hi > /tmp/hi; read x < /tmp/hi; echo $x") == "hi"
    assert "crowd" in shell.run("jobs")
    shell.run("kill -9 %1; wait")
    assert shell.run("cat /tmp/hi | tr a-z A-Z; rm /tmp/hi") == "HI"


@pytest.mark.parametrize("of, answer", [("files", "Too many open files in system"),
                                        ("processes", "Resource temporarily unavailable")])
def test_the_shell_stays_usable_when_others_have_taken_all(small_shell, of, answer):
    small_shell.run(f"crowd {of} &")
    small_shell.child.expect_exact(f"the end: {answer}", timeout=COMMAND_LIMIT_S)
    small_shell.child.sendline()
    small_shell.child.expect_exact(PROMPT)
    is_usable(small_shell)


def test_the_shell_stays_usable_when_tmp_is_full(small_shell):
    assert "No space left" in small_shell.run("dd if=/dev/zero of=/tmp/full bs=64k")
    assert small_shell.run("echo $((6 * 7)); ls /tmp") == "42\nfull"
    assert "No space left" in small_shell.run("echo x > /tmp/other; cat /tmp/other")
    assert small_shell.run("rm /tmp/full /tmp/other; echo y > /tmp/y; cat /tmp/y; rm /tmp/y") == "y"


def test_the_shell_outlives_a_program_that_takes_all_memory(small_shell):
    assert "137" in small_shell.run("hog grow 100000; echo $?")
    assert small_shell.run("echo $((6 * 7)); ls /etc/hostname") == "42\n/etc/hostname"


@pytest.mark.parametrize("order", ["exit", "poweroff", "reboot", "halt"])
def test_what_ends_the_machine_ends_qemu_with_status_0(tmp_path, order):
    child = start(tmp_path / "log", smp=2)
    child.sendline(order)
    child.expect(pexpect.EOF, timeout=COMMAND_LIMIT_S)
    child.close()
    assert child.exitstatus == 0, (tmp_path / "log").read_text()


def test_commands_can_come_from_a_pipe(tmp_path):
    import subprocess

    command = [os.path.join(harness.ROOT, "tools", "qemu"), "--disk", harness.SMALL, "--log",
               str(tmp_path / "log")]
    done = subprocess.run(command, input=b"echo a\ntty\nexit 5\n", capture_output=True, check=False,
                          timeout=120)
    assert done.returncode == 5, (tmp_path / "log").read_text()
    assert done.stdout == b"a\nnot a tty\n"
