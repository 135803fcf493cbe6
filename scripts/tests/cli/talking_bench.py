"""A root with the talking server, which asks, tells its progress and hangs; and what that server noted."""

import sys
from pathlib import Path

from pin_bench import a_root, fill_in, pinned

from assisted_benchmark.suite.lint import write_pins

PEER = Path(__file__).parent / "peers" / "talking_server.py"
POLICY = """\
schema: assisted-benchmark/policy@1
id: talking
contract: talking.contract.yaml
expires_after: 120s
steps:
"""
SCENARIO = "schema: assisted-benchmark/scenario@1\nid: talking\npolicy: talking\nagent: plan\nservers: process\n"


def talking_root(folder, *calls, legacy=False):
    """A root in `folder` whose case `live/talking` authorises these calls in order. The server may ask with forms."""
    root = a_root(folder / "root")
    words = [sys.executable, str(PEER), str(folder), *(["legacy"] if legacy else [])]
    assert pinned(root, "talking", words, "--unpinned", "--capability", "elicitation") == 0
    fill_in(root, "talking", "act")
    (root / "contracts" / "talking.policy.yaml").write_text(
        POLICY + "".join(f"  - call: {{server: talking, {call}}}\n" for call in calls)
    )
    (root / "fixtures" / "live" / "talking.scenario.yaml").write_text(SCENARIO)
    write_pins(root)
    return root


def noted(root):
    """What reached the server, in order."""
    return (root.parent / "noted").read_text().splitlines()
