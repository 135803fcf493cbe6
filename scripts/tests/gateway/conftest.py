import pytest
from agent_peers import Agent


@pytest.fixture
def agent():
    """Makes agents that are only pipes, and ends their sessions."""
    made = []

    def make(*tools, **options):
        made.append(Agent(*tools, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()
