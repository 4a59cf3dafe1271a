"""Finding the first node that stopped behaving like its counterpart, bounded in memory."""
