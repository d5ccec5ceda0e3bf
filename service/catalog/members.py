"""Reading the members of a JSON object that a person wrote: types, bounds, unknown keys, all errors kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from service.catalog.bounds import shown
from service.engine.errors import FieldError, InvalidInput, nearest


class Members:
    """Typed access to one object; what is wrong is kept and something harmless handed back."""

    def __init__(self, value: Any, pointer: str, known: Sequence[str], errors: list[FieldError] | None = None) -> None:
        self.errors: list[FieldError] = [] if errors is None else errors
        #: sizes that were left out and that change the answer, with what was taken
        self.assumed: dict[str, int] = {}
        self._pointer = pointer
        self._members: Mapping[str, Any] = value if isinstance(value, Mapping) else {}
        if not isinstance(value, Mapping):
            self.errors.append(FieldError(pointer, "not an object", shown(value), f"an object with {', '.join(known)}"))
        for key in self._members:
            if key not in known:
                word = str(key)[:60]
                self.errors.append(
                    FieldError(
                        f"{pointer}/{word}", f"{word} is not known", word, ", ".join(known), nearest(word, known)
                    )
                )

    def raise_errors(self) -> None:
        if self.errors:
            raise InvalidInput(self.errors)

    def get(self, key: str) -> Any:
        return self._members.get(key)

    def has(self, key: str) -> bool:
        return key in self._members

    def is_null(self, key: str) -> bool:
        return key in self._members and self._members[key] is None

    def problem(self, key: str, detail: str, allowed: str, near: Sequence[str] = ()) -> None:
        given = shown(self._members[key]) if key in self._members else None
        self.errors.append(FieldError(f"{self._pointer}/{key}", detail, given, allowed, tuple(near)))

    def inner(self, key: str, known: Sequence[str]) -> Members | None:
        """A nested object; None when null or absent."""
        value = self._members.get(key)
        return None if value is None else Members(value, f"{self._pointer}/{key}", known, self.errors)

    def size(self, key: str, most: int, *, least: int = 1, usual: int | None = None, say: bool = False) -> int:
        """A whole number; left out it is `usual`, or missing when there is none. `say` notes that it was assumed."""
        value = self._members.get(key)
        allowed = f"a whole number from {least} to {most}"
        if value is None:
            if usual is None:
                self.problem(key, f"{key} is missing", allowed)
                return max(least, 1)
            if say:
                self.assumed[key] = usual
            return usual
        number = whole(value)
        if number is None or not least <= number <= most:
            self.problem(key, f"{key} is not usable", allowed)
            return max(least, 1)
        return number

    def optional_size(self, key: str, most: int, *, least: int = 1) -> int | None:
        return None if self._members.get(key) is None else self.size(key, most, least=least)

    def number(self, key: str, least: float, most: float) -> float | None:
        """A finite number, None when left out."""
        value = self._members.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            self.problem(key, f"{key} is not usable", f"a number from {least:g} to {most:g}")
            return None
        return float(value)

    def rate(self, key: str, usual: float) -> float:
        value = self._members.get(key)
        if value is None:
            return usual
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
            self.problem(key, f"{key} is not a rate", "a number from 0 to below 1")
            return usual
        return float(value)

    def flag(self, key: str, usual: bool = False) -> bool:
        value = self._members.get(key)
        if value is None:
            return usual
        if not isinstance(value, bool):
            self.problem(key, f"{key} is not a boolean", "true or false")
            return usual
        return value

    def choice(self, key: str, choices: Sequence[str], usual: str) -> Any:
        value = self._members.get(key)
        if value is None:
            return usual
        if value not in choices:
            near = nearest(value, choices) if isinstance(value, str) else ()
            self.problem(key, f"{key} is not known", ", ".join(choices), near)
            return usual
        return value


def whole(value: Any) -> int | None:
    """A whole number, also when a float says it (4096.0); None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return None
