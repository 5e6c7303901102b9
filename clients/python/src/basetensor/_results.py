"""Answers as dictionaries by name, and as pandas frames where pandas is installed."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union, overload

from . import errors


def _frame(rows: Iterable[Mapping[str, Any]], columns: Optional[Sequence[str]] = None) -> Any:
    try:
        import pandas
    except ImportError:
        raise ImportError("to_frame needs pandas, which is not installed") from None
    return pandas.DataFrame(list(rows), columns=list(columns) if columns is not None else None)


class Posteriors(Dict[str, Dict[str, float]]):
    """P(variable = state | evidence): variable → state → probability."""

    def to_frame(self) -> Any:
        """Returns a frame with a row per state: variable, state, p."""
        rows = ({"variable": v, "state": s, "p": p} for v, d in self.items() for s, p in d.items())
        return _frame(rows, ("variable", "state", "p"))


class Joint(Dict[Tuple[str, ...], float]):
    """P(variables = states | evidence): one state per variable → probability."""

    def __init__(self, variables: Sequence[str], cells: Iterable[Tuple[Tuple[str, ...], float]]) -> None:
        super().__init__(cells)
        self.variables = tuple(variables)

    def to_frame(self) -> Any:
        """Returns a frame with a row per combination of states: the variables, p."""
        rows: Iterator[Dict[str, Any]] = ({**dict(zip(self.variables, s)), "p": p} for s, p in self.items())
        return _frame(rows, (*self.variables, "p"))


class Rows(List[Dict[str, Any]]):
    """A list of records."""

    def to_frame(self) -> Any:
        """Returns a frame with a row per record."""
        return _frame(self)


class Samples(List[Dict[str, str]]):
    """Independent samples of all variables given the evidence: variable → state each.

    ``weights`` is None where they all have the same weight, else a number each, which sum to 1, and the samples are worth ``effective`` ones
    with the same weight.
    """

    weights: Optional[List[float]] = None
    effective: Optional[float] = None

    def to_frame(self) -> Any:
        """Returns a frame with a row per sample and a column per variable."""
        return _frame(self)


@dataclasses.dataclass(frozen=True)
class MPE:
    """A most probable explanation: the likeliest states of all variables given the evidence."""

    assignment: Dict[str, str]
    ln_weight: float
    unique: bool  # whether no other assignment is as good
    others: Tuple["MPE", ...] = ()  # the next best ones, where best was given


@dataclasses.dataclass(frozen=True)
class MAP:
    """The likeliest states of some variables given the evidence, the others summed out."""

    assignment: Dict[str, str]
    ln_weight: float
    exact: bool  # else the best found: no assignment is above ln_bound
    ln_bound: Optional[float]


@dataclasses.dataclass(frozen=True)
class Bounds:
    """What ln Z lies between, nats; None where there is none on that side."""

    lower: Optional[float]
    upper: Optional[float]
    level: float  # the probability with which all of them hold; 1: they follow from the model alone
    how: str


@dataclasses.dataclass(frozen=True)
class Result:
    """The answer to one query. ``raw`` is all that the service says, as schemas/result.schema.json has it."""

    raw: Mapping[str, Any] = dataclasses.field(repr=False)
    query: int
    error: Optional[errors.BasetensorError]
    exact: bool
    method: str
    zero: bool
    log_z: Optional[float]
    uncertainty: Optional[float]
    bounds: Optional[Bounds]  # None where nothing bounds ln Z
    probability: Optional[float]  # of the event, given the evidence
    ln_probability: Optional[float]  # None where it is 0
    posteriors: Optional[Posteriors]
    joint: Optional[Joint]
    mpe: Optional[MPE]
    map: Optional[MAP]
    samples: Optional[Samples]
    warnings: Tuple[str, ...]

    def __getitem__(self, field: str) -> Any:
        """Returns a field of ``raw``."""
        return self.raw[field]

    def check(self) -> "Result":
        """Returns the result, or raises its error, or Impossible where the evidence has probability 0."""
        if self.error is not None:
            raise self.error
        if self.zero:
            conflict = _conflict(self.raw.get("conflict"))
            raise errors.Impossible(
                "the evidence has probability 0" + (f": {conflict}" if conflict else ""),
                conflict=conflict,
                job=self.raw.get("job"),
            )
        return self


class Answer(Sequence[Result]):
    """The answer to a job: a result per query, in their order; a query with an event has two, the second with the event."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.raw = raw
        self.job = str(raw.get("job") or "")
        self.status = str(raw.get("status") or "")
        info = raw.get("error")
        self.error = errors.from_info(info, job=self.job) if isinstance(info, Mapping) else None
        self.results = [result(r) for r in raw.get("results") or []]

    @overload
    def __getitem__(self, at: int) -> Result: ...

    @overload
    def __getitem__(self, at: slice) -> List[Result]: ...

    def __getitem__(self, at: Union[int, slice]) -> Union[Result, List[Result]]:
        return self.results[at]

    def __len__(self) -> int:
        return len(self.results)

    def __repr__(self) -> str:
        return f"Answer(job={self.job!r}, status={self.status!r}, results={len(self.results)})"

    def check(self) -> "Answer":
        """Returns the answer, or raises its error. Errors of single queries stay in their results."""
        if self.error is not None:
            raise self.error
        return self


def result(raw: Mapping[str, Any]) -> Result:
    """Reads a result as the service sends it."""
    info = raw.get("error")
    mpe, best, bounds = raw.get("mpe"), raw.get("map"), raw.get("bounds")
    return Result(
        raw=raw,
        query=int(raw.get("query") or 0),
        error=errors.from_info(info, job=raw.get("job")) if isinstance(info, Mapping) else None,
        exact=bool(raw.get("exact")),
        method=str(raw.get("method") or ""),
        zero=bool(raw.get("zero")),
        log_z=_float(raw.get("log_z")),
        uncertainty=_float(raw.get("uncertainty")),
        bounds=None
        if bounds is None
        else Bounds(_float(bounds.get("lower")), _float(bounds.get("upper")), float(bounds["level"]), str(bounds["how"])),
        probability=_float((raw.get("ratio") or {}).get("p")),
        ln_probability=_float((raw.get("ratio") or {}).get("ln")),
        posteriors=_posteriors(raw.get("marginals")),
        joint=_joint(raw.get("joint")),
        mpe=None
        if mpe is None
        else MPE(
            _assignment(mpe),
            float(mpe["ln_weight"]),
            bool(mpe["unique"]),
            tuple(
                MPE(_assignment({**o, "names": mpe.get("names")}), float(o["ln_weight"]), False) for o in mpe.get("others") or ()
            ),
        ),
        map=None
        if best is None
        else MAP(_assignment(best), float(best["ln_weight"]), bool(best.get("exact")), _float(best.get("ln_bound"))),
        samples=_samples(raw.get("samples")),
        warnings=tuple(raw.get("warnings") or ()),
    )


def _float(x: Any) -> Optional[float]:
    return None if x is None else float(x)  # JSON may write 0 for 0.0


def _labels(names: Optional[Sequence[str]], positions: Iterable[int]) -> List[str]:
    return list(names) if names is not None else [str(x) for x in positions]


def _posteriors(raw: Optional[Sequence[Mapping[str, Any]]]) -> Optional[Posteriors]:
    if raw is None:
        return None
    return Posteriors(
        {m.get("name", str(m["variable"])): dict(zip(_labels(m.get("states"), range(len(m["p"]))), map(float, m["p"]))) for m in raw}
    )


def _joint(raw: Optional[Mapping[str, Any]]) -> Optional[Joint]:
    if raw is None:
        return None
    states = raw.get("states") or [[str(x) for x in range(n)] for n in raw["shape"]]
    cells = itertools.product(*states)  # the last variable fastest
    return Joint(_labels(raw.get("names"), raw["variables"]), zip(cells, map(float, raw["p"])))


def _assignment(raw: Mapping[str, Any]) -> Dict[str, str]:
    values = raw["assignment"]
    variables = _labels(raw.get("names"), raw.get("variables") or range(len(values)))
    return dict(zip(variables, _labels(raw.get("states"), values)))


def _samples(raw: Optional[Mapping[str, Any]]) -> Optional[Samples]:
    if raw is None:
        return None
    rows = raw["assignments"]
    variables = _labels(raw.get("names"), range(len(rows[0]) if rows else 0))
    states: Sequence[Sequence[str]] = raw.get("states") or [()] * len(variables)
    samples = Samples({v: s[x] if s else str(x) for v, s, x in zip(variables, states, row)} for row in rows)
    samples.weights, samples.effective = raw.get("weights"), _float(raw.get("effective"))
    return samples


def _conflict(raw: Optional[Mapping[str, Any]]) -> Optional[Dict[str, Optional[str]]]:
    """Returns the observations that contradict each other: variable → state, None for weights."""
    if raw is None:
        return None
    return {
        o.get("name", str(o["variable"])): None if o["value"] is None else o.get("state", str(o["value"])) for o in raw["observations"]
    }
