"""Scenarios become cases, cases are run and scored."""
