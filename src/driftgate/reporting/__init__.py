"""Reports: what judgement and facts say, written for people and for other programs; nothing is decided here."""
