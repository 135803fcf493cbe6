"""Verbs and flags. Nothing heavy is imported here: `--help` and `--version` answer at once."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from assisted_benchmark.cli.pin_arguments import DRIFT_EXAMPLES, PIN_EXAMPLES, add_drift, add_pin

PROGRAM = "assisted-benchmark"

_EXAMPLES = {
    "run": """examples:
  assisted-benchmark run                          every case below fixtures/
  assisted-benchmark run -k approve -j 2          the cases whose id has `approve`, on two cores
  assisted-benchmark run live/approve-once/plain  one case
  assisted-benchmark run --failed                 what did not pass last time
  assisted-benchmark run --repeat 3 --expect-identical
  assisted-benchmark run --shard 2/5              a fifth of the cases, always the same ones
  assisted-benchmark run --resume runs/0007       go on with a run that was killed""",
    "list": """example:
  assisted-benchmark list --tag real --json""",
    "explain": """example:
  assisted-benchmark explain live/approve-once/other-task""",
    "lint": """examples:
  assisted-benchmark lint                         every contract, policy and fixture
  assisted-benchmark lint --write-pins            after a policy was changed on purpose""",
    "verify": """examples:
  assisted-benchmark verify                       the receipts of the latest run
  assisted-benchmark verify runs/0007""",
    "serve": """examples:
  assisted-benchmark serve live/approve-once/plain                               a client plays the case
  assisted-benchmark serve live/approve-once/plain --print-config                for the client's mcpServers
  assisted-benchmark serve live/approve-once/plain --http                        over HTTP on this machine
  assisted-benchmark serve --changes fabric --offline-endpoint --toolsets connectivity,mutate
  assisted-benchmark serve --changes fabric --origin https://api.equinix.com --toolsets mutate --ledger ~/changes
  assisted-benchmark serve --changes fabric --offline-endpoint --print-config    for the client's mcpServers
  assisted-benchmark serve --registry pulp --offline-host --eligible observe --toolsets observe,control
environment:
  ASSISTED_BENCHMARK_BEARER                       the token that the endpoint at --origin wants
  ASSISTED_BENCHMARK_AGENT_BEARER                 the secret that clients bring with --http (default: a new one)
  EQUINIX_MCP_ALLOW_UNCONFIRMED_MUTATIONS=true    lets clients that cannot ask a person confirm unasked""",
    "record": """examples:
  assisted-benchmark record live/approve-once/plain -o fixtures/recorded/mine.scenario.yaml      serves, as `serve`
  assisted-benchmark record live/approve-once/plain -o fixtures/recorded/mine.scenario.yaml -- ./my-agent {config}
  assisted-benchmark record live/a-program/plays-the-plan -o fixtures/recorded/mine.scenario.yaml    its own program""",
    "replay": """examples:
  assisted-benchmark replay fixtures/recorded/mine.scenario.yaml
  assisted-benchmark replay runs/0001 live/approve-once/plain""",
    "new": """examples:
  assisted-benchmark new late-click --policy ui-decision --candidate approve
  assisted-benchmark new one-network --policy fabric --candidate network    of a change contract
  assisted-benchmark new one-read --policy pulp --candidate state/read      of a registry
  assisted-benchmark new --from agent.jsonl --contract real-time -o sealed  a transcript's calls, sealed""",
    "merge": """example:
  assisted-benchmark merge runs/0001 runs/0002    one report of the shards 1/2 and 2/2""",
    "pin": PIN_EXAMPLES,
    "drift": DRIFT_EXAMPLES,
    "attack": """examples:
  assisted-benchmark attack                       one good case of each broker and policy, every single mutation
  assisted-benchmark attack --all --pairs 100     every good case, and 100 pairs of mutations of each call
  assisted-benchmark attack live/approve-once/plain --pairs --write-failures found
  assisted-benchmark attack --broker mutation --threat B05 --seed 7
  assisted-benchmark attack --all --benign --json""",
    "matrix": """examples:
  assisted-benchmark matrix                       every guard of every broker, taken away in turn
  assisted-benchmark matrix --json""",
    "doctor": """example:
  assisted-benchmark doctor""",
    "completion": """example:
  assisted-benchmark completion bash > ~/.local/share/bash-completion/completions/assisted-benchmark""",
}


def whole(least: int) -> Callable[[str], int]:
    """An argument type: a whole number of at least `least`."""

    def number(text: str) -> int:
        if not text.isascii() or not text.isdigit() or len(text) > 15 or int(text) < least:
            raise argparse.ArgumentTypeError(f"`{text:.40}` is not a whole number of at least {least}")
        return int(text)

    return number


def port(text: str) -> int:
    """An argument type: a port's number, or 0 for any that is free."""
    number = whole(0)(text)
    if number > 65535:
        raise argparse.ArgumentTypeError(f"`{number}` is not the number of a port")
    return number


def duration(text: str) -> str:
    """An argument type: a duration such as `60s` or `5m`."""
    if re.fullmatch(r"[1-9][0-9]{0,8}(ms|s|m|h)", text, re.ASCII) is None:
        raise argparse.ArgumentTypeError(f"`{text:.40}` is no duration such as `60s` or `5m`")
    return text


def part(text: str) -> tuple[int, int]:
    """An argument type: `N/M`, the N-th of M parts."""
    number, _, of = text.partition("/")
    counted = whole(1)
    found = counted(number), counted(of)
    if found[0] > found[1]:
        raise argparse.ArgumentTypeError(f"there is no part {found[0]} of {found[1]}")
    return found


def parsed(argv: Sequence[str] | None) -> argparse.Namespace:
    """The arguments; what stands behind `--` of `record` is a client's command line, and none of ours."""
    words = list(sys.argv[1:] if argv is None else argv)
    at = words.index("--") if words[:1] == ["record"] and "--" in words else len(words)
    return parser().parse_args(words[:at], argparse.Namespace(client=words[at + 1 :]))


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = argparse.ArgumentParser(
        prog=PROGRAM, description="An offline policy-and-dispatch test harness for agents that call MCP tools."
    )
    top.add_argument("--version", action="store_true", help="print the version and stop")
    verbs = top.add_subparsers(dest="verb", metavar="VERB")

    run = _verb(verbs, "run", "run cases, score and report them")
    _selection(run)
    run.add_argument("--failed", action="store_true", help="only the cases that did not pass in the latest run")
    run.add_argument("--seed", type=whole(0), metavar="N", help="the seed of ids and nonces (default 0)")
    run.add_argument(
        "-j", "--jobs", type=whole(0), default=1, metavar="N", help="processes; 0 is one a core (default 1)"
    )
    run.add_argument("--maxfail", type=whole(0), default=0, metavar="N", help="stop after N cases that did not pass")
    run.add_argument("--durability", choices=("memory", "process", "power"), help="of the ledger (default process)")
    run.add_argument("--servers", choices=("in_process", "process"), help="override every scenario's own choice")
    run.add_argument("--repeat", type=whole(1), metavar="N", help="run every case N times")
    run.add_argument("--expect-identical", action="store_true", help="fail cases whose receipts differ between repeats")
    run.add_argument("--shard", type=part, metavar="N/M", help="only the N-th of M parts, told apart by case id")
    run.add_argument("--offline", action="store_true", help="fail the run on any connect beyond loopback")
    run.add_argument("--resume", type=Path, metavar="DIR", help="go on with a run that was interrupted or killed")
    _json(run)

    listing = _verb(verbs, "list", "list the cases")
    _selection(listing)
    _json(listing)

    explain = _verb(verbs, "explain", "why each check of a case said what it said")
    explain.add_argument("case", metavar="CASE", help="the case's id, as `list` shows it")
    explain.add_argument("--seed", type=whole(0), default=0, metavar="N", help="as for `run`")
    _root(explain)
    _json(explain)

    lint = _verb(verbs, "lint", "check contracts, policies, pins and fixtures without running anything")
    lint.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="files or folders (default: all)")
    lint.add_argument("--write-pins", action="store_true", help="write contracts/pins.yaml anew from what is there")
    _root(lint)
    _json(lint)

    verify = _verb(verbs, "verify", "verify the receipts of a run")
    verify.add_argument(
        "directory", nargs="?", type=Path, metavar="RUN", help="the run's directory (default: the latest)"
    )
    _root(verify)
    _json(verify)

    merge = _verb(verbs, "merge", "join the runs of several shards to one")
    merge.add_argument("directories", nargs="+", type=Path, metavar="RUN", help="the runs' directories")
    _root(merge)
    _json(merge)

    serve = _verb(verbs, "serve", "serve a scenario, an API's changes or a registry's operations to an MCP client")
    kind = serve.add_mutually_exclusive_group(required=True)
    kind.add_argument("scenario", nargs="?", metavar="SCENARIO|CASE", help="the case that the client plays")
    kind.add_argument("--changes", metavar="ID", help="the change contract (contracts/*.changes.yaml)")
    kind.add_argument("--registry", metavar="ID", help="the registry (contracts/*.registry.yaml)")
    where = serve.add_mutually_exclusive_group()
    where.add_argument("--origin", metavar="URL", help="where the changes go: https://HOST, or this machine by http")
    where.add_argument("--offline-endpoint", action="store_true", help="one in this process, to try it out")
    where.add_argument("--host-socket", type=Path, metavar="PATH", help="where the host of live instances listens")
    where.add_argument("--offline-host", action="store_true", help="one in this process, to try it out")
    serve.add_argument("--eligible", metavar="NAMES", help="the registry's profiles and operations that may be used")
    serve.add_argument("--standing", metavar="NAMES", help="those that you consent to now, without being asked")
    serve.add_argument("--toolsets", metavar="SETS", help="such as `design,mutate` (default: those that only read)")
    serve.add_argument("--ledger", type=Path, metavar="DIR", help="keep what was done there (default: memory)")
    serve.add_argument("--visibility", choices=("all", "open"), help="the scenario's tools that the client is shown")
    serve.add_argument("--seed", type=whole(0), metavar="N", help="the seed of a scenario's ids and nonces (default 0)")
    serve.add_argument(
        "--durability", choices=("memory", "process", "power"), help="of a scenario's ledger (default process)"
    )
    serve.add_argument("--http", action="store_true", help="over HTTP on this machine, instead of standard input")
    serve.add_argument("--port", type=port, metavar="N", help="the port of --http (default: any that is free)")
    serve.add_argument("--print-config", action="store_true", help="print what an MCP client needs to know, and stop")
    _root(serve)

    record = _verb(verbs, "record", "turn a client's live session into a scenario that can be replayed")
    record.add_argument(
        "scenario",
        metavar="SCENARIO|CASE",
        help="the case that the client plays; behind `--`, last, the client's program and its arguments",
    )
    record.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="a new NAME.scenario.yaml")
    record.add_argument(
        "--environment", action="append", default=[], metavar="NAME", help="a variable that the client gets of yours"
    )
    record.add_argument("--within", type=duration, metavar="TIME", help="how long it may take (60s)")
    _root(record)

    replay = _verb(verbs, "replay", "run a recorded case again: its receipts must be the same")
    replay.add_argument("what", type=Path, metavar="FILE|RUN", help="a recorded scenario, or a run's directory")
    replay.add_argument("case", nargs="?", metavar="CASE", help="the case's id; a run needs one")
    _root(replay)
    _json(replay)

    new = _verb(verbs, "new", "write a new scenario to start from")
    new.add_argument("id", nargs="?", metavar="ID", help="lower-case words joined by `-`; names the file")
    new.add_argument(
        "--policy", metavar="ID", help="the policy, change contract or registry it runs under (default: the only one)"
    )
    new.add_argument(
        "--candidate",
        metavar="NAME",
        help="the candidate, change type or operation that its agent chooses (default: the first)",
    )
    new.add_argument(
        "--from",
        dest="transcript",
        type=Path,
        metavar="TRANSCRIPT",
        help="seal, play and attack its calls",
    )
    new.add_argument("--contract", metavar="ID|FILE", help="the contract that the transcript's tools are of")
    new.add_argument("--sample", metavar="ID", help="which sample of an Inspect log that has several")
    new.add_argument("-o", "--output", type=Path, metavar="DIR", help="a folder for all of it (default: here)")
    _root(new)

    pin = _verb(verbs, "pin", "write a contract from a live server")
    add_pin(pin)
    _root(pin)

    drift = _verb(verbs, "drift", "compare pinned servers with what they are now")
    add_drift(drift)
    _root(drift)
    _json(drift)

    matrix = _verb(verbs, "matrix", "measure what the cases notice: brokers that lack a check, servers that lie")
    page = matrix.add_mutually_exclusive_group()
    page.add_argument("--write", type=Path, metavar="PAGE", help="write the whole matrix there, as a page")
    page.add_argument("--check", type=Path, metavar="PAGE", help="fail if that page is not what came out")
    _root(matrix)
    _json(matrix)

    attack = _verb(verbs, "attack", "try what must be refused, and what must not, from the good calls of cases")
    _selection(attack)
    attack.add_argument("--all", action="store_true", help="every good case, the documents and the receipts")
    attack.add_argument("--broker", choices=("live", "mutation", "capability"), help="only cases of this broker")
    attack.add_argument(
        "--pairs", type=whole(1), nargs="?", const=0, metavar="N", help="two mutations at once, too: N a call, or all"
    )
    attack.add_argument("--threat", action="append", default=[], metavar="ID", help="only this threat, such as C24")
    attack.add_argument("--benign", action="store_true", help="only what must not be refused")
    attack.add_argument("--seed", type=whole(0), default=0, metavar="N", help="chooses among many variants (default 0)")
    attack.add_argument(
        "--ledger", choices=("memory", "sqlite"), default="memory", help="where it is kept (default memory)"
    )
    attack.add_argument("--write-failures", type=Path, metavar="DIR", help="write what fails there, as scenarios")
    _json(attack)

    doctor = _verb(verbs, "doctor", "say whether this machine can run the suite")
    _root(doctor)
    _json(doctor)

    completion = _verb(verbs, "completion", "print shell completion")
    completion.add_argument("shell", choices=("bash", "zsh", "tcsh"))
    return top


def _verb(verbs: argparse._SubParsersAction[argparse.ArgumentParser], name: str, text: str) -> argparse.ArgumentParser:
    return verbs.add_parser(
        name,
        help=text,
        description=text[0].upper() + text[1:] + ".",
        epilog=_EXAMPLES[name],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def _selection(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("what", nargs="*", metavar="PATH|CASE", help="fixture files, folders or case ids (default: all)")
    verb.add_argument("-k", default="", metavar="WORDS", help="only cases whose id, file or tags have every word")
    verb.add_argument("-t", "--tag", action="append", default=[], metavar="TAG", help="only cases with every TAG")
    _root(verb)


def _root(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--root", type=Path, metavar="DIR", help="the folder of contracts/ and fixtures/ (default: found)"
    )


def _json(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--json", action="store_true", help="machine-readable output on standard output")
