"""Manifests that must be accepted."""

from __future__ import annotations

HEAD = "version: 1\nproject: shop\n"


def service(body: str) -> str:
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    return f"{HEAD}services:\n  api:\n{lines}"


OK = "build: api\nhealth: {process: true}"

ALL = {
    "nothing but a name": HEAD,
    "no services but a task": f"{HEAD}services: {{}}\ntasks: {{t: {{image: a, run: [x], needs: []}}}}\n",
    "one-shot": service("kind: oneshot\nimage: a\nrun: [x]\nrestart: on-failure"),
    "numbers and booleans in env": service(f"{OK}\nenv: {{A: 1, B: 1.10, C: true, D: yes, E: '', F: 0o17}}"),
    "restart no without quotes": service(f"{OK}\nrestart: no"),
    "empty argument after the first": service(f"{OK}\nstart: [x, '']"),
    "argument that YAML 1.1 reads as a boolean": service(f"{OK}\nstart: [x, on, yes, n]"),
    "program that is an option": service(f"{OK}\nstart: [--reload]"),
    "user as a number": service(f"{OK}\nuser: 1000"),
    "user as uid and gid": service(f"{OK}\nuser: 1000:1000"),
    "user of the image": service(f"{OK}\nuser: image"),
    "sizes": service(f"{OK}\nshm_size: 268435456\nlimits: {{memory: 1.5GiB, cpus: 2, pids: 10}}"),
    "status ranges": service("build: a\nport: 80\nhealth: {http: /, accept: [200-399, 401]}"),
    "absolute mount": service(f"{OK}\nmounts: [{{source: /srv/data, target: /data}}]"),
    "mount below the workspace": service(f"{OK}\nmounts: [{{source: ./a, target: /workspace/b}}]"),
    "names that start with dots": service(
        f"{OK}\nvolumes: [.cache, ..odd, ...]\nmounts: [{{source: .x, target: /.y}}]"
    ),
    "the whole repository as context": service("build: .\nhealth: {process: true}"),
    "image with registry, port and digest": service(
        f"image: 'r.example:5000/a/b_c:1.2@sha256:{'0' * 64}'\nhealth: {{process: true}}"
    ),
    "references": service(
        f"{OK}\nport: 80\nports: {{m: 81}}\nenv:\n  A: ${{bay.api.url}} ${{secret:a/b-c.d:e}} $${{x}} $HOME\n"
        "  B: ${bay.api.ports.m}${bay.api.ports.port}${bay.api.host}${bay.api.public_host}"
    ),
    "merge keys and anchors": (
        f"{HEAD}services:\n  a: &base\n    build: a\n    env: &env {{A: b}}\n"
        "    health: &up {process: true}\n"
        "  c:\n    <<: *base\n    env: {<<: *env, C: d}\n    health: *up\n"
    ),
    "report in the run folder": (
        f"{HEAD}services: {{web: {{build: a, health: {{process: true}}}}}}\ntasks:\n  t:\n    run: [x]\n"
        "    needs: [web]\n"
        "    report: {format: junit, path: '${run.dir}/a.xml'}\n    env: {D: '${run.dir}'}\n"
    ),
    "task with everything of its own": (
        f"{HEAD}tasks:\n  t:\n    build: a\n    run: [x]\n    needs: []\n    install: [npm, ci]\n"
        "    install_inputs: ['packages/*/package.json']\n    volumes: [node_modules]\n    caches: [/c]\n"
        "    tmpfs: [/t]\n    user: 0\n"
        "    workdir: /w\n    report: auto\n    timeout: 90s\n"
    ),
    "runtime host": f"{HEAD}runtime: host\nservices: {{a: {{image: b, health: {{process: true}}}}}}\n",
    "task of this machine": (
        f"{HEAD}tasks:\n  t:\n    in: host\n    run: [x]\n    needs: []\n    workdir: /workspace/web\n"
        "    limits: {memory: 1g}\n    env: {D: '${run.dir}'}\n    report: auto\n"
    ),
    "set-up that needs its own service": (
        f"{HEAD}services:\n  db: {{image: 'postgres:16', port: 5432, health: {{tcp: 5432}}, setup: [seed]}}\n"
        "  seed: {kind: oneshot, build: a, run: [make], needs: [db]}\n"
    ),
    "byte order mark": f"\ufeff{HEAD}",
    "windows line ends": HEAD.replace("\n", "\r\n"),
    "unicode in values": service(f"{OK}\nenv: {{A: 'grüße 🎉'}}"),
    "secret-like text that is none": service(
        f"{OK}\nenv: {{A: 'postgres://localhost:5432/ABCdef123456789012345', B: /opt/ABCdef1234567890xyzXYZ}}"
    ),
}
