"""What must never be shown: secrets, tokens, passwords, addresses; and the text without them."""
