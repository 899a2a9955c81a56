#!/usr/bin/env python3
"""Checks the model of the fault's retry protocol, tests/model/retry.pml, with Spin (docs/model.md).

    tests/model/run.py                 all of it, about 8 minutes
    tests/model/run.py --list          the names
    tests/model/run.py once-vma no-pin some of it, with what Spin said
    tests/model/run.py --trail no-pin  the story of the bug, step by step

Three kinds: configurations that must pass exhaustively; liveness, under weak fairness; and bugs, rules
of the protocol left out, each of which must be found. The status is 0 where all is as it must be.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

HERE = os.path.dirname(os.path.abspath(__file__))
MODEL = os.path.join(HERE, "retry.pml")
LIMIT_S = 600
MEMORY_MB = 6000
DEPTH = 1000000


@dataclass
class Check:
    name: str
    flags: str
    holds: bool = True  # else Spin must find an error
    says: str = ""      # what the error must be about
    live: bool = False


ALL = "-DNF=1"  # one fault against writer, truncation, reclaim
PAIR = "-DNF=2"

PASSES = [
    Check("once-mmap", f"{ALL}"),
    Check("once-vma", f"{ALL} -DVMA_LOCK"),
    Check("hold-mmap", f"{ALL} -DRETRY=HOLD"),
    Check("hold-vma", f"{ALL} -DRETRY=HOLD -DVMA_LOCK"),
    Check("many-mmap-unpinned", f"{ALL} -DRETRY=MANY -DPIN=0"),
    Check("many-vma-unpinned-wait", f"{ALL} -DRETRY=MANY -DPIN=0 -DSUBMIT=0 -DVMA_LOCK"),
    Check("recheck-mmap", f"{ALL} -DRETRY=RECHECK"),
    Check("recheck-mmap-unpinned-wait", f"{ALL} -DRETRY=RECHECK -DPIN=0 -DSUBMIT=0"),
    Check("recheck-mmap-two-changes", f"{ALL} -DRETRY=RECHECK -DNW=2 -DNT=0"),
    Check("once-mmap-bad-disk", f"{ALL} -DWITH_EIO -DSUBMIT=0"),
    Check("once-vma-bad-disk", f"{ALL} -DWITH_EIO -DVMA_LOCK"),
    Check("once-mmap-write", f"{ALL} -DWITH_WRITE -DNR=0"),
    Check("once-vma-write", f"{ALL} -DWITH_WRITE -DVMA_LOCK -DNR=0"),
    Check("two-faults-mmap-writer", f"{PAIR} -DNT=0 -DNR=0"),
    Check("two-faults-vma-writer", f"{PAIR} -DVMA_LOCK -DNT=0 -DNR=0"),
    Check("two-faults-mmap-truncate", f"{PAIR} -DNW=0 -DNR=0"),
    Check("two-faults-mmap-reclaim", f"{PAIR} -DNW=0 -DNT=0 -DPIN=0"),
    Check("two-faults-mmap-writer-truncate", f"{PAIR} -DNR=0"),
    Check("two-faults-mmap-bad-disk", f"{PAIR} -DNW=0 -DNR=0 -DNT=0 -DWITH_EIO -DSUBMIT=0"),
    Check("two-faults-vma-many-reclaim", f"{PAIR} -DRETRY=MANY -DPIN=0 -DVMA_LOCK -DNW=0 -DNT=0"),
    Check("two-faults-mmap-recheck-writer", f"{PAIR} -DRETRY=RECHECK -DNT=0 -DNR=0"),
]

LIVE = [
    # Reclaim that never tires cannot keep a fault from its page: `once` keeps the lock, and pins.
    Check("fault-ends-against-reclaim", f"{ALL} -DLIVE_FAULT -DNW=0 -DNT=0 -DNR=99", live=True),
    Check("fault-ends-against-reclaim-unpinned", f"{ALL} -DLIVE_FAULT -DNW=0 -DNT=0 -DNR=99 -DPIN=0",
          live=True),
    Check("fault-ends-against-reclaim-many", f"{ALL} -DLIVE_FAULT -DNW=0 -DNT=0 -DNR=99 -DRETRY=MANY",
          live=True),
    Check("fault-ends-against-writer", f"{ALL} -DLIVE_FAULT -DNW=99 -DNT=0 -DNR=0", live=True),
    Check("writer-gets-lock", f"{ALL} -DLIVE_WRITER -DNW=99 -DNT=0 -DNR=0", live=True),
    Check("writer-gets-lock-two-faults", f"{PAIR} -DLIVE_WRITER -DNACC=2 -DNT=0 -DNR=0", live=True),
    # `many` without a pin: for ever.
    Check("retry-forever-starves", f"{ALL} -DLIVE_FAULT -DNW=0 -DNT=0 -DNR=99 -DRETRY=MANY -DPIN=0",
          holds=False, says="acceptance cycle", live=True),
    # Truncations need no lock of the fault's: no policy helps against those that never end.
    Check("truncated-forever-starves", f"{ALL} -DLIVE_FAULT -DNW=0 -DNT=99 -DNR=0", holds=False,
          says="acceptance cycle", live=True),
]

AREA, FILE = "-DNT=0 -DNR=0", "-DNW=0 -DNR=0"
BUGS = [
    Check("no-relookup", f"{ALL} {AREA} -DBUG_NO_RELOOKUP", False, "vlive"),
    Check("no-relookup-vma", f"{ALL} {AREA} -DVMA_LOCK -DBUG_NO_RELOOKUP", False, "vlive"),
    Check("no-size-recheck", f"{ALL} {FILE} -DBUG_NO_SIZE_RECHECK", False, "cache"),
    Check("no-pin", f"{ALL} {FILE} -DBUG_NO_PIN", False, "alloc"),
    Check("no-owner-check", f"{ALL} {FILE} -DBUG_NO_OWNER_CHECK", False, "incache"),
    Check("count-each-try", f"{ALL} -DNW=0 {AREA} -DBUG_COUNT_EACH_TRY", False, "counted"),
    Check("lost-wakeup", f"{ALL} -DNW=0 {AREA} -DBUG_LOST_WAKEUP", False, "invalid end state"),
    Check("unmap-before-lock", f"{ALL} {FILE} -DBUG_UNMAP_BEFORE_LOCK", False, "pte"),
    Check("reclaim-no-freeze", f"{PAIR} -DNW=0 -DNT=0 -DBUG_RECLAIM_NO_FREEZE", False, "alloc"),
    Check("copy-under-page-lock", f"{ALL} {AREA} -DWITH_WRITE -DBUG_COPY_UNDER_PAGE_LOCK", False,
          "invalid end state"),
    Check("copy-under-page-lock-vma", f"{ALL} {AREA} -DWITH_WRITE -DVMA_LOCK -DBUG_COPY_UNDER_PAGE_LOCK",
          False, "invalid end state"),
    Check("no-change-count", f"{ALL} {AREA} -DRETRY=RECHECK -DBUG_NO_CHANGE_COUNT", False, "vlive"),
    Check("no-detached-check", f"{ALL} {AREA} -DVMA_LOCK -DBUG_NO_DETACHED_CHECK", False, "vrd"),
    Check("zap-before-detach", f"{ALL} {AREA} -DVMA_LOCK -DBUG_ZAP_BEFORE_DETACH", False, "pte_vma"),
    Check("new-area-open", f"{PAIR} {AREA} -DVMA_LOCK -DBUG_NEW_AREA_OPEN", False, "pte_vma"),
    Check("wait-anyway", f"{PAIR} -DNW=0 {AREA} -DSUBMIT=0 -DWITH_EIO -DBUG_WAIT_ANYWAY", False, "let"),
    Check("not-kept", f"{ALL} -DLIVE_FAULT -DNW=0 -DNT=0 -DNR=99 -DBUG_NOT_KEPT", False,
          "acceptance cycle", live=True),
    Check("asked-not-kept", f"{ALL} -DLIVE_FAULT -DNW=0 -DNT=0 -DNR=99 -DBUG_ASKED_NOT_KEPT", False,
          "acceptance cycle", live=True),
]
CHECKS = {check.name: check for check in PASSES + LIVE + BUGS}


@dataclass
class Outcome:
    found: bool   # an error
    complete: bool
    states: int
    seconds: float
    text: str

    def is_as_it_must_be(self, check):
        if check.holds:
            return self.complete and not self.found
        return self.found and check.says in self.text.splitlines()[0]


def is_there():
    return shutil.which("spin") and shutil.which("gcc")


def command(*words, folder):
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False,
                          timeout=LIMIT_S)
    return done.returncode, done.stdout + done.stderr


def search(check, folder):
    """Makes the verifier in the folder and runs it. A trail is left there where an error is found."""
    began = time.monotonic()
    status, text = command("spin", "-a", *check.flags.split(), MODEL, folder=folder)
    if status:
        raise RuntimeError(text)
    kind = ["-DNFAIR=3"] if check.live else ["-DSAFETY"]
    status, text = command("gcc", "-O1", "-w", "-DCOLLAPSE", "-DVECTORSZ=1024", f"-DMEMLIM={MEMORY_MB}",
                           *kind, "-o", "pan", "pan.c", folder=folder)
    if status:
        raise RuntimeError(text)
    _, text = command("./pan", f"-m{DEPTH}", *(["-a", "-f"] if check.live else []), folder=folder)
    text = text.strip()
    errors = re.search(r"errors: (\d+)", text)
    states = re.search(r"(\d[\d.e+]*) states, stored", text)
    cut = "Search not completed" in text or "max search depth" in text or "out of memory" in text
    return Outcome(found=bool(errors) and int(errors.group(1)) > 0, complete=bool(errors) and not cut,
                   states=int(float(states.group(1))) if states else 0,
                   seconds=time.monotonic() - began, text=text)


def run(check):
    with tempfile.TemporaryDirectory(prefix="faultline-model-") as folder:
        return search(check, folder)


def show_trail(check):
    with tempfile.TemporaryDirectory(prefix="faultline-model-") as folder:
        print(search(check, folder).text.splitlines()[0])
        trail = os.path.join(folder, os.path.basename(MODEL) + ".trail")
        _, text = command("spin", *check.flags.split(), "-k", trail, "-t", "-p", "-g", MODEL, folder=folder)
        print(text.replace(MODEL, "retry.pml"))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--trail", action="store_true")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in CHECKS]
    if unknown:
        parser.error(f"no such check: {', '.join(unknown)}; --list names them")
    if options.list:
        for check in CHECKS.values():
            print(f"{check.name:<34} {'holds' if check.holds else 'fails'}  {check.flags}")
        return 0
    if not is_there():
        print("tests/model/run.py: needs spin and gcc (./setup)", file=sys.stderr)
        return 2
    bad = 0
    for check in [CHECKS[name] for name in options.names] or CHECKS.values():
        if options.trail:
            show_trail(check)
            continue
        outcome = run(check)
        good = outcome.is_as_it_must_be(check)
        bad += not good
        verdict = "an error" if outcome.found else "holds" if outcome.complete else "not completed"
        print(f"{'ok    ' if good else 'NOT OK'} {check.name:<34} {verdict:<14}"
              f"{outcome.states:>10} states {outcome.seconds:6.1f} s", flush=True)
        if options.names or not good:
            print(outcome.text)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
