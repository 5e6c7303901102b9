"""The client: questions on models, jobs, registered models."""

from __future__ import annotations

import json
import math
import ssl
import urllib.parse
import uuid
import warnings
from typing import Any, Callable, Dict, Generator, List, Mapping, Optional, Sequence, TypeVar, Union

from . import _query, _source, errors
from ._http import Budget, Event, Transport, _backoff, current_scope
from ._query import Evidence, Query, Variable
from ._results import IMPOSSIBLE, MAP, MPE, Answer, Information, Joint, Posteriors, Result, Samples, Sensitivity
from ._source import Model

# Seconds without an event or a heartbeat after which a stream of events counts as broken.
SILENCE = 45.0


class _Default:
    """Stands for the client's timeout."""


DEFAULT = _Default()

Seconds = Union[float, None, _Default]

T = TypeVar("T")

Progress = Callable[[Mapping[str, Any]], None]


class Client:
    """A client of one gateway. Its methods may be called from any thread.

    url:      of the gateway, http://HOST:PORT or https://…
    key:      for gateways that are started with keys.
    tenant:   whose the jobs are, where the key does not say it.
    timeout:  seconds that a call may take, retries and waiting for the answer among them; None: as many as it takes.
    retries:  how often a request is sent again when the gateway is busy (it says after which time) or cannot be reached.
              No job is done twice: the client chooses its id, and the same request under the same id is one job.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8080",
        *,
        key: Optional[str] = None,
        tenant: Optional[str] = None,
        timeout: Optional[float] = 60.0,
        retries: int = 6,
        ssl_context: Optional[ssl.SSLContext] = None,
    ) -> None:
        self._http = Transport(url, key, retries, ssl_context)
        self._tenant = tenant
        self._timeout = timeout
        self.models = Models(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    @property
    def url(self) -> str:
        """The URL of the gateway."""
        return self._http.url

    def close(self) -> None:
        """Closes the connections that are open. The client may be used again."""
        self._http.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    # Everything in one: infer, submit.

    def infer(
        self,
        model: Model,
        evidence: Optional[Evidence] = None,
        *,
        marginals: bool = False,
        targets: Optional[Sequence[Variable]] = None,
        joint: Optional[Sequence[Variable]] = None,
        event: Optional[Evidence] = None,
        mpe: bool = False,
        best: int = 0,
        map: Optional[Sequence[Variable]] = None,
        samples: int = 0,
        seed: int = 0,
        gradients: bool = False,
        sensitivity: Any = None,
        information: Any = None,
        conflict: Optional[bool] = None,
        do: Optional[Evidence] = None,
        believe: Optional[Evidence] = None,
        queries: Optional[Sequence[Query]] = None,
        settings: Optional[Mapping[str, Any]] = None,
        format: Optional[str] = None,
        job: Optional[str] = None,
        deadline: Optional[float] = None,
        timeout: Seconds = DEFAULT,
        progress: Optional[Progress] = None,
    ) -> Answer:
        """Asks about a model and waits for the answer.

        model:     a path, a text or bytes (of any format the gateway reads), a native dictionary, the name of a registered model
                   ("alarm", "alarm@3", a digest or its prefix), or a model of pgmpy or pyAgrum.
        evidence:  variable → state's name, position, or a weight per state ([0.8, 0.2] or {"yes": 0.8, "no": 0.2}).
        do:        variable → the state that it is set to: of a Bayesian network, whose tables of these variables are cut out.
        believe:   variable → the posterior that it has in the answer, whatever the evidence says of it ([0.8, 0.2], or by state).
        best:      with mpe: so many most probable assignments, the first as mpe, the next ones as its others.
        conflict:  whether to look, if the evidence is impossible, which observations contradict each other. Without it yes, unless there
                   are beliefs.
        queries:   dictionaries with the arguments from evidence to believe, in place of these: many queries of one job.
        settings:  how to compute, as docs/reference/wire.md lists it.
        deadline:  seconds after which the job ends without an answer.
        progress:  is called with what the service says of the job while it works.

        The job's error is raised; errors of single queries are in their results.
        """
        body = self._body(
            model,
            dict(
                evidence=evidence,
                marginals=marginals,
                targets=targets,
                joint=joint,
                event=event,
                mpe=mpe,
                best=best,
                map=map,
                samples=samples,
                seed=seed,
                gradients=gradients,
                sensitivity=sensitivity,
                information=information,
                conflict=conflict,
                do=do,
                believe=believe,
            ),
            queries,
            settings,
            format,
            job,
            deadline,
        )
        return self._infer(body, timeout, progress)

    def submit(
        self,
        model: Model,
        evidence: Optional[Evidence] = None,
        *,
        marginals: bool = False,
        targets: Optional[Sequence[Variable]] = None,
        joint: Optional[Sequence[Variable]] = None,
        event: Optional[Evidence] = None,
        mpe: bool = False,
        best: int = 0,
        map: Optional[Sequence[Variable]] = None,
        samples: int = 0,
        seed: int = 0,
        gradients: bool = False,
        sensitivity: Any = None,
        information: Any = None,
        conflict: Optional[bool] = None,
        do: Optional[Evidence] = None,
        believe: Optional[Evidence] = None,
        queries: Optional[Sequence[Query]] = None,
        settings: Optional[Mapping[str, Any]] = None,
        format: Optional[str] = None,
        job: Optional[str] = None,
        deadline: Optional[float] = None,
        timeout: Seconds = DEFAULT,
    ) -> str:
        """Asks as infer does, and returns the job's id at once, for wait, events and cancel."""
        body = self._body(
            model,
            dict(
                evidence=evidence,
                marginals=marginals,
                targets=targets,
                joint=joint,
                event=event,
                mpe=mpe,
                best=best,
                map=map,
                samples=samples,
                seed=seed,
                gradients=gradients,
                sensitivity=sensitivity,
                information=information,
                conflict=conflict,
                do=do,
                believe=believe,
            ),
            queries,
            settings,
            format,
            job,
            deadline,
        )
        return self._submit(body, self._budget(timeout))

    # One question each. Warnings of the answer come as Python warnings, of class AnswerWarning.

    def marginals(
        self,
        model: Model,
        evidence: Optional[Evidence] = None,
        targets: Optional[Sequence[Variable]] = None,
        *,
        timeout: Seconds = DEFAULT,
    ) -> Posteriors:
        """Returns P(variable = state | evidence) of the targets, or of all variables."""
        r = self.infer(model, evidence, marginals=True, targets=targets, timeout=timeout)
        return _need(r[0].check().posteriors, r[0], "marginals")

    def joint(
        self,
        model: Model,
        variables: Sequence[Variable],
        evidence: Optional[Evidence] = None,
        *,
        timeout: Seconds = DEFAULT,
    ) -> Joint:
        """Returns P(variables | evidence)."""
        r = self.infer(model, evidence, joint=variables, timeout=timeout)
        return _need(r[0].check().joint, r[0], "joint")

    def probability(
        self,
        model: Model,
        event: Evidence,
        evidence: Optional[Evidence] = None,
        *,
        timeout: Seconds = DEFAULT,
    ) -> float:
        """Returns P(event | evidence)."""
        answer = self.infer(model, evidence, event=event, timeout=timeout)
        answer[0].check()
        last = answer[-1]
        if last.error is not None:
            raise last.error
        return _need(last.probability, last, "probability")

    def mpe(self, model: Model, evidence: Optional[Evidence] = None, *, best: int = 0, timeout: Seconds = DEFAULT) -> MPE:
        """Returns the likeliest states of all variables given the evidence: with best so many, the next best ones as its others."""
        r = self.infer(model, evidence, mpe=True, best=best, timeout=timeout)
        return _need(r[0].check().mpe, r[0], "mpe")

    def map(
        self,
        model: Model,
        variables: Sequence[Variable],
        evidence: Optional[Evidence] = None,
        *,
        timeout: Seconds = DEFAULT,
    ) -> MAP:
        """Returns the likeliest states of some variables given the evidence, the others summed out."""
        r = self.infer(model, evidence, map=variables, timeout=timeout)
        return _need(r[0].check().map, r[0], "map")

    def sample(
        self,
        model: Model,
        n: int,
        evidence: Optional[Evidence] = None,
        *,
        seed: int = 0,
        timeout: Seconds = DEFAULT,
    ) -> Samples:
        """Returns n independent samples of all variables given the evidence: the same ones for the same seed."""
        r = self.infer(model, evidence, samples=n, seed=seed, timeout=timeout)
        return _need(r[0].check().samples, r[0], "samples")

    def gradients(self, model: Model, evidence: Optional[Evidence] = None, *, timeout: Seconds = DEFAULT) -> List[List[float]]:
        """Returns ∂ ln Z/∂θ for every number θ of every factor: by factor a list in the order of its table."""
        r = self.infer(model, evidence, gradients=True, timeout=timeout)
        return _need((r[0].check().raw.get("gradients") or {}).get("by"), r[0], "gradients")

    def sensitivity(
        self,
        model: Model,
        target: Any,
        evidence: Optional[Evidence] = None,
        *,
        timeout: Seconds = DEFAULT,
    ) -> Sensitivity:
        """Returns how P(target | evidence) moves with every parameter. The target is {variable: value}."""
        r = self.infer(model, evidence, sensitivity=target, timeout=timeout)
        return _need(r[0].check().sensitivity, r[0], "sensitivity")

    def information(
        self,
        model: Model,
        target: Variable,
        candidates: Optional[Sequence[Variable]] = None,
        evidence: Optional[Evidence] = None,
        *,
        timeout: Seconds = DEFAULT,
    ) -> Information:
        """Returns what observing each candidate would tell of the target, the most telling first."""
        question = {"target": target, "candidates": candidates}
        r = self.infer(model, evidence, information=question, timeout=timeout)
        return _need(r[0].check().information, r[0], "information")

    ask_next = information

    # Jobs.

    def wait(self, job: str, *, timeout: Seconds = DEFAULT, progress: Optional[Progress] = None) -> Answer:
        """Returns a job's answer as soon as there is one. A timeout ends the wait, not the job."""
        return self._wait(job, self._budget(timeout), progress)

    def events(self, job: str, *, timeout: Seconds = None) -> Generator[Event, None, None]:
        """Yields what happens to a job: events named job (how it is), progress (what a stage said), and last answer."""
        return self._events(job, self._budget(timeout))

    def job(self, job: str, *, timeout: Seconds = DEFAULT) -> Dict[str, Any]:
        """Returns what is known of a job: its answer, or its state."""
        return _object(self._get(f"/v1/jobs/{_quoted(job)}", self._budget(timeout), job=job))

    def jobs(
        self,
        *,
        tenant: Optional[str] = None,
        state: Optional[str] = None,
        limit: Optional[int] = None,
        after: Optional[str] = None,
        timeout: Seconds = DEFAULT,
    ) -> Dict[str, Any]:
        """Returns a page of the jobs that are kept."""
        query = {"tenant": tenant, "state": state, "limit": limit, "after": after}
        return _object(self._get("/v1/jobs", self._budget(timeout), query))

    def cancel(self, job: str, *, timeout: Seconds = DEFAULT) -> Answer:
        """Ends a job without a result, and returns how it ended: one that had its answer keeps it."""
        response = self._http.request("DELETE", f"/v1/jobs/{_quoted(job)}", budget=self._budget(timeout), job=job)
        return Answer(_object(response.json()))

    def status(self, *, timeout: Seconds = DEFAULT) -> Dict[str, Any]:
        """Returns the state of workers, lanes and backlog."""
        return _object(self._get("/v1/status", self._budget(timeout)))

    # What the verbs are made of.

    def _budget(self, timeout: Seconds) -> Budget:
        return Budget(self._timeout if isinstance(timeout, _Default) else timeout)

    def _get(
        self, path: str, budget: Budget, query: Optional[Mapping[str, Any]] = None, job: Optional[str] = None
    ) -> Any:
        return self._http.request("GET", path, query=query, budget=budget, job=job).json()

    def _body(
        self,
        model: Model,
        flat: Query,
        queries: Optional[Sequence[Query]],
        settings: Optional[Mapping[str, Any]],
        format: Optional[str],
        job: Optional[str],
        deadline: Optional[float],
    ) -> Dict[str, Any]:
        """Returns the body of a request."""
        if queries is not None and any(v is not None and v is not False and v != 0 for v in flat.values()):
            raise errors.BadInput("a question beside queries: put it into one of them")
        source = _source.source(model, format)
        body: Dict[str, Any] = {
            "job": job or "py-" + uuid.uuid4().hex,
            **source.fields,
            **(_query.build(source, flat) if queries is None else {"queries": _query.request(source, queries)}),
        }
        if settings:
            body["settings"] = dict(settings)
        if self._tenant is not None:
            body["tenant"] = self._tenant
        if deadline is not None:
            body["deadline_ms"] = max(1, round(1000 * deadline))
        return body

    def _infer(self, body: Dict[str, Any], timeout: Seconds, progress: Optional[Progress]) -> Answer:
        budget, queries = self._budget(timeout), body.get("queries") or [body]
        if progress is not None:
            return self._wait(self._submit(body, budget), budget, progress, queries).check()
        response = self._http.request("POST", "/v1/infer", body=_json(body), budget=budget, job=body["job"])
        said = _object(response.json())
        if said.get("status") == "pending":  # it takes longer than the gateway waits
            return self._wait(body["job"], budget, None, queries).check()
        return Answer(said, queries).check()

    def _submit(self, body: Dict[str, Any], budget: Budget) -> str:
        content = _json({**body, "async": True})
        response = self._http.request("POST", "/v1/infer", body=content, budget=budget, job=body["job"])
        return str(_object(response.json()).get("job") or body["job"])

    def _wait(
        self, job: str, budget: Budget, progress: Optional[Progress], queries: Sequence[Mapping[str, Any]] = ()
    ) -> Answer:
        told = set()
        for event in self._events(job, budget):
            if event.name == "answer":
                return Answer(_object(event.data), queries)
            if progress is None:
                continue
            # "job" has what was said before this connection
            said = event.data.get("progress") or () if event.name == "job" else (event.data,)
            for p in said if event.name in ("job", "progress") else ():
                key = (p.get("stage"), p.get("done"), p.get("total"), p.get("text"), p.get("time"))
                if key not in told:
                    told.add(key)
                    progress(p)
        raise errors.Infrastructure("the events of the job ended without its answer", job=job)

    def _events(self, job: str, budget: Budget) -> Generator[Event, None, None]:
        """Yields events up to the answer, over as many connections as it takes."""
        broken = 0
        while True:
            for event in self._http.stream(f"/v1/jobs/{_quoted(job)}/events", budget=budget, silence=SILENCE, job=job):
                broken = 0
                yield event
                if event.name == "answer":
                    return
            state = _object(self._get(f"/v1/jobs/{_quoted(job)}", budget, job=job))
            if _answered(state):
                yield Event("answer", state)
                return
            if not budget.pause(_backoff(broken)):
                raise errors.Timeout("the job has no answer in time", job=job)
            broken += 1


class Models:
    """The models that are registered with the gateway."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def put(
        self,
        model: Model,
        name: Optional[str] = None,
        *,
        format: Optional[str] = None,
        timeout: Seconds = DEFAULT,
    ) -> Dict[str, Any]:
        """Registers a model, under a name if one is given, and returns its digest. The same content again changes nothing."""
        fields = _source.source(model, format).fields
        if "model_name" in fields:
            raise errors.BadInput(f"{model!r} is neither a file nor a model")
        content = fields["text"].encode() if "text" in fields else _json(fields["model"])
        query = {"format": fields.get("format", "json" if "model" in fields else None)}
        response = self._client._http.request(
            "POST" if name is None else "PUT",
            "/v1/models" if name is None else f"/v1/models/{_quoted(name)}",
            query=query,
            body=content,
            content_type="application/json" if "model" in fields else "application/octet-stream",
            budget=self._client._budget(timeout),
        )
        return _object(response.json())

    def get(self, name: str, *, format: Optional[str] = None, timeout: Seconds = DEFAULT) -> Any:
        """Returns a registered model: as a native dictionary, or as text in the format that is named."""
        response = self._client._http.request(
            "GET", f"/v1/models/{_quoted(name)}", query={"format": format}, budget=self._client._budget(timeout)
        )
        return response.json() if format in (None, "json") else response.body.decode("utf-8")

    def list(self, *, timeout: Seconds = DEFAULT) -> List[Dict[str, Any]]:
        """Lists the registered models."""
        listed = self._client._get("/v1/models", self._client._budget(timeout))
        return list(listed["models"] if isinstance(listed, Mapping) else listed)

    def delete(self, name: str, *, timeout: Seconds = DEFAULT) -> None:
        """Removes a registered model."""
        self._client._http.request("DELETE", f"/v1/models/{_quoted(name)}", budget=self._client._budget(timeout))


def _json(value: Any) -> bytes:
    try:
        return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    except (TypeError, ValueError) as e:
        raise errors.BadInput(f"the request is no JSON: {e}") from None


def _object(value: Any) -> Dict[str, Any]:
    if not isinstance(value, dict):
        raise errors.Internal(f"the gateway's answer is a {type(value).__name__} where an object belongs")
    return value


def _answered(state: Mapping[str, Any]) -> bool:
    return state.get("status") in ("ok", "error", "cancelled", "deadline")


def _quoted(name: str) -> str:
    return urllib.parse.quote(name, safe="@")


def _need(value: Optional[T], r: Result, what: str) -> T:
    """Returns what a verb asked for, or raises Unsupported.

    Warnings of the result are Python warnings at the call of the verb. Why an event has probability 0 is none.
    """
    if value is None:
        raise errors.Unsupported(f"the answer has no {what}" + ("".join("; " + w for w in r.warnings)))
    scope = current_scope.get()
    for text in (w for w in r.warnings if not w.startswith(IMPOSSIBLE)):
        if scope is None:
            warnings.warn(text, errors.AnswerWarning, stacklevel=3)
        else:
            scope.warnings.append(text)
    return value
