"""The client for coroutines: the same verbs, each of which is awaited.

Every call has a thread while it is under way. A call whose coroutine is cancelled ends at once, and its connection with it;
a job that was submitted goes on.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import ssl
import warnings
from typing import Any, AsyncIterator, Callable, Dict, List, Mapping, Optional, Sequence, TypeVar

from ._http import Event, Scope, current_scope
from ._query import Evidence, Query, Variable
from ._results import MAP, MPE, Answer, Information, Joint, Posteriors, Samples, Sensitivity
from ._source import Model
from .client import DEFAULT, Client, Progress, Seconds
from .errors import AnswerWarning

T = TypeVar("T")


class _Threads:
    """Runs calls in threads, as many at one time as are allowed."""

    def __init__(self, concurrency: int) -> None:
        self._pool = concurrent.futures.ThreadPoolExecutor(concurrency, "basetensor")

    async def run(self, call: Callable[[], T], scope: Optional[Scope] = None) -> T:
        scope = scope or Scope()
        context = contextvars.copy_context()
        context.run(current_scope.set, scope)
        try:
            result = await asyncio.get_running_loop().run_in_executor(self._pool, lambda: context.run(call))
        except asyncio.CancelledError:
            scope.close()
            raise
        for text in scope.warnings:
            warnings.warn(text, AnswerWarning, stacklevel=3)  # of who awaits the verb
        return result

    def close(self) -> None:
        self._pool.shutdown(wait=False)


def _in_loop(progress: Optional[Progress]) -> Optional[Progress]:
    """Returns a function that calls progress in the loop that runs now."""
    if progress is None:
        return None
    loop, f = asyncio.get_running_loop(), progress

    def tell(p: Mapping[str, Any]) -> None:
        loop.call_soon_threadsafe(f, p)

    return tell


class AsyncClient:
    """A client of one gateway for coroutines. Arguments and results are those of Client.

    concurrency:  how many calls may be under way at one time; others wait.
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
        concurrency: int = 32,
    ) -> None:
        self._sync = Client(url, key=key, tenant=tenant, timeout=timeout, retries=retries, ssl_context=ssl_context)
        self._threads = _Threads(concurrency)
        self.models = AsyncModels(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    @property
    def url(self) -> str:
        """The URL of the gateway."""
        return self._sync.url

    async def close(self) -> None:
        """Closes the connections and the threads. The client may not be used after it."""
        self._threads.close()
        self._sync.close()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.close()

    async def infer(
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
        """Client.infer. ``progress`` is called in the loop of the caller."""
        told = _in_loop(progress)
        return await self._threads.run(
            lambda: self._sync.infer(
                model,
                evidence,
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
                queries=queries,
                settings=settings,
                format=format,
                job=job,
                deadline=deadline,
                timeout=timeout,
                progress=told,
            )
        )

    async def submit(
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
        """Client.submit."""
        return await self._threads.run(
            lambda: self._sync.submit(
                model,
                evidence,
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
                queries=queries,
                settings=settings,
                format=format,
                job=job,
                deadline=deadline,
                timeout=timeout,
            )
        )

    async def marginals(
        self,
        model: Model,
        evidence: Optional[Evidence] = None,
        targets: Optional[Sequence[Variable]] = None,
        *,
        timeout: Seconds = DEFAULT,
    ) -> Posteriors:
        """Client.marginals."""
        return await self._threads.run(lambda: self._sync.marginals(model, evidence, targets, timeout=timeout))

    async def joint(
        self,
        model: Model,
        variables: Sequence[Variable],
        evidence: Optional[Evidence] = None,
        *,
        timeout: Seconds = DEFAULT,
    ) -> Joint:
        """Client.joint."""
        return await self._threads.run(lambda: self._sync.joint(model, variables, evidence, timeout=timeout))

    async def probability(
        self, model: Model, event: Evidence, evidence: Optional[Evidence] = None, *, timeout: Seconds = DEFAULT
    ) -> float:
        """Client.probability."""
        return await self._threads.run(lambda: self._sync.probability(model, event, evidence, timeout=timeout))

    async def mpe(
        self, model: Model, evidence: Optional[Evidence] = None, *, best: int = 0, timeout: Seconds = DEFAULT
    ) -> MPE:
        """Client.mpe."""
        return await self._threads.run(lambda: self._sync.mpe(model, evidence, best=best, timeout=timeout))

    async def map(
        self,
        model: Model,
        variables: Sequence[Variable],
        evidence: Optional[Evidence] = None,
        *,
        timeout: Seconds = DEFAULT,
    ) -> MAP:
        """Client.map."""
        return await self._threads.run(lambda: self._sync.map(model, variables, evidence, timeout=timeout))

    async def sample(
        self, model: Model, n: int, evidence: Optional[Evidence] = None, *, seed: int = 0, timeout: Seconds = DEFAULT
    ) -> Samples:
        """Client.sample."""
        return await self._threads.run(lambda: self._sync.sample(model, n, evidence, seed=seed, timeout=timeout))

    async def gradients(
        self, model: Model, evidence: Optional[Evidence] = None, *, timeout: Seconds = DEFAULT
    ) -> List[List[float]]:
        """Client.gradients."""
        return await self._threads.run(lambda: self._sync.gradients(model, evidence, timeout=timeout))

    async def sensitivity(
        self, model: Model, target: Any, evidence: Optional[Evidence] = None, *, timeout: Seconds = DEFAULT
    ) -> Sensitivity:
        """Client.sensitivity."""
        return await self._threads.run(lambda: self._sync.sensitivity(model, target, evidence, timeout=timeout))

    async def information(
        self,
        model: Model,
        target: Variable,
        candidates: Optional[Sequence[Variable]] = None,
        evidence: Optional[Evidence] = None,
        *,
        timeout: Seconds = DEFAULT,
    ) -> Information:
        """Client.information."""
        return await self._threads.run(lambda: self._sync.information(model, target, candidates, evidence, timeout=timeout))

    ask_next = information

    async def wait(self, job: str, *, timeout: Seconds = DEFAULT, progress: Optional[Progress] = None) -> Answer:
        """Client.wait. ``progress`` is called in the loop of the caller."""
        told = _in_loop(progress)
        return await self._threads.run(lambda: self._sync.wait(job, timeout=timeout, progress=told))

    async def events(self, job: str, *, timeout: Seconds = None) -> AsyncIterator[Event]:
        """Client.events."""
        events, scope = self._sync.events(job, timeout=timeout), Scope()
        try:
            while True:
                event = await self._threads.run(lambda: next(events, None), scope)
                if event is None:
                    return
                yield event
        except GeneratorExit:
            events.close()
            raise

    async def job(self, job: str, *, timeout: Seconds = DEFAULT) -> Dict[str, Any]:
        """Client.job."""
        return await self._threads.run(lambda: self._sync.job(job, timeout=timeout))

    async def jobs(
        self,
        *,
        tenant: Optional[str] = None,
        state: Optional[str] = None,
        limit: Optional[int] = None,
        after: Optional[str] = None,
        timeout: Seconds = DEFAULT,
    ) -> Dict[str, Any]:
        """Client.jobs."""
        return await self._threads.run(
            lambda: self._sync.jobs(
                tenant=tenant, state=state, limit=limit, after=after, timeout=timeout
            )
        )

    async def cancel(self, job: str, *, timeout: Seconds = DEFAULT) -> Answer:
        """Client.cancel."""
        return await self._threads.run(lambda: self._sync.cancel(job, timeout=timeout))

    async def status(self, *, timeout: Seconds = DEFAULT) -> Dict[str, Any]:
        """Client.status."""
        return await self._threads.run(lambda: self._sync.status(timeout=timeout))


class AsyncModels:
    """The models that are registered with the gateway."""

    def __init__(self, client: AsyncClient) -> None:
        self._threads, self._sync = client._threads, client._sync.models

    async def put(
        self,
        model: Model,
        name: Optional[str] = None,
        *,
        format: Optional[str] = None,
        timeout: Seconds = DEFAULT,
    ) -> Dict[str, Any]:
        """Models.put."""
        return await self._threads.run(lambda: self._sync.put(model, name, format=format, timeout=timeout))

    async def get(self, name: str, *, format: Optional[str] = None, timeout: Seconds = DEFAULT) -> Any:
        """Models.get."""
        return await self._threads.run(lambda: self._sync.get(name, format=format, timeout=timeout))

    async def list(self, *, timeout: Seconds = DEFAULT) -> List[Dict[str, Any]]:
        """Models.list."""
        return await self._threads.run(lambda: self._sync.list(timeout=timeout))

    async def delete(self, name: str, *, timeout: Seconds = DEFAULT) -> None:
        """Models.delete."""
        await self._threads.run(lambda: self._sync.delete(name, timeout=timeout))
