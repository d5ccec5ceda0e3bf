"""Settings come from the environment, or the process does not start."""

from __future__ import annotations

import ipaddress

import pytest

from service.errors import SettingError
from service.settings import Settings


def test_an_empty_environment_gives_a_service_for_one_laptop() -> None:
    settings = Settings.from_environ({})
    assert settings.database_url == "sqlite:///var/trainmem.db"
    assert settings.bind == "127.0.0.1:8080"
    assert settings == Settings()


def test_an_empty_variable_counts_as_not_set() -> None:
    assert Settings.from_environ({"TRAINMEM_BIND": " ", "TRAINMEM_THREADS": ""}) == Settings()


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_every_spelling_of_postgresql_names_the_driver(scheme: str) -> None:
    settings = Settings.from_environ({"TRAINMEM_DATABASE_URL": f"{scheme}://u:p@db/trainmem"})
    assert settings.database_url == "postgresql+psycopg://u:p@db/trainmem"


def test_addresses_are_networks() -> None:
    settings = Settings.from_environ({"TRAINMEM_TRUSTED_ADDRESSES": "10.0.0.7, 172.16.0.0/12,::1"})
    assert settings.trusted_addresses == (
        ipaddress.ip_network("10.0.0.7/32"),
        ipaddress.ip_network("172.16.0.0/12"),
        ipaddress.ip_network("::1/128"),
    )


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("TRAINMEM_DATABASE_URL", "mysql://u@h/d", "postgresql://"),
        ("TRAINMEM_DATABASE_URL", "sqlite://", "sqlite:///"),
        ("TRAINMEM_WORKERS", "-1", "0 to 256"),
        ("TRAINMEM_WORKERS", "two", "whole number"),
        ("TRAINMEM_THREADS", "0", "1 to 64"),
        ("TRAINMEM_THREADS", "٣", "whole number"),
        ("TRAINMEM_LOCK_TIMEOUT_S", "nan", "0.01 to 600"),
        ("TRAINMEM_LOCK_TIMEOUT_S", "soon", "0.01 to 600"),
        ("TRAINMEM_TRUSTED_ADDRESSES", "localhost", "127.0.0.0/8"),
        ("TRAINMEM_LOG_LEVEL", "loud", "debug or info"),
    ],
)
def test_a_bad_value_names_the_variable_and_what_is_allowed(name: str, value: str, allowed: str) -> None:
    with pytest.raises(SettingError) as refused:
        Settings.from_environ({name: value})
    assert name in str(refused.value) and allowed in str(refused.value)


def test_all_bad_values_are_told_at_once_and_no_password_is_shown() -> None:
    with pytest.raises(SettingError) as refused:
        Settings.from_environ({"TRAINMEM_DATABASE_URL": "mysql://u:hunter2@h/d", "TRAINMEM_THREADS": "x"})
    assert len(str(refused.value).splitlines()) == 2
    assert "hunter2" not in str(refused.value)


def test_every_setting_has_a_name_a_default_and_a_meaning() -> None:
    table = Settings.table()
    assert len(table) == len({name for name, _, _ in table})
    assert all(name.startswith("TRAINMEM_") and meaning for name, _, meaning in table)
