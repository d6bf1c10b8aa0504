"""Values of environment variables, sealed while they lie in the database."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from django.conf import settings

from placement.domain.errors import UnreadableSecret


def key_path() -> Path:
    """Return where the key lies; without it sealed values are lost."""
    return settings.DATA / "environment.key"


def seal(values: Mapping[str, str]) -> bytes:
    """Return the values encrypted; no values give no bytes."""
    if not values:
        return b""
    from cryptography.fernet import Fernet  # 10 MB that a process without sealed values does not need

    return Fernet(_key()).encrypt(json.dumps(dict(values)).encode())


def unseal(sealed: bytes | memoryview) -> dict[str, str]:
    """Return the values. Raises UnreadableSecret where the key is another one or the bytes were changed."""
    if not sealed:
        return {}
    from cryptography.fernet import Fernet, InvalidToken

    try:
        values = json.loads(Fernet(_key()).decrypt(bytes(sealed)))
    except InvalidToken as error:
        raise UnreadableSecret(
            f"The environment cannot be opened with the key in {key_path()}: it was sealed with another one. "
            "Put that key back, or type the values again."
        ) from error
    return {str(name): str(value) for name, value in values.items()}


def _key() -> bytes:
    """Return the key, made on first use; processes that come at once all get the same one."""
    from cryptography.fernet import Fernet

    path = key_path()
    if not path.exists():
        draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(Fernet.generate_key())
                file.flush()
                os.fsync(file.fileno())
            # A link fails where another process was first; a reader never sees half a key.
            os.link(draft, path)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    key = path.read_bytes().strip()
    try:
        Fernet(key)
    except ValueError as error:
        raise UnreadableSecret(f"{path} does not hold a key. Put the right file back.") from error
    return key


def write(path: Path, text: str) -> None:
    """Write values in the clear where the service alone can read them. OSError as it comes."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
