"""Logging: one JSON object a line on standard error, without what people typed."""

from __future__ import annotations

import logging
import sys

import structlog


def configure(level: str) -> None:
    """Ours at `level`. Bolt and the SDK stay at warning: below it they write whole request bodies."""
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
