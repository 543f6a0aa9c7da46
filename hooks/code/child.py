"""The program that runs one turn code: a process of its own, with the standard library and nothing else.

It is started with this file's path, without the packages of the worker, so it imports nothing of ours. It gets one
line of JSON on its standard input and answers with lines of JSON on its standard output: any number of `log` and
`fetch` (which is answered by a line on standard input), then one of `result`, `skipped`, `invalid` or `error`.

What is shut here (sockets, processes, files) is shut from inside Python: it stops mistakes, and it is no boundary
against code that sets out to break it.
"""

from __future__ import annotations

import ast
import json
import os
import signal
import sys
from collections.abc import Callable, Generator
from typing import IO, Any, Final, NoReturn

FILE_NAME: Final = "<turn code>"
FUNCTION: Final = "before_turn"
FIELDS: Final = ("messages", "system", "model", "temperature")
MAX_LOG_CHARACTERS: Final = 8192
"""More than a log line keeps: the worker cuts it, with a mark."""
MAX_OPEN_FILES: Final = 64
TIME_ZONES: Final = ("/usr/share/zoneinfo", "/usr/lib/zoneinfo", "/usr/share/lib/zoneinfo", "/etc/zoneinfo")
"""Where `zoneinfo` looks for its data; besides the standard library, all that the code may read."""

_SHUT: Final = {
    "open no sockets; call fetch(url)": ("socket.",),
    "start no processes": ("subprocess.", "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.startfile", "pty."),
    "send no signals": ("os.kill", "signal.pthread_kill"),
    "not change its limits": ("resource.",),
    "call no native code": ("ctypes.",),
    "change no files": (
        *("os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate", "os.utime"),
        *("os.chmod", "os.chown", "shutil.", "sqlite3."),
    ),
}


class FetchError(Exception):
    """A request of the turn code was refused or failed."""


class Response:
    """The answer to a request; may be awaited, which changes nothing."""

    def __init__(self, status: int, headers: dict[str, str], text: str) -> None:
        self.status, self.headers, self.text = status, headers, text
        self.ok = 200 <= status < 300

    def json(self) -> Any:
        """The body as JSON. Raises ValueError."""
        return json.loads(self.text)

    def __await__(self) -> Generator[None, None, Response]:
        yield from ()
        return self


class Line:
    """The pipe to the worker. All text on it is ASCII."""

    def __init__(self, incoming: IO[str], outgoing: IO[str]) -> None:
        self._incoming, self._outgoing = incoming, outgoing
        self.max_log_lines = self._logged = 0
        self.printed = Printed(self)

    def receive(self) -> dict[str, Any]:
        """Waits for the worker's next message."""
        message: dict[str, Any] = json.loads(self._incoming.readline())
        return message

    def send(self, **message: object) -> None:
        self._outgoing.write(json.dumps(message) + "\n")
        self._outgoing.flush()

    def end(self, **message: object) -> NoReturn:
        """Sends the last message and ends the process, whatever threads still run."""
        self.printed.finish()
        self.send(**message, dropped=max(0, self._logged - self.max_log_lines))
        os._exit(0)

    def log(self, message: object, data: object = None, level: str = "info") -> None:
        """Adds a line to the trace of this run."""
        self._logged += 1
        if self._logged > self.max_log_lines:
            return
        try:
            text = json.dumps(data, default=repr)
        except (TypeError, ValueError, RecursionError):
            text = json.dumps(repr(data))
        data = json.loads(text) if len(text) <= MAX_LOG_CHARACTERS else text[:MAX_LOG_CHARACTERS]
        self.send(log={"message": str(message)[:MAX_LOG_CHARACTERS], "data": data, "level": str(level)})

    def fetch(
        self,
        url: str,
        method: str = "GET",
        headers: dict[str, str] | None = None,
        body: object = None,
        timeout: float = 10,
    ) -> Response:
        """Asks the worker for an HTTP request; it reaches only the hosts that the hook lists. A body that is no text is
        sent as JSON. timeout: seconds. Raises FetchError."""
        self.send(fetch={"url": url, "method": method, "headers": headers or {}, "body": body, "timeout": timeout})
        answer = self.receive()
        if "failed" in answer:
            raise FetchError(answer["failed"])
        return Response(**answer)


class Printed:
    """Standard output of the code: each line that it prints is a debug line of its log."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._begun = ""

    def write(self, text: str) -> int:
        *whole, self._begun = (self._begun + text).split("\n")
        for words in whole:
            self._log(words)
        if len(self._begun) > MAX_LOG_CHARACTERS:
            self.finish()
        return len(text)

    def flush(self) -> None:
        """Waits for the line's end: print() writes its pieces one by one."""

    def finish(self) -> None:
        """Logs what has no line end."""
        words, self._begun = self._begun, ""
        self._log(words)

    def _log(self, words: str) -> None:
        if words.strip():
            self._line.log(words, level="debug")


def declared(tree: ast.Module) -> list[str]:
    """The names of the functions that stand at the top level of a code."""
    return [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def main() -> None:
    """Runs the code that comes in on standard input."""
    line, request = _take_over()
    try:
        tree = ast.parse(request["source"], FILE_NAME)
        functions = declared(tree)
        if functions and FUNCTION not in functions:
            line.end(skipped=functions)
        code = compile(tree, FILE_NAME, "exec")
        _limit(request["limits"])
        run = _runner(tree)
        _shut()
        _answer(line, code, request["data"], request["runtime"], run)
    except SystemExit as error:
        line.end(error=f"tried to end the process: sys.exit({error.code!r})"[:MAX_LOG_CHARACTERS])
    except BaseException as error:
        line.end(error=_described(error)[:MAX_LOG_CHARACTERS])


def _take_over() -> tuple[Line, dict[str, Any]]:
    """Moves the pipe away from the standard streams, which belong to the code from here on."""
    incoming = os.fdopen(os.dup(0), encoding="ascii")
    outgoing = os.fdopen(os.dup(1), "w", encoding="ascii")
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream, inheritable=False)
    line = Line(incoming, outgoing)
    request = line.receive()
    line.max_log_lines = request["limits"]["log_lines"]
    sys.stdout = sys.stderr = line.printed
    return line, request


def _limit(limits: dict[str, Any]) -> None:
    """Limits that hold even if the worker is gone: CPU and wall-clock seconds, bytes of memory, no files, no children.

    Windows has none of these; there the worker's deadline is the only limit.
    """
    try:
        import resource
    except ImportError:
        return
    seconds = int(limits["seconds"]) + 2
    signal.setitimer(signal.ITIMER_REAL, seconds)
    wanted = {
        resource.RLIMIT_CPU: seconds,
        resource.RLIMIT_AS: int(limits["memory"]),
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: MAX_OPEN_FILES,
        resource.RLIMIT_NPROC: 0,
    }
    for kind, limit in wanted.items():
        _, most = resource.getrlimit(kind)
        value = limit if most == resource.RLIM_INFINITY else min(limit, most)
        try:
            resource.setrlimit(kind, (value, value))
        except (OSError, ValueError):  # macOS refuses a limit on the address space
            if kind != resource.RLIMIT_AS:
                raise


def _runner(tree: ast.Module) -> Callable[[Any], Any]:
    """What makes a value of an awaitable; its event loop, if one is needed, exists before sockets are shut."""
    if not any(isinstance(node, ast.AsyncFunctionDef) for node in ast.walk(tree)):
        return lambda answer: answer
    import asyncio

    runner = asyncio.Runner()
    runner.get_loop()
    return lambda answer: runner.run(answer) if asyncio.iscoroutine(answer) else answer


def _shut() -> None:
    """Refuses what the code has no business with, from here on and for good."""
    resolve, separator = os.path.realpath, os.sep
    folders = (os.path.dirname(os.__file__), *TIME_ZONES)  # noqa: PTH120 - pathlib is slow to import
    readable = tuple(resolve(folder).rstrip(separator) + separator for folder in folders)
    writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    refused = tuple((prefix, reason) for reason, prefixes in _SHUT.items() for prefix in prefixes)

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            inside = isinstance(path, str | bytes) and resolve(os.fsdecode(path)).startswith(readable)
            if not isinstance(path, int) and (flags & writing or not inside):
                raise PermissionError(f"turn code may open no files: {path!r}")
            return
        for prefix, reason in refused:
            if event.startswith(prefix):
                raise PermissionError(f"turn code may {reason}")

    sys.addaudithook(watch)


def _answer(line: Line, code: Any, data: dict[str, Any], runtime: dict[str, Any], run: Callable[[Any], Any]) -> None:
    original = json.loads(json.dumps(data))
    names = {"__name__": "turn_code", "log": line.log, "fetch": line.fetch, "FetchError": FetchError}
    exec(code, names)  # noqa: S102 - the purpose of this process
    function: Any = names.get(FUNCTION)
    if not callable(function):
        line.end(skipped=[])
    answer: Any = run(function(data, runtime))
    if answer is data:
        answer = None
    if isinstance(answer, dict):
        answer = _changed(answer, original)  # pyright: ignore[reportUnknownArgumentType]  # whatever the code made
    edits = {name: data[name] for name in FIELDS if name in data and data[name] != original[name]}
    try:
        line.end(result={"answer": answer, "edits": edits})
    except (TypeError, ValueError, RecursionError) as error:
        line.end(invalid=f"its answer has no JSON form: {error}"[:MAX_LOG_CHARACTERS])


def _changed(answer: dict[Any, Any], original: dict[str, Any]) -> dict[Any, Any]:
    """An answer without the fields of `data` that it merely repeats."""
    return {name: value for name, value in answer.items() if name not in FIELDS or value != original[name]}


def _described(error: BaseException) -> str:
    """The kind of an error, its words, and the line of the code where it arose; nothing of the data around it."""
    number = error.lineno if isinstance(error, SyntaxError) else None
    place = error.__traceback__
    while place is not None:
        if place.tb_frame.f_code.co_filename == FILE_NAME:
            number = place.tb_lineno
        place = place.tb_next
    try:
        words = error.msg if isinstance(error, SyntaxError) else str(error)
    except Exception:  # the code's own exception may not even have words
        words = "without a message"
    where = f" (line {number})" if number else ""
    return f"{type(error).__name__}: {words}{where}" if words else f"{type(error).__name__}{where}"


if __name__ == "__main__":
    main()
