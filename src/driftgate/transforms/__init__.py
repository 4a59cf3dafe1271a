"""One generator of feeds for every stage: images in, tensors out; pure, and the same bytes each time."""
