"""The capability broker in the suite: scenarios of operations, what they are played with, and what they come to."""
