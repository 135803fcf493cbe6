"""The mark that ties a test to the numbered promises it proves."""

import pytest

promise = pytest.mark.promise
