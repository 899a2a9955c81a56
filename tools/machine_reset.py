"""What a machine that reset itself can still be asked, and the report made of it.

QEMU is told to pause where it would end (tools/qemu): so its monitor can read registers and memory
of the moment of the triple fault. The parts of the report are those of kernel/log/report.h.
"""

import bisect
import json
import re
import struct
import subprocess
import threading

EXCEPTION_NAMES = {
    0: "divide error", 1: "debug exception", 3: "breakpoint", 4: "overflow", 6: "invalid opcode",
    7: "device not available", 8: "double fault", 10: "invalid TSS", 11: "segment not present",
    12: "stack fault", 13: "general protection fault", 14: "page fault", 17: "alignment check",
    18: "machine check"}
REGISTER_ROWS = (("rax", "rbx", "rcx", "rdx"), ("rsi", "rdi", "rbp", "rsp"),
                 ("r8", "r9", "r10", "r11"), ("r12", "r13", "r14", "r15"))
IDLE = {"idle_once", "sched_idle_loop", "halt_for_good"}
KERNEL_HALF = 0xFFFF800000000000
IDT_LIMIT = 256 * 16 - 1
FRAMES_MAX = 32
EXCEPTIONS_SHOWN = 6
LOG_TAIL_BYTES = 65536
# struct cpu: the task that runs there (kernel/cpu/cpu.h); struct task: pid, state, name.
CPU_CURRENT, TASK_NAME, TASK_NAME_BYTES = 8, 8, 16


class Symbols:
    """Names of the kernel's functions."""

    def __init__(self, kernel):
        try:
            out = subprocess.run(["nm", "-n", kernel], capture_output=True, text=True,
                                 check=True).stdout
        except (OSError, subprocess.CalledProcessError):
            out = ""
        rows = [line.split() for line in out.splitlines()]
        table = [(int(row[0], 16), row[2]) for row in rows if len(row) == 3 and row[1] in "tTwW"]
        self.starts, self.names = [at for at, _ in table], [name for _, name in table]

    def find(self, address):
        at = bisect.bisect_right(self.starts, address) - 1
        return (self.names[at], address - self.starts[at]) if at >= 0 else (None, 0)

    def text(self, address):
        name, offset = self.find(address)
        if name is None or address < KERNEL_HALF:
            return "not in the kernel's text"
        return f"{name}+{offset:#x}"


class Monitor(threading.Thread):
    """QEMU's monitor (QMP): hears why the machine ends, and lets it end."""

    def __init__(self, sock):
        super().__init__(daemon=True)
        self.stream = sock.makefile("rwb", buffering=0)
        self.reasons = []
        self.cpus = None  # registers of each, where the machine reset
        self.memory = {}
        self.start()

    def ask(self, command, **arguments):
        """Sends a command and returns its answer; events that come in between are kept."""
        self.stream.write(json.dumps({"execute": command, "arguments": arguments}).encode() + b"\n")
        while True:
            answer = self.next_message()
            if "return" in answer or "error" in answer:
                return answer.get("return")

    def next_message(self):
        line = self.stream.readline()
        if not line:
            raise EOFError
        message = json.loads(line)
        if message.get("event") == "SHUTDOWN":
            self.reasons.append(message["data"]["reason"])
        return message

    def run(self):
        try:
            self.next_message()  # the greeting
            self.ask("qmp_capabilities")
            while not self.reasons:
                self.next_message()
            try:
                if "guest-reset" in self.reasons:
                    self.look()
            finally:
                self.ask("quit")
        except (OSError, EOFError):
            pass  # it has ended by itself
        except (ValueError, KeyError, IndexError):
            self.cpus = None  # another QEMU, which says it in other words

    def hmp(self, line, cpu=0):
        text = self.ask("human-monitor-command", **{"command-line": line, "cpu-index": cpu})
        return (text or "").replace("\r\n", "\n")

    def words(self, address, n, cpu):
        """n words of memory as that CPU sees them; None where nothing is mapped."""
        found = re.findall(r"0x([0-9a-f]{16})", self.hmp(f"x/{n}gx {address:#x}", cpu))
        return [int(word, 16) for word in found] if len(found) == n else None

    def look(self):
        """Registers of all CPUs; the ways and tasks of those in the kernel."""
        texts = re.split(r"^CPU#\d+$", self.hmp("info registers -a"), flags=re.MULTILINE)[1:]
        cpus = [registers_of(text) for text in texts]
        for number, cpu in enumerate(cpus):
            cpu["task"] = self.task_of(cpu, number)
            cpu["way"] = list(self.way_of(cpu, number))
        self.cpus = cpus

    def task_of(self, cpu, number):
        block = self.words(cpu["gs"] + CPU_CURRENT, 1, number) if cpu["gs"] >= KERNEL_HALF else None
        task = self.words(block[0], 3, number) if block else None
        if not task:
            return "not known: there is no task yet, or its memory cannot be read"
        name = struct.pack("<2Q", *task[1:])[:TASK_NAME_BYTES].split(b"\0")[0]
        return f'{task[0] & 0xFFFFFFFF} "{name.decode(errors="replace")}"'

    def way_of(self, cpu, number):
        frame = cpu["rbp"]
        for _ in range(FRAMES_MAX):
            words = self.words(frame, 2, number) if frame >= KERNEL_HALF else None
            if not words or not words[1]:
                return
            yield words[1]
            if words[0] <= frame:
                return
            frame = words[0]

    def left_by_hand(self):
        self.join(1)
        return not any(reason.startswith("guest-") for reason in self.reasons)


def registers_of(text):
    """{lower-case name: value} of one CPU in `info registers`; of 32 bits before there is long mode."""
    found = {name: 0 for row in REGISTER_ROWS for name in row}
    found |= {name.strip().lower().replace("e", "r", 1): int(value, 16) for name, value in re.findall(
        r"\b([RE][A-Z0-9]{2}|R[89] |CR[0-4])=([0-9a-f]+)", text)}
    for name, base in re.findall(r"^(GS) *=[0-9a-f]+ ([0-9a-f]+)", text, re.MULTILINE):
        found[name.lower()] = int(base, 16)
    match = re.search(r"^IDT= +([0-9a-f]+) ([0-9a-f]+)", text, re.MULTILINE)
    found["idt_limit"] = int(match.group(2), 16) if match else IDT_LIMIT
    found.setdefault("gs", 0)
    return found


def culprit_of(cpus, symbols):
    """The CPU that reset the machine: nobody says so, but idle ones did not."""
    for number, cpu in enumerate(cpus):
        if cpu["idt_limit"] < IDT_LIMIT:
            return number
    for number, cpu in enumerate(cpus):
        if symbols.find(cpu["rip"])[0] not in IDLE:
            return number
    return 0


def exceptions_of(path, symbols):
    """The last exceptions in QEMU's log (-d int), one line each."""
    try:
        with open(path, "rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - LOG_TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except (OSError, TypeError):
        return None
    lines = []
    for line in text.splitlines():
        match = re.match(r" *\d+: v=(\w\w) e=(\w+) .*?IP=\w+:(\w+) .*?SP=\w+:(\w+) (.*)", line)
        if match:
            vector, error, rip, rsp = (int(word, 16) for word in match.groups()[:4])
            address = re.search(r"CR2=(\w+)", match.group(5))
            lines.append(f"{EXCEPTION_NAMES.get(vector, f'interrupt {vector:#x}')}, error "
                         f"{error:#x}, at {rip:#018x} ({symbols.text(rip)}), rsp {rsp:#x}"
                         + (f", address 0x{address.group(1)}" if address else ""))
        elif match := re.match(r"check_exception old: 0x(\w+) new 0x(\w+)", line):
            old, new = (int(word, 16) for word in match.groups())
            if old < 32:
                lines.append(f"while that one was delivered: {EXCEPTION_NAMES.get(new, hex(new))}")
        elif line.startswith("Triple fault"):
            lines.append("and so the triple fault")
    return lines[-EXCEPTIONS_SHOWN:]


def report(monitor, kernel, exceptions):
    """The report's lines; empty where the monitor could not look. exceptions: QEMU's log, or None"""
    if not monitor or not monitor.cpus:
        return []
    symbols = Symbols(kernel)
    number = culprit_of(monitor.cpus, symbols)
    cpu = monitor.cpus[number]
    function = symbols.find(cpu["rip"])[0]
    before = exceptions_of(exceptions, symbols)
    lines = ["==== MACHINE RESET ====", "what:",
             "  the CPU gave up: an exception could not be delivered, nor the double fault after it"]
    if cpu["idt_limit"] < IDT_LIMIT:
        lines.append(f"  its interrupt table ends at byte {cpu['idt_limit']:#x}: no place for most "
                     "exceptions")
    if before is not None:
        lines += ["  the last exceptions:"] + [f"  {line}" for line in before or ["none"]]
    lines += ["where:", f"  at {cpu['rip']:#018x} ({symbols.text(cpu['rip'])}), CPU {number} of "
              f"{len(monitor.cpus)}"]
    lines += ["  " + "  ".join(f"{name:<3} {cpu[name]:016x}" for name in row)
              for row in REGISTER_ROWS]
    lines += [f"  cr0 {cpu['cr0']:08x}  cr2 {cpu['cr2']:016x}  cr3 {cpu['cr3']:016x}  "
              f"cr4 {cpu['cr4']:08x}", "whose:", f"  {cpu['task']}"]
    lines += [f"  meanwhile CPU {i} was at {symbols.text(other['rip'])}, {other['task']}"
              for i, other in enumerate(monitor.cpus) if i != number]
    lines += ["held:", "  not known from outside the machine", "how we got here:"]
    lines += [f"  {cpu['rip']:#018x}  {symbols.text(cpu['rip'])}"]
    lines += [f"  {address:#018x}  {symbols.text(address - 1)}" for address in cpu["way"]]
    lines += ["what to try:"]
    if before is None:
        lines.append("  tools/qemu --exceptions ... writes down which exceptions came before.")
    lines.append(f"  make gdb PROG=\"...\", break {function or '*ADDR'}, then stepi: which instruction "
                 "is the last?")
    lines.append("  Usual causes: a stack pointer that points nowhere, page tables without the kernel,")
    lines.append("  an interrupt table that is not loaded.")
    return lines
