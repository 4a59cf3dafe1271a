"""Scripts that run under foreign interpreters; nothing here is imported by driftgate itself."""
