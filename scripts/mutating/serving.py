"""What runs in the work directory: `python -m mutating.serving STAGE`, told everything by `stage.json` there."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from mutating import cold
from mutating.hot import HotServer
from mutating.reach import Recorder

_PLAIN = ["-q", "-s", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:cov"]


class SameExamples:
    """A plugin of pytest: a law is tried on the same examples each time, and a failure of it is not made small."""

    def pytest_configure(self) -> None:
        from hypothesis import Phase, settings

        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("mutants", derandomize=True, database=None, deadline=None, phases=phases)
        settings.load_profile("mutants")


def main(stage: str, work: Path, number: str) -> int:
    """Run one stage to its end."""
    told = json.loads((work / f"{stage}{number}.json").read_bytes())
    if stage == "cold":
        cold.serve(work, told["jobs"])
        return 0
    package = work / "tree" / "scripts" / "assisted_benchmark"
    plugin: object = (
        Recorder(package, told["rooms"], told["records"])
        if stage == "reach"
        else HotServer(work, package, told["jobs"])
    )
    return int(pytest.main([*_PLAIN, *told["files"]], plugins=[SameExamples(), plugin]))


if __name__ == "__main__":
    code = main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # threads that a test left do not keep it
