"""Click groups whose modules are imported when they are used, so that `trainmem size` starts without a database."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click


class LazyCommand(click.Group):
    """A command that is `attribute` of `module`. Until it is run or its help is asked for, it is a name and a line."""

    def __init__(self, name: str, module: str, attribute: str, short_help: str) -> None:
        super().__init__(name, short_help=short_help, add_help_option=False)
        self._module, self._attribute = module, attribute

    def _real(self) -> click.Command:
        found: click.Command = getattr(import_module(self._module), self._attribute)
        return found

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> click.Context:
        return self._real().make_context(info_name, args, parent=parent, **extra)

    def list_commands(self, ctx: click.Context) -> list[str]:
        real = self._real()
        return real.list_commands(ctx) if isinstance(real, click.Group) else []

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        real = self._real()
        return real.get_command(ctx, cmd_name) if isinstance(real, click.Group) else None


OPERATING = (
    LazyCommand("audit", "service.commands.audit", "audit", "Sign, verify, export and look after the audit."),
    LazyCommand("keeper", "service.commands.audit", "keep", "Sign the audit every few minutes."),
    LazyCommand("token", "service.commands.token", "token", "Give out and revoke API tokens."),
)


def add_to(cli: click.Group) -> None:
    """Put the operators' commands into `cli`."""
    for command in OPERATING:
        cli.add_command(command)
