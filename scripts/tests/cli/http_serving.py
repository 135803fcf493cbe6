"""The command at work over HTTP, and clients that know of it what its configuration says."""

import asyncio
import http.client
import json

import httpx2
from cli_bench import report_of
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from serving_bench import Serving, ask, call, initialize

VERSIONS = {"auto": "2026-07-28", "legacy": "2025-11-25"}


class OverHttp(Serving):
    """`serve --http`, once it has said where it is."""

    def __init__(self, root, *words, **options):
        super().__init__(root, *words, "--http", **options)
        self.root = root
        self.clients = []
        (self.config,) = json.loads(self.process.stdout.read())["mcpServers"].values()
        self.port = int(self.config["url"].partition("127.0.0.1:")[2].partition("/")[0])

    def __exit__(self, *_):
        for client in self.clients:
            client.close()
        super().__exit__()

    def ended(self, number=None):
        """Its exit code and what it wrote to standard error; after this signal, if it does not end by itself."""
        if number is not None:
            self.process.send_signal(number)
        code, _, err = self.ends()
        return code, err

    def case(self):
        (case,) = report_of(self.root)["cases"]
        return case

    def talk(self, mode, conversation, callback=None):
        """A conversation of the official SDK's client."""

        async def run():
            async with asyncio.timeout(60), httpx2.AsyncClient(headers=self.config["headers"]) as client:
                transport = streamable_http_client(self.config["url"], http_client=client)
                async with Client(transport, mode=mode, elicitation_callback=callback) as agent:
                    assert agent.protocol_version == VERSIONS[mode]
                    return await conversation(agent)

        return asyncio.run(run())


class Session:
    """A session of the handshake era, spoken by hand."""

    def __init__(self, server, **capabilities):
        self._server = server
        self.id = None
        answer = self.posts(initialize(**capabilities))
        self.id = answer.headers["mcp-session-id"]

    def asks(self, method, body=b""):
        client = http.client.HTTPConnection("127.0.0.1", self._server.port, timeout=60)
        self._server.clients.append(client)
        headers = self._server.config["headers"] | {
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
        }
        client.request(method, "/mcp", body, headers | ({"mcp-session-id": self.id} if self.id else {}))
        return client.getresponse()

    def posts(self, message):
        return self.asks("POST", json.dumps(message).encode())

    def answers(self, method, **params):
        return json.loads(self.posts(ask(1, method, **params)).read())

    def calls(self, name, **arguments):
        """The structured content of a call that asks nothing, if it has any."""
        return json.loads(self.posts(call(1, name, **arguments)).read())["result"].get("structuredContent", {})

    def leaves(self):
        assert self.asks("DELETE").status == 204
