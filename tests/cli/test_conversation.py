"""``mqan ask`` on a terminal: a real one, a real bundle, several questions about one text."""

import os
import pty
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

TEXT = "The tower is 330 m tall. It stands in Paris."
PROMPT = "? "
_WAIT_S = 60.0


class Terminal:
    """A terminal with a program on it.

    Attributes:
        seen: all that was shown, as long as it has not been waited for.
    """

    def __init__(self, command: list[str], *, piped: bytes | None) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MQAN_")}
        self.process, self._master = pty.fork()
        if self.process == 0:
            try:
                signal.signal(signal.SIGINT, signal.SIG_DFL)  # as a terminal's programs begin, wherever tests run
                if piped is not None:
                    reading, writing = os.pipe()
                    os.write(writing, piped)
                    os.close(writing)
                    os.dup2(reading, 0)
                os.execve(command[0], command, environment | {"TERM": "dumb", "NO_COLOR": "1"})
            finally:
                os._exit(127)
        self.seen = ""

    def type(self, text: str | bytes) -> None:
        """Press keys, or paste bytes."""
        os.write(self._master, text.encode() if isinstance(text, str) else text)

    def interrupt(self) -> None:
        """Press Ctrl-C until there is a new prompt: Python misses one that comes as it begins to wait for keys."""
        for _ in range(20):
            self.type("\x03")
            if select.select([self._master], [], [], 1.0)[0]:
                break
        self.wait_for(PROMPT)

    def wait_for(self, text: str) -> str:
        """Return what is shown until a text is."""
        end = time.monotonic() + _WAIT_S
        while text not in self.seen:
            ready, _, _ = select.select([self._master], [], [], max(0.0, end - time.monotonic()))
            assert ready, f"no {text!r} after {self.seen!r}"
            try:
                self.seen += os.read(self._master, 4096).decode(errors="replace")
            except OSError:  # the program has ended
                pytest.fail(f"no {text!r} after {self.seen!r}")
        shown, _, self.seen = self.seen.partition(text)
        return shown

    def exit_status(self) -> int:
        """Return the exit status of the program once it has ended."""
        end = time.monotonic() + _WAIT_S
        while time.monotonic() < end:
            ready, _, _ = select.select([self._master], [], [], 0.1)
            try:
                if ready and os.read(self._master, 4096) == b"":
                    break
            except OSError:
                break
        return os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])

    def close(self) -> None:
        """End the program if it has not ended."""
        os.close(self._master)
        try:
            os.kill(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)
        except (ProcessLookupError, ChildProcessError):
            pass


@pytest.fixture
def ask(bundle_folder: Path) -> Iterator[Callable[..., Terminal]]:
    """Start ``mqan ask`` with the shipped model on a terminal."""
    opened: list[Terminal] = []

    def start(*arguments: str, piped: bytes | None = None) -> Terminal:
        command = [sys.executable, "-m", "mqan_cli.main", "ask", "--bundle", str(bundle_folder), *arguments]
        opened.append(Terminal(command, piped=piped))
        return opened[-1]

    yield start
    for terminal in opened:
        terminal.close()


def answered(terminal: Terminal, question: str) -> str:
    """Ask, and return the answer with where it is from."""
    terminal.type(f"{question}\n")
    return terminal.wait_for("probability")


def test_several_questions_about_one_text(ask: Callable[..., Terminal], tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text("The bridge is 40 m long.")
    terminal = ask("--text", TEXT)
    terminal.wait_for(PROMPT)
    assert "context 13-23: 330 m tall" in answered(terminal, "How tall is the tower?")
    terminal.wait_for(PROMPT)
    terminal.type("\x1b[A")  # the question before, as in a shell
    assert "How tall is the tower?" in terminal.wait_for("?") + "?"
    terminal.type("\n")
    assert "330 m" in terminal.wait_for("probability")
    terminal.wait_for(PROMPT)
    terminal.type(f"/file {other}\n")
    terminal.wait_for(PROMPT)
    assert "40 m" in answered(terminal, "How long is the bridge?")
    terminal.wait_for(PROMPT)
    terminal.type("/choices short, long\n")
    terminal.wait_for(PROMPT)
    assert "short" in answered(terminal, "Is the bridge short or long?")
    terminal.wait_for(PROMPT)
    terminal.type("/choices\n")
    terminal.wait_for(PROMPT)
    assert "context 14-18: 40 m" in answered(terminal, "How long is the bridge?")
    terminal.wait_for(PROMPT)
    terminal.type("/fileof\n")
    assert "no such command: /fileof" in terminal.wait_for("/quit")
    terminal.wait_for(PROMPT)
    terminal.type("/choicesshort\n")
    assert "no such command: /choicesshort" in terminal.wait_for("/quit")
    terminal.wait_for(PROMPT)
    terminal.type("/file nowhere.txt\n")
    terminal.wait_for("cannot read nowhere.txt")
    terminal.wait_for(PROMPT)
    terminal.type("\x04")
    assert terminal.exit_status() == 0


def paste_text(ask: Callable[..., Terminal]) -> Terminal:
    """Begin without a text, and paste one."""
    terminal = ask()
    terminal.wait_for("press Ctrl-D")
    terminal.type(TEXT + "\n\x04")
    terminal.wait_for(PROMPT)
    return terminal


def test_a_text_is_pasted_where_none_is_given(ask: Callable[..., Terminal]) -> None:
    terminal = paste_text(ask)
    assert "330 m" in answered(terminal, "How tall is the tower?")
    terminal.wait_for(PROMPT)
    terminal.type("/text\n")
    terminal.wait_for("press Ctrl-D")
    terminal.type("The bridge is 40 m long.\n\x04")
    terminal.wait_for(PROMPT)
    assert "40 m" in answered(terminal, "How long is the bridge?")
    terminal.wait_for(PROMPT)
    terminal.type("/quit\n")
    assert terminal.exit_status() == 0


def test_bytes_that_are_no_text_are_refused(ask: Callable[..., Terminal], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "utf-8:strict")
    terminal = paste_text(ask)
    terminal.type(b"/text\n")
    terminal.wait_for("press Ctrl-D")
    terminal.type(b"caf\xe9\n\x04")
    terminal.wait_for("mqan: the text is not UTF-8: byte 3")
    terminal.wait_for(PROMPT)
    assert "330 m" in answered(terminal, "How tall is the tower?")
    terminal.wait_for(PROMPT)
    terminal.type("/quit\n")
    assert terminal.exit_status() == 0


def test_a_piped_text_leaves_the_terminal_for_questions(ask: Callable[..., Terminal]) -> None:
    terminal = ask(piped=TEXT.encode())
    terminal.wait_for(PROMPT)
    assert "330 m" in answered(terminal, "How tall is the tower?")
    terminal.wait_for(PROMPT)
    terminal.interrupt()  # takes the line back, and ends nothing
    assert "Paris" in answered(terminal, "Where does it stand?")
    terminal.wait_for(PROMPT)
    terminal.type("\x04")
    assert terminal.exit_status() == 0
