"""Reading one Hugging Face config.json: spellings, class defaults, bounds, and every problem at once.

A reader never raises while it reads: it keeps what is wrong and hands back something harmless, so that one pass finds
all errors. `raise_errors` speaks at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from service.catalog.bounds import MOST_HIDDEN, shown
from service.catalog.members import whole
from service.engine.errors import FieldError, InvalidInput, nearest

#: canonical key → the other ways in which config.json files of some family spell it
SPELLINGS: Mapping[str, tuple[str, ...]] = {
    "num_hidden_layers": ("n_layer", "n_layers", "num_layers"),
    "hidden_size": ("n_embd", "n_embed", "d_model", "dim"),
    "num_attention_heads": ("n_head", "n_heads", "num_heads"),
    "num_key_value_heads": ("num_kv_heads", "kv_n_heads"),
    "intermediate_size": ("n_inner", "ffn_dim", "ffn_hidden_size", "d_ff", "hidden_dim"),
    "max_position_embeddings": ("n_positions", "max_seq_len"),
    "head_dim": ("d_kv",),
    "num_experts": ("num_local_experts", "n_routed_experts", "moe_num_experts"),
    "num_experts_per_tok": ("moe_topk", "moe_k", "top_k_experts", "moe_top_k"),
    "num_shared_experts": ("n_shared_experts", "moe_num_shared_experts"),
    "hidden_act": ("hidden_activation", "activation_function", "activation"),
}

#: absent keys that decide the size of a model: their default is said aloud
SIZE_KEYS = frozenset(
    {
        "num_hidden_layers",
        "hidden_size",
        "num_attention_heads",
        "num_key_value_heads",
        "intermediate_size",
        "vocab_size",
        "num_experts",
        "num_experts_per_tok",
        "moe_intermediate_size",
        "kv_lora_rank",
        "qk_nope_head_dim",
        "qk_rope_head_dim",
        "v_head_dim",
    }
)

_MISSING = object()
T = TypeVar("T")


class ConfigReader:
    """Typed access to one config object; `defaults` are those of its transformers class, None meaning "derive it"."""

    def __init__(self, config: Mapping[str, Any], model_type: str, defaults: Mapping[str, Any], pointer: str) -> None:
        self.model_type = model_type
        self.errors: list[FieldError] = []
        self.warnings: list[tuple[str, str]] = []
        self.defaulted: dict[str, Any] = {}
        self._config = config
        self._defaults = defaults
        self._pointer = pointer

    def problem(
        self, key: str, detail: str, *, given: Any = _MISSING, allowed: str | None = None, near: Sequence[str] = ()
    ) -> None:
        """Keep an error of one key, spelt as the config spells it."""
        spelt = self._spelling(key)
        shown_value = shown(self._config.get(spelt)) if given is _MISSING else shown(given)
        self.errors.append(FieldError(f"{self._pointer}/{spelt}", detail, shown_value, allowed, tuple(near)))

    def raise_errors(self) -> None:
        if self.errors:
            raise InvalidInput(self.errors)

    def has(self, key: str) -> bool:
        return self._config.get(self._spelling(key)) is not None

    def is_text(self, key: str) -> bool:
        return isinstance(self._config.get(self._spelling(key)), str)

    def section(self, key: str) -> ConfigReader:
        """A nested object (`attn_config`); errors land here, absent means empty."""
        value = self._config.get(key)
        if value is not None and not isinstance(value, Mapping):
            self.problem(key, f"{key} is not an object", allowed="an object")
            value = None
        inner = ConfigReader(value or {}, self.model_type, self._defaults.get(key) or {}, f"{self._pointer}/{key}")
        inner.errors, inner.warnings = self.errors, self.warnings
        return inner

    def size(self, key: str, *, most: int = MOST_HIDDEN, least: int = 1) -> int:
        """A whole number that must be there, or come from the class."""
        value = self.optional_size(key, most=most, least=least)
        if value is not None:
            return value
        spelt = self._spelling(key)
        if not any(error.pointer == f"{self._pointer}/{spelt}" for error in self.errors):
            self.problem(key, f"{spelt} is missing", allowed=f"a whole number from {least} to {most}")
        return least or 1

    def optional_size(self, key: str, *, most: int = MOST_HIDDEN, least: int = 1) -> int | None:
        """A whole number, None where neither config nor class says one."""
        value = self._value(key)
        if value is None:
            return None
        number = whole(value)
        if number is None or not least <= number <= most:
            self.problem(
                key,
                f"{self._spelling(key)} is not usable",
                given=value,
                allowed=f"a whole number from {least} to {most}",
            )
            return None
        return number

    def rate(self, key: str) -> float:
        """A probability; absent is 0 unless the class says otherwise."""
        value = self._value(key)
        if value is None:
            return 0.0
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            self.problem(key, f"{self._spelling(key)} is not a rate", given=value, allowed="a number from 0 to 1")
            return 0.0
        return float(value)

    def flag(self, key: str, default: bool = False) -> bool:
        value = self._value(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            self.problem(key, f"{key} is not a boolean", given=value, allowed="true or false")
            return default
        return value

    def word(self, key: str, default: str | None = None) -> str | None:
        value = self._value(key)
        if value is None:
            return default
        if not isinstance(value, str):
            self.problem(key, f"{self._spelling(key)} is not a text", given=value, allowed="a text")
            return default
        return value

    def present(self, key: str) -> bool:
        """Whether a key that only switches something on is set to something (a number, a window, a soft cap)."""
        value = self._value(key)
        if value is None or value is False:
            return False
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
            self.problem(key, f"{key} is not usable", given=value, allowed="a positive number or null")
            return False
        return value > 0

    def fraction(self, key: str, *also: str, default: float) -> float:
        """A share above 0 and up to 1, said at top level (`partial_rotary_factor`) or within rope_parameters."""
        for name in (key, *also):
            value = self._value(name)
            if value is None:
                value = self._rope().get(name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
                self.problem(name, f"{name} is not a share", given=value, allowed="a number from 0 to 1")
                return default
            return float(value)
        return default

    def per_layer(self, key: str, layers: int, read: Callable[[Any], T | None], allowed: str) -> list[T] | None:
        """A list with one entry a layer; None when the config has none (or it is unusable, which is kept)."""
        value = self._config.get(self._spelling(key))
        if value is None:
            return None
        if not isinstance(value, list):
            self.problem(key, f"{key} is not a list", allowed=f"a list of {layers} entries")
            return None
        if len(value) != layers:
            self.problem(
                key,
                f"{key} has {len(value)} entries for {layers} layers",
                given=len(value),
                allowed=f"{layers} entries, one a layer",
            )
            return None
        entries = [read(entry) for entry in value]
        if None in entries:
            self.problem(
                key, f"{key} has an entry that is not usable", given=value[entries.index(None)], allowed=allowed
            )
            return None
        return [entry for entry in entries if entry is not None]

    def listed_sizes(self, key: str, layers: int, *, most: int = MOST_HIDDEN) -> list[int]:
        """One whole number a layer where the config has a list; [] where it has a plain number or nothing."""
        if not isinstance(self._config.get(self._spelling(key)), list):
            return []
        read = self.per_layer(key, layers, lambda entry: _within(entry, most), f"whole numbers from 1 to {most}")
        return read or [1] * layers

    def layer_types(self, layers: int, known: Sequence[str], key: str = "layer_types") -> list[str] | None:
        """One word a layer out of `known`."""
        read = self.per_layer(key, layers, lambda entry: entry if isinstance(entry, str) else None, ", ".join(known))
        for word in read or ():
            if word not in known:
                self.problem(
                    key,
                    f"{key} has an entry that is not known: {word[:40]}",
                    given=word,
                    allowed=", ".join(known),
                    near=nearest(word, known),
                )
                return None
        return read

    def signed(self, key: str, default: int) -> int:
        """A whole number that may be -1, meaning "as usual"."""
        value = self._value(key)
        if value is None:
            return default
        number = whole(value)
        if number is None or not -1 <= number <= MOST_HIDDEN:
            self.problem(key, f"{key} is not usable", given=value, allowed=f"a whole number from -1 to {MOST_HIDDEN}")
            return default
        return number

    def size_or_equal_list(self, key: str, *, most: int) -> int:
        """A whole number, or a list that says the same one for every layer."""
        value = self._config.get(self._spelling(key))
        if not isinstance(value, list):
            return self.size(key, most=most)
        numbers = {_within(entry, most) for entry in value}
        if len(numbers) != 1 or None in numbers:
            self.problem(key, f"{key} differs from layer to layer, which is not supported", allowed="one number")
            return 1
        return next(number for number in numbers if number is not None)

    def words(self, key: str) -> list[str]:
        """A list of words, or words joined by "|"."""
        value = self._value(key)
        if value is None:
            return []
        if isinstance(value, str):
            return [word.strip() for word in value.lower().split("|")]
        if isinstance(value, list) and all(isinstance(word, str) for word in value):
            return value
        self.problem(key, f"{key} is not a list of words", allowed='a list of words, or "p2c|c2p"')
        return []

    def repeated_words(self, key: str, known: Sequence[str], layers: int) -> list[str] | None:
        """[[words, times], …] written out; None when absent or unusable, which is kept."""
        value = self._config.get(key)
        if value is None:
            return None
        words: list[str] = []
        for item in value if isinstance(value, list) else [None]:
            pair = item if isinstance(item, list) and len(item) == 2 else (None, None)
            times = _within(pair[1], layers)
            if not isinstance(pair[0], list) or times is None or not all(word in known for word in pair[0]):
                self.problem(key, f"{key} is not usable", allowed=f"[[[{', '.join(known)}], times]]")
                return None
            words += pair[0] * times
            if len(words) > layers:
                break
        if len(words) != layers:
            self.problem(
                key, f"{key} does not describe {layers} layers", given=len(words), allowed=f"{layers} words in all"
            )
            return None
        return words

    def positions(self, key: str, layers: int) -> tuple[int, ...] | None:
        """A list of layer numbers (0-based); numbers beyond the last layer name nothing and are passed over."""
        value = self._value(key)
        if value is None:
            return None
        numbers = [whole(entry) for entry in value] if isinstance(value, list) else [None]
        if any(number is None or number < 0 for number in numbers):
            self.problem(key, f"{key} is not a list of layer numbers", allowed="a list of numbers from 0")
            return None
        return tuple(sorted({number for number in numbers if number is not None and number < layers}))

    def note(self, code: str, message: str) -> None:
        self.warnings.append((code, message))

    def _rope(self) -> Mapping[str, Any]:
        for key in ("rope_parameters", "rope_scaling"):
            value = self._config.get(key)
            if isinstance(value, Mapping):
                return value
            if value is not None:
                self.problem(key, f"{key} is not an object", allowed="an object or null")
        return {}

    def _value(self, key: str) -> Any:
        spelt = self._spelling(key)
        if spelt in self._config:
            return self._config[spelt]
        default = self._default(key)
        if key in SIZE_KEYS and default is not None:
            self.defaulted[spelt] = default
        return default

    def _default(self, key: str) -> Any:
        for spelt in (key, *SPELLINGS.get(key, ())):
            if spelt in self._defaults:
                return self._defaults[spelt]
        return None

    def _spelling(self, key: str) -> str:
        """The spelling that the config uses, else the one of the class, else the canonical one."""
        spellings = (key, *SPELLINGS.get(key, ()))
        said = [spelt for spelt in spellings if spelt in self._config]
        if said:
            return said[0]
        return next((spelt for spelt in spellings if spelt in self._defaults), key)

    def check_spellings(self) -> None:
        """Two spellings of one key must agree."""
        for key, others in SPELLINGS.items():
            said = {
                spelt: self._config[spelt]
                for spelt in (key, *others)
                if spelt in self._config and self._config[spelt] is not None
            }
            values = list(said.values())
            if any(value != values[0] for value in values[1:]) and all(whole(value) is not None for value in values):
                first, *rest = said
                self.problem(
                    rest[0],
                    f"{first} and {rest[0]} are one size and differ: {shown(said[first])}, {shown(said[rest[0]])}",
                )


def _within(value: Any, most: int) -> int | None:
    number = whole(value)
    return number if number is not None and 1 <= number <= most else None
