"""What a name may be: of a server, a tool, a contract, a policy."""

from __future__ import annotations

import re
from typing import Final

from assisted_benchmark.kernel.errors import InputError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import invisible, shown

MAX_NAME: Final = 128

_NAME: Final = re.compile(r"[A-Za-z0-9_./-]{1,128}")


def name_fault(text: str) -> Reason | None:
    """Why `text` is no name, or None: 1 to 128 ASCII letters, digits, `_`, `-`, `.` and `/`.

    Every letter beyond ASCII counts as a look-alike, as some reader will take it for one.
    """
    if _NAME.fullmatch(text) is not None:
        return None
    if any(invisible(char) for char in text):
        return Reason.INVISIBLE_CHARACTER
    if any(not char.isascii() and char.isalnum() for char in text):
        return Reason.CONFUSABLE_NAME
    return Reason.MALFORMED_NAME


def check_name(text: str, what: str = "name") -> str:
    """The name itself.

    Raises:
        InputError: malformed_name, invisible_character or confusable_name.
    """
    reason = name_fault(text)
    if reason is not None:
        allowed = f"1 to {MAX_NAME} ASCII letters, digits, `_`, `-`, `.` and `/`"
        raise InputError(reason, f"`{shown(text, 60)}` cannot be the {what}: {allowed}")
    return text
