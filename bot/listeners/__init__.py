"""What Slack can send, one module per surface. A listener acknowledges and hands the work to the desk."""

from __future__ import annotations

from slack_bolt import App

from bot.desk import Desk
from bot.listeners import command, decisions, forms, home, links, mention, presses
from bot.replies import Replies


def register(app: App, desk: Desk, replies: Replies) -> None:
    for surface in (command, presses, forms, decisions, mention, home, links):
        surface.register(app, desk, replies)
