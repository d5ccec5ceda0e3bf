"""Help and documentation say what the vocabulary says."""

from pathlib import Path

from service.requests.grammar import parse
from service.requests.help_text import key_markdown, key_table
from service.requests.keys import KEYS

COMMANDS_PAGE = Path(__file__).parents[3] / "docs" / "commands.md"


def test_the_page_of_commands_has_the_tables_of_the_vocabulary() -> None:
    page = COMMANDS_PAGE.read_text(encoding="utf-8")
    # To write them anew: python -c "from service.requests.help_text import *; print(key_markdown())"
    assert page.endswith(key_markdown() + "\n")


def test_what_the_page_says_about_commands_is_so() -> None:
    page = COMMANDS_PAGE.read_text(encoding="utf-8")
    table = page.split("| what you type | what it means |\n|---|---|\n")[1].split("\n\n")[0]
    for row in table.splitlines():
        for example in row.split("|")[1].split("`")[1::2]:
            text = example.replace("{…}", "{}")
            assert parse(text), example


def test_help_fits_the_terminal_and_has_every_key() -> None:
    for width in (60, 78, 98):
        text = key_table(width=width)
        assert max(len(line) for line in text.splitlines()) <= width
        assert all(f"  {key.name}" in text for key in KEYS.values())
