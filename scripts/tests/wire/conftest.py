import pytest
from wire_peers import Pipes, Process


@pytest.fixture
def pipes():
    """Makes servers that are only pipes, and closes them."""
    made = []

    def make(*answers, **options):
        made.append(Pipes(*answers, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def process():
    """Starts real server processes, and ends them."""
    made = []

    def make(peer, *args, **options):
        made.append(Process(peer, *args, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()
