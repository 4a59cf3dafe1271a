"""Whatever runs an artifact: one backend a kind of artifact, found by name in the registry."""
