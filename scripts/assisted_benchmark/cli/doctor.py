"""`doctor`: whether this machine can run the suite, and what it cannot guarantee."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from attrs import asdict, frozen

from assisted_benchmark.cli import exits
from assisted_benchmark.cli.place import root_of
from assisted_benchmark.kernel.errors import HarnessError


@frozen
class Finding:
    """One thing looked at. `ok` is None where it is only worth knowing."""

    what: str
    ok: bool | None
    detail: str


def command(arguments: argparse.Namespace) -> int:
    """Look at everything; exit 3 if a run could not work here."""
    findings = [check(arguments) for check in _CHECKS]
    if arguments.json:
        print(json.dumps([asdict(each) for each in findings], indent=1))
    else:
        for each in findings:
            mark = "ok  " if each.ok else "note" if each.ok is None else "BAD "
            print(f"{mark}  {each.what}: {each.detail}")
    return exits.COULD_NOT_RUN if any(each.ok is False for each in findings) else exits.OK


def _python(_: argparse.Namespace) -> Finding:
    return Finding("python", sys.version_info >= (3, 11), f"{platform.python_version()} on {platform.system()}")


def _libraries(_: argparse.Namespace) -> Finding:
    missing = []
    for name in ("attr", "orjson", "rfc8785", "yaml", "apsw", "jsonschema_rs", "shtab"):
        try:
            import_module(name)
        except ImportError:
            missing.append(name)
    return Finding("libraries", not missing, f"missing: {', '.join(missing)}" if missing else "all there")


def _libyaml(_: argparse.Namespace) -> Finding:
    import yaml

    return Finding(
        "libyaml", bool(yaml.__with_libyaml__), "the fast YAML reader" if yaml.__with_libyaml__ else "missing"
    )


def _sqlite(_: argparse.Namespace) -> Finding:
    import apsw

    from assisted_benchmark.ledger.store import require_safe_version

    version = apsw.sqlite_lib_version()
    try:
        require_safe_version(version)
    except HarnessError as error:
        return Finding("sqlite", False, str(error))
    return Finding("sqlite", True, version)


def _root(arguments: argparse.Namespace) -> Finding:
    try:
        root = root_of(arguments)
        with tempfile.TemporaryDirectory(dir=root):
            pass
    except HarnessError as error:
        return Finding("root", False, error.detail)
    except OSError as error:
        return Finding("root", False, f"cannot be written: {error.strerror}; runs/ is made there")
    return Finding("root", True, str(root))


def _files(arguments: argparse.Namespace) -> Finding:
    from assisted_benchmark.suite.runner import discover

    try:
        cases = discover(root_of(arguments))
    except HarnessError as error:
        return Finding("fixtures", False, f"{error.detail}; `lint` shows everything")
    return Finding("fixtures", bool(cases), f"{len(cases)} cases")


def _cores(_: argparse.Namespace) -> Finding:
    return Finding("cores", None, f"{os.cpu_count()}; `-j 0` uses all")


def _isolation(_: argparse.Namespace) -> Finding:
    return Finding("isolation", None, "none: agent, servers and harness share this user, so key files could be read")


def _network(_: argparse.Namespace) -> Finding:
    namespaces = shutil.which("unshare") is not None and Path("/proc/self/ns/net").exists()
    return Finding(
        "network",
        None,
        "`unshare --net` is here, so the suite can run without any network"
        if namespaces
        else "no network namespaces here; `run --offline` guards this process only",
    )


_CHECKS: tuple[Callable[[argparse.Namespace], Finding], ...] = (
    _python,
    _libraries,
    _libyaml,
    _sqlite,
    _root,
    _files,
    _cores,
    _isolation,
    _network,
)
