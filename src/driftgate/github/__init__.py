"""GitHub, GitHub Enterprise Server and Gitea: what a run knows of itself, and the comment on its pull request."""
