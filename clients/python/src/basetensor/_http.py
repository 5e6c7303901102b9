"""HTTP on the standard library: connections that stay open, retries, server-sent events."""

from __future__ import annotations

import base64
import contextvars
import gzip
import hashlib
import http.client
import json
import random
import socket
import ssl
import threading
import time
import urllib.parse
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple

from . import errors

# Bodies beyond this many bytes are compressed.
COMPRESS = 256 << 10

# Statuses after which the same request may succeed.
BUSY = (429, 502, 503)

JSON = "application/json"


class Response(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        try:
            return json.loads(self.body)
        except ValueError as e:
            raise errors.Internal(f"the gateway's answer is not JSON: {e}", status=self.status) from e


class Event(NamedTuple):
    """One server-sent event: its name, and its data read as JSON."""

    name: str
    data: Any


class Scope:
    """Ends what a thread does over HTTP, for a coroutine that nobody waits for any more, and keeps the warnings of answers for it."""

    def __init__(self) -> None:
        self.closed = threading.Event()
        self.warnings: List[str] = []
        self._lock = threading.Lock()
        self._sockets: List[socket.socket] = []

    def enter(self, sock: Optional[socket.socket]) -> None:
        with self._lock:
            if sock is not None and sock not in self._sockets:
                self._sockets.append(sock)
        self.check()

    def leave(self, sock: Optional[socket.socket]) -> None:
        with self._lock:
            if sock in self._sockets:
                self._sockets.remove(sock)

    def check(self) -> None:
        if self.closed.is_set():
            raise errors.Cancelled("nobody waits for this call any more")

    def close(self) -> None:
        self.closed.set()
        with self._lock:
            for sock in self._sockets:
                try:
                    sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass


# The scope of the call that this thread makes; None outside of coroutines.
current_scope: "contextvars.ContextVar[Optional[Scope]]" = contextvars.ContextVar("basetensor_scope", default=None)


class Budget:
    """The time that a call has left."""

    def __init__(self, seconds: Optional[float]) -> None:
        self._ends = None if seconds is None else time.monotonic() + seconds

    def left(self) -> Optional[float]:
        return None if self._ends is None else self._ends - time.monotonic()

    def socket_timeout(self, most: Optional[float] = None) -> Optional[float]:
        left = self.left()
        if left is None:
            return most
        return max(0.001, left if most is None else min(left, most))

    def spent(self) -> bool:
        left = self.left()
        return left is not None and left <= 0

    def pause(self, seconds: float) -> bool:
        """Sleeps, and returns whether there is time left after it; does not sleep where there is not."""
        left = self.left()
        if left is not None and seconds >= left:
            return False
        scope = current_scope.get()
        if scope is None:
            time.sleep(seconds)
        elif scope.closed.wait(seconds):
            scope.check()
        return True


class Transport:
    """Requests to one gateway. Its methods may be called from any thread."""

    def __init__(self, url: str, key: Optional[str], retries: int, context: Optional[ssl.SSLContext]) -> None:
        parts = urllib.parse.urlsplit(url if "://" in url else "http://" + url)
        if "@" in parts.netloc:
            raise errors.BadInput("the URL of a gateway has no user or password: key is an argument of its own")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise errors.BadInput(f"{url!r} is not the URL of a gateway: http://HOST:PORT")
        try:
            port = parts.port
        except ValueError as e:
            raise errors.BadInput(f"{url!r} is not the URL of a gateway: {e}") from None
        self.url = f"{parts.scheme}://{parts.hostname}" + (f":{port}" if port else "") + parts.path.rstrip("/")
        self._tls = parts.scheme == "https"
        self._host, self._port, self._prefix = parts.hostname, port, parts.path.rstrip("/")
        self._context = context or (ssl.create_default_context() if self._tls else None)
        self._retries = retries
        self._headers = {"User-Agent": "basetensor-python/1"}
        if key is not None:
            key = key.strip()  # of a file it has the line's end
            if not key or not key.isascii() or not key.isprintable():
                raise errors.BadInput("the key is empty, or has characters that no key has")  # the library's own error would quote it
            self._headers["Authorization"] = f"Bearer {key}"
        self._lock = threading.Lock()
        self._idle: List[http.client.HTTPConnection] = []
        self.ended: Callable[[], Optional[str]] = lambda: None  # why the gateway will not be reached any more, if that is known

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Optional[Mapping[str, Any]] = None,
        body: Optional[bytes] = None,
        content_type: str = JSON,
        budget: Budget,
        job: Optional[str] = None,
    ) -> Response:
        """Sends a request that may be sent twice, until it is answered by something else than *busy*.

        An answer that is an error is raised.
        """
        target, headers, body = self._prepare(path, query, body, content_type)
        attempt = 0
        while True:
            try:
                response = self._once(method, target, headers, body, budget)
            except (OSError, http.client.HTTPException) as e:
                _check_scope()
                if budget.spent() or isinstance(e, socket.timeout):
                    raise errors.Timeout(f"no answer of {self.url} in time", job=job) from e
                ended = self.ended()
                if ended is not None:
                    raise errors.Infrastructure(ended, job=job) from e
                reason: errors.BasetensorError = errors.Infrastructure(f"{self.url}: {e or type(e).__name__}", job=job)
                reason.__cause__ = e
                pause = _backoff(attempt)
            else:
                if response.status < 300:
                    return response
                said = _object(response)
                if said.get("status") == "pending":
                    return response  # the job goes on: the gateway alone is tired of waiting
                reason = self._error(response, said, job)
                if response.status not in BUSY or "results" in said:  # a job that failed has its answer
                    raise reason
                pause = _retry_after(response.headers, _backoff(attempt))
            attempt += 1
            if attempt > self._retries or not budget.pause(pause):
                raise reason

    def stream(self, path: str, *, budget: Budget, silence: float, job: Optional[str] = None) -> Iterator[Event]:
        """Yields the server-sent events of one connection. It ends when the connection does, and at once where the gateway is *busy*.

        A connection on which nothing comes for ``silence`` seconds, no heartbeat either, counts as ended.
        """
        target, headers, _ = self._prepare(path, None, None, JSON)
        headers["Accept"] = "text/event-stream"
        connection = self._connect(budget.socket_timeout(silence))
        scope = current_scope.get()
        try:
            connection.connect()
            if scope:
                scope.enter(connection.sock)
            connection.request("GET", target, headers=headers)
            sock = connection.sock  # the response takes it away from a connection that the server closes
            answer = connection.getresponse()
            if answer.status >= 300:
                response = Response(answer.status, dict(answer.headers), _whole(answer, sock, budget))
                if response.status in BUSY:
                    return
                raise self._error(response, _object(response), job)
            yield from _events(answer, sock, budget, silence)
        except (OSError, http.client.HTTPException) as e:
            _check_scope()
            if budget.spent():
                raise errors.Timeout(f"job {job} has no answer in time", job=job) from e
        finally:
            if scope:
                scope.leave(connection.sock)
            connection.close()

    def _prepare(
        self, path: str, query: Optional[Mapping[str, Any]], body: Optional[bytes], content_type: str
    ) -> Tuple[str, Dict[str, str], Optional[bytes]]:
        headers = dict(self._headers)
        target = self._prefix + path
        given = {k: v for k, v in (query or {}).items() if v is not None}
        if given:
            target += "?" + urllib.parse.urlencode(given)
        if body is not None:
            headers["Content-Type"] = content_type
            if len(body) > COMPRESS:
                body = gzip.compress(body, 1)
                headers["Content-Encoding"] = "gzip"
            headers["Content-Digest"] = _digest(body)
        return target, headers, body

    def _connect(self, timeout: Optional[float]) -> http.client.HTTPConnection:
        if self._tls:
            return http.client.HTTPSConnection(self._host, self._port, timeout=timeout, context=self._context)
        return http.client.HTTPConnection(self._host, self._port, timeout=timeout)

    def _once(
        self, method: str, target: str, headers: Mapping[str, str], body: Optional[bytes], budget: Budget
    ) -> Response:
        """Sends a request once, or twice where a connection that was idle turns out to be closed."""
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        if connection is not None:
            try:
                return self._exchange(connection, method, target, headers, body, budget)
            except socket.timeout:
                raise
            except (OSError, http.client.HTTPException):
                _check_scope()
        return self._exchange(self._connect(None), method, target, headers, body, budget)

    def _exchange(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: Optional[bytes],
        budget: Budget,
    ) -> Response:
        scope = current_scope.get()
        kept = False
        sock: Any = None
        try:
            connection.timeout = budget.socket_timeout()
            if connection.sock is None:
                connection.connect()  # without Nagle's delay: http.client sees to it
            sock = connection.sock
            sock.settimeout(connection.timeout)
            if scope:
                scope.enter(sock)
            connection.request(method, target, body=body, headers=dict(headers))
            answer = connection.getresponse()
            headers = {k.lower(): v for k, v in answer.getheaders()}
            response = Response(answer.status, headers, _whole(answer, sock, budget))
            kept = not answer.will_close
            if headers.get("content-digest", "").startswith("sha-256=") and headers["content-digest"] != _digest(response.body):
                raise http.client.HTTPException("the response was damaged on its way")
            return response
        finally:
            if scope:
                scope.leave(sock)
            if kept:
                with self._lock:
                    self._idle.append(connection)
            else:
                connection.close()

    def _error(self, response: Response, said: Mapping[str, Any], job: Optional[str]) -> errors.BasetensorError:
        info = said.get("error")
        if not isinstance(info, Mapping):
            text = response.body[:200].decode("utf-8", "replace").strip()
            info = {"message": f"HTTP status {response.status}" + (f": {text}" if text else "")}
        return errors.from_info(info, response.status, job)


def _digest(body: bytes) -> str:
    """Returns the header Content-Digest of a body as it travels (RFC 9530)."""
    return "sha-256=:" + base64.b64encode(hashlib.sha256(body).digest()).decode("ascii") + ":"


def _whole(answer: http.client.HTTPResponse, sock: Any, budget: Budget) -> bytes:
    """Reads a body within the budget, however slowly it comes: the timeout of a socket is for its next bytes alone."""
    parts = []
    while True:
        if budget.spent():
            raise socket.timeout("the body did not come in time")
        sock.settimeout(budget.socket_timeout())
        part = answer.read1(1 << 16)
        if not part:
            break
        parts.append(part)
    if answer.length:
        raise http.client.IncompleteRead(b"".join(parts), answer.length)
    answer.read()  # nothing: the connection may be used again
    return b"".join(parts)


def _object(response: Response) -> Mapping[str, Any]:
    """Returns the object that a body is, or an empty one."""
    try:
        value = json.loads(response.body)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _check_scope() -> None:
    scope = current_scope.get()
    if scope:
        scope.check()


def _backoff(attempt: int) -> float:
    """Returns the pause after a number of attempts: 0.1 s, doubling up to 5 s, less a random half."""
    return min(5.0, 0.1 * 2.0**attempt) * (0.5 + 0.5 * random.random())


def _retry_after(headers: Mapping[str, str], otherwise: float) -> float:
    try:
        return max(float(headers.get("retry-after", "")), 0.0)
    except ValueError:
        return otherwise


def _events(answer: http.client.HTTPResponse, sock: Any, budget: Budget, silence: float) -> Iterator[Event]:
    """Reads server-sent events: lines ``event:`` and ``data:``, an empty line after each."""
    name, data = "message", []  # type: str, List[str]
    while True:
        sock.settimeout(budget.socket_timeout(silence))
        line = answer.readline()
        if not line:
            return
        text = line.decode("utf-8").rstrip("\r\n")
        if not text:
            if data:
                yield Event(name, json.loads("\n".join(data)))
            name, data = "message", []
        elif not text.startswith(":"):  # else a comment: a heartbeat
            field, _, value = text.partition(":")
            value = value[1:] if value.startswith(" ") else value
            if field == "event":
                name = value
            elif field == "data":
                data.append(value)
