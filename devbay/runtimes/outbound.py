"""How services reach the outside: the CA bundle and proxies of `config.toml` (decision 44)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from devbay.errors import DevbayError
from devbay.runtimes.base import BindMount

CA_TARGET = "/run/devbay/ca-bundle.pem"
# Each tool reads its own: OpenSSL and Go, requests, curl, git, pip, Node, Cargo, Bundler, Composer (PHP
# reads OpenSSL's), Deno, AWS.
_CA_VARIABLES = (
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "PIP_CERT",
    "NODE_EXTRA_CA_CERTS",
    "CARGO_HTTP_CAINFO",
    "BUNDLE_SSL_CA_CERT",
    "DENO_CERT",
    "AWS_CA_BUNDLE",
)


@dataclass(frozen=True)
class Outbound:
    """`ca_bundle`: a file of this machine. proxies: `http`, `https` and `no_proxy` to their values."""

    ca_bundle: Path | None = None
    proxies: tuple[tuple[str, str], ...] = ()

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Outbound:
        """From `ca_bundle = "FILE"` and `[proxies]` with `http`, `https`, `no_proxy`; raises `bad_config`."""
        bundle, proxies = config.get("ca_bundle"), config.get("proxies", {})
        if bundle is not None and not (isinstance(bundle, str) and Path(bundle).is_file()):
            raise _bad(f"`ca_bundle` names no file: {bundle!r}")
        known = {"http", "https", "no_proxy"}
        if not isinstance(proxies, dict) or not proxies.keys() <= known:
            raise _bad("`proxies` is a table with `http`, `https` and `no_proxy`")
        if not all(isinstance(value, str) for value in proxies.values()):
            raise _bad("the values of `proxies` are texts")
        return cls(Path(bundle).absolute() if bundle else None, tuple(sorted(proxies.items())))

    def proxy_env(self, direct: Iterable[str] = ()) -> dict[str, str]:
        """The proxy variables in both spellings that tools read; `direct` hosts (the bay's own services)
        are reached without a proxy.
        """
        proxies = dict(self.proxies)
        if not proxies.keys() & {"http", "https"}:
            return {}
        exempt = [host for host in proxies.get("no_proxy", "").split(",") if host]
        values = {
            "HTTP_PROXY": proxies.get("http"),
            "HTTPS_PROXY": proxies.get("https"),
            "NO_PROXY": ",".join(dict.fromkeys((*exempt, "localhost", "127.0.0.1", "::1", *direct))),
        }
        return {
            spelling: value for name, value in values.items() if value for spelling in (name, name.lower())
        }

    def env(self, direct: Iterable[str] = ()) -> dict[str, str]:
        """All variables for an install or task container."""
        bundle = dict.fromkeys(_CA_VARIABLES, CA_TARGET) if self.ca_bundle else {}
        return {**bundle, **self.proxy_env(direct)}

    def env_here(self, direct: Iterable[str] = ()) -> dict[str, str]:
        """The same for a process of this machine, which sees the bundle where it is."""
        bundle = dict.fromkeys(_CA_VARIABLES, str(self.ca_bundle)) if self.ca_bundle else {}
        return {**bundle, **self.proxy_env(direct)}

    def mounts(self) -> tuple[BindMount, ...]:
        """The mount that `env` counts on."""
        return (BindMount(str(self.ca_bundle), CA_TARGET, read_only=True),) if self.ca_bundle else ()


def _bad(problem: str) -> DevbayError:
    return DevbayError("bad_config", f"config.toml: {problem}", next="correct config.toml")
