"""Manifests that must be refused: the line marked `#!` is where, `path` and `rule` are what.

`structural` cases must fail the published JSON Schema as well.
"""

from __future__ import annotations

from dataclasses import dataclass

HEAD = "version: 1\nproject: shop\n"
DB = "  db: {image: 'postgres:16', port: 5432, health: {tcp: 5432}}\n"


@dataclass(frozen=True)
class Rejection:
    name: str
    text: str
    path: str
    rule: str
    structural: bool = True

    @property
    def line(self) -> int:
        return next(number for number, line in enumerate(self.text.split("\n"), 1) if "#!" in line)


def top(name: str, text: str, path: str, rule: str, structural: bool = True) -> Rejection:
    return Rejection(name, text, path, rule, structural)


def service(name: str, body: str, path: str, rule: str, structural: bool = True) -> Rejection:
    """`body`: the lines of a service `api` beside a database, the marked ones included."""
    lines = "".join(f"    {line}\n" for line in body.strip("\n").split("\n"))
    mark = "" if "#!" in body else " #!"
    text = f"{HEAD}services:\n{DB}  api:{mark}\n{lines}"
    return Rejection(name, text, f"services/api{path and '/' + path}", rule, structural)


def task(
    name: str, body: str, path: str, rule: str, structural: bool = True, services: str = ""
) -> Rejection:
    lines = "".join(f"    {line}\n" for line in body.strip("\n").split("\n"))
    mark = "" if "#!" in body else " #!"
    web = services or "  web: {build: web, health: {process: true}}\n"
    text = f"{HEAD}services:\n{web}tasks:\n  unit:{mark}\n{lines}"
    return Rejection(name, text, f"tasks/unit{path and '/' + path}", rule, structural)


OK = "build: api\nhealth: {process: true}"
ONESHOT = "kind: oneshot\nbuild: api\nrun: [make]"

STRUCTURE = [
    top("version 2", "version: 2 #!\nproject: shop\n", "version", "version"),
    top("version as text", "version: '1' #!\nproject: shop\n", "version", "version"),
    top("version as boolean", "version: true #!\nproject: shop\n", "version", "version"),
    top("version missing", "project: shop #!\n", "version", "missing"),
    top("project missing", "version: 1 #!\n", "project", "missing"),
    top("project upper case", "version: 1\nproject: Shop #!\n", "project", "name"),
    top("project double hyphen", "version: 1\nproject: a--b #!\n", "project", "name"),
    top("project path", "version: 1\nproject: ../.. #!\n", "project", "name"),
    top("project of 300 characters", f"version: 1\nproject: {'a' * 300} #!\n", "project", "name"),
    top("project unicode", "version: 1\nproject: füß #!\n", "project", "name"),
    top("project reserved", "version: 1\nproject: xn #!\n", "project", "name"),
    top("project empty", "version: 1\nproject: '' #!\n", "project", "name"),
    top("project a number", "version: 1\nproject: 12 #!\n", "project", "type"),
    top("project null", "version: 1\nproject: #!\n", "project", "empty"),
    top("unknown top level key", f"{HEAD}servics: {{}} #!\n", "servics", "unknown-key"),
    top("prototype key", f"{HEAD}__proto__: {{a: b}} #!\n", "__proto__", "unknown-key"),
    top("supervision", f"{HEAD}supervision: {{banner: true}} #!\n", "supervision", "not-yet"),
    top("externals", f"{HEAD}externals: {{mail: {{emulate: mailpit}}}} #!\n", "externals", "not-yet"),
    top("git of another value", f"{HEAD}git: write #!\n", "git", "value"),
    top("runtime of another value", f"{HEAD}runtime: podman #!\n", "runtime", "value"),
    top("services a list", f"{HEAD}services: [a] #!\n", "services", "type"),
    top("services null", f"{HEAD}services: #!\n", "services", "empty"),
    top("service null", f"{HEAD}services:\n  api: #!\n", "services/api", "empty"),
    top("service a text", f"{HEAD}services:\n  api: nginx #!\n", "services/api", "type"),
    top(
        "service name upper case",
        f"{HEAD}services:\n  Api: {{build: a, health: {{process: true}}}} #!\n",
        "services/Api",
        "name",
    ),
    top(
        "service name with a dot",
        f"{HEAD}services:\n  a.b: {{build: a, health: {{process: true}}}} #!\n",
        "services/a.b",
        "name",
    ),
    top(
        "service name double hyphen",
        f"{HEAD}services:\n  a--b: {{build: a, health: {{process: true}}}} #!\n",
        "services/a--b",
        "name",
    ),
    top(
        "service called host",
        f"{HEAD}services:\n  host: {{build: a, health: {{process: true}}}} #!\n",
        "services/host",
        "name",
    ),
    top(
        "task name", f"{HEAD}tasks:\n  Unit: {{image: 'a:1', run: [x], needs: []}} #!\n", "tasks/Unit", "name"
    ),
    top("task null", f"{HEAD}tasks:\n  unit: #!\n", "tasks/unit", "empty"),
]

SERVICES = [
    service("neither image nor build", "health: {process: true}", "", "image"),
    service("image and build", "image: 'a:1'\nbuild: a #!\nhealth: {process: true}", "build", "image"),
    service("image with spaces", "image: 'a b' #!\nhealth: {process: true}", "image", "shape"),
    service("image upper case", "image: Postgres #!\nhealth: {process: true}", "image", "shape"),
    service("kind misspelt", f"kind: onshot #!\n{OK}", "kind", "value"),
    service("scope shared", f"{OK}\nscope: shared #!", "scope", "not-yet"),
    service("fork", f"{OK}\nfork: image #!", "fork", "not-yet"),
    service("seed", f"{OK}\nseed: {{after: [x], sources: [a]}} #!", "seed", "not-yet"),
    service("watch", f"{OK}\nwatch: ['src/**'] #!", "watch", "not-yet"),
    service("watch_action", f"{OK}\nwatch_action: restart #!", "watch_action", "not-yet"),
    service("unknown key", f"{OK}\ncommand: [x] #!", "command", "unknown-key"),
    service("python name of a key", f"{OK}\nport_map: 1 #!", "port_map", "unknown-key"),
    service("one-shot without run", "kind: oneshot\nbuild: a", "", "oneshot"),
    service("one-shot with start", f"{ONESHOT}\nstart: [x] #!", "start", "oneshot"),
    service("one-shot with port", f"{ONESHOT}\nport: 80 #!", "port", "oneshot"),
    service("one-shot with ports", f"{ONESHOT}\nports: {{a: 80}} #!", "ports", "oneshot"),
    service("one-shot with health", f"{ONESHOT}\nhealth: {{process: true}} #!", "health", "R5"),
    service("one-shot restarted always", f"{ONESHOT}\nrestart: always #!", "restart", "oneshot"),
    service("one-shot unless-stopped", f"{ONESHOT}\nrestart: unless-stopped #!", "restart", "oneshot"),
    service("one-shot primary", f"{ONESHOT}\nprimary: true #!", "primary", "oneshot"),
    service("long-running with run", f"{OK}\nrun: [x] #!", "run", "oneshot"),
    service("restart of another value", f"{OK}\nrestart: never #!", "restart", "value"),
    service("restart as boolean", f"{OK}\nrestart: false #!", "restart", "value"),
    service("port 0", f"{OK}\nport: 0 #!", "port", "value"),
    service("port 99999", f"{OK}\nport: 99999 #!", "port", "value"),
    service("port as text", f"{OK}\nport: '80' #!", "port", "type"),
    service("port as boolean", f"{OK}\nport: true #!", "port", "type"),
    service("huge port", f"{OK}\nport: 123456789012345678901234567890 #!", "port", "value"),
    service("ports a list", f"{OK}\nports: ['8080:80'] #!", "ports", "type"),
    service("port name upper case", f"{OK}\nports: {{HTTP: 80}} #!", "ports/HTTP", "name"),
    service("primary as text", f"{OK}\nport: 80\nprimary: yes #!", "primary", "type"),
    service("primary without port", f"{OK}\nprimary: true", "", "primary"),
    service("needs a text", f"{OK}\nneeds: db #!", "needs", "type"),
    service("needs null", f"{OK}\nneeds: #!", "needs", "empty"),
    service("env a list", f"{OK}\nenv: ['A=b'] #!", "env", "type"),
    service("env name with a hyphen", f"{OK}\nenv: {{A-B: c}} #!", "env/A-B", "shape"),
    service("env value null", f"{OK}\nenv:\n  A: #!", "env/A", "empty"),
    service("env value a list", f"{OK}\nenv:\n  A: [b] #!", "env/A", "type"),
    service("label a mapping", f"{OK}\nlabels:\n  a: {{b: c}} #!", "labels/a", "type"),
    service("user a name", f"{OK}\nuser: root #!", "user", "shape"),
    service("user negative", f"{OK}\nuser: -1 #!", "user", "shape"),
    service("platform", f"{OK}\nplatform: 'Linux AMD' #!", "platform", "shape"),
    service("shm_size", f"{OK}\nshm_size: big #!", "shm_size", "shape"),
    service("shm_size zero", f"{OK}\nshm_size: 0 #!", "shm_size", "shape"),
    service("memory", f"{OK}\nlimits: {{memory: 1x}} #!", "limits/memory", "shape"),
    service("cpus zero", f"{OK}\nlimits: {{cpus: 0}} #!", "limits/cpus", "value"),
    service("pids zero", f"{OK}\nlimits: {{pids: 0}} #!", "limits/pids", "value"),
    service("limits unknown key", f"{OK}\nlimits: {{mem: 1g}} #!", "limits/mem", "unknown-key"),
    service("workdir relative", f"{OK}\nworkdir: app #!", "workdir", "path"),
    service("entrypoint a text", f"{OK}\nentrypoint: sh #!", "entrypoint", "R1"),
    service("install_inputs without install", f"{OK}\ninstall_inputs: [a] #!", "install_inputs", "install"),
    service(
        "install_scripts without install", f"{OK}\ninstall_scripts: true #!", "install_scripts", "install"
    ),
    service("docker_socket as text", f"{OK}\ndocker_socket: 'true' #!", "docker_socket", "type"),
    service("empty service key", f"{OK}\nlimits: #!", "limits", "empty"),
]

COMMANDS = [
    service("start a text", f"{OK}\nstart: npm run dev #!", "start", "R1"),
    service("start empty", f"{OK}\nstart: [] #!", "start", "R1"),
    service("argument a boolean", f"{OK}\nstart:\n  - npm\n  - true #!", "start/1", "R1"),
    service("argument a number", f"{OK}\nstart:\n  - npm\n  - 5 #!", "start/1", "R1"),
    service("argument null", f"{OK}\nstart:\n  - npm\n  - null #!", "start/1", "R1"),
    service("argument a list", f"{OK}\nstart:\n  - npm\n  - [a] #!", "start/1", "R1"),
    service("first argument empty", f"{OK}\nstart:\n  - '' #!", "start/0", "R1"),
    service("install a text", f"{OK}\ninstall: npm ci #!", "install", "R1"),
    service("health cmd a text", "build: a\nhealth:\n  cmd: pg_isready #!", "health/cmd", "R1"),
    task("task run a text", "run: npm test #!\nneeds: []", "run", "R1"),
]

HEALTH = [
    service("no health", "build: a", "", "R5"),
    service("health empty", "build: a\nhealth: {} #!", "health", "R5"),
    service("health null", "build: a\nhealth: #!", "health", "empty"),
    service("health with timeout only", "build: a\nhealth: {timeout: 3s} #!", "health", "R5"),
    service("two forms", "build: a\nhealth:\n  process: true #!\n  log: x", "health/process", "R5"),
    service("http without slash", "build: a\nport: 80\nhealth: {http: healthz} #!", "health/http", "R5"),
    service("http with a space", "build: a\nport: 80\nhealth: {http: '/a b'} #!", "health/http", "R5"),
    service("http without port", "build: a\nhealth: {http: /}", "", "R5"),
    service("tcp as text", "build: a\nhealth: {tcp: '80'} #!", "health/tcp", "type"),
    service(
        "tcp of no port", "build: a\nport: 80\nprimary: true\nhealth: {tcp: 81} #!", "health/tcp", "R5", False
    ),
    service("log no pattern", "build: a\nhealth: {log: '('} #!", "health/log", "R5", False),
    service("log empty", "build: a\nhealth: {log: ''} #!", "health/log", "empty"),
    service("process false", "build: a\nhealth: {process: false} #!", "health/process", "R5"),
    service("process one", "build: a\nhealth: {process: 1} #!", "health/process", "R5"),
    service(
        "accept without http", "build: a\nhealth: {process: true, accept: [200]} #!", "health/accept", "R5"
    ),
    service(
        "accept no code", "build: a\nport: 80\nhealth: {http: /, accept: [2xx]} #!", "health/accept/0", "R5"
    ),
    service("accept 999", "build: a\nport: 80\nhealth: {http: /, accept: [999]} #!", "health/accept/0", "R5"),
    service(
        "accept backwards",
        "build: a\nport: 80\nprimary: true\nhealth: {http: /, accept: [399-200]} #!",
        "health/accept/0",
        "R5",
        False,
    ),
    service(
        "duration without unit",
        "build: a\nhealth: {process: true, timeout: 30} #!",
        "health/timeout",
        "shape",
    ),
    service(
        "duration of Go",
        "build: a\nhealth: {process: true, start_period: 1m0s} #!",
        "health/start_period",
        "shape",
    ),
    service("timeout zero", "build: a\nhealth: {process: true, timeout: 0s} #!", "health/timeout", "shape"),
    service(
        "interval zero", "build: a\nhealth: {process: true, interval: 0ms} #!", "health/interval", "shape"
    ),
    service(
        "health unknown key",
        "build: a\nhealth: {process: true, retries: 3} #!",
        "health/retries",
        "unknown-key",
    ),
    service(
        "health inner name",
        "build: a\nhealth: {process: true, timeout_s: 3s} #!",
        "health/timeout_s",
        "unknown-key",
    ),
]

PATHS = [
    service("context escapes", "build: ../x #!\nhealth: {process: true}", "build/context", "path"),
    service(
        "context hidden escape",
        "build: {context: a/../../x} #!\nhealth: {process: true}",
        "build/context",
        "path",
    ),
    service("context absolute", "build: /srv #!\nhealth: {process: true}", "build/context", "path"),
    service(
        "dockerfile escapes",
        "build: {dockerfile: ../D} #!\nhealth: {process: true}",
        "build/dockerfile",
        "path",
    ),
    service(
        "dockerfile absolute",
        "build: {dockerfile: /D} #!\nhealth: {process: true}",
        "build/dockerfile",
        "path",
    ),
    service("build unknown key", "build: {path: a} #!\nhealth: {process: true}", "build/path", "unknown-key"),
    service(
        "mount source escapes",
        f"{OK}\nmounts:\n  - {{source: ../x, target: /y}} #!",
        "mounts/0/source",
        "path",
    ),
    service(
        "mount source empty", f"{OK}\nmounts:\n  - {{source: '', target: /y}} #!", "mounts/0/source", "path"
    ),
    service(
        "mount source of an absolute escape",
        f"{OK}\nmounts:\n  - {{source: /a/../b, target: /y}} #!",
        "mounts/0/source",
        "path",
    ),
    service(
        "mount source is the whole machine",
        f"{OK}\nmounts:\n  - {{source: /, target: /y}} #!",
        "mounts/0/source",
        "path",
    ),
    service(
        "mount source is git's",
        f"{OK}\nmounts:\n  - {{source: .git, target: /y}} #!",
        "mounts/0/source",
        "path",
        False,
    ),
    service(
        "mount source is a submodule's git",
        f"{OK}\nmounts:\n  - {{source: lib/.GIT/x, target: /y}} #!",
        "mounts/0/source",
        "path",
        False,
    ),
    service("mount without target", f"{OK}\nmounts:\n  - {{source: a}} #!", "mounts/0/target", "missing"),
    service("mount as text", f"{OK}\nmounts:\n  - './a:/b' #!", "mounts/0", "type"),
    service(
        "mount target empty", f"{OK}\nmounts:\n  - {{source: a, target: ''}} #!", "mounts/0/target", "path"
    ),
    service(
        "mount target relative", f"{OK}\nmounts:\n  - {{source: a, target: y}} #!", "mounts/0/target", "path"
    ),
    service(
        "mount target root", f"{OK}\nmounts:\n  - {{source: a, target: /}} #!", "mounts/0/target", "path"
    ),
    service(
        "mount target escapes",
        f"{OK}\nmounts:\n  - {{source: a, target: /a/../b}} #!",
        "mounts/0/target",
        "path",
    ),
    service(
        "mount target workspace",
        f"{OK}\nmounts:\n  - {{source: a, target: /workspace}} #!",
        "mounts/0/target",
        "path",
        False,
    ),
    service(
        "mount target workspace with a slash",
        f"{OK}\nmounts:\n  - {{source: a, target: /workspace/}} #!",
        "mounts/0/target",
        "path",
        False,
    ),
    service(
        "mount target git",
        f"{OK}\nmounts:\n  - {{source: a, target: /workspace/.git}} #!",
        "mounts/0/target",
        "path",
        False,
    ),
    service(
        "mount target taken",
        f"{OK}\nmounts:\n  - {{source: a, target: /y}}\n  - {{source: b, target: /y/}} #!",
        "mounts/1/target",
        "path",
        False,
    ),
    service("volume empty", f"{OK}\nvolumes:\n  - '' #!", "volumes/0", "path"),
    service("volume escapes", f"{OK}\nvolumes:\n  - ../x #!", "volumes/0", "path"),
    service("volume named as in compose", f"{OK}\nvolumes:\n  - data:/var/lib/data #!", "volumes/0", "path"),
    service(
        "volume twice",
        f"{OK}\nvolumes:\n  - node_modules\n  - ./node_modules/ #!",
        "volumes/1",
        "path",
        False,
    ),
    service(
        "volume twice through workdir",
        f"{OK}\nworkdir: /app\nvolumes:\n  - x\n  - /app/x #!",
        "volumes/1",
        "path",
        False,
    ),
    service("volume workspace", f"{OK}\nvolumes:\n  - /workspace #!", "volumes/0", "path", False),
    service("cache relative", f"{OK}\ncaches:\n  - .npm #!", "caches/0", "path"),
    service("cache workspace", f"{OK}\ncaches:\n  - /workspace #!", "caches/0", "path", False),
    service("tmpfs relative", f"{OK}\ntmpfs:\n  - tmp #!", "tmpfs/0", "path"),
    service("tmpfs with options", f"{OK}\ntmpfs:\n  - /tmp:size=1m #!", "tmpfs/0", "path"),
    service(
        "install_inputs escape",
        f"{OK}\ninstall: [make]\ninstall_inputs:\n  - ../a/* #!",
        "install_inputs/0",
        "path",
    ),
    service(
        "install_inputs absolute",
        f"{OK}\ninstall: [make]\ninstall_inputs:\n  - /etc/* #!",
        "install_inputs/0",
        "path",
    ),
    task(
        "report escapes",
        "run: [x]\nneeds: []\nreport: {format: junit, path: ../x.xml} #!",
        "report/path",
        "path",
    ),
    task(
        "report absolute",
        "run: [x]\nneeds: []\nreport: {format: junit, path: /x.xml} #!",
        "report/path",
        "path",
    ),
    task(
        "report escapes from the run folder",
        "run: [x]\nneeds: []\nreport: {format: junit, path: '${run.dir}/../x'} #!",
        "report/path",
        "path",
    ),
    task(
        "report in git's folder",
        "run: [x]\nneeds: []\nreport: {format: junit, path: .git/x} #!",
        "report/path",
        "path",
        False,
    ),
    task(
        "report with another reference",
        "run: [x]\nneeds: []\nreport: {format: junit, path: '${bay.web.host}/x'} #!",
        "report/path",
        "R7",
        False,
    ),
]

TASKS = [
    task("task needs missing", "run: [x]", "needs", "R6"),
    task("task needs null", "run: [x]\nneeds: #!", "needs", "R6"),
    task("task needs unknown", "run: [x]\nneeds:\n  - wbe #!", "needs/0", "R6", False),
    task("task needs twice", "run: [x]\nneeds:\n  - web\n  - web #!", "needs/1", "R6", False),
    task("run missing", "needs: []", "run", "missing"),
    task("run empty", "run: [] #!\nneeds: []", "run", "R1"),
    task("in unknown", "run: [x]\nneeds: []\nin: wbe #!", "in", "task-image", False),
    task("in host and image", "run: [x]\nneeds: []\nin: host\nimage: 'a:1' #!", "image", "task-image"),
    task("in host and build", "run: [x]\nneeds: []\nin: host\nbuild: a #!", "build", "task-image"),
    task("install in host", "run: [x]\nneeds: []\nin: host\ninstall: [make] #!", "install", "task-image"),
    task("volumes in host", "run: [x]\nneeds: []\nin: host\nvolumes: [a] #!", "volumes", "task-image"),
    task(
        "in host outside the worktree",
        "run: [x]\nneeds: []\nin: host\nworkdir: /srv #!",
        "workdir",
        "path",
        False,
    ),
    task(
        "in host out of the worktree",
        "run: [x]\nneeds: []\nin: host\nworkdir: /workspace2 #!",
        "workdir",
        "path",
        False,
    ),
    task("in and image", "run: [x]\nneeds: []\nin: web\nimage: 'a:1' #!", "image", "task-image"),
    task("install without an image", "run: [x]\nneeds: []\ninstall: [make] #!", "install", "task-image"),
    task(
        "volumes in a service's image",
        "run: [x]\nneeds: []\nin: web\nvolumes: [a] #!",
        "volumes",
        "task-image",
    ),
    task("no application service", "run: [x]\nneeds: []", "", "task-image", False, services=DB),
    task(
        "report format missing", "run: [x]\nneeds: []\nreport: {path: a.xml} #!", "report/format", "missing"
    ),
    task(
        "report format unknown",
        "run: [x]\nneeds: []\nreport: {format: xunit, path: a} #!",
        "report/format",
        "value",
    ),
    task("report path missing", "run: [x]\nneeds: []\nreport: {format: junit} #!", "report/path", "missing"),
    task("report a word", "run: [x]\nneeds: []\nreport: junit #!", "report", "report"),
    task(
        "report unknown key",
        "run: [x]\nneeds: []\nreport: {format: junit, path: a, x: 1} #!",
        "report/x",
        "unknown-key",
    ),
    task("timeout in hours", "run: [x]\nneeds: []\ntimeout: 1h #!", "timeout", "shape"),
    task("task timeout zero", "run: [x]\nneeds: []\ntimeout: 0m #!", "timeout", "shape"),
    task("task key of a service", "run: [x]\nneeds: []\nport: 80 #!", "port", "unknown-key"),
]

ACROSS = [
    service("needs unknown", f"{OK}\nneeds:\n  - bd #!", "needs/0", "needs", False),
    service("needs itself", f"{OK}\nneeds:\n  - api #!", "needs/0", "needs", False),
    service("needs twice", f"{OK}\nneeds:\n  - db\n  - db #!", "needs/1", "needs", False),
    service("setup unknown", f"{OK}\nsetup:\n  - x #!", "setup/0", "setup", False),
    service("setup no one-shot", f"{OK}\nsetup:\n  - db #!", "setup/0", "setup", False),
    service("port name of the primary one", f"{OK}\nports: {{port: 81}} #!", "ports/port", "ports", False),
    service(
        "named port equals the primary one",
        f"{OK}\nport: 80\nprimary: true\nports: {{a: 80}} #!",
        "ports/a",
        "ports",
        False,
    ),
    service("two names for one port", f"{OK}\nports: {{a: 81, b: 81}} #!", "ports/b", "ports", False),
    service(
        "host name of a service taken by a port",
        f"{OK}\nport: 80\nprimary: true\nports: {{db: 81}} #!",
        "ports/db",
        "ports",
        False,
    ),
    service(
        "label of devbay's own",
        f"{OK}\nlabels: {{dev.devbay.bay: x}} #!",
        "labels/dev.devbay.bay",
        "labels",
        False,
    ),
    service(
        "memory below the engine's least",
        f"{OK}\nlimits: {{memory: 1m}} #!",
        "limits/memory",
        "limits",
        False,
    ),
    top(
        "cycle",
        f"{HEAD}services:\n  a: {{build: a, health: {{process: true}}, needs: [b]}} #!\n"
        "  b: {build: a, health: {process: true}, needs: [c]}\n"
        "  c: {build: a, health: {process: true}, needs: [a]}\n",
        "services/a/needs",
        "cycle",
        False,
    ),
    top(
        "two primary",
        f"{HEAD}services:\n  a: {{build: a, port: 1, health: {{process: true}}, primary: true}}\n"
        "  b: {build: a, port: 1, health: {process: true}, primary: true} #!\n",
        "services/b/primary",
        "primary",
        False,
    ),
    top(
        "several ports and no primary",
        f"{HEAD}services: #!\n{DB}  b: {{build: a, port: 1, health: {{process: true}}}}\n",
        "services",
        "primary",
        False,
    ),
]

SECRETS = [
    service("Stripe key in env", f"{OK}\nenv:\n  K: sk_live_{'a1B2' * 6} #!", "env/K", "R3", False),
    service("GitHub token in env", f"{OK}\nenv:\n  K: ghp_{'a1B2' * 9} #!", "env/K", "R3", False),
    service("AWS key in env", f"{OK}\nenv:\n  K: AKIA{'A1B2' * 4} #!", "env/K", "R3", False),
    service(
        "private key in env", f"{OK}\nenv:\n  K: '-----BEGIN RSA PRIVATE KEY-----' #!", "env/K", "R3", False
    ),
    service("random text in env", f"{OK}\nenv:\n  K: aB3dE5fG7hI9jK1lM3nO5pQ7 #!", "env/K", "R3", False),
    service(
        "token in an argument",
        f"{OK}\nstart:\n  - npm\n  - --token=aB3dE5fG7hI9jK1lM3nO5pQ7 #!",
        "start/1",
        "R3",
        False,
    ),
    service(
        "token in a build argument",
        f"health: {{process: true}}\nbuild:\n  context: a\n  args:\n    T: npm_{'a1B2' * 9} #!",
        "build/args/T",
        "R3",
        False,
    ),
    service("token in a label", f"{OK}\nlabels:\n  t: glpat-{'a1B2' * 5} #!", "labels/t", "R3", False),
    service(
        "token in a mount",
        f"{OK}\nmounts:\n  - {{source: ghp_{'a1B2' * 9}, target: /y}} #!",
        "mounts/0/source",
        "R3",
        False,
    ),
    task("token in a task", f"run:\n  - x\n  - xoxb-{'1234567890'} #!\nneeds: []", "run/1", "R3", False),
]

EGRESS = [
    service("egress URL", f"{OK}\negress:\n  - https://a.example #!", "egress/0", "R4"),
    service("egress with port", f"{OK}\negress:\n  - a.example:443 #!", "egress/0", "R4"),
    service("egress with space", f"{OK}\negress:\n  - a b #!", "egress/0", "R4"),
    service("egress empty", f"{OK}\negress:\n  - '' #!", "egress/0", "R4"),
]

REFERENCES = [
    service(f"reference {text}", f"{OK}\nenv:\n  X: '{text}' #!", "env/X", "R7", False)
    for text in (
        "${HOME}",
        "${bay.db}",
        "${bay.nodb.url}",
        "${bay.db.uri}",
        "${bay.db.ports.x}",
        "${bay.api.url}",
        "${bay.api.public_url}",
        "${bay.api.port}",
        "${secret:}",
        "${secret:a b}",
        "${X:-y}",
        "${bay.${bay.db}.url}",
        "${run.dir}/x",
        "${unclosed",
        "${}",
        "${bay.db.password}",
        "$${ok} ${no}",
    )
] + [
    top(
        "public_url of a one-shot",
        f"{HEAD}services:\n{DB}  m: {{kind: oneshot, build: a, run: [make]}}\n"
        "  api:\n    build: a\n    health: {process: true}\n    env:\n      X: ${bay.m.public_url} #!\n",
        "services/api/env/X",
        "R7",
        False,
    ),
    task("reference in a task", "run: [x]\nneeds: []\nenv:\n  X: ${bay.wbe.host} #!", "env/X", "R7", False),
]

ALL = [
    *STRUCTURE,
    *SERVICES,
    *COMMANDS,
    *HEALTH,
    *PATHS,
    *TASKS,
    *ACROSS,
    *SECRETS,
    *EGRESS,
    *REFERENCES,
]
