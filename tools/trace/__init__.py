"""Trace events into pages to look at: see __main__.py."""
