"""What driftgate says to people: a code with parameters, turned into text at the very edge."""
