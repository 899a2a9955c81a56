"""Helpers for gdb on the Faultline kernel; `make gdb` loads them. The commands are in tools/gdb/fl/."""

import os
import sys

import gdb

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import fl  # noqa: E402,F401

gdb.write("""\
fl user PROGRAM   its symbols             fl stop-at fault|retry|wait|readahead|sigbus [for PROG]
fl fault          the fault in hand       fl step-fault     on to its next phase
fl tasks, fl bt TASK, fl locks            fl vmas, fl pte ADDR, fl page PFN|ADDR
fl cache FILE, fl readahead FILE          fl disk, fl trace   (help fl says more)
in a recording:   fl last-fault           fl who-wrote ADDR|EXPR
""")
