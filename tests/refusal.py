"""One line for what must be refused: the message, and the call that must raise it."""

from collections.abc import Callable
from typing import Any

import pytest

from augury.core.errors import InputError


def refused(says: str, call: Callable[..., Any], *args: Any, error: type[Exception] = InputError, **given: Any) -> None:
    """Check that a call raises this error (default: InputError) with a message that matches."""
    with pytest.raises(error, match=says):
        call(*args, **given)
