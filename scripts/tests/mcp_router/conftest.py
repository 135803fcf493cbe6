import pytest

from assisted_benchmark.mcp_router.process import Launcher


@pytest.fixture
def launcher():
    with Launcher() as one:
        yield one
