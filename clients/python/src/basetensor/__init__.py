"""Inference on discrete graphical models, by name: a client of the basetensor HTTP gateway, or of a service that it starts itself.

>>> import basetensor
>>> with basetensor.local() as client:  # or basetensor.Client("http://HOST:8080")
...     client.marginals("examples/asia.json", evidence={"dysp": "yes"}, targets=["bronc"])
{'bronc': {'no': 0.166..., 'yes': 0.833...}}
"""

from ._http import Event
from ._local import LocalClient, local
from ._query import Evidence, Query, Variable
from ._results import (
    MAP,
    MPE,
    Answer,
    Bounds,
    Candidate,
    Influence,
    Information,
    Joint,
    Posteriors,
    Result,
    Samples,
    Sensitivity,
)
from ._source import Model
from .aio import AsyncClient, AsyncModels
from .client import Client, Models
from .errors import (
    AnswerWarning,
    BadInput,
    BasetensorError,
    Cancelled,
    Conflict,
    Deadline,
    FailedEstimate,
    Impossible,
    Damaged,
    Infrastructure,
    Internal,
    NotFound,
    OverBudget,
    Timeout,
    Unauthorized,
    Unsupported,
)

__all__ = [
    "Answer",
    "AnswerWarning",
    "AsyncClient",
    "AsyncModels",
    "BadInput",
    "BasetensorError",
    "Bounds",
    "Cancelled",
    "Candidate",
    "Client",
    "Conflict",
    "Damaged",
    "Deadline",
    "Event",
    "Evidence",
    "FailedEstimate",
    "Impossible",
    "Influence",
    "Information",
    "Infrastructure",
    "Internal",
    "Joint",
    "local",
    "LocalClient",
    "MAP",
    "Model",
    "Models",
    "MPE",
    "NotFound",
    "OverBudget",
    "Posteriors",
    "Query",
    "Result",
    "Samples",
    "Sensitivity",
    "Timeout",
    "Unauthorized",
    "Unsupported",
    "Variable",
]
