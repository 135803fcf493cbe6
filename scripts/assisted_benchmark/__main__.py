"""`python -m assisted_benchmark` is the `assisted-benchmark` command."""

import sys

from assisted_benchmark.cli.main import main

sys.exit(main())
