"""Client of the basetensor HTTP gateway: inference on discrete graphical models, by name.

>>> from basetensor import Client
>>> client = Client("http://127.0.0.1:8080")
>>> client.marginals("asia.bif", evidence={"dysp": "yes"}, targets=["bronc"])
{'bronc': {'yes': 0.83..., 'no': 0.16...}}
"""

from ._http import Event
from ._query import Evidence, Query, Variable
from ._results import MAP, MPE, Answer, Bounds, Joint, Posteriors, Result, Rows, Samples
from ._source import Model
from .aio import AsyncClient, AsyncModels
from .client import Client, Models
from .errors import (
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
    "AsyncClient",
    "AsyncModels",
    "BadInput",
    "BasetensorError",
    "Bounds",
    "Cancelled",
    "Client",
    "Conflict",
    "Deadline",
    "Event",
    "Evidence",
    "FailedEstimate",
    "Impossible",
    "Damaged",
    "Infrastructure",
    "Internal",
    "Joint",
    "MAP",
    "MPE",
    "Model",
    "Models",
    "NotFound",
    "OverBudget",
    "Posteriors",
    "Query",
    "Result",
    "Rows",
    "Samples",
    "Timeout",
    "Unauthorized",
    "Unsupported",
    "Variable",
]
