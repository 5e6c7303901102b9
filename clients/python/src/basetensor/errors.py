"""Errors with the codes of the service.

Every error that a gateway sends becomes one of these; ``code`` is its code as docs/reference/wire.md lists them.
"""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional, Type

# Codes of failures of the service itself: the stage says to its operator where to look.
OF_THE_SERVICE = ("damaged", "infrastructure", "internal")


class AnswerWarning(UserWarning):
    """What the service says beside an answer: the rows of a table did not sum to 1, a way of computing did not serve."""


class BasetensorError(Exception):
    """An error of the service or of the way to it."""

    code = "internal"

    def __init__(
        self,
        message: str,
        *,
        code: Optional[str] = None,
        stage: Optional[str] = None,
        status: Optional[int] = None,
        job: Optional[str] = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        if code is not None:
            self.code = code
        self.stage = stage or None
        self.status = status
        self.job = job

    def __str__(self) -> str:
        return self.message + (f" ({self.stage})" if self.stage and self.code in OF_THE_SERVICE else "")


class BadInput(BasetensorError, ValueError):
    """The model, the evidence or the request is wrong; the same input fails again."""

    code = "bad_input"


class Unsupported(BasetensorError):
    """The request is well formed, but asks for what the service does not do."""

    code = "unsupported"


class OverBudget(BasetensorError):
    """The answer needs more memory or work than the request allows."""

    code = "over_budget"


class Deadline(BasetensorError):
    """The job's deadline passed before its answer."""

    code = "deadline"


class Cancelled(BasetensorError):
    """Somebody cancelled the job."""

    code = "cancelled"


class FailedEstimate(BasetensorError):
    """The estimate is not a number to be trusted."""

    code = "failed_estimate"


class Damaged(BasetensorError):
    """The request, or its answer, came with other bits than it was sent with; sent again, it may succeed."""

    code = "damaged"


class Infrastructure(BasetensorError):
    """NATS, Redis, storage or the gateway failed; the same job may succeed later."""

    code = "infrastructure"


class Internal(BasetensorError):
    """A broken invariant of the service."""

    code = "internal"


class NotFound(BasetensorError, LookupError):
    """There is no such job, model or page."""

    code = "not_found"


class Conflict(BasetensorError):
    """The job's id belongs to another request."""

    code = "conflict"


class Unauthorized(BasetensorError, PermissionError):
    """The key is missing, unknown, or may not do this."""

    code = "unauthorized"


class Impossible(BasetensorError, ArithmeticError):
    """The evidence has probability 0, so nothing is distributed given it.

    ``conflict`` has observations that contradict each other, none of them superfluous: variable → state, None for weights.
    It is empty if the model is impossible without evidence, and None if it is not known.
    ``smallest``: no fewer observations contradict each other.
    """

    code = "impossible"

    def __init__(
        self, message: str, *, conflict: Optional[Mapping[str, Optional[str]]] = None, smallest: bool = False, **details: Any
    ) -> None:
        super().__init__(message, **details)
        self.conflict = conflict
        self.smallest = smallest


class Timeout(BasetensorError, TimeoutError):
    """The time that the caller gives has passed. A job that was submitted goes on: ``job`` names it."""

    code = "timeout"


_BY_CODE: Dict[str, Type[BasetensorError]] = {
    c.code: c
    for c in (
        BadInput,
        Unsupported,
        OverBudget,
        Deadline,
        Cancelled,
        FailedEstimate,
        Damaged,
        Infrastructure,
        Internal,
        NotFound,
        Conflict,
        Unauthorized,
    )
}

# For errors whose code this version does not know: what their HTTP status says.
_BY_STATUS: Dict[int, Type[BasetensorError]] = {
    400: BadInput,
    401: Unauthorized,
    403: Unauthorized,
    404: NotFound,
    409: Conflict,
    413: OverBudget,
    422: Unsupported,
    502: Infrastructure,
    503: Infrastructure,
    504: Deadline,
}


def from_info(info: Mapping[str, Any], status: Optional[int] = None, job: Optional[str] = None) -> BasetensorError:
    """Returns the error that an object {code, message, stage} tells of, whose HTTP status may say more."""
    code = str(info.get("code") or "")
    kind = _BY_CODE.get(code, _BY_STATUS.get(status or 0, BasetensorError))
    if kind is BadInput and status is not None and status in (401, 403, 404, 409):
        kind = _BY_STATUS[status]  # what is wrong with the request is told by the status
        code = kind.code
    message = str(info.get("message") or f"HTTP status {status}")
    return kind(message, code=code or kind.code, stage=info.get("stage"), status=status, job=job)
