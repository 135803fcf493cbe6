"""What things cost, measured beside peers in one run: `scripts/perf`. Never a test; ratios are what counts."""
