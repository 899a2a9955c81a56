"""libFuzzer against the pure parts, for a while; only in the long run."""

import os
import subprocess

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SECONDS = 20

pytestmark = pytest.mark.skipif(not os.environ.get("FAULTLINE_LONG"), reason="in the long run")


def clang_has_fuzzer(folder):
    source = folder / "empty.c"
    source.write_text("int LLVMFuzzerTestOneInput(const unsigned char *d, unsigned long n)"
                      "{ (void)d; (void)n; return 0; }\n")
    try:
        return subprocess.run(["clang", "-fsanitize=fuzzer", str(source), "-o",
                               str(folder / "empty")], check=False,
                              capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


def test_range_tree(tmp_path):
    if not clang_has_fuzzer(tmp_path):
        pytest.skip("no clang with libFuzzer here; ./setup installs it on Debian")
    done = subprocess.run(["make", "fuzz-range-tree", f"SECONDS={SECONDS}"], cwd=ROOT, text=True,
                          capture_output=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    assert "stat::number_of_executed_units:" in done.stderr
