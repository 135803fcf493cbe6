"""One target under atheris: `python -m fuzzing.guided TARGET FOLDER [libFuzzer's options]`. Does not return."""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["assisted_benchmark"]):
    from fuzzing.targets import TARGETS

if __name__ == "__main__":
    name, *options = sys.argv[1:]
    atheris.Setup([sys.argv[0], *options], TARGETS[name])
    atheris.Fuzz()
