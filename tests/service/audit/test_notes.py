"""Signed notes: what others' implementations sign is read, what ours signs is theirs to read, nothing forged passes."""

from __future__ import annotations

import hypothesis
import pytest
from hypothesis import strategies as st

from service.audit.notes import (
    Checkpoint,
    NotANote,
    Note,
    SigningKey,
    VerifierKey,
    by_size,
    introduction,
    new_key_text,
    parse,
    parse_all,
    trusted,
)

# The example of golang.org/x/mod/sumdb/note.
THEIR_SECRET = "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz"
THEIR_KEY = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
THEIR_NOTE = (
    "If you think cryptography is the answer to your problem,\n"
    "then you don't know what your problem is.\n"
    "\n"
    "— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n"
)
ROOT = bytes(range(32))


def signed(text: str, *keys: SigningKey) -> Note:
    return Note(text, tuple(key.sign(text) for key in keys))


def test_the_note_of_another_implementation_is_read_and_written() -> None:
    key = VerifierKey.parse(THEIR_KEY)
    note = parse(THEIR_NOTE)
    assert note.signed_by([key]) == key
    secret = SigningKey.parse(THEIR_SECRET)
    assert str(secret.verifier) == THEIR_KEY and str(secret) == THEIR_SECRET
    assert str(signed(note.text, secret)) == THEIR_NOTE  # Ed25519 has one signature for a key and a text


def test_a_secret_is_not_shown_by_accident() -> None:
    assert "AYEK" not in repr(SigningKey.parse(THEIR_SECRET))


@hypothesis.given(st.integers(0, len(THEIR_NOTE.encode()) * 8 - 1))
def test_no_bit_of_a_note_can_be_flipped(bit: int) -> None:
    data = bytearray(THEIR_NOTE.encode())
    data[bit // 8] ^= 1 << bit % 8
    try:
        note = parse(data.decode())
    except (NotANote, UnicodeDecodeError):
        return
    assert note.signed_by([VerifierKey.parse(THEIR_KEY)]) is None


@pytest.mark.parametrize(
    "text",
    [
        "", "PeterNeumann", "PeterNeumann+c74f20a4+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
        "Peter Neumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
        "PeterNeumann+c74f20a3+AhpC2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW", "a+b+c", "+++", THEIR_SECRET,
    ],
)  # fmt: skip
def test_what_is_no_key_is_refused(text: str) -> None:
    with pytest.raises(NotANote):
        VerifierKey.parse(text)


def test_a_checkpoint_is_three_lines_and_may_have_more() -> None:
    stated = Checkpoint("trainmem/audit", 1204, ROOT)
    assert stated.text == "trainmem/audit\n1204\nAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n"
    assert Checkpoint.parse(stated.text + "an extension\n") == stated
    for wrong in ("", "o\n1\n", "o\n01\n" + stated.text.split("\n")[2], "o\n-1\nAAAA\n", "o\n1\nAAAA\n"):
        with pytest.raises(NotANote):
            Checkpoint.parse(wrong)


def test_notes_stand_in_a_file_one_after_the_other() -> None:
    key = SigningKey.generate("log")
    found = [signed(Checkpoint("log", size, ROOT).text, key) for size in (1, 2, 3)]
    assert list(parse_all("\n".join(map(str, found)))) == found
    assert list(parse_all("\n".join(map(str, found)).replace("\n", "\r\n"))) == found
    with pytest.raises(NotANote, match="line 7"):
        list(parse_all(f"{found[0]}\nsomething else\n"))


def test_a_key_vouches_for_the_next_in_both_directions() -> None:
    first, second, third, stranger = (SigningKey.generate("log") for _ in range(4))
    notes = [
        signed(new_key_text(second.verifier, third.verifier), second, third),
        signed(new_key_text(first.verifier, second.verifier), first, second),
    ]
    everyone = {key.verifier for key in (first, second, third)}
    assert trusted([first.verifier], notes) == trusted([third.verifier], notes) == everyone
    assert trusted([stranger.verifier], notes) == {stranger.verifier}


def test_an_introduction_that_one_of_the_two_did_not_sign_is_none() -> None:
    old, new, thief = (SigningKey.generate("log") for _ in range(3))
    text = new_key_text(old.verifier, thief.verifier)
    assert introduction(signed(text, thief)) is None
    assert introduction(signed(text, old)) is None
    assert introduction(signed(text, thief, new)) is None


def test_a_checkpoint_by_nobody_one_trusts_is_refused_and_so_are_two_that_contradict() -> None:
    key, thief = SigningKey.generate("log"), SigningKey.generate("log")
    good = signed(Checkpoint("log", 5, ROOT).text, key)
    assert by_size([good], [key.verifier]) == {5: Checkpoint("log", 5, ROOT)}
    with pytest.raises(NotANote, match="not signed by a key that is trusted"):
        by_size([signed(good.text, thief)], [key.verifier])
    with pytest.raises(NotANote, match="contradict"):
        by_size([good, signed(Checkpoint("log", 5, ROOT[::-1]).text, key)], [key.verifier])
