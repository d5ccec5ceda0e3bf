"""Signed notes (C2SP signed-note) with Ed25519, and the two texts that are signed: checkpoints and new keys.

trainmem.example.org/audit          origin
1204                                entries
vDl2…=                              root of the Merkle tree, base64

— trainmem.example.org/audit 6Q2k…  name of the key, base64 of key id ‖ signature
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

_ED25519 = b"\x01"
_NAME = re.compile(r"[^\s+]+")
_NOTE = re.compile(r"((?:[^\n—][^\n]*\n)+)\n((?:— [^\n]+\n)+)")
NEW_KEY = "new key"


class NotANote(ValueError):
    """What cannot be read as a note, a key or a checkpoint."""


class Signature(NamedTuple):
    """One signature line of a note."""

    name: str
    key_id: bytes
    signature: bytes


@dataclass(frozen=True, slots=True)
class Note:
    """A text and who signed it. `str()` is the note as it is published."""

    text: str
    signatures: tuple[Signature, ...]

    def __str__(self) -> str:
        lines = (f"— {s.name} {_base64(s.key_id + s.signature)}\n" for s in self.signatures)
        return f"{self.text}\n{''.join(lines)}"

    def signed_by(self, keys: Iterable[VerifierKey]) -> VerifierKey | None:
        """The first of `keys` that truly signed the text."""
        return next((key for key in keys if key.signed(self)), None)


@dataclass(frozen=True, slots=True)
class VerifierKey:
    """A public key with its name; as text `name+id+key`."""

    name: str
    public: bytes

    @classmethod
    def parse(cls, text: str) -> VerifierKey:
        """Raises NotANote unless the text is a key whose id is right."""
        name, _, rest = text.strip().partition("+")
        written_id, _, encoded = rest.partition("+")
        data = _decoded(encoded)
        if not _NAME.fullmatch(name) or len(data) != 33 or data[:1] != _ED25519:
            raise NotANote("a key is written name+id+base64, an Ed25519 key")
        key = cls(name, data[1:])
        if key.id.hex() != written_id:
            raise NotANote(f"the id of the key {name} is {key.id.hex()}, not {written_id[:20]}")
        return key

    @property
    def id(self) -> bytes:
        """The four bytes by which signatures name the key."""
        return hashlib.sha256(self.name.encode() + b"\n" + _ED25519 + self.public).digest()[:4]

    def __str__(self) -> str:
        return f"{self.name}+{self.id.hex()}+{_base64(_ED25519 + self.public)}"

    def signed(self, note: Note) -> bool:
        """Whether this key signed the note."""
        for signature in note.signatures:
            if (signature.name, signature.key_id) == (self.name, self.id):
                try:
                    Ed25519PublicKey.from_public_bytes(self.public).verify(signature.signature, note.text.encode())
                except InvalidSignature:
                    return False
                return True
        return False


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A private key with its name; as text `PRIVATE+KEY+name+id+seed`."""

    name: str
    seed: bytes

    @classmethod
    def generate(cls, name: str) -> SigningKey:
        """A new key. Raises NotANote for a name with spaces or '+'."""
        if not _NAME.fullmatch(name):
            raise NotANote("the name of a key has no spaces and no '+'")
        return cls(name, Ed25519PrivateKey.generate().private_bytes_raw())

    @classmethod
    def parse(cls, text: str) -> SigningKey:
        """Raises NotANote unless the text is a private key."""
        parts = text.strip().split("+", 4)
        data = _decoded(parts[4]) if len(parts) == 5 and parts[:2] == ["PRIVATE", "KEY"] else b""
        if len(data) != 33 or data[:1] != _ED25519:
            raise NotANote("a private key is written PRIVATE+KEY+name+id+base64")
        return cls(parts[2], data[1:])

    @property
    def verifier(self) -> VerifierKey:
        """The public half."""
        return VerifierKey(self.name, Ed25519PrivateKey.from_private_bytes(self.seed).public_key().public_bytes_raw())

    def __str__(self) -> str:
        return f"PRIVATE+KEY+{self.name}+{self.verifier.id.hex()}+{_base64(_ED25519 + self.seed)}"

    def __repr__(self) -> str:
        return f"SigningKey({self.verifier})"

    def sign(self, text: str) -> Signature:
        """A signature of a text, which ends with a newline."""
        signed = Ed25519PrivateKey.from_private_bytes(self.seed).sign(text.encode())
        return Signature(self.name, self.verifier.id, signed)


class Checkpoint(NamedTuple):
    """What a checkpoint states: the log, how many entries, and the root over them."""

    origin: str
    size: int
    root: bytes

    @property
    def text(self) -> str:
        """The text that is signed."""
        return f"{self.origin}\n{self.size}\n{_base64(self.root)}\n"

    @classmethod
    def parse(cls, text: str) -> Checkpoint:
        """Raises NotANote unless the text states a checkpoint. Further lines are allowed, as C2SP has it."""
        origin, size, root, *_ = [*text.split("\n"), "", ""]
        decoded = _decoded(root)
        if not re.fullmatch(r"0|[1-9][0-9]{0,17}", size) or len(decoded) != 32:
            raise NotANote("a checkpoint has three lines: origin, number of entries, base64 of the root")
        return cls(origin, int(size), decoded)


def parse(text: str) -> Note:
    """One note. Raises NotANote."""
    if not (read := _NOTE.fullmatch(text)):
        raise NotANote("a note is a text, an empty line, and lines that begin with — and the name of a key")
    return Note(read[1], tuple(_signature(line) for line in read[2].splitlines()))


def parse_all(text: str) -> Iterator[Note]:
    """The notes of a file, one after the other with empty lines between. Raises NotANote for what is none."""
    text, place = text.replace("\r\n", "\n").strip("\n") + "\n", 0
    while place < len(text):
        if not (read := _NOTE.match(text, place)):
            line = text.count("\n", 0, place) + 1
            raise NotANote(f"what begins in line {line} is no signed note")
        yield Note(read[1], tuple(_signature(line) for line in read[2].splitlines()))
        place = read.end()
        while place < len(text) and text[place] == "\n":
            place += 1


def new_key_text(old: VerifierKey, new: VerifierKey) -> str:
    """The text by which a key introduces the one after it; both sign it."""
    return f"{old.name} {NEW_KEY}\n{old}\n{new}\n"


def trusted(pinned: Iterable[VerifierKey], found: Iterable[Note]) -> set[VerifierKey]:
    """The keys that follow from those one trusts, by the notes in which a key introduces the next.

    Whoever trusts one of two keys that both signed the introduction trusts the other as well.
    """
    keys = set(pinned)
    pairs = [pair for note in found if (pair := introduction(note)) is not None]
    while added := {key for pair in pairs if keys & set(pair) for key in pair} - keys:
        keys |= added
    return keys


def introduction(note: Note) -> tuple[VerifierKey, VerifierKey] | None:
    """(old, new) if the note introduces a key and both truly signed it."""
    lines = note.text.splitlines()
    if len(lines) != 3 or not lines[0].endswith(f" {NEW_KEY}"):
        return None
    try:
        old, new = VerifierKey.parse(lines[1]), VerifierKey.parse(lines[2])
    except NotANote:
        return None
    return (old, new) if old.signed(note) and new.signed(note) else None


def is_introduction(note: Note) -> bool:
    """Whether the note is about a new key and no checkpoint."""
    return note.text.splitlines()[0].endswith(f" {NEW_KEY}")


def by_size(found: Iterable[Note], keys: Iterable[VerifierKey]) -> Mapping[int, Checkpoint]:
    """The checkpoints among `found` that one of `keys` signed. Raises NotANote for one that none did."""
    keys, stated = tuple(keys), dict[int, Checkpoint]()
    for note in found:
        if is_introduction(note):
            continue
        checkpoint = Checkpoint.parse(note.text)
        if note.signed_by(keys) is None:
            raise NotANote(f"the checkpoint of {checkpoint.size:,} entries is not signed by a key that is trusted")
        before = stated.setdefault(checkpoint.size, checkpoint)
        if before.root != checkpoint.root:
            raise NotANote(f"two signed checkpoints of {checkpoint.size:,} entries contradict each other")
    return stated


def _signature(line: str) -> Signature:
    _, _, rest = line.partition("— ")
    name, _, encoded = rest.partition(" ")
    data = _decoded(encoded)
    if len(data) != 68:
        raise NotANote(f"the signature of {name[:80]} is not 4 bytes of key id and 64 bytes of Ed25519")
    return Signature(name, data[:4], data[4:])


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text.encode("ascii", "replace"), validate=True)
    except (binascii.Error, ValueError):
        return b""
