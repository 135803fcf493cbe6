"""An offline policy-and-dispatch test harness for agents that call MCP tools.

    from assisted_benchmark import RunPlan, discover, new_run_directory, run, select

This is the door; what is not in `__all__` may change without notice. Names are imported when they
are first used, because servers under test and `--version` pass through here too and must start at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from assisted_benchmark.kernel.errors import HarnessError
    from assisted_benchmark.kernel.reasons import Reason
    from assisted_benchmark.suite.result import CaseResult, RunResult, Verdict
    from assisted_benchmark.suite.runner import RunPlan, discover, new_run_directory, run, select, verify_run

__all__ = [
    "CaseResult",
    "HarnessError",
    "Reason",
    "RunPlan",
    "RunResult",
    "Verdict",
    "discover",
    "new_run_directory",
    "run",
    "select",
    "verify_run",
]

_HOMES: Final = {
    "HarnessError": "kernel.errors",
    "Reason": "kernel.reasons",
    "CaseResult": "suite.result",
    "RunResult": "suite.result",
    "Verdict": "suite.result",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES.get(name, 'suite.runner')}"), name)
