"""The flags of `pin` and `drift`. Nothing heavy is imported here."""

from __future__ import annotations

import argparse

PIN_EXAMPLES = """examples:
  assisted-benchmark pin time -- '{python}' -P -m mcp_server_time
  assisted-benchmark pin files --yes -- node node_modules/@modelcontextprotocol/server-filesystem/dist/index.js /tmp
  assisted-benchmark pin there --url https://mcp.example/mcp --header authorization=MCP_TOKEN
  assisted-benchmark pin time --yes --effect get_current_time=observe -- '{python}' -P -m mcp_server_time"""
DRIFT_EXAMPLES = """examples:
  assisted-benchmark drift                        every server of every contract
  assisted-benchmark drift real-time --json       those of one contract
exit codes: 0 nothing changed, 4 something did, 3 a server could not be looked at"""


def add_pin(verb: argparse.ArgumentParser) -> None:
    """What is pinned, and what is known of its closure."""
    verb.add_argument("id", metavar="ID", help="the contract's id; names the file in contracts/")
    words = verb.add_argument(
        "words", nargs="+", default=(), metavar="-- PROGRAM ARG", help="what starts the server over standard streams"
    )
    words.required = False  # not `*`, which would be taken as none by the first flag after ID
    verb.add_argument("--url", metavar="URL", help="instead: where the server is that others run, over Streamable HTTP")
    verb.add_argument(
        "--tls-sha256", metavar="HEX", help="the one certificate that is taken (default: whom this machine trusts)"
    )
    verb.add_argument("--server", metavar="NAME", help="the server's id in the contract (default: ID)")
    verb.add_argument("--yes", action="store_true", help="start or ask it without asking you")
    verb.add_argument(
        "--force", action="store_true", help="replace the contract; what is said of unchanged tools stays"
    )
    verb.add_argument("--cwd", metavar="DIR", help="where it works (default: a fresh folder each time)")
    verb.add_argument(
        "--unpinned", action="store_true", help="say that not all that it runs is pinned (in each report)"
    )
    for flag, metavar, text in (
        ("--env", "NAME[=VALUE]", "a variable that it gets (it inherits none), by default with its value here"),
        ("--header", "NAME=VARIABLE", "a header for a server at --url, with the value of that environment variable"),
        ("--effect", "TOOL=EFFECT", "what a tool does: observe, act, plan_only or external"),
        ("--capability", "NAME[=JSON]", "a client capability that is declared to it, such as `elicitation`"),
        ("--package", "NAME", "a Python package that it imports (what `-m` needs is found by itself)"),
        ("--file", "PATH", "a file that it runs or reads; it gets a private copy"),
        ("--in-place", "PATH", "a folder or program that it uses where it stands"),
    ):
        verb.add_argument(flag, action="append", default=[], metavar=metavar, help=f"{text}; may be repeated")


def add_drift(verb: argparse.ArgumentParser) -> None:
    """Which contracts."""
    verb.add_argument("contracts", nargs="*", metavar="CONTRACT", help="ids or files of contracts (default: all)")
