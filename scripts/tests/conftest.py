"""The npm peers: given to the tests that are marked `npm`, which are left out, and said to be, where there are none."""

import depth  # noqa: F401 - it registers the profile `deep`
import pytest
from npm_peers import PEERS, Peers
from setup_peers import is_set_up

_MISSING = "the npm peers are not installed (scripts/peers/install)"


def pytest_addoption(parser):
    parser.addoption("--npm", action="store_true", help="fail unless the npm peers are installed")


def pytest_configure(config):
    if config.getoption("--npm") and not is_set_up(PEERS):
        raise pytest.UsageError(_MISSING)


def pytest_collection_modifyitems(config, items):
    if not is_set_up(PEERS):
        config.hook.pytest_deselected(items=[each for each in items if each.get_closest_marker("npm")])
        items[:] = [each for each in items if not each.get_closest_marker("npm")]


def pytest_terminal_summary(terminalreporter):
    if not is_set_up(PEERS):
        terminalreporter.write_line(f"tests marked `npm` were left out: {_MISSING}")


@pytest.fixture(scope="session")
def peers():
    """For tests marked `npm` alone: anywhere else they would be missed."""
    return Peers()
