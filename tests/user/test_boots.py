"""Every machine reaches the same demonstration: CPUs, memory, and the ways to boot."""

import subprocess
import sys
import tempfile

import pytest

import harness
from test_demo import COLUMNS, rows_of

MACHINES = {
    "plain": [],
    **{f"smp{n}": ["--smp", str(n)] for n in (2, 4, 8)},
    **{f"mem{n}": ["--mem", str(n)] for n in (32, 64, 256, 4096)},
    "iso": ["--iso"],
    "uefi": ["--uefi", "--mem", "256"],
}
BOOT_LIMIT_S = 180
FILE_PAGES = 16_384


def start(case):
    with tempfile.NamedTemporaryFile(prefix="faultline-", suffix=".log") as log:
        done = subprocess.run(
            [sys.executable, harness.ROOT + "/tools/qemu", "--disk", harness.SMALL, "--log", log.name,
             "--timeout", str(BOOT_LIMIT_S), *MACHINES[case], "--", "/bin/demo", "/data/medium.bin"],
            stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=BOOT_LIMIT_S + 30)
        return harness.Result(done.returncode, harness.text(done.stdout),
                              harness.text(done.stderr), harness.text(log.read()))


@pytest.fixture(scope="module")
def boots(request):
    all_boots = harness.Boots(request, start)
    yield all_boots
    all_boots.close()


@pytest.mark.parametrize("case", MACHINES)
def test_the_machine_reaches_the_demonstration(boots, case):
    result = boots[case]
    rows = rows_of(result.out)
    assert result.status == 0 and "BROKEN" not in result.out, result.explain()
    assert list(rows) == ["ondemand", "around", "none"], result.explain()
    assert set(COLUMNS) <= rows["ondemand"].keys()
    assert all(row["pages"] == FILE_PAGES for row in rows.values())
    assert rows["ondemand"]["windows"] == FILE_PAGES // 32
    assert result.out.startswith("/data/medium.bin"), "stdout is the program's output alone"
