"""Containers cannot be started in CI, so this holds what is written for them against the code that would run."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from bot import server as bot_server
from bot import settings as bot_settings
from bot.app import create_bot
from bot.wsgi import create_wsgi
from service.app import create_app
from service.cli import cli
from service.settings import Settings
from tests.support.fake_slack import BOT_TOKEN, FakeSlack

ROOT = Path(__file__).parents[1]
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
SECRETS = re.compile(r"PASSWORD|TOKEN|SECRET")
OURS = ("service", "bot")

SERVICE_VARIABLES = {name for name, _, _ in Settings.table()} | {"PGPASSWORD"}
VARIABLES = {"service": SERVICE_VARIABLES, "bot": set(bot_settings.variables())}


@pytest.fixture
def paths(settings: Settings) -> Iterator[dict[str, set[str]]]:
    """Every path that each of our processes serves."""
    with FakeSlack() as slack:
        bot = create_bot(
            bot_settings.Settings(bot_token=BOT_TOKEN, signing_secret="secret", slack_api_url=slack.api_url)
        )
        yield {
            "service": {rule.rule for rule in create_app(settings).url_map.iter_rules()},
            "bot": {rule.rule for rule in create_wsgi(bot).url_map.iter_rules()},
        }
        bot.close(within_s=1)


def instructions(word: str) -> list[str]:
    """The arguments of each such instruction of the Dockerfile, continued lines joined."""
    joined = DOCKERFILE.replace("\\\n", " ")
    return [line.split(None, 1)[1] for line in joined.splitlines() if line.startswith(word + " ")]


def image_environment() -> dict[str, str]:
    return dict(pair.split("=", 1) for text in instructions("ENV") for pair in text.split())


def health_urls(text: str) -> list[tuple[int, str]]:
    return [(int(port), path) for port, path in re.findall(r"http://127\.0\.0\.1:(\d+)(/\w+)", text)]


def bind_port(name: str) -> int:
    variable = "TRAINMEM_BIND" if name == "service" else "TRAINMEM_BOT_BIND"
    return int(SERVICES[name]["environment"][variable].rpartition(":")[2])


@pytest.mark.parametrize("name", OURS)
def test_the_command_is_one_that_the_command_line_knows(name: str) -> None:
    program, subcommand = SERVICES[name]["command"]
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    assert scripts[program] == "service.cli:main"
    assert subcommand in cli.commands


@pytest.mark.parametrize("name", OURS)
def test_every_variable_is_one_that_the_process_reads(name: str) -> None:
    assert set(SERVICES[name]["environment"]) <= VARIABLES[name]


def test_every_variable_of_the_image_is_one_that_some_process_reads() -> None:
    ours = {name for name in image_environment() if name.startswith("TRAINMEM_")}
    assert ours and ours <= VARIABLES["service"] | VARIABLES["bot"]


@pytest.mark.parametrize("name", OURS)
def test_the_health_check_asks_a_path_that_is_served_on_the_port_that_is_bound(
    name: str, paths: dict[str, set[str]]
) -> None:
    [(port, path)] = health_urls(SERVICES[name]["healthcheck"]["test"][-1])
    assert port == bind_port(name) and path in paths[name]


def test_the_images_own_health_check_is_the_services(paths: dict[str, set[str]]) -> None:
    [(port, path)] = health_urls(DOCKERFILE)
    assert path in paths["service"] and image_environment()["TRAINMEM_BIND"] == f"0.0.0.0:{port}"


@pytest.mark.parametrize("name", OURS)
def test_ports_are_published_to_this_machine_only_and_reach_the_process(name: str) -> None:
    [published] = SERVICES[name]["ports"]
    address, _, inside = published.rsplit(":", 2)
    assert address == "127.0.0.1" and int(inside) == bind_port(name)
    assert str(bind_port(name)) in instructions("EXPOSE")[0].split()


def test_the_bot_asks_the_service_where_it_listens() -> None:
    assert SERVICES["bot"]["environment"]["TRAINMEM_SERVICE_URL"] == f"http://service:{bind_port('service')}"


def test_only_the_bot_may_speak_for_others() -> None:
    trusted = Settings.from_environ(
        {"TRAINMEM_TRUSTED_ADDRESSES": SERVICES["service"]["environment"]["TRAINMEM_TRUSTED_ADDRESSES"]}
    )
    address = SERVICES["bot"]["networks"]["asking"]["ipv4_address"]
    beyond_loopback = [network for network in trusted.trusted_addresses if not network.is_loopback]
    assert [str(network) for network in beyond_loopback] == [f"{address}/32"]


def test_each_waits_for_what_it_needs_to_be_healthy() -> None:
    waits = {name: dict(SERVICES[name].get("depends_on", {})) for name in SERVICES}
    assert waits == {
        "postgresql": {},
        "service": {"postgresql": {"condition": "service_healthy"}},
        "bot": {"service": {"condition": "service_healthy"}},
    }
    assert all("healthcheck" in service for service in SERVICES.values())


def test_a_stop_waits_longer_than_the_processes_take() -> None:
    grace_s = {name: int(SERVICES[name]["stop_grace_period"].removesuffix("s")) for name in OURS}
    assert grace_s["bot"] > bot_server.GRACEFUL_S > bot_server.DRAIN_S
    assert grace_s["service"] > 30


def test_no_secret_is_written_down() -> None:
    for service in SERVICES.values():
        for variable, value in service["environment"].items():
            assert not SECRETS.search(variable) or value.startswith("${"), variable
    assert not any(SECRETS.search(name) for name in image_environment())


def test_networks_and_volumes_that_are_used_are_declared() -> None:
    used = {network for service in SERVICES.values() for network in service["networks"]}
    assert used == COMPOSE["networks"].keys()
    mounted = {volume.partition(":")[0] for service in SERVICES.values() for volume in service.get("volumes", [])}
    assert mounted == COMPOSE["volumes"].keys()


def test_the_image_runs_as_nobody_special_from_the_lock_file() -> None:
    assert instructions("USER") == ["10001"]
    installs = [text for text in instructions("RUN") if "pip install" in text]
    assert ["--require-hashes -r requirements.lock" in text or "--no-deps" in text for text in installs] == [True, True]
    assert instructions("CMD") == ['["trainmem", "serve"]']
    assert "FROM python:3.11-" in DOCKERFILE


def test_what_the_image_copies_exists_and_is_sent_to_the_builder() -> None:
    sent = {line[1:] for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line[:1] == "!"}
    sources = {source for text in instructions("COPY") if "--from" not in text for source in text.split()[:-1]}
    assert sources == sent
    assert all((ROOT / source).exists() for source in sources)
