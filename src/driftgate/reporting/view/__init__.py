"""What the reports show, prepared: small frozen rows of ready strings and messages, without escaping."""
