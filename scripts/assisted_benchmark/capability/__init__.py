"""A frozen registry projected as typed tools; every operation under a grant, ending in one durable receipt."""
