"""Prints the tables that the tests of localisation recorded, also where they ran in other processes."""

from __future__ import annotations

import pytest

TABLE = "table"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for outcome in ("passed", "failed"):
        for report in terminalreporter.getreports(outcome):
            for name, text in getattr(report, "user_properties", ()):
                if name == TABLE:
                    terminalreporter.section(report.nodeid.rpartition("::")[2])
                    terminalreporter.line(text)
