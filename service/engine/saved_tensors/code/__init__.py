"""Modelling code written down as programs: one module per family, one entry per model_type in `registry`."""
