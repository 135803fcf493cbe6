"""Fuzzing: the edges where bytes come in, fed with what nobody would send (`scripts/fuzz`)."""
