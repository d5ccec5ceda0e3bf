"""The question as people and programs ask it: one vocabulary, read from text or JSON into a `SizingRequest`."""
