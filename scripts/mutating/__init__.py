"""Mutation testing: the package with one small fault at a time, and whether any test notices (`scripts/mutants`)."""
