"""The engine judged against measured runs: cases with sources, the score, the intervals that follow from it."""
