"""Policies, sealed grants, one-shot choice groups, and the live broker that decides."""
