"""Starting, watching and ending other programs.

Each child has a process group of its own, so that a signal reaches all that it started. SIGINT and SIGTERM are passed
on to the children, which may have pools to remove; a second signal kills them. A child does not outlive this process.

All of it belongs to the main thread: Python handles signals there, and so no lock is needed."""

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import time

from .errors import ENDED_BY_SIGNAL, Failure, Interrupted

_PASSED_ON = (signal.SIGINT, signal.SIGTERM)
_PR_SET_PDEATHSIG = 1
_SECONDS_BETWEEN_LOOKS = 0.02  # where the kernel does not tell the end of a child
_GRACE_SECONDS = 5  # between asking a child to end and killing it

_libc = ctypes.CDLL(None)
_children = set()  # those that live
_first_signal = 0
_noted_only = 0  # how many `signals_noted` there are


def stopped():
    """The first SIGINT or SIGTERM since `signals` began; 0: none came."""
    return _first_signal


def _tell(child, number):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, number)


def _handle(number, _frame):
    global _first_signal
    again, _first_signal = _first_signal != 0, _first_signal or number
    for child in _children:
        _tell(child, signal.SIGKILL if again else number)
    if not _children and not _noted_only:
        raise Interrupted(number)


@contextlib.contextmanager
def signals():
    """While this lasts, SIGINT and SIGTERM go to the children, and `run` raises Interrupted once its child has ended.
    No child: Interrupted is raised where the program stands. Nested: the outermost one counts."""
    global _first_signal
    if signal.getsignal(signal.SIGTERM) is _handle:
        yield
        return
    _first_signal = 0
    before = [signal.signal(number, _handle) for number in _PASSED_ON]
    try:
        yield
    finally:
        for number, handler in zip(_PASSED_ON, before):
            signal.signal(number, handler)


@contextlib.contextmanager
def signals_noted():
    """As `signals`, for work that must not be left half done: nothing is raised between two children, `stopped`
    tells."""
    global _noted_only
    with signals():
        _noted_only += 1
        try:
            yield
        finally:
            _noted_only -= 1


@contextlib.contextmanager
def _signals_later():
    """A child that is being started is not known yet: a signal in between would miss it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _pidfd_of(pid):
    """A descriptor that is readable when the process has ended; -1: an old kernel, or a container, has none."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return -1


class Child:
    """A program that runs. `output`: a file for its output (None: as ours); `merge_errors`: its complaints
    go there, too; `pipe`: its output is read here (`lines`). Raises Failure: it cannot be run."""

    def __init__(self, words, output=None, merge_errors=False, pipe=False, environment=None):
        self.words = [str(word) for word in words]
        parent = os.getpid()

        def in_child():
            # If the parent is killed, the child gets a signal to end; it may have pools to remove.
            _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
            if os.getppid() != parent:
                os._exit(1)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _PASSED_ON)

        with contextlib.ExitStack() as files:
            target = subprocess.PIPE if pipe else None
            if output is not None:
                target = files.enter_context(open(output, "wb"))
            with _signals_later():
                try:
                    self._process = subprocess.Popen(
                        self.words, stdin=subprocess.DEVNULL, stdout=target,
                        stderr=subprocess.STDOUT if merge_errors else None, env=environment, process_group=0,
                        preexec_fn=in_child)
                except (OSError, subprocess.SubprocessError) as problem:
                    reason = getattr(problem, "strerror", None) or problem
                    raise Failure(f"cannot run {self.words[0]}: {reason}", "check that it is installed") from None
                self.pid = self._process.pid
                self._ended = _pidfd_of(self.pid)
                came_before = _first_signal
                # Last: the signal that waits goes to each of these.
                _children.add(self)
        if came_before:
            _tell(self, came_before)

    @property
    def stream(self):
        """The output of a child with `pipe`."""
        return self._process.stdout

    def fileno(self):
        """For select and poll: readable when the child has ended. -1: there is no such descriptor."""
        return self._ended

    def has_ended(self):
        """Whether `wait` returns at once."""
        return self._process.poll() is not None

    def stop(self):
        """Asks it and all that it started to end; kills them if they do not."""
        _tell(self, signal.SIGTERM)
        if not first_ended([self], _GRACE_SECONDS):
            _tell(self, signal.SIGKILL)

    def wait(self):
        """Its exit status, once it has ended. Raises Interrupted if SIGINT or SIGTERM ended it, Failure if another
        signal did."""
        try:
            status = self._process.wait()
        finally:
            if self._process.poll() is not None:
                _children.discard(self)
                self._close()
        number = -status if status < 0 else status - ENDED_BY_SIGNAL
        if _first_signal and (status < 0 or number == _first_signal):
            raise Interrupted(_first_signal)
        if status >= 0:
            return status
        if number == signal.SIGINT:
            raise Interrupted(number)
        raise Failure(f"{self.words[0]} was ended by signal {number}", "run it again")

    def _close(self):
        if self._ended >= 0:
            os.close(self._ended)
            self._ended = -1
        if self._process.stdout is not None:
            self._process.stdout.close()


def first_ended(children, timeout=None):
    """A child of these that has ended (its `wait` returns at once); None: `timeout` seconds went by."""
    by_number = {child.fileno(): child for child in children}
    if -1 in by_number:
        return _first_found_ended(children, timeout)
    watched = select.poll()
    for number in by_number:
        watched.register(number, select.POLLIN)
    ready = watched.poll(None if timeout is None else max(0, int(timeout * 1000)))
    return by_number[ready[0][0]] if ready else None


def _first_found_ended(children, timeout):
    """As first_ended, by asking again and again."""
    end = None if timeout is None else time.monotonic() + timeout
    while True:
        for child in children:
            if child.has_ended():
                return child
        if end is not None and time.monotonic() >= end:
            return None
        time.sleep(_SECONDS_BETWEEN_LOOKS)


def _pass_lines_on(child, on_line, deadline):
    """Until the child closes its output. False: the deadline came first."""
    rest = b""
    number = child.stream.fileno()
    while True:
        left = None if deadline is None else max(0, deadline - time.monotonic())
        if not select.select([number], [], [], left)[0]:
            return False
        block = os.read(number, 1 << 16)
        *lines, rest = (rest + block).split(b"\n")
        for line in lines:
            on_line(line.decode(errors="replace"))
        if not block:
            if rest:
                on_line(rest.decode(errors="replace"))
            return True


def _end(child):
    """Its status after a request to end is ignored."""
    child.stop()
    with contextlib.suppress(Failure):
        child.wait()


def run(words, output=None, timeout=None, on_line=None, merge_errors=False, environment=None):
    """Runs a program to its end; its exit status. `output`: file for its output; `on_line`: called with each line of
    it, instead. `timeout`, in seconds: it is ended, and Failure is raised. Raises Interrupted: SIGINT or
    SIGTERM came, and the child has ended."""
    with signals():
        child = Child(words, output, merge_errors, pipe=on_line is not None, environment=environment)
        deadline = None if timeout is None else time.monotonic() + timeout
        try:
            in_time = on_line is None or _pass_lines_on(child, on_line, deadline)
            if in_time and deadline is not None:
                in_time = first_ended([child], max(0, deadline - time.monotonic())) is not None
        except BaseException:
            _end(child)
            raise
        if in_time:
            return child.wait()
        _end(child)
        if _first_signal:
            raise Interrupted(_first_signal)
        raise Failure(f"{child.words[0]} timed out after {timeout:g} s", "give it more time, or less to do")


def capture(words, timeout=None, environment=None):
    """Runs a program; (exit status, the text that it printed)."""
    lines = []
    status = run(words, timeout=timeout, on_line=lines.append, environment=environment)
    return status, "".join(line + "\n" for line in lines)
