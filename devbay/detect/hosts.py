"""Servers that refuse host names they do not know: told a bay's by their variable, or asked about.

A bay's name ends in `.localhost`. Next (whose `allowedDevOrigins` only adds to `*.localhost`),
webpack-dev-server from version 4 and Laravel without `TrustHosts` let such names in and are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from posixpath import join

from devbay.detect.apps import App
from devbay.detect.containers import Placed
from devbay.detect.draft import Draft
from devbay.detect.facts import Origin, line_of
from devbay.detect.facts_of import Facts
from devbay.detect.files import normal
from devbay.detect.node import Package

_VITE_INSIDE = frozenset({"vite", "nuxt", "@angular/build", "@sveltejs/kit", "astro", "@remix-run/dev"})
"""Development servers that are Vite's, whose variable they read (Vite 6.1 and its patched older lines)."""
_SCRIPT_ENDS = ("ts", "js", "mjs", "cjs", "mts")


def put(placed: Mapping[str, Placed], apps: list[App], facts: Facts, draft: Draft) -> None:
    """Let every service with a site take its bay's host name, as far as variables can."""
    folders: dict[str, str] = {app.name: app.folder for app in apps}
    for one in placed.values():
        if one.build is not None:
            folders[one.name] = normal(one.build.context)
    for name, data in draft.services.items():
        folder = folders.get(name)
        if not data.get("port") or folder is None:
            continue
        package = facts.package(folder)
        if package is not None:
            _vite(name, package, facts, draft)
            _create_react_app(name, package, draft)
            _webpack(name, package, facts, draft)
        _django(name, folder, facts, draft)
        _rails(name, folder, facts, draft)
        _laravel(name, folder, facts, draft)


def _config(package: Package, facts: Facts, *stems: str) -> str | None:
    """The first configuration file of these that the package has."""
    files = (normal(join(package.folder, f"{stem}.{end}")) for stem in stems for end in _SCRIPT_ENDS)
    return next((file for file in files if facts.view.exists(file)), None)


def _vite(name: str, package: Package, facts: Facts, draft: Draft) -> None:
    angular = re.search(r'"@angular-devkit/build-angular"\s*:\s*"[^\d"]*(\d+)', package.text)
    if not package.dependencies & _VITE_INSIDE and not (angular and int(angular[1]) >= 17):
        return
    file = _config(package, facts, "vite.config", "nuxt.config", "svelte.config", "astro.config")
    variable = "__VITE_ADDITIONAL_SERVER_ALLOWED_HOSTS"
    here = ("services", name, "env", variable)
    draft.put(here, f"${{bay.{name}.public_host}}", f"{file or package.file}: Vite checks the host")


def _create_react_app(name: str, package: Package, draft: Draft) -> None:
    """Create React App checks hosts where package.json has a `proxy`; only a variable turns that off."""
    if "react-scripts" not in package.dependencies or not re.search(r'^\s*"proxy"\s*:', package.text, re.M):
        return
    variable = "DANGEROUSLY_DISABLE_HOST_CHECK"
    origin = Origin(package.file, line_of(package.text, '"proxy"'), "proxy")
    draft.put(
        ("services", name, "env", variable), "true", f"{origin}: with it, react-scripts checks the host"
    )
    text = f"{variable} is set, as react-scripts with a proxy takes no other host: is that right for a bay?"
    draft.ask(f"services/{name}/env/{variable}", text, origin=origin)


def _webpack(name: str, package: Package, facts: Facts, draft: Draft) -> None:
    """webpack-dev-server 3 and the Angular and Vue servers built on it know `localhost` alone."""
    listed = r'"(webpack-dev-server|@vue/cli-service|@angular-devkit/build-angular)"\s*:\s*"[^\d"]*(\d+)'
    old = {"webpack-dev-server": 4, "@vue/cli-service": 5, "@angular-devkit/build-angular": 13}
    found = next((m for m in re.finditer(listed, package.text) if int(m[2]) < old[m[1]]), None)
    if found is None:
        return
    angular = normal(join(package.folder, "angular.json"))
    file = angular if facts.view.exists(angular) else _config(
        package, facts, "webpack.config", "webpack.dev", "webpack.config.dev", "vue.config"
    )  # fmt: skip
    text = (facts.view.text(file) or "") if file else ""
    if re.search(r"disableHostCheck[\"']?\s*:\s*true|allowedHosts.*(\.localhost|all)\b", text):
        return
    needle = next((word for word in ("allowedHosts", "devServer", '"serve"') if word in text), "")
    line = line_of(text, needle) if needle else 0
    origin = (
        Origin(file, line, needle.strip('"'))
        if file
        else Origin(package.file, line_of(package.text, found[1]))
    )
    asked = (
        f"{found[1]} {found[2]} refuses hosts outside allowedHosts: let it take {name}'s host name in a bay"
    )
    draft.ask(f"services/{name}", asked, "allowedHosts: ['.localhost']", origin=origin)


def _django(name: str, folder: str, facts: Facts, draft: Draft) -> None:
    for file in facts.view.below(folder):
        if not re.search(r"(^|/)settings(/\w+)?\.py$", file):
            continue
        for number, line in enumerate(facts.view.lines(file), 1):
            if not re.match(r"\s*ALLOWED_HOSTS\s*=", line):
                continue
            origin = Origin(file, number, "ALLOWED_HOSTS")
            variable = re.search(
                r"(?:environ(?:\.get)?[\[(]|getenv\(|env(?:\.list)?\(|config\()\s*[\"'](\w+)", line
            )
            here = ("services", name, "env", variable[1] if variable else "")
            if variable and variable[1] not in draft.services[name].get("env", {}):
                draft.put(here, f"${{bay.{name}.public_host}},localhost,127.0.0.1", origin)
            elif not variable and "*" not in line:
                text = f"Django refuses hosts outside ALLOWED_HOSTS: let it take {name}'s host name in a bay"
                draft.ask(f"services/{name}/env", text, "ALLOWED_HOSTS from a variable", origin=origin)
            return


def _rails(name: str, folder: str, facts: Facts, draft: Draft) -> None:
    file = normal(join(folder, "config/environments/development.rb"))
    if facts.view.exists(file) and facts.view.exists(normal(join(folder, "Gemfile"))):
        here = ("services", name, "env", "RAILS_DEVELOPMENT_HOSTS")
        draft.put(here, f"${{bay.{name}.public_host}}", f"{file}: Rails checks the host")


def _laravel(name: str, folder: str, facts: Facts, draft: Draft) -> None:
    """Laravel checks hosts only where the program turns `TrustHosts` on."""
    for file in ("bootstrap/app.php", "app/Http/Kernel.php"):
        path = normal(join(folder, file))
        for number, line in enumerate(facts.view.lines(path), 1):
            if re.match(
                r"\s*(->trustHosts\(|\$middleware->trustHosts\(|\\?App\\Http\\Middleware\\TrustHosts)", line
            ):
                text = f"Laravel refuses hosts outside TrustHosts: let it take {name}'s host name in a bay"
                draft.ask(f"services/{name}", text, origin=Origin(path, number, "TrustHosts"))
                return
