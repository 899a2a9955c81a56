"""Tests marked `long` run only when asked for: --long here, or FAULTLINE_LONG as tests/run sets it."""

import os


def pytest_addoption(parser):
    parser.addoption("--long", action="store_true", help="the tests of `make test-long` too")


def pytest_configure(config):
    config.addinivalue_line("markers", "long: takes its time; only in `make test-long`")


def pytest_collection_modifyitems(config, items):
    if config.getoption("--long") or os.environ.get("FAULTLINE_LONG"):
        return
    left_out = [item for item in items if item.get_closest_marker("long")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if not item.get_closest_marker("long")]
