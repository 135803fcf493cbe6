"""The mutation broker's own part of the suite: proposals, confirmations, the person who is asked, the endpoint."""
