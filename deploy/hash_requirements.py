"""Write the packages that the image installs, each with its version and the SHA-256 of its file.

    python deploy/hash_requirements.py cpu > deploy/requirements-cpu.txt
    python deploy/hash_requirements.py ray > deploy/requirements-ray.txt
    python deploy/hash_requirements.py gpu > deploy/requirements-gpu.txt

Run it with the Python and on the kind of machine of the image, after constraints.txt or pyproject.toml has changed. It
asks pip what it would install from the package index, and installs nothing.
"""

import json
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = {"cpu": ("cpu",), "ray": ("serve", "cpu"), "gpu": ("serve", "gpu")}  # of the images
BUILD = ("editables", "hatchling")  # what installs the project itself, which has no file to hash


def resolve(image: str) -> list[dict[str, Any]]:
    """Return what pip would install for an image."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(line for extra in EXTRAS[image] for line in extras[extra]), *BUILD]
    constraints = ["constraints.txt", "constraints-gpu.txt"] if image == "gpu" else ["constraints.txt"]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet"]
        command += ["--only-binary", ":all:", "--report", str(report)]
        command += [part for name in constraints for part in ("--constraint", str(ROOT / name))]
        subprocess.run([*command, *wanted], check=True)  # noqa: S603
        installed: list[dict[str, Any]] = json.loads(report.read_text())["install"]
    return installed


def main(image: str) -> None:
    """Print the file of an image."""
    print(f"# Made by deploy/hash_requirements.py {image}, for Python 3.11 on Linux x86-64.")
    lines = []
    for package in resolve(image):
        name, version = package["metadata"]["name"].lower().replace("_", "-"), package["metadata"]["version"]
        sha256 = package["download_info"]["archive_info"]["hashes"]["sha256"]
        lines.append(f"{name}=={version} \\\n    --hash=sha256:{sha256}")
    print("\n".join(sorted(lines)))


if __name__ == "__main__":
    main(sys.argv[1])
