"""Which files a command names: each that it runs as it stands, none that an interpreter is given."""

from __future__ import annotations

import json
import time

import pytest

from devbay.security.named_scripts import MAX_LOOKS, MAX_NAMED, named_scripts, whole_files
from tests.security.trees import Tree

MAKEFILE = """\
DIR = tools
.PHONY: test lint
test: prepare
	@./tools/check.sh fast
	$(MAKE) -C web lint
prepare:
	sh tools/prepare
lint:
	./tools/lint.sh
"""
TREE = Tree(
    {
        "bin/dev": '#!/usr/bin/env bash\ncd "$(dirname "$0")/.."\n. scripts/env.sh\nexec python app.py\n',
        "scripts/env.sh": "X=1\n",
        "scripts/a-1.sh": "echo\n",
        "scripts/a-2.sh": "echo\n",
        "scripts/tool": "#!/usr/bin/env python3\n",
        "manage.py": "#!/usr/bin/env python3\n",
        "app.py": "print()\n",
        "notes.txt": "sh bin/dev\n",
        "Makefile": MAKEFILE,
        "web/Makefile": "lint:\n\tnpm run lint\n",
        "web/package.json": json.dumps({"scripts": {"lint": "sh ../l.sh", "prelint": "echo", "x": "y"}}),
        "tools/check.sh": "true\n",
        "tools/prepare": "true\n",
        "tools/lint.sh": "true\n",
        "l.sh": "true\n",
        "justfile": "import 'more.just'\ntest: prep\n    ./tools/check.sh {{x}}\nprep:\n    true\n",
        "more.just": "more:\n    sh tools/prepare\n",
        "package.json": json.dumps(
            {"scripts": {"test": "jest", "all": "run-p test two", "two": "./bin/dev", "prepare": "husky"}}
        ),
        "node_modules/.bin/jest": "#!/usr/bin/env node\n",
    },
    runnable=["bin/dev", "manage.py", "scripts/tool", "tools/check.sh", "app.py", "node_modules/.bin/jest"],
    links={"link": "bin/dev", "out": None},
)
DEV = ["bin/dev", "scripts/env.sh"]


def labels(*argv: str, folder: str = "", tree: Tree = TREE) -> list[str]:
    return [each.label for each in named_scripts([argv], folder, tree)]


@pytest.mark.parametrize(
    "argv",
    [
        ["bin/dev"],
        ["./bin/dev", "--reload"],
        ["/workspace/bin/dev"],
        ["bash", "-e", "-o", "pipefail", "bin/dev"],
        ["sh", "-c", "exec ./bin/dev"],
        ["sh", "-ec", "if true; then A=b bin/dev; fi"],
        ["bash", "-lc", "for x in 1 2; do ./bin/dev $x; done"],
        ["sh", "-c", 'echo "$(./bin/dev)"'],
        ["sh", "-c", "cat <<X\nX\n. bin/dev"],
        ["sh", "-c", "echo 'an open quote; ./bin/dev"],
        ["env", "A=b", "timeout", "5", "bin/dev"],
        ["uv", "run", "./bin/dev"],
        ["sh", "-c", "sh -c 'sh -c bin/dev'"],
        ["sh", "-c", '"$ROOT"/bin/dev'],
        ["xargs", "-n1", "sh", "bin/dev"],
        ["./link"],
    ],
)
def test_a_script_is_seen_with_what_it_reads_however_it_is_run(argv: list[str]) -> None:
    assert labels(*argv) == DEV


@pytest.mark.parametrize(
    "argv",
    [
        ["python", "app.py"],
        ["python3.12", "-u", "./manage.py", "runserver"],
        ["node", "web/server.js"],
        ["pytest", "tests/unit"],
        ["cat", "notes.txt"],
        ["uvicorn", "app:app", "--port", "8000"],
        ["sh", "-c", "python manage.py migrate && python app.py"],
    ],
)
def test_what_an_interpreter_is_given_is_the_application_and_not_covered(argv: list[str]) -> None:
    assert labels(*argv) == []


def test_a_program_of_the_repository_is_covered_whatever_its_language() -> None:
    assert labels("./manage.py", "migrate") == ["manage.py"]
    assert labels("sh", "-c", "scripts/tool --x") == ["scripts/tool"]


def test_folders_that_a_command_may_start_in_all_count() -> None:
    assert labels("sh", "-c", "cd bin && ./dev") == DEV
    assert labels("./dev", folder="bin") == DEV
    assert labels("sh", "-c", "cd /nowhere; bin/dev") == DEV


def test_patterns_name_every_file_they_match() -> None:
    assert labels("sh", "-c", "for f in scripts/a-*.sh; do . $f; done") == [
        "scripts/a-1.sh",
        "scripts/a-2.sh",
    ]


def test_make_names_its_targets_with_what_they_need_and_call() -> None:
    assert labels("make", "test") == [
        "Makefile: test", "l.sh", "tools/check.sh", "tools/prepare", "web/Makefile: lint",
        "web/package.json: lint",
    ]  # fmt: skip


def test_just_names_its_recipes_and_imports() -> None:
    assert labels("just", "test") == ["justfile: test", "more.just: test", "tools/check.sh", "tools/prepare"]


@pytest.mark.parametrize("argv", [["npm", "run", "all"], ["yarn", "all"], ["pnpm", "run", "all"]])
def test_a_script_that_runs_others_by_pattern_covers_all_of_them(argv: list[str]) -> None:
    assert labels(*argv) == ["bin/dev", "package.json: all", "package.json: scripts", "scripts/env.sh"]


def test_an_install_covers_what_the_package_itself_has_run_then() -> None:
    assert labels("npm", "ci") == ["package.json: prepare"]


def test_npm_test_covers_its_script_alone() -> None:
    assert labels("npm", "t", "--", "-x") == ["package.json: test"]
    assert labels("npm", "--prefix", "web", "run", "lint") == ["l.sh", "web/package.json: lint"]


def test_what_an_install_made_is_named_but_not_covered() -> None:
    (found,) = named_scripts([["./node_modules/.bin/jest"]], "", TREE)
    assert (found.digest, "not covered" in found.note) == ("", True)


def test_a_script_that_is_missing_or_leads_outside_is_said() -> None:
    for argv, note in ((["sh", "gone.sh"], "is not there"), (["./gone"], "is not there")):
        assert [each.note for each in named_scripts([argv], "", TREE)] == [note]
    (found,) = named_scripts([["./out"]], "", TREE)
    assert "not covered" in found.note


def test_a_path_out_of_the_worktree_is_no_file_of_it() -> None:
    assert labels("../../bin/dev") == []
    assert labels("/usr/bin/env", "true") == []


def test_scripts_that_run_each_other_end() -> None:
    tree = Tree({"a.sh": "sh b.sh", "b.sh": "sh a.sh", "Makefile": "a:\n\tmake a\n"})
    assert labels("sh", "a.sh", tree=tree) == ["a.sh", "b.sh"]
    assert labels("make", "a", tree=tree) == ["Makefile: a"]


def test_a_flood_of_names_is_bounded_and_said() -> None:
    many = Tree(
        {"a.sh": "\n".join(f"sh s{n}.sh" for n in range(500)), **{f"s{n}.sh": "x" for n in range(500)}}
    )
    found = named_scripts([["sh", "a.sh"]], "", many)
    assert len(found) <= MAX_NAMED + 1
    assert "more" in [each.label for each in found]
    wide = Tree({"a.sh": "\n".join(f"./x{n}" for n in range(MAX_LOOKS * 3))})
    assert "more" in labels("sh", "a.sh", tree=wide)
    assert wide.looked <= MAX_LOOKS + 1
    deep = Tree({f"s{n}.sh": f"sh s{n + 1}.sh" for n in range(100)})
    assert "more" in labels("sh", "s0.sh", tree=deep)


def test_whole_folders_are_covered_file_by_file() -> None:
    tree = Tree({"db/1.sql": "select 1", "db/2.sh": "echo", "db/deep/3.sql": "x"})
    assert [each.label for each in whole_files("db", tree)] == ["db/1.sql", "db/2.sh"]
    assert [each.label for each in whole_files("db/1.sql", tree)] == ["db/1.sql"]
    assert [each.note for each in whole_files("none", tree)] == ["is not there"]


@pytest.mark.parametrize("text", ["sh " * 80_000, "x " * 120_000, "sh x;" * 50_000, "make -C x " * 25_000])
def test_a_hostile_script_is_looked_through_quickly(text: str) -> None:
    began = time.process_time()
    assert "more" in labels("sh", "a.sh", tree=Tree({"a.sh": text}))
    assert time.process_time() - began < 60
