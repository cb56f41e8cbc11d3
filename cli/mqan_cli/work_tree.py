"""Whether a file would end up in a git repository, where secrets do not belong."""

import os
import shutil
import subprocess
from pathlib import Path

_IGNORED = 0  # exit status of git check-ignore; that of a file which git follows is 1


def exposing_tree(file: Path) -> Path | None:
    """Return the git work tree that a file is in, or None if it is in none, or git ignores it there.

    What git cannot say counts as not ignored.
    """
    folder = file.absolute().parent.resolve()
    tree = next((parent for parent in (folder, *folder.parents) if (parent / ".git").exists()), None)
    git = shutil.which("git")
    if tree is None or git is None:
        return tree
    # Those that name another repository, as in a hook of git.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = [git, "-C", str(folder), "check-ignore", "--quiet", "--", file.name]
    try:
        asked = subprocess.run(command, env=environment, capture_output=True, timeout=10)  # noqa: S603  no shell
    except (OSError, subprocess.TimeoutExpired):
        return tree
    return None if asked.returncode == _IGNORED else tree
