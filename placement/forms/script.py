"""A script that somebody drops onto the submit form: its text becomes the command, its head fills fields."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from django.core.files.uploadedfile import UploadedFile

from placement.domain.submitting import headers
from placement.domain.submitting.submission import LONGEST_ARGUMENT


@dataclass(frozen=True, slots=True)
class Script:
    """What became of a file. ``refused`` says why it was not taken; ``fields`` are texts by the form's names."""

    name: str = ""
    fields: dict[str, str] = field(default_factory=dict)
    taken: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    refused: str = ""


def read(file: UploadedFile | None) -> Script:
    """Return a file as fields; never raises."""
    if file is None:
        return Script(refused="No file came along.")
    name = str(file.name)[:100]
    size = file.size or 0
    if size > LONGEST_ARGUMENT:
        said = (
            f"{name} has {size:,} bytes; {LONGEST_ARGUMENT:,} are the most. Leave it where it is and run: bash {name}"
        )
        return Script(name, refused=said)
    try:
        text = file.read().decode("utf-8-sig")
    except UnicodeDecodeError:
        return Script(
            name, refused=f"{name} is no text: it holds bytes that are not UTF-8. Type the command that runs it."
        )
    if "\0" in text:
        return Script(name, refused=f"{name} is no text: it holds NUL bytes. Type the command that runs it.")
    if not text.strip():
        return Script(name, refused=f"{name} is empty.")
    text = text.replace("\r\n", "\n")
    head = headers.read(text)
    return Script(name, {"name": name.removesuffix(".sh"), **head.fields, "command": text}, head.taken, head.left)


def into(data: Any, file: UploadedFile) -> tuple[Any, Script]:
    """Return posted data with a file's fields in it, as far as nothing was typed there, and what became of it."""
    found, filled = read(file), data.copy()
    usual = {"gpu": "none", "exclusive": "no", "min_devices": "2"}
    for name, text in found.fields.items():
        if filled.get(name, "") in ("", usual.get(name, "")):
            filled[name] = text
    return filled, found
