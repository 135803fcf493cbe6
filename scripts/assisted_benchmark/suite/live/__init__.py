"""The live broker's own part of the suite: its scenarios, worlds, faults and scores."""
