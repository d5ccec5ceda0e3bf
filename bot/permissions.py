"""The permissions that the bot asks a workspace for, and what each is used for."""

from __future__ import annotations

SCOPES = {
    "commands": "the command /trainmem, its buttons and forms",
    "chat:write": "answers in threads, and direct messages when Slack takes no answer to a command any more",
    "app_mentions:read": "mentions of the bot in channels it was invited to; it reads no other messages",
    "links:read": "links to your own sizings that somebody pastes; Slack sends no other links",
    "links:write": "the five lines below such a link",
}
