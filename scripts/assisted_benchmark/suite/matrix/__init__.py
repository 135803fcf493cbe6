"""What the shipped cases are worth: brokers that lack one guard each, and servers that lie about one call each."""
