"""Propose, dry run, a person confirms: the only way to a change at an endpoint."""
