"""A service of this process alone: a ``btn`` that is started and ended with its client."""

from __future__ import annotations

import collections
import os
import shutil
import subprocess
import threading
import weakref
from typing import Deque, Dict, Optional, Sequence, Union

from . import errors
from ._http import Transport
from .client import Client

Path = Union[str, "os.PathLike[str]"]

# Where a wheel for one platform has the program.
PACKAGED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "btn.exe" if os.name == "nt" else "btn")

# How many last lines of its log an error shows.
LOG_LINES = 20

# Seconds that a btn gets to end by itself.
GRACE = 10.0


class LocalClient(Client):
    """A client of a service that it has started: see local."""

    def __init__(self, process: "_Process", *, timeout: Optional[float]) -> None:
        super().__init__(process.url, timeout=timeout)
        self._http.ended = process.ended
        # called also if nobody has the client any more, and when the interpreter exits
        self._end = weakref.finalize(self, _end, self._http, process)

    def close(self) -> None:
        """Ends the service, and closes the connections. Its jobs and registered models are gone, unless it has a folder."""
        self._end()


def _end(connections: Transport, process: "_Process") -> None:
    connections.close()
    process.end()


def local(
    btn: Optional[Path] = None,
    *,
    folder: Optional[Path] = None,
    flags: Sequence[str] = (),
    timeout: Optional[float] = 60.0,
    start_timeout: float = 60.0,
) -> LocalClient:
    """Starts a service for this process alone, and returns a client of it, which ends it on close.

    btn:            the program. Without it: the one that the environment variable BTN names, the one in this package, the one on PATH.
    folder:         where jobs, answers and registered models outlive the service. Without it they are kept in memory.
    flags:          further flags of ``btn up``, as ("--memory-limit", "4GiB"). Environment variables BTN_… do not count.
    timeout:        seconds that a call may take, as of Client.
    start_timeout:  seconds that the service may take to start.

    The service listens on free ports of 127.0.0.1 and asks nobody for a key: users of this machine may reach it. It ends with its client,
    with the interpreter, and when the interpreter dies. Infrastructure is raised if there is no program, or if it does not start.
    """
    argv = [find(btn), "up", "--end-with-input", "--port", "0", "--gateway", "127.0.0.1:0"]
    if folder is not None:
        argv += ["--dir", os.path.abspath(os.fspath(folder))]
    return LocalClient(_Process([*argv, *flags], start_timeout), timeout=timeout)


def find(btn: Optional[Path] = None) -> str:
    """Returns the path of the program. One that is named explicitly has to be there: no other one is taken in its place."""
    for place, named in (("the argument btn", btn), ("the environment variable BTN", os.environ.get("BTN") or None)):
        if named is not None:
            found = shutil.which(os.fspath(named))
            if found is None:
                raise errors.Infrastructure(f"{place} is {os.fspath(named)!r}, and no program is there")
            return os.path.abspath(found)
    found = shutil.which(PACKAGED) or shutil.which("btn")
    if found is None:
        raise errors.Infrastructure(
            "there is no program btn: the argument btn is not given, the environment variable BTN is not set, "
            f"{PACKAGED} is absent (wheels for one platform have it), and no folder of PATH has a btn. `go build ./cmd/btn` makes one."
        )
    return os.path.abspath(found)


def _environment() -> Dict[str, str]:
    """Returns this process's environment without the settings of btn, which may be about another service."""
    return {name: value for name, value in os.environ.items() if not name.startswith("BTN_")}


class _Process:
    """A running ``btn up``. It ends when its standard input does, which this process alone holds."""

    def __init__(self, argv: Sequence[str], seconds: float) -> None:
        self._owner = os.getpid()
        self._log: Deque[str] = collections.deque(maxlen=LOG_LINES)
        self._ready = threading.Event()
        self._url = ""
        try:
            self._child = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=_environment(),
                encoding="utf-8",
                errors="replace",
                start_new_session=True,  # an interrupt of the terminal or the notebook is for the call that waits
                creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0) | getattr(subprocess, "CREATE_NO_WINDOW", 0),
            )
        except OSError as e:
            raise errors.Infrastructure(f"{argv[0]} cannot be run: {e}") from e
        self._readers = [threading.Thread(target=read, daemon=True) for read in (self._read_output, self._read_log)]
        for reader in self._readers:
            reader.start()
        try:
            ended = self._ready.wait(seconds)
            if not self._url:
                self.end()
                reason = f"ended with exit code {self._child.returncode}" if ended else f"was not ready within {seconds:g} s"
                raise errors.Infrastructure(self._with_log(f"{' '.join(argv)} {reason}"))
        except BaseException:  # an interrupt while it starts, too
            self.end()
            raise

    @property
    def url(self) -> str:
        return self._url

    def ended(self) -> Optional[str]:
        """Returns that the program has ended, and the end of its log; None while it runs."""
        code = self._child.poll()
        return None if code is None else self._with_log(f"the service at {self._url} has ended with exit code {code}")

    def _with_log(self, text: str) -> str:
        log = list(self._log)  # a thread appends to it
        return "\n  ".join([text + ":", *log]) if log else text

    def end(self) -> None:
        """Ends the program and waits for that. A process that was forked from this one leaves it alone."""
        if os.getpid() != self._owner:
            return
        child = self._child
        if child.stdin is not None and not child.stdin.closed:
            try:
                child.stdin.close()
            except OSError:
                pass  # it has ended
        try:
            child.wait(GRACE)
        except subprocess.TimeoutExpired:  # a fork of this process holds its input, or it hangs
            child.kill()
            child.wait()
        for reader, stream in zip(self._readers, (child.stdout, child.stderr)):
            if reader is not threading.current_thread():  # in which garbage is collected
                reader.join(GRACE)
            if stream is not None and not reader.is_alive():  # else a child of the program holds its other end
                stream.close()

    def _read_output(self) -> None:
        """Reads the addresses that it prints, up to the line that says that it is ready, and drops what follows."""
        assert self._child.stdout is not None
        url = ""
        for line in self._child.stdout:
            what, _, rest = line.partition(" ")
            if what == "gateway":
                url = rest.strip()
            elif what == "ready;":
                self._url = url
                self._ready.set()
        self._ready.set()

    def _read_log(self) -> None:
        assert self._child.stderr is not None
        for line in self._child.stderr:
            self._log.append(line.rstrip())
