import pytest
from agent_peers import Agent
from http_peers import Place


def closing(make):
    """What a fixture yields: makes such things for a test, and closes them after it."""
    made = []

    def one(*given, **options):
        made.append(make(*given, **options))
        return made[-1]

    yield one
    for each in made:
        each.close()


@pytest.fixture
def agent():
    """Makes agents that are only pipes, and ends their sessions."""
    yield from closing(Agent)


@pytest.fixture
def place():
    """Makes gateways over HTTP, and ends them."""
    yield from closing(Place)
