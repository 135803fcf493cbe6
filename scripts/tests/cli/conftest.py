import shutil

import pytest
from cli_bench import ROOT
from serving_bench import Serving


@pytest.fixture
def root(tmp_path):
    """The real contracts, and no fixtures."""
    shutil.copytree(ROOT / "contracts", tmp_path / "contracts")
    (tmp_path / "fixtures").mkdir()
    return tmp_path


@pytest.fixture
def serving(root):
    made = []

    def make(*words, **environment):
        made.append(Serving(root, *words, **environment))
        return made[-1]

    yield make
    for each in made:
        each.__exit__()
