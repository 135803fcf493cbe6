"""Every file under a root checked, nothing run; and the pins written anew when they are meant to change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from assisted_benchmark.contract.files import name_below, read
from assisted_benchmark.contract.model import Server
from assisted_benchmark.contract.pins import Pins, pins_text
from assisted_benchmark.contract.strict_yaml import load
from assisted_benchmark.kernel.errors import DocumentError, Problem
from assisted_benchmark.kernel.text import shown
from assisted_benchmark.mcp_router.identity import Artifacts
from assisted_benchmark.mcp_router.launch import faults
from assisted_benchmark.suite.catalogue import PINS_FILE, Catalogue, Gathered
from assisted_benchmark.suite.in_process import cassette_of
from assisted_benchmark.workloads.recorded import load as load_cassette


def lint(root: Path, paths: Sequence[Path] = ()) -> list[Problem]:
    """Everything that is wrong, in file order: contracts, policies, pins, and the scenarios in `paths` (else all).

    Pins that cannot be read come first, since nothing is trusted without them.
    """
    gathered = Gathered(root, paths or [root / "fixtures"])
    catalogue = gathered.catalogue
    problems = dict.fromkeys(
        [  # contracts may share a cassette
            *gathered.problems,
            *catalogue.pin_problems(sorted(catalogue.policies)),
            *catalogue.stray_pins(),
            *_launch_problems(catalogue),
        ]
    )
    first = PINS_FILE if catalogue.pins is None else ""
    return sorted(problems, key=lambda each: (each.file != first, each.file, each.line, each.column))


def write_pins(root: Path) -> Path:
    """Pin every contract and policy as it is now. Who runs this says that the change was meant.

    Raises:
        DocumentError: a contract or policy is wrong, or the pins that stand there cannot be read: nothing is written.
    """
    catalogue = Catalogue(root)
    if catalogue.problems:
        raise DocumentError(catalogue.problems)
    pins = Pins(
        {name: each.digest for name, each in catalogue.contracts.items()},
        {name: each.digest for name, each in catalogue.policies.items()},
    )
    path = root / PINS_FILE
    # Whole or not at all, and never through a link to somewhere else.
    part = path.with_name(f"{path.name}.part")
    part.write_text(pins_text(pins), encoding="utf-8")
    part.replace(path)
    return path


def _launch_problems(catalogue: Catalogue) -> Iterator[Problem]:
    """What this machine's files contradict in the contracts' launches, at the key that says otherwise."""
    artifacts = Artifacts()
    for name, contract in catalogue.contracts.items():
        path = catalogue.files[name]
        document = load(read(path, catalogue.root), name_below(path, catalogue.root))
        for server in contract.servers:
            place = ("server",) if contract.legacy else ("servers", server.id)
            for where, error in faults(server.launch, path.parent, artifacts):
                yield document.problem(error.reason, (*place, "launch", *where), error.detail, at_key=True)
            yield from _cassette_problems(server, path.parent, catalogue.root)


def _cassette_problems(server: Server, folder: Path, root: Path) -> Iterator[Problem]:
    cassette = cassette_of(server, str(folder.absolute()))
    if cassette is not None:
        try:
            load_cassette(cassette)
        except DocumentError as error:
            yield from (each._replace(file=shown(name_below(cassette, root))) for each in error.problems)
