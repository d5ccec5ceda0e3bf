"""A model of torch's autograd that computes no number: which storages exist, who keeps them, when they die.

Modelling code is written down as programs over symbolic tensors (`service.engine.saved_tensors.code`). Running one
records what every operation saves for backward, as torch 2.13's derivatives.yaml has it, and then runs backward in the
engine's order. What stays at the end of forward is the saved set; the fullest instants on the way are the peaks.
"""
