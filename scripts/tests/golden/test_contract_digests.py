"""Digests of contracts, pinned as literals: a change of framing or of a default would pass every other test."""

from marks import promise

from assisted_benchmark.contract.model import LEGACY, SERVER_SET, Contract, Effect, Launch, Server, Tool, tools_digest
from assisted_benchmark.kernel.canonical import Canonical

READ = {"name": "read", "inputSchema": {"type": "object"}}
CLICK = {"name": "click", "inputSchema": {"type": "object", "maxProperties": 1}, "x": [1, None, "é"]}
SERVER = Server(
    id="ui",
    launch=Launch(argv=("{python}", "-m", "ui")),
    tools=(
        Tool(effect=Effect.OBSERVE, definition=Canonical.of(READ)),
        Tool(effect=Effect.ACT, definition=Canonical.of(CLICK), sensitive=("/pin",)),
    ),
)


@promise("L1", "W12")
def test_digests_are_those_of_the_first_release():
    assert {
        "tools": tools_digest([READ, CLICK]),
        "server": SERVER.digest,
        "set": Contract(schema=SERVER_SET, id="one", servers=(SERVER,)).digest,
        "legacy": Contract(schema=LEGACY, id="one", servers=(SERVER,)).digest,
    } == {
        "tools": "sha256:1562900be0659ecdacc5cc23569fbdbd25251ca5ba7b58dc32cd1cdeb3f10317",
        "server": "sha256:6cfea15d05d3f621963740cd014b4963cd6c1d4443d03e3acc68d6396036d14b",
        "set": "sha256:504b88e2f87d967cca17e1fd4d622b88dab1a39f3e7ccab642d631d6bf5ebd8a",
        "legacy": "sha256:ba7754d51f51d5657606b18d3edb8e722d08242a4dba6cd6788325141d07bcad",
    }
