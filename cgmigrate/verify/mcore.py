"""Which releases of megatron-core are available, and what a process needs to run under one of them.

A release is the installed one, a folder that the user names (an unpacked wheel, a source checkout, a virtual
environment), or a wheel that pip fetches when the user asks for it. This module does not import torch or megatron: a
release says which one it is in ``megatron/core/package_info.py``, which is read as text.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import site
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.version import InvalidVersion, Version

from cgmigrate.megatron.releases import Release

LAST_PATCH = {
    Release(0, minor): f"0.{minor}.{patch}"
    for minor, patch in ((12, 3), (13, 1), (14, 0), (15, 3), (16, 1), (17, 1), (18, 2), (19, 2))
}
"""The last patch of each minor release on the registry that cgmigrate was written against."""

_OF_EXTRA = ("torch", "triton")
"""What the extra ``cgmigrate[verify]`` installs beside megatron-core."""
INSTALL = "install cgmigrate with its extra `verify`, as in `pip install 'cgmigrate[verify] @ git+URL'`"
"""What to do where a package of the extra is missing; cgmigrate is on no registry."""

INFO = Path("megatron/core/package_info.py")
FETCH_SECONDS = 600.0
ASK_SECONDS = 60.0


class MCoreError(Exception):
    """A requested release of megatron-core is not available; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Home:
    """Where a release of megatron-core is.

    ``version`` is what its ``package_info.py`` says (``0.17.1``, ``0.18.0rc0``), ``python`` the interpreter to run,
    ``paths`` what to put first on its PYTHONPATH. ``isolated`` is a virtual environment, which has all it needs and
    must not see the PYTHONPATH of this process.
    """

    version: str
    python: str
    paths: tuple[str, ...] = ()
    isolated: bool = False

    @property
    def release(self) -> Release:
        """The minor release, which decides what settings mean."""
        major, minor = Version(self.version).release[:2]
        return Release(major, minor)


def homes_of(values: Iterable[str], progress: Callable[[str], None] | None = None) -> dict[str, Home]:
    """Return the available releases by version: those of ``--mcore`` values, and the installed one.

    A value is ``0.17.1=DIR`` (see ``in_folder``) or ``0.17.1`` alone (see ``fetched``). ``progress`` gets a line
    before a wheel is fetched. Raises MCoreError for a value that cannot be had.
    """
    homes: dict[str, Home] = {}
    for value in values:
        said, equals, folder = value.partition("=")
        said = _checked(said.strip(), value)
        if equals and folder[:1] in ("", "="):
            raise _usage(value)
        home = in_folder(Path(folder), said) if equals else fetched(said, progress)
        if homes.setdefault(home.version, home) != home:
            raise MCoreError(f"--mcore names megatron-core {home.version} twice, in different places")
    if own := installed():
        homes.setdefault(own.version, own)
    return homes


def check_values(values: Iterable[str]) -> None:
    """Check ``--mcore`` values where there is nothing to compare: all but whether a wheel can be fetched.

    Raises MCoreError for a value that cannot be used.
    """
    listed = list(values)
    for value in listed:
        _checked(value.partition("=")[0].strip(), value)
    homes_of(value for value in listed if "=" in value)


def home_for(release: Release, homes: Mapping[str, Home]) -> Home | None:
    """Return the newest available patch of a minor release, None where there is none."""
    available = [home for home in homes.values() if home.release == release]
    return max(available, key=lambda home: Version(home.version), default=None)


def environment(home: Home) -> dict[str, str]:
    """Return the variables that make ``home.python`` import this release and no other.

    They override those of this process. The working directory is kept off the path: it may well be a
    checkout of another Megatron-LM.
    """
    inherited = () if home.isolated else os.environ.get("PYTHONPATH", "").split(os.pathsep)
    paths = [*home.paths, *(os.path.abspath(path) for path in inherited if path)]
    return {"PYTHONPATH": os.pathsep.join(dict.fromkeys(paths)), "PYTHONSAFEPATH": "1"}


def not_available(release: Release) -> str:
    """Say that a release is missing, and how to get it."""
    if release in LAST_PATCH:
        return f"megatron-core {release} is not available (`--mcore {LAST_PATCH[release]}` fetches it)"
    return f"megatron-core {release} is not available (`--mcore {release}.0=DIR` says where it is; it is not published)"


def with_advice(reason: str, home: Home) -> str:
    """A reason for a failure; where a package is missing, also what to install."""
    missing = re.search(r"No module named '(?!megatron\b)(\w+)", reason)
    if missing is None:
        return reason
    if home.isolated:
        return f"{reason}; install {missing[1]} in the virtual environment of {home.python}"
    return f"{reason}; {INSTALL if missing[1] in _OF_EXTRA else f'`pip install {missing[1]}` installs it'}"


def lacks_torch(homes: Mapping[str, Home]) -> str:
    """Return why no release can be imported by this Python, empty if each can, or brings its own Python."""
    if all(home.isolated for home in homes.values()) or _is_installed("torch"):
        return ""
    return f"verify imports megatron-core, which needs torch, and this Python has none; {INSTALL}"


# --- the installed one ------------------------------------------------------------------------------


def installed() -> Home | None:
    """Return the release that this Python would import, None where there is none."""
    try:
        spec = importlib.util.find_spec("megatron.core")
    except (ImportError, ValueError):
        return None
    if spec is None or not spec.origin:
        return None
    root = Path(spec.origin).absolute().parents[2]
    if not (root / INFO).is_file():
        return None
    # Site-packages on PYTHONPATH would come before the standard library.
    known = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages()}
    known.add(site.getusersitepackages())
    return Home(_version_in(root), sys.executable, () if str(root) in known else (str(root),))


# --- a folder -----------------------------------------------------------------------------------------


def in_folder(folder: Path, said: str = "") -> Home:
    """Return the release in ``folder``, which holds ``megatron/core`` or is a virtual environment (``bin/python``).

    ``said`` is the version that the user gave: all of it, or its first two numbers. Raises MCoreError where the
    folder holds no release, or another one.
    """
    folder = folder.expanduser().absolute()
    python = next((path for name in ("bin/python", "Scripts/python.exe") if (path := folder / name).exists()), None)
    if (folder / INFO).is_file():
        home = Home(_version_in(folder), sys.executable, (str(folder),))
    elif python is not None:
        home = _in_virtual_environment(folder, str(python))
    else:
        what = "holds neither megatron/core (an unpacked wheel, a source checkout) nor bin/python"
        raise MCoreError(f"{folder} {what if folder.is_dir() else 'is not a folder'}")
    if said and not _is(home.version, said):
        raise MCoreError(f"{folder} holds megatron-core {home.version}, not {said}")
    return home


def _in_virtual_environment(folder: Path, python: str) -> Home:
    # Its own Python knows about editable installs and .pth files.
    program = "import importlib.util as u; s = u.find_spec('megatron') and u.find_spec('megatron.core'); "
    program += "print(s.origin if s else '')"
    variables = {**os.environ, **environment(Home("0", python, isolated=True))}
    try:
        run = subprocess.run(
            [python, "-I", "-c", program],
            capture_output=True,
            text=True,
            env=variables,
            timeout=ASK_SECONDS,
            cwd=folder,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MCoreError(f"{python} does not run: {error}") from error
    origin = run.stdout.strip()
    if not origin or not (root := Path(origin).parents[2]).joinpath(INFO).is_file():
        raise MCoreError(f"the virtual environment {folder} holds no megatron-core")
    return Home(_version_in(root), python, isolated=True)


def _version_in(root: Path) -> str:
    """The version that ``package_info.py`` gives, as its own ``__version__`` puts it together."""
    text = (root / INFO).read_text(encoding="utf-8", errors="replace")
    parts: dict[str, str] = {
        name: value.strip("\"'") for name, value in re.findall(r"(?m)^(\w+) *= *(\d+|\"\w*\"|'\w*')", text)
    }
    try:
        version = ".".join(parts[name] for name in ("MAJOR", "MINOR", "PATCH")) + parts.get("PRE_RELEASE", "")
        Version(version)
    except (KeyError, InvalidVersion) as error:
        raise MCoreError(f"{root / INFO} gives no version that cgmigrate can read") from error
    return version


def _checked(said: str, value: str) -> str:
    """A version as the user writes it. Raises MCoreError for anything else: it becomes a word of pip's command line."""
    if not re.fullmatch(r"\d+\.\d+(\.\d+)?((a|b|rc)\d+)?", said):
        raise _usage(value)
    return said


def _usage(value: str) -> MCoreError:
    return MCoreError(f"--mcore {value}: expected VERSION=DIR or VERSION, such as 0.17.1")


def _is(version: str, said: str) -> bool:
    whole = said.count(".") > 1
    return version == said if whole else Version(version).release[:2] == Version(said).release[:2]


# --- a wheel from the registry -----------------------------------------------------------------------


def cache_folder() -> Path:
    """Where fetched releases are kept, a folder each: ``XDG_CACHE_HOME/cgmigrate/megatron-core``."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "cgmigrate" / "megatron-core"


def fetched(said: str, progress: Callable[[str], None] | None = None) -> Home:
    """Return a release from the cache; where it is not there, pip fetches the wheel for the running Python first.

    Two numbers (``0.17``) mean the last patch. Raises MCoreError when pip is missing or finds no wheel.
    """
    cache = cache_folder()
    version = said if said.count(".") > 1 else LAST_PATCH.get(Release(*map(int, said.split("."))), f"{said}.0")
    folder = cache / version
    if not (folder / INFO).is_file():
        if progress:
            progress(f"fetching megatron-core {version} into {folder} …")
        try:
            cache.mkdir(parents=True, exist_ok=True)
            _fetch(version, cache, folder)
        except (OSError, zipfile.BadZipFile) as error:
            raise MCoreError(f"megatron-core {version} cannot be kept in {cache}: {error}") from error
    return in_folder(folder, version)


def _fetch(version: str, cache: Path, folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=cache, prefix=".fetch-") as scratch:
        wheel = _download(version, Path(scratch))
        unpacked = Path(scratch) / "unpacked"
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(unpacked)
        # A folder that is there is whole: it gets its name only when everything is in it.
        try:
            unpacked.rename(folder)
        except OSError:
            if not (folder / INFO).is_file():
                raise


def _download(version: str, into: Path) -> Path:
    options = ["--no-deps", "--only-binary=:all:", "--no-input", "--disable-pip-version-check", "-q", "-d", str(into)]
    command = [*_pip(), *options, f"megatron-core=={version}"]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_SECONDS, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired as error:
        raise MCoreError(f"pip did not fetch megatron-core {version} within {FETCH_SECONDS:.0f} s") from error
    wheel = next(into.glob("*.whl"), None)
    if run.returncode or wheel is None:
        errors = [line for line in run.stderr.splitlines() if line.startswith("ERROR")] or run.stderr.splitlines()
        why = errors[-1].removeprefix("ERROR: ") if errors else f"pip ended with {run.returncode}"
        running = f"Python {sys.version_info.major}.{sys.version_info.minor}"
        raise MCoreError(
            f"pip cannot fetch megatron-core {version} for {running}: {why}; {_other_python(version)}give a folder "
            f"instead (`--mcore {version}=DIR`)"
        )
    return wheel


def _other_python(version: str) -> str:
    """Return that a release needs a newer Python than the running one; empty if it does not."""
    is_too_old = sys.version_info < (3, 12) and Version(version) >= Version("0.17")
    return "it needs Python 3.12: run cgmigrate with that, or " if is_too_old else ""


def _pip() -> list[str]:
    """``pip download`` of the running Python; without one, another pip that gets the version of this Python."""
    if _is_installed("pip"):
        # Isolated: a pip.py of the folder in which the user works must not run.
        return [sys.executable, "-I", "-m", "pip", "download"]
    target = f"--python-version={sys.version_info.major}.{sys.version_info.minor}"
    for name in ("pip", "pip3"):
        if program := shutil.which(name):
            return [program, "download", target]
    raise MCoreError(
        "fetching megatron-core needs pip, which is not installed; give a folder instead (`--mcore VERSION=DIR`)"
    )


def _is_installed(module: str) -> bool:
    """Whether an isolated Python finds a module; one in the working directory or on PYTHONPATH does not count."""
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        return False
    return any(Path(spec.origin).is_relative_to(folder) for folder in site.getsitepackages())
