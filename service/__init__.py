"""trainmem: what a training run needs before anyone queues for a GPU."""

from importlib.metadata import version

__version__ = version("trainmem")
