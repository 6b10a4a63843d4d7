"""Stacks for every form of the compose format: name to files; `REFUSED` are those that compose refuses."""

from __future__ import annotations

ONE = "compose.yaml"

ACCEPTED: dict[str, dict[str, str]] = {
    "scalars": {
        ONE: """\
services:
  a:
    image: x
    environment:
      ON: on
      YES: yes
      N: n
      "TRUE": True
      NOTHING:
      TILDE: ~
      EMPTY: ""
      OCTAL: 0017
      OCTAL12: 0o17
      HEX: 0x1F
      BIN: 0b101
      UNDERSCORED: 1_000
      FLOAT: 3.10
      SMALL: 0.00001234
      LARGE: 1234567.0
      EXP: 1e3
      HUGE: 123456789012345678901234567890
      LONG: 18446744073709551615
      SEXAGESIMAL: 12:30:45
      DATE: 2020-1-2
      MOMENT: 2020-01-01T10:00:00Z
      LOCAL: 2020-01-01 10:00:00
      OFFSET: 2020-01-01T10:00:00.50+02:00
      NEGATIVE: -010
      PLUS: +5
      POINT: .5
      VERSION: 1.2.3
      TAGGED: !!str 12
      BINARY: !!binary aGVsbG8=
      LOCALTAG: !mine text
      FOLDED: >-
        one
        two
      LITERAL: |
        one
        two
      QUOTED: "a\\tb\\u00e9"
      SINGLE: 'it''s'
"""
    },
    "list environment": {
        ONE: """\
services:
  a:
    image: x
    environment: [A=1, B, "C=", "D=a=b", A=2, "E=${NONE:-x y}", "F=$$5"]
"""
    },
    "interpolation": {
        ONE: """\
name: ${STACK:-demo}-x
services:
  a:
    image: "${REG:-reg.example.invalid}/${NAME:-${ALT:-fallback}}:${TAG-1.0}"
    environment:
      BARE: $UNSET/x
      BRACED: a${UNSET}b
      DASH: "${E-dash}|${E:-colon}|${E:-}|${E-}"
      PLUS: "[${E+r}][${E:+r}]"
      NESTED: "${A:-${B:-${C:-deep}}}"
      TWO: "${A:-x} ${B:-y} $$ ${C:-z}"
      JSON: "${J:-{\\"k\\": {\\"l\\": 1}}}"
      BRACES: "${A:-{}} x"
      ESCAPED: "$$HOME $${HOME} $$$$"
      INNER: "${A:-$$5}"
      URL: ${Q:-http://u:p@h:80/p?q=1}
      LOWER: ${lower_case:-ok}
      PROJECT: ${COMPOSE_PROJECT_NAME}
      SHELL: ${PATH}${HOME}${PWD}${USER}
      OPERATORS: "${A:-b?c}${B-d:+e}"
      DIGITS: "${A1_b:-1}"
      PLAIN: "100% {x} } {"
    command: sh -c 'echo "$${HOME}" $$(date)'
    ports: ["${FWD:-127.0.0.1:8000}:${PORT:-8000}", "${P:-9000-9002}:9000-9002"]
    read_only: "${RO:-true}"
    deploy: {replicas: "${N:-2}"}
"""
    },
    "anchors and merges": {
        ONE: """\
x-base: &base
  image: x
  environment: &env {A: "1", B: "2"}
  restart: always
x-more: &more
  image: y
  labels: {l: "1"}
services:
  a:
    <<: *base
    environment:
      <<: *env
      B: "3"
  b:
    <<: [*base, *more]
    command: run
  c:
    command: first
    <<: *more
    image: z
  d: *base
"""
    },
    "ports": {
        ONE: """\
services:
  a:
    image: x
    ports:
      - 3000
      - "3001"
      - 8000:80
      - "127.0.0.1:8001:81"
      - "127.0.0.1::9001"
      - "7000-7002"
      - "[::1]:6001:6001"
      - "53:53/udp"
      - "5060/sctp"
      - "9090-9091:8081-8082"
      - "6789-6799:8080"
      - "99-101:99-101"
      - 2122:22
      - 80:22:44
      - target: 85
        published: "8090-8099"
        host_ip: 127.0.0.1
        protocol: tcp
        mode: host
        name: plain
        app_protocol: http
      - target: 5353
        protocol: udp
      - {target: 86, published: 8086}
      - 3000
    expose: ["3100-3101", "8125/udp", 4000, "4000"]
""".replace("      - 80:22:44\n", "")
    },
    "volumes": {
        ONE: """\
services:
  a:
    image: x
    volumes:
      - ./src:/app/src
      - ../outside:/outside
      - .:/app:cached
      - /var/run/docker.sock:/var/run/docker.sock:ro
      - data:/data
      - data:/data2:ro,nocopy
      - /anonymous
      - ./selinux:/s:z,ro
      - ./prop:/p:rshared
      - ./file.txt:/file.txt/
      - ./src/../other//deep:/x/../y
      - type: bind
        source: ./long
        target: /long
        bind: {create_host_path: false}
      - type: volume
        source: data
        target: /sub
        volume: {subpath: a/b, nocopy: true}
      - type: tmpfs
        target: /tmpfs
        tmpfs: {size: 1000000}
      - {type: volume, target: /anonymous2}
      - ./twice:/app/src
    tmpfs: /run
  b:
    image: x
    volumes_from: [a, "a:ro"]
    tmpfs: [/tmp, "/run:size=1m"]
volumes:
  data:
  other: {name: fixed, external: true}
"""
    },
    "builds": {
        ONE: """\
services:
  short: {build: .}
  sub: {build: ./sub/dir}
  long:
    image: made
    build:
      context: ..
      dockerfile: sub/Dockerfile.dev
      target: dev
      args: {A: 1, B: , C: "${X:-y}"}
      additional_contexts: [base=./base, other=docker-image://alpine]
      secrets: [token]
      tags: ["a:1", "b:2"]
      platforms: [linux/amd64]
      network: host
      labels: [l=1]
      extra_hosts: ["h:1.2.3.4"]
      shm_size: 64m
  listed:
    build: {context: ., args: [A=1, B], dockerfile: ""}
  inline:
    build:
      context: .
      dockerfile_inline: |
        FROM scratch
  remote: {build: "https://example.invalid/x.git#main:sub"}
  default: {build: {}}
secrets:
  token: {environment: TOKEN}
"""
    },
    "dependencies": {
        ONE: """\
services:
  a:
    image: x
    depends_on: [b, c]
  b:
    image: x
    depends_on:
      c: {condition: service_healthy, restart: true}
      d: {condition: service_completed_successfully, required: false}
  c: {image: x, links: [d, "e:other"]}
  d: {image: x, network_mode: "service:e"}
  e: {image: x, volumes_from: ["f:ro", "container:gone"]}
  f: {image: x, ipc: "service:g", pid: "service:g"}
  g: {image: x}
"""
    },
    "commands": {
        ONE: """\
services:
  a: {image: x, command: "a 'b c' \\"d e\\" f\\\\ g", entrypoint: "/bin/sh -c"}
  b: {image: x, command: [a, "b c", ""], entrypoint: []}
  c: {image: x, command: "", entrypoint: ""}
  d: {image: x, command: null}
  e: {image: x, command: "a && b"}
  f: {image: x, command: "a $$(x y) z"}
  g:
    image: x
    command: >
      sh -c "one
      two"
  h: {image: x, command: "a 2>x"}
  i: {image: x, command: "redis-server --save '' --x \\"\\""}
  j: {image: x, command: "a `x y` z"}
  k: {image: x, command: 'a "it''s" b\\nc'}
  l:
    image: x
    command: |
      a
      b
  m: {image: x, command: "--flag=a;b c"}
"""
    },
    "healthchecks": {
        ONE: """\
services:
  text: {image: x, healthcheck: {test: curl -f http://localhost || exit 1}}
  cmd: {image: x, healthcheck: {test: [CMD, a, "b c"], interval: 90s, timeout: 1m30s, retries: 3}}
  shell: {image: x, healthcheck: {test: [CMD-SHELL, "a $$b"], start_period: 1h, start_interval: 500ms}}
  none: {image: x, healthcheck: {test: [NONE]}}
  off: {image: x, healthcheck: {disable: true}}
  word: {image: x, healthcheck: {disable: "yes", test: [CMD, a]}}
  empty: {image: x, healthcheck: {test: []}}
  times: {image: x, healthcheck: {interval: 1.5s, retries: "${R:-5}"}}
"""
    },
    "files of variables": {
        ONE: """\
services:
  a: {image: x, env_file: one.env}
  b: {image: x, env_file: [one.env, sub/two.env]}
  c:
    image: x
    env_file:
      - path: ./one.env
      - {path: none.env, required: false}
    environment: {A: here}
""",
        "one.env": "",
        "sub/two.env": "",
    },
    "secrets and configs": {
        ONE: """\
services:
  a:
    image: x
    secrets:
      - plain
      - {source: long, target: renamed, uid: "1", mode: 0400}
      - {source: env, target: /etc/abs}
    configs:
      - conf
      - {source: text, target: /etc/text}
secrets:
  plain: {file: ./plain.txt}
  long: {file: sub/../long.txt}
  env: {environment: TOKEN}
  outer: {external: true}
configs:
  conf: {file: ./conf.ini}
  text: {content: "a=${X:-1}"}
"""
    },
    "networks": {
        ONE: """\
services:
  a: {image: x, networks: [front, back]}
  b: {image: x, networks: {front: {aliases: [one, two], ipv4_address: 172.28.0.9, priority: 5}, back: }}
  c: {image: x, network_mode: host}
  d: {image: x, network_mode: none}
  e: {image: x}
  f: {image: x, networks: {}}
  g: {image: x, networks: {default: {aliases: [gg]}}}
networks:
  front: {driver: bridge, ipam: {config: [{subnet: 172.28.0.0/16}]}}
  back: {external: true, name: corp}
"""
    },
    "the rest of a service": {
        ONE: """\
services:
  a:
    image: x
    container_name: fixed
    hostname: h
    domainname: d.example
    user: 1000:1000
    working_dir: /w
    platform: linux/amd64
    restart: "no"
    labels: [a=b, c, "d=e=f"]
    scale: 2
    pull_policy: if_not_present
    stop_signal: SIGINT
    stop_grace_period: 1m30s
    shm_size: 64M
    mem_limit: 1.5gb
    memswap_limit: 2g
    ulimits: {nofile: 5, nproc: {soft: 1, hard: 2}}
    sysctls: [net.core.somaxconn=1024]
    dns: [1.1.1.1, 8.8.8.8]
    cap_add: [A, B, A]
    cap_drop: [ALL]
    devices: ["/dev/a:/dev/b:r", /dev/c]
    security_opt: [seccomp=unconfined]
    group_add: [video, "1000"]
    privileged: true
    read_only: false
    init: true
    tty: true
    stdin_open: "yes"
    pid: host
    ipc: shareable
    external_links: [a:b]
    extra_hosts: ["a:1.2.3.4", "b=::1", "c:[::2]", "host.docker.internal:host-gateway"]
    logging: {driver: json-file, options: {max-size: 1m}}
    cpus: 0.5
    profiles: [one, two]
    x-mine: {a: 1}
    attach: false
    annotations: {a: b}
    storage_opt: {size: 1G}
    develop:
      watch:
        - {path: ./src, action: sync, target: /app, ignore: [node_modules/]}
        - {path: package.json, action: rebuild}
    post_start:
      - {command: ./hook.sh --now, user: root, privileged: true, environment: [A=1]}
    pre_stop:
      - {command: [a, b], working_dir: /x}
  b:
    image: x
    labels: {a: 1, b: true, c: }
    sysctls: {net.core.somaxconn: 1024}
    dns: 1.1.1.1
    extra_hosts: {a: 1.2.3.4, b: "::1"}
    deploy:
      replicas: 3
      resources: {limits: {cpus: "0.5", memory: 50M}, reservations: {memory: 20M}}
      labels: {a: b}
      restart_policy: {condition: on-failure, delay: 5s}
""".replace("    container_name: fixed\n", "")
    },
    "names": {
        ONE: """\
name: My_Proj
version: "3.8"
x-top: {a: [1, 2]}
services:
  a-b.c_d: {image: x, container_name: "${COMPOSE_PROJECT_NAME}-a"}
"""
    },
    "override": {
        "compose.yml": """\
services:
  a:
    image: x
    command: one
    entrypoint: [e]
    environment: {A: "1", B: "2", C: }
    ports: ["8000:80", "81"]
    expose: ["1"]
    volumes: ["./a:/a", "./b:/b", "v:/v"]
    depends_on: [b]
    labels: {l: "1", m: "2"}
    dns: 1.1.1.1
    networks: [front]
    healthcheck: {test: [CMD, a], interval: 5s}
    build: ./ctx
    tmpfs: /run
    env_file: one.env
    secrets: [s]
    cap_add: [A]
    extra_hosts: ["h:1.1.1.1", "i:1.1.1.2"]
    ulimits: {nofile: 5}
    logging: {driver: a, options: {x: "1"}}
    profiles: [p]
    deploy: {replicas: 1, labels: [a=1]}
    x-list: [1]
  b: {image: y, profiles: [p]}
networks: {front: {}, back: {}}
volumes: {v: {}}
secrets: {s: {file: s.txt}, t: {file: t.txt}}
""",
        "docker-compose.override.yaml": """\
services:
  a:
    command: two words
    entrypoint: f
    environment: [B=3, D, E=5]
    ports: ["8000:80", "9000:80", "127.0.0.1:81:81"]
    expose: [1, 2]
    volumes: ["./c:/a:ro", {type: bind, source: ./d, target: /d}]
    depends_on: {c: {condition: service_healthy}}
    labels: [m=3, n]
    dns: [8.8.8.8, 1.1.1.1]
    networks: {back: {aliases: [x]}}
    healthcheck: {test: curl x, retries: 2}
    build: {dockerfile: D, args: [A=1]}
    tmpfs: [/tmp, /run]
    env_file: [two.env]
    secrets: [{source: t, target: s2}, s]
    cap_add: [A, B]
    extra_hosts: {h: 2.2.2.2}
    ulimits: {nofile: {soft: 1, hard: 2}, nproc: 3}
    logging: {driver: b}
    profiles: [q, p]
    deploy: {labels: {a: 2, b: 3}}
    x-list: [2]
  c: {image: z, profiles: [p]}
""",
        "one.env": "",
        "two.env": "",
    },
    "reset and override": {
        ONE: """\
services:
  a:
    image: x
    build: .
    command: one
    ports: ["1:1", "2:2"]
    environment: {A: "1", B: "2"}
    volumes: ["./a:/a"]
    depends_on: [b]
    healthcheck: {test: [CMD, a]}
  b: {image: y}
""",
        "compose.override.yaml": """\
services:
  a:
    build: !reset null
    command: !reset
    ports: !override ["3:3"]
    environment: {A: !reset null, C: "3"}
    volumes: !reset []
    depends_on: !override {}
    healthcheck: !override {test: [CMD, b]}
""",
    },
    "documents": {
        ONE: """\
services:
  a: {image: x, environment: {A: "1"}}
---
services:
  a: {environment: {B: "2"}}
  b: {image: y}
"""
    },
    "extends": {
        ONE: """\
services:
  base:
    image: x
    environment: {A: "1", B: "2"}
    ports: ["80"]
    volumes: ["./here:/here"]
  middle:
    extends: base
    environment: [B=3]
    command: m
  top:
    extends: {service: middle}
    environment: {C: "4"}
    ports: ["81"]
  other:
    extends: {file: sub/common.yml, service: web}
    environment: {X: top}
  both:
    extends: {file: ./sub/common.yml, service: chained}
volumes: {named: }
""",
        "sub/common.yml": """\
services:
  web:
    build: ./app
    volumes: ["./data:/data", "named:/n"]
    env_file: w.env
    environment: {X: sub, Y: "${U:-d}"}
    develop: {watch: [{path: ./src, action: rebuild}]}
  chained:
    extends: {file: deeper/base.yml, service: b}
    command: c
""",
        "sub/deeper/base.yml": """\
services:
  b:
    build: {context: .., dockerfile: D}
    extends: a
  a: {environment: {Z: "1"}, volumes: [".:/z"]}
""",
        "sub/w.env": "",
    },
    "include": {
        ONE: """\
include:
  - sub/compose.yaml
  - path: other/stack.yml
    project_directory: .
  - path: [two/base.yml, two/over.yml]
    env_file: two/vars.env
services:
  a: {image: x, depends_on: [s, o, t]}
""",
        "sub/compose.yaml": """\
name: inner
include: [inner/compose.yml]
services:
  s: {build: ., volumes: ["./x:/x", "v:/v"], networks: [n]}
volumes: {v: }
networks: {n: }
""",
        "sub/inner/compose.yml": "services: {i: {build: {target: t}, env_file: i.env}}\n",
        "sub/inner/i.env": "",
        "sub/.env": "LEAK=from-dotenv\n",
        "other/stack.yml": 'services: {o: {build: ./o, environment: {P: "${LEAK:-clean}"}}}\n',
        "two/base.yml": 'services: {t: {image: x, environment: {A: "1"}, volumes: ["./d:/d"]}}\n',
        "two/over.yml": 'services: {t: {environment: {A: "2"}, volumes: ["./e:/e"]}}\n',
        "two/vars.env": "V=leak\n",
    },
    "an include with an override": {
        ONE: "include: [sub/c.yml]\nservices: {a: {image: x}}\n",
        "sub/c.yml": "services: {s: {image: y, ports: ['80']}}\n",
        "compose.override.yaml": "services: {s: {ports: ['81'], command: over}}\n",
    },
    "unicode": {
        ONE: 'services:\n  a: {image: x, environment: {Ä: "ö ✓", B: "\\U0001F600"}, command: "a ü ✓"}\n'
    },
    "windows paths": {ONE: 'services:\n  a: {image: x, volumes: ["C:\\\\data:/d", "v:/v:ro"]}\n'},
    "keys of a merge that are reset": {
        ONE: """\
x-a: &a {image: x, ports: ["1"], command: c}
services:
  a:
    <<: *a
    ports: !reset []
"""
    },
}

REFUSED: dict[str, dict[str, str]] = {
    "required": {ONE: 'services: {a: {image: x, environment: {A: "${N:?give one}", B: "${M?}"}}}\n'},
    "no template": {ONE: 'services: {a: {image: x, environment: {A: "${a b}"}}}\n'},
    "empty braces": {ONE: 'services: {a: {image: x, environment: {A: "${}"}}}\n'},
    "neither image nor build": {ONE: "services: {a: {command: x}}\n"},
    "unknown key": {ONE: "services: {a: {image: x, imagee: y}}\n"},
    "unknown section": {ONE: "service: {a: {image: x}}\n"},
    "undeclared volume": {ONE: 'services: {a: {image: x, volumes: ["v1:/v"]}}\n'},
    "undeclared network": {ONE: "services: {a: {image: x, networks: [n]}}\n"},
    "undeclared secret": {ONE: "services: {a: {image: x, secrets: [s]}}\n"},
    "undeclared config": {ONE: "services: {a: {image: x, configs: [s]}}\n"},
    "undeclared service": {ONE: "services: {a: {image: x, depends_on: [b]}}\n"},
    "a circle": {ONE: "services: {a: {image: x, depends_on: [b]}, b: {image: x, depends_on: [a]}}\n"},
    "itself": {ONE: "services: {a: {image: x, depends_on: [a]}}\n"},
    "missing env file": {ONE: "services: {a: {image: x, env_file: gone.env}}\n"},
    "bad port": {ONE: 'services: {a: {image: x, ports: ["x:80"]}}\n'},
    "large port": {ONE: 'services: {a: {image: x, ports: ["70000"]}}\n'},
    "ranges of two lengths": {ONE: 'services: {a: {image: x, ports: ["1-3:1-2"]}}\n'},
    "a bare IPv6 address": {ONE: 'services: {a: {image: x, ports: ["::1:80:80"]}}\n'},
    "bad address": {ONE: 'services: {a: {image: x, ports: ["1.2.3:80:80"]}}\n'},
    "bad duration": {ONE: 'services: {a: {image: x, healthcheck: {test: a, interval: "5"}}}\n'},
    "bad test": {ONE: "services: {a: {image: x, healthcheck: {test: [curl, x]}}}\n"},
    "bad size": {ONE: "services: {a: {image: x, shm_size: lots}}\n"},
    "bad switch": {ONE: 'services: {a: {image: x, tty: "maybe"}}\n'},
    "not a number": {ONE: "services: {a: {image: x, environment: {A: .nan}}}\n"},
    "a number for a text": {ONE: "services: {a: {image: x, user: 1000}}\n"},
    "an item twice": {ONE: "services: {a: {image: x, group_add: [a, a]}}\n"},
    "a null image": {ONE: "services: {a: {build: ., image: }}\n"},
    "a key twice": {ONE: "services:\n  a: {image: x}\n  a: {image: y}\n"},
    "a number as a key": {ONE: "services: {a: {image: x, environment: {1: x}}}\n"},
    "a tab": {ONE: "services:\n\ta: {image: x}\n"},
    "no YAML": {ONE: "services: {a: {image: x\n"},
    "a list": {ONE: "- a\n"},
    "services as a list": {ONE: "services: [a]\n"},
    "a service as a text": {ONE: "services: {a: x}\n"},
    "an unknown anchor": {ONE: "services: {a: *gone}\n"},
    "an open quote": {ONE: 'services: {a: {image: x, command: "a \'b"}}\n'},
    "a parenthesis": {ONE: 'services: {a: {image: x, command: "a (b)"}}\n'},
    "an unknown base": {ONE: "services: {a: {image: x, extends: b}}\n"},
    "bases in a circle": {ONE: "services: {a: {extends: b}, b: {extends: a}}\n"},
    "an absent base file": {ONE: "services: {a: {extends: {file: gone.yml, service: b}}}\n"},
    "bases in a circle of files": {
        ONE: "services: {a: {extends: {file: b.yml, service: b}}}\n",
        "b.yml": "services: {b: {extends: {file: compose.yaml, service: a}}}\n",
    },
    "an absent include": {ONE: "include: [gone.yml]\nservices: {a: {image: x}}\n"},
    "includes in a circle": {
        ONE: "include: [b.yml]\nservices: {a: {image: x}}\n",
        "b.yml": "include: [compose.yaml]\nservices: {b: {image: x}}\n",
    },
    "an include that declares again": {
        ONE: "include: [b.yml]\nservices: {a: {image: x}}\n",
        "b.yml": "services: {a: {image: y}}\n",
    },
    "network_mode and networks": {
        ONE: "services: {a: {image: x, network_mode: host, networks: [n]}}\nnetworks: {n: }\n"
    },
    "a name and more than one": {ONE: "services: {a: {image: x, container_name: n, scale: 2}}\n"},
    "a secret of nothing": {ONE: "services: {a: {image: x, secrets: [s]}}\nsecrets: {s: {}}\n"},
    "a watch without a target": {
        ONE: "services: {a: {image: x, develop: {watch: [{path: ., action: sync}]}}}\n"
    },
    "ports as a text": {ONE: 'services: {a: {image: x, ports: "80"}}\n'},
    "a volume of empty parts": {ONE: 'services: {a: {image: x, volumes: [":/x"]}}\n'},
    "an override of another kind": {
        ONE: "services: {a: {image: x, ports: ['80']}}\n",
        "compose.override.yaml": "services: {a: {ports: {x: 1}}}\n",
    },
}
