"""A Hugging Face config.json → Architecture, for the families of the catalogue.

`read` is the one door. Absent keys have the defaults of the classes of transformers 5.24 (`defaults.py`); each family
is one function in one of the modules beside this one.
"""

from service.catalog.hf_config.read import Reading, read, supported_model_types

__all__ = ["Reading", "read", "supported_model_types"]
