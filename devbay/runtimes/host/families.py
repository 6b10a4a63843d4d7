"""The images that a toolchain of this machine can stand for: one row per language. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

NUMBERS = r"\d+(?:\.\d+)*"
_PLAIN = rf"v?({NUMBERS})"


@dataclass(frozen=True)
class Layout:
    """Where a version manager keeps versions: below the folder that `variable` names, else `default` in the
    user's home (or anywhere, if absolute), at `pattern`, whose `*` is a folder named like `name`, group 1
    being the version. An empty `name`: the program is asked.
    """

    origin: str
    variable: str
    default: str
    pattern: str
    name: str = _PLAIN


@dataclass(frozen=True)
class Family:
    """One language or tool.

    repositories: images, official ones by their bare name. programs: names on PATH, `{0}` and `{1}` being the
    first two numbers of the wanted version. ask: arguments after which a program prints its version, and
    where it may be a shim its real path or the folder above that one's `bin`. install: how a person gets
    one; `{version}` is wanted. beside: families that are needed too, with what says their version in a tag.
    home: the variable that names the folder two above the program.
    """

    title: str
    repositories: tuple[str, ...]
    programs: tuple[str, ...]
    ask: tuple[str, ...]
    install: str
    layouts: tuple[Layout, ...] = ()
    beside: Mapping[str, str] | None = None
    home: str = ""


def _managed(plugins: str, program: str, name: str = _PLAIN) -> tuple[Layout, ...]:
    """What mise and asdf keep, whose names for the same thing differ; `plugins` is one or two words."""
    mise, *asdf = plugins.split()
    return (
        Layout("mise", "MISE_DATA_DIR", ".local/share/mise", f"installs/{mise}/*/{program}", name),
        Layout("asdf", "ASDF_DATA_DIR", ".asdf", f"installs/{(asdf or [mise])[0]}/*/{program}", name),
    )


_PYTHON_SAYS = (
    "-I",
    "-c",
    "import platform, sys; print(platform.python_version()); print(sys._base_executable or sys.executable)",
)
_UV = ("UV_PYTHON_INSTALL_DIR", ".local/share/uv/python")
_MISE = "mise use -g"
_JAVA_IN_A_TAG = (
    rf"(?:temurin|corretto|openjdk|jdk|sapmachine|semeru|graalvm-community|liberica|zulu)-?({NUMBERS})"
)

FAMILIES: Mapping[str, Family] = {
    "python": Family(
        "Python",
        ("python", "cimg/python", "mcr.microsoft.com/devcontainers/python"),
        ("python{0}.{1}", "python{0}", "python3", "python"),
        _PYTHON_SAYS,
        "uv python install {version}",
        (
            Layout("uv", *_UV, "*/bin/python", rf"cpython-({NUMBERS})-.*"),
            *_managed("python", "bin/python"),
            Layout("pyenv", "PYENV_ROOT", ".pyenv", "versions/*/bin/python", rf"({NUMBERS})"),
        ),
    ),
    "pypy": Family(
        "PyPy",
        ("pypy",),
        ("pypy{0}.{1}", "pypy{0}", "pypy3", "pypy"),
        _PYTHON_SAYS,
        "uv python install pypy{version}",
        (
            Layout("uv", *_UV, "*/bin/pypy", rf"pypy-({NUMBERS})-.*"),
            Layout("pyenv", "PYENV_ROOT", ".pyenv", "versions/*/bin/pypy", rf"pypy({NUMBERS})-.*"),
        ),
    ),
    "node": Family(
        "Node",
        ("node", "cimg/node", "mcr.microsoft.com/devcontainers/javascript-node",
         "mcr.microsoft.com/devcontainers/typescript-node"),
        ("node",),
        ("-p", "process.version + '\\n' + process.execPath"),
        f"{_MISE} node@{{version}}",
        (
            *_managed("node nodejs", "bin/node"),
            Layout("nvm", "NVM_DIR", ".nvm", "versions/node/*/bin/node"),
            Layout("fnm", "FNM_DIR", ".local/share/fnm", "node-versions/*/installation/bin/node"),
            Layout("volta", "VOLTA_HOME", ".volta", "tools/image/node/*/bin/node"),
        ),
    ),
    "bun": Family(
        "Bun", ("oven/bun",), ("bun",), ("--version",), f"{_MISE} bun@{{version}}", _managed("bun", "bin/bun")
    ),
    "deno": Family(
        "Deno", ("denoland/deno",), ("deno",), ("--version",), f"{_MISE} deno@{{version}}",
        _managed("deno", "bin/deno"),
    ),
    "ruby": Family(
        "Ruby",
        ("ruby", "cimg/ruby", "mcr.microsoft.com/devcontainers/ruby"),
        ("ruby{0}.{1}", "ruby"),
        ("-e", "puts RUBY_VERSION, RbConfig.ruby"),
        f"{_MISE} ruby@{{version}}",
        (
            *_managed("ruby", "bin/ruby"),
            Layout("rbenv", "RBENV_ROOT", ".rbenv", "versions/*/bin/ruby"),
        ),
    ),
    "go": Family(
        "Go",
        ("golang", "cimg/go", "mcr.microsoft.com/devcontainers/go"),
        ("go", "go{0}.{1}"),
        ("env", "GOVERSION", "GOROOT"),
        f"{_MISE} go@{{version}}",
        (
            *_managed("go golang", "bin/go"),
            Layout("asdf", "ASDF_DATA_DIR", ".asdf", "installs/golang/*/go/bin/go"),
            Layout("~/sdk", "", "sdk", "*/bin/go", rf"go({NUMBERS})"),
            Layout("/usr/local", "", "/usr/local", "*/bin/go", ""),
        ),
    ),
    "rust": Family(
        "Rust",
        ("rust", "cimg/rust", "mcr.microsoft.com/devcontainers/rust"),
        ("rustc",),
        ("-V",),
        "rustup toolchain install {version}",
        (Layout("rustup", "RUSTUP_HOME", ".rustup", "toolchains/*/bin/rustc", ""),),
    ),
    "php": Family(
        "PHP",
        ("php", "cimg/php", "mcr.microsoft.com/devcontainers/php"),
        ("php{0}.{1}", "php{0}", "php"),
        ("-r", "echo PHP_VERSION, PHP_EOL, PHP_BINARY, PHP_EOL;"),
        f"{_MISE} php@{{version}}",
        _managed("php", "bin/php"),
    ),
    "java": Family(
        "Java",
        ("openjdk", "eclipse-temurin", "amazoncorretto", "sapmachine", "ibm-semeru-runtimes", "cimg/openjdk",
         "bellsoft/liberica-openjdk-debian", "azul/zulu-openjdk", "mcr.microsoft.com/openjdk/jdk",
         "mcr.microsoft.com/devcontainers/java"),
        ("java",),
        ("-XshowSettings:properties", "-version"),
        f"{_MISE} java@{{version}}",
        (
            Layout("JAVA_HOME", "JAVA_HOME", "/nonexistent", "bin/java", ""),
            *_managed("java", "bin/java", ""),
            Layout("sdkman", "SDKMAN_DIR", ".sdkman", "candidates/java/*/bin/java", ""),
            Layout("/usr/lib/jvm", "", "/usr/lib/jvm", "*/bin/java", ""),
            Layout("macOS", "", "/Library/Java/JavaVirtualMachines", "*/Contents/Home/bin/java", ""),
        ),
        home="JAVA_HOME",
    ),
    "maven": Family(
        "Maven", ("maven",), ("mvn",), ("-v",), f"{_MISE} maven@{{version}}",
        (
            *_managed("maven", "apache-maven-*/bin/mvn"),
            Layout("sdkman", "SDKMAN_DIR", ".sdkman", "candidates/maven/*/bin/mvn"),
        ),
        beside={"java": _JAVA_IN_A_TAG},
    ),
    "gradle": Family(
        "Gradle", ("gradle",), ("gradle",), ("--version",), f"{_MISE} gradle@{{version}}",
        (
            *_managed("gradle", "bin/gradle"),
            Layout("sdkman", "SDKMAN_DIR", ".sdkman", "candidates/gradle/*/bin/gradle"),
        ),
        beside={"java": _JAVA_IN_A_TAG},
    ),
    "composer": Family(
        "Composer", ("composer",), ("composer",), ("--version", "--no-ansi"),
        "see https://getcomposer.org/download", beside={"php": rf"php-?({NUMBERS})"},
    ),
    "erlang": Family(
        "Erlang/OTP",
        ("erlang",),
        ("erl",),
        ("-noshell", "-eval", 'io:format("OTP ~s.0~n", [erlang:system_info(otp_release)]), halt().'),
        f"{_MISE} erlang@{{version}}",
        _managed("erlang", "bin/erl"),
    ),
    "elixir": Family(
        "Elixir", ("elixir", "hexpm/elixir", "cimg/elixir"), ("elixir",), ("--short-version",),
        f"{_MISE} elixir@{{version}}", _managed("elixir", "bin/elixir", rf"({NUMBERS})(?:-otp-\d+)?"),
        beside={"erlang": rf"(?:otp|erlang)-({NUMBERS})"},
    ),
    "perl": Family(
        "Perl", ("perl",), ("perl",), ("-e", r'printf "%vd\n%s\n", $^V, $^X'), f"{_MISE} perl@{{version}}",
        _managed("perl", "bin/perl"),
    ),
    "dotnet": Family(
        ".NET SDK",
        ("mcr.microsoft.com/dotnet/sdk", "mcr.microsoft.com/devcontainers/dotnet"),
        ("dotnet",),
        ("--list-sdks",),
        f"{_MISE} dotnet@{{version}}",
        (
            Layout("DOTNET_ROOT", "DOTNET_ROOT", ".dotnet", "dotnet", ""),
            *_managed("dotnet", "dotnet"),
        ),
    ),
    "uv": Family(
        "uv",
        ("ghcr.io/astral-sh/uv", "astral/uv"),
        ("uv",),
        ("--version",),
        "pip install uv",
        beside={"python": rf"python({NUMBERS})"},
    ),
}  # fmt: skip

SYSTEMS = frozenset(
    {
        "almalinux", "alpine", "amazonlinux", "archlinux", "bash", "buildpack-deps", "busybox", "debian",
        "fedora", "mcr.microsoft.com/devcontainers/base", "rockylinux", "ubuntu",
    }
)  # fmt: skip
"""Images that are a system and no language: met by this machine, whatever it is."""

_BY_REPOSITORY = {name: key for key, family in FAMILIES.items() for name in family.repositories}


@dataclass(frozen=True)
class Wanted:
    """What an image's name asks for. numbers: of the version, none for any; lts: a long-term release."""

    family: str
    numbers: tuple[int, ...] = ()
    lts: bool = False
    tag: str = ""

    @property
    def version(self) -> str:
        """As a person writes it; empty for any."""
        return ".".join(map(str, self.numbers))


def wanted(image: str) -> Wanted | None:
    """What an image reference asks for; None for an image of no known family.

    An official name counts also where a registry mirrors it (`registry.example.com/library/python`), but not
    below another's name (`acme/python`), which may hold anything.
    """
    repository, tag = _split(image)
    for name in (repository, _official(repository)):
        if name in SYSTEMS:
            return Wanted(name.rpartition("/")[2], numbers_of(tag), tag=tag)
        if key := _BY_REPOSITORY.get(name):
            # devcontainers' tags begin with the version of the image itself: `1-3.12-bookworm`
            own = re.sub(rf"^{NUMBERS}-(?=\d)", "", tag) if "/devcontainers/" in name else tag
            return Wanted(key, numbers_of(own), "lts" in tag, tag)
    return None


def beside(found: Wanted) -> tuple[Wanted, ...]:
    """What the wanted family needs besides itself."""
    others = FAMILIES[found.family].beside if found.family in FAMILIES else None
    return tuple(
        Wanted(family, numbers_of(said.group(1)) if (said := re.search(pattern, found.tag)) else ())
        for family, pattern in (others or {}).items()
    )


def numbers_of(text: str) -> tuple[int, ...]:
    """The numbers that a version or tag begins with; Node's code names stand for numbers."""
    codename = text.partition("-")[0]
    text = _NODE_CODENAMES.get(codename, text)
    said = re.match(rf"v?({NUMBERS})", text)
    return tuple(int(word) for word in said.group(1).split(".")) if said else ()


_NODE_CODENAMES = {"hydrogen": "18", "iron": "20", "jod": "22", "krypton": "24"}


def _split(image: str) -> tuple[str, str]:
    """Repository and tag of a reference; a registry's port is no tag."""
    name = image.partition("@")[0]
    folder, slash, last = name.rpartition("/")
    last, _, tag = last.partition(":")
    return f"{folder}{slash}{last}".lower(), tag.lower()


def _official(repository: str) -> str:
    """The name on Docker's hub behind a registry's name and the folders that mirrors use."""
    first, slash, rest = repository.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        repository = rest
    return re.sub(r"^(?:docker/|dockerhub/|docker\.io/)*(?:library/)?", "", repository)
