"""GPUs, models, aliases, prices: tables, packaged facts, name resolution, hf_config → Architecture."""
