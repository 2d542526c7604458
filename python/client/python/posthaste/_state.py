"""What a client keeps between processes: address tokens, in the file that `posthaste get --state DIR` uses too."""

from __future__ import annotations

import os
from pathlib import Path

from ._errors import ConfigError

TOKENS = "address-tokens"

#: Bytes of the largest file that is read back.
MAX_FILE = 16 << 20


def load(directory: Path) -> str:
    """The tokens in this directory, as text; none if there is no file."""
    path = directory / TOKENS
    try:
        if path.stat().st_size > MAX_FILE:
            return ""
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise _failure(path, error) from error


def save(directory: Path, tokens: str) -> None:
    """Puts the tokens in place at once, readable for their owner only."""
    path = directory / TOKENS
    part = path.with_name(f"{TOKENS}.{os.getpid()}.part")
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        part.unlink(missing_ok=True)
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(tokens)
        part.replace(path)
    except OSError as error:
        raise _failure(path, error) from error


def _failure(path: Path, error: OSError) -> ConfigError:
    return ConfigError(
        f"cannot keep address tokens in {path}: {error.strerror}\n  choose a writable directory with state=DIRECTORY"
    )
