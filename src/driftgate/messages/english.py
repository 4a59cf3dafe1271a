"""The English catalogue: one sentence a code. `{name}` is a parameter, quoted for the format it goes into."""

ENGLISH: dict[str, str] = {
    # --- merging shards
    "merge-plans": "the shards belong to different plans: {digests}; give shards of one plan only",
    "merge-conflict": "two shards disagree about {fact} {key}; run one of the two legs again",
    # --- backends and workers
    # --- samples and files
    # --- settings
    # --- judgement
    # --- reports
    # --- commands
}
