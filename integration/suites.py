"""One small test suite per runner and ending: passing, failing, erroring, crashing."""

from __future__ import annotations

from dataclasses import dataclass, field

SCRIPT, COMPILED = "devbay-test-runners:script", "devbay-test-runners:compiled"


@dataclass(frozen=True)
class Expected:
    """What must be found. place: `file:line` of the first record, below the suite's folder.

    Where a runner does not tell the line of what it could not load, the file alone.
    """

    status: str
    reason: str | None = None
    place: str | None = None
    message: str = ""
    total: int | None = None
    failing: int | None = None


@dataclass(frozen=True)
class Suite:
    """files: for every ending, beside those of `common`. run: the task's argv in the suite's own folder."""

    runner: str
    image: str
    run: str
    format: str
    source: str
    common: dict[str, str] = field(default_factory=dict)
    endings: dict[str, tuple[dict[str, str], Expected]] = field(default_factory=dict)


JS = {"package.json": '{"scripts": {"test": "%s"}}'}
GOOD = Expected("passed", total=1, failing=0)

PYTEST = Suite(
    "pytest", SCRIPT, "[python3, -m, pytest]", "junit", "${run.dir}/report.xml",
    endings={
        "pass": ({"test_a.py": "def test_good():\n    pass\n"}, GOOD),
        "fail": (
            {"test_a.py": "def test_good():\n    pass\n\n\ndef test_bad():\n    assert 1 == 2\n"},
            Expected("failed", "tests_failed", "test_a.py:6", "assert 1 == 2", 2, 1),
        ),
        "error": (
            {"test_a.py": "import nowhere\n"},
            Expected("error", "collection_error", "test_a.py:1", "nowhere", 1, 1),
        ),
        "crash": (
            {"test_a.py": "import os\n\n\ndef test_bad():\n    os.abort()\n"},
            Expected("error", "crash", None, ""),
        ),
    },
)  # fmt: skip

_NODE = "const test = require('node:test');\nconst assert = require('node:assert');\n"
NODE = Suite(
    "node", SCRIPT, "[npm, test]", "tap", "${run.dir}/report.tap",
    common={"package.json": JS["package.json"] % "node --test"},
    endings={
        "pass": ({"a.test.js": f"{_NODE}test('good', () => {{}});\n"}, GOOD),
        "fail": (
            {
                "a.test.js": f"{_NODE}test('good', () => {{}});\n"
                "test('bad', () => {\n  assert.strictEqual(1, 2);\n});\n"
            },
            Expected("failed", "tests_failed", "a.test.js:5", "strictly equal", 2, 1),
        ),
        "error": (
            {"a.test.js": "require('./nowhere');\n"},
            Expected("error", "collection_error", "a.test.js:1", "nowhere"),
        ),
        "crash": (
            {"a.test.js": f"{_NODE}test('bad', () => process.abort());\n"}, Expected("error", None, None, "")
        ),
    },
)  # fmt: skip

_DESCRIBED = "describe('sum', () => {\n  it('good', () => {});\n"
JEST = Suite(
    "jest", SCRIPT, "[npm, test]", "jest-json", "${run.dir}/report.json",
    common={"package.json": JS["package.json"] % "jest"},
    endings={
        "pass": ({"a.test.js": f"{_DESCRIBED}}});\n"}, GOOD),
        "fail": (
            {"a.test.js": f"{_DESCRIBED}  it('bad', () => {{\n    expect(1).toBe(2);\n  }});\n}});\n"},
            Expected("failed", "tests_failed", "a.test.js:4", "toBe", 2, 1),
        ),
        "error": (
            {"a.test.js": "require('./nowhere');\n"},
            Expected("error", "collection_error", "a.test.js:1", "nowhere"),
        ),
        "crash": ({"a.test.js": "it('bad', () => process.abort());\n"}, Expected("error", "crash", None, "")),
    },
)  # fmt: skip

_VITEST = "import { describe, expect, it } from 'vitest';\n"
VITEST = Suite(
    "vitest", SCRIPT, "[npx, vitest, run]", "jest-json", "${run.dir}/report.json",
    common={"package.json": "{}"},
    endings={
        "pass": ({"a.test.mjs": f"{_VITEST}{_DESCRIBED}}});\n"}, GOOD),
        "fail": (
            {
                "a.test.mjs": f"{_VITEST}{_DESCRIBED}"
                "  it('bad', () => {\n    expect(1).toBe(2);\n  });\n});\n"
            },
            Expected("failed", "tests_failed", "a.test.mjs:5", "expected 1 to be 2", 2, 1),
        ),
        "error": (
            {"a.test.mjs": f"{_VITEST}import './nowhere.mjs';\n"},
            Expected("error", "collection_error", "a.test.mjs", "nowhere"),
        ),
        "crash": (
            {"a.test.mjs": f"{_VITEST}it('bad', () => {{ process.kill(process.pid, 'SIGKILL'); }});\n"},
            Expected("error", "crash", None, ""),
        ),
    },
)  # fmt: skip

MOCHA = Suite(
    "mocha", SCRIPT, "[npm, test]", "mocha", "output",
    common={"package.json": JS["package.json"] % "mocha a.test.js"},
    endings={
        "pass": ({"a.test.js": f"{_DESCRIBED}}});\n"}, GOOD),
        "fail": (
            {
                "a.test.js": f"{_DESCRIBED}  it('bad', () => {{\n    require('assert').strictEqual(1, 2);\n"
                "  });\n});\n"
            },
            Expected("failed", "tests_failed", "a.test.js:4", "strictly equal", 2, 1),
        ),
        "error": (
            {"a.test.js": "require('./nowhere');\n"},
            Expected("error", "collection_error", "a.test.js:1", "nowhere"),
        ),
        "crash": ({"a.test.js": "it('bad', () => process.abort());\n"}, Expected("error", "crash", None, "")),
    },
)  # fmt: skip

_GTEST = "#include <cstdlib>\n#include <stdexcept>\n#include <gtest/gtest.h>\nTEST(Sum, Good) {}\n"
GTEST = Suite(
    "gtest", COMPILED, "[./unit_tests]", "junit", "${run.dir}/gtest/unit_tests.xml",
    endings={
        "pass": ({"a.cc": _GTEST}, GOOD),
        "fail": (
            {"a.cc": f"{_GTEST}TEST(Sum, Bad) {{\n  EXPECT_EQ(1, 2);\n}}\n"},
            Expected("failed", "tests_failed", "a.cc:6", "equality", 2, 1),
        ),
        "error": (
            {"a.cc": f'{_GTEST}TEST(Sum, Bad) {{\n  throw std::runtime_error("broken");\n}}\n'},
            Expected("failed", "tests_failed", None, "broken", 2, 1),
        ),
        "crash": (
            {"a.cc": f"{_GTEST}TEST(Sum, Bad) {{\n  abort();\n}}\n"}, Expected("error", "crash", None, "")
        ),
    },
)  # fmt: skip
CTEST = Suite(
    "ctest", COMPILED, "[ctest]", "junit", "${run.dir}/report.xml",
    common={"CTestTestfile.cmake": 'add_test(unit "./unit_tests")\n'},
    endings={ending: given for ending, given in GTEST.endings.items() if ending in ("pass",)}
    | {"fail": (GTEST.endings["fail"][0], Expected("failed", "tests_failed", "a.cc:6", "", 1, 1)),
       "crash": (GTEST.endings["crash"][0], Expected("failed", "tests_failed", None, "", 1, 1))},
)  # fmt: skip

_GO = 'package x\n\nimport "testing"\n\nfunc TestGood(t *testing.T) {}\n'
GO = Suite(
    "go", COMPILED, '[go, test, -v, "./..."]', "gotest", "output",
    common={"go.mod": "module example.com/x\n\ngo 1.19\n"},
    endings={
        "pass": ({"a_test.go": _GO}, GOOD),
        "fail": (
            {"a_test.go": f'{_GO}\nfunc TestBad(t *testing.T) {{\n\tt.Errorf("got 1, want 2")\n}}\n'},
            Expected("failed", "tests_failed", "a_test.go:8", "got 1, want 2", 2, 1),
        ),
        "error": (
            {"a_test.go": f"{_GO}\nfunc TestBad(t *testing.T) {{\n\tnowhere()\n}}\n"},
            Expected("error", "collection_error", "a_test.go:8", "nowhere"),
        ),
        "panic": (
            {"a_test.go": f'{_GO}\nfunc TestBad(t *testing.T) {{\n\tpanic("broken")\n}}\n'},
            Expected("failed", "tests_failed", "a_test.go:8", "broken", 2, 1),
        ),
        "crash": (
            {
                "a_test.go": f"{_GO}\nfunc TestBad(t *testing.T) {{\n"
                '\tgo func() { panic("broken") }()\n\tselect {}\n}\n'
            },
            Expected("error", "crash", None, "broken"),
        ),
    },
)  # fmt: skip

_RUST = "#[cfg(test)]\nmod tests {\n    #[test]\n    fn good() {}\n"
CARGO = Suite(
    "cargo", COMPILED, "[cargo, test, --offline]", "libtest", "output",
    common={
        "Cargo.toml": '[package]\nname = "x"\nversion = "0.1.0"\nedition = "2021"\n',
        ".gitignore": "target\nCargo.lock\n",
    },
    endings={
        "pass": ({"src/lib.rs": f"{_RUST}}}\n"}, GOOD),
        "fail": (
            {"src/lib.rs": f"{_RUST}    #[test]\n    fn bad() {{\n        assert_eq!(1, 2);\n    }}\n}}\n"},
            Expected("failed", "tests_failed", "src/lib.rs:7", "left", 2, 1),
        ),
        "error": (
            {"src/lib.rs": f"{_RUST}    #[test]\n    fn bad() {{\n        nowhere();\n    }}\n}}\n"},
            Expected("error", "collection_error", "src/lib.rs:7", "nowhere"),
        ),
        "crash": (
            {
                "src/lib.rs": f"{_RUST}    #[test]\n"
                "    fn bad() {\n        std::process::abort();\n    }\n}\n"
            },
            Expected("error", "crash", None, ""),
        ),
    },
)  # fmt: skip

_RUBY = "RSpec.describe 'Sum' do\n  it('good') { expect(1).to eq 1 }\n"
RSPEC = Suite(
    "rspec", COMPILED, "[rspec]", "rspec-json", "${run.dir}/report.json",
    endings={
        "pass": ({"spec/a_spec.rb": f"{_RUBY}end\n"}, GOOD),
        "fail": (
            {"spec/a_spec.rb": f"{_RUBY}  it 'bad' do\n    expect(1).to eq 2\n  end\nend\n"},
            Expected("failed", "tests_failed", "spec/a_spec.rb:4", "expected: 2", 2, 1),
        ),
        "error": (
            {"spec/a_spec.rb": "require_relative 'nowhere'\n"},
            Expected("error", "collection_error", "spec/a_spec.rb:1", "nowhere"),
        ),
        "crash": (
            {"spec/a_spec.rb": f"{_RUBY}  it('bad') {{ Process.kill(:KILL, Process.pid); sleep 5 }}\nend\n"},
            Expected("error", "crash", None, ""),
        ),
    },
)  # fmt: skip

_PHP = (
    "<?php\nfinal class SumTest extends PHPUnit\\Framework\\TestCase {\n"
    "    public function testGood(): void { $this->assertSame(1, 1); }\n"
)
_BAD = "    public function testBad(): void {\n        %s;\n    }\n}\n"
PHPUNIT = Suite(
    "phpunit", COMPILED, "[phpunit, tests]", "junit", "${run.dir}/report.xml",
    common={".gitignore": ".phpunit.result.cache\n"},
    endings={
        "pass": ({"tests/SumTest.php": f"{_PHP}}}\n"}, GOOD),
        "fail": (
            {"tests/SumTest.php": _PHP + _BAD % "$this->assertSame(2, 1)"},
            Expected("failed", "tests_failed", "tests/SumTest.php:5", "1 is identical to 2", 2, 1),
        ),
        "error": (
            {"tests/SumTest.php": _PHP + _BAD % "throw new RuntimeException('broken')"},
            Expected("failed", "tests_failed", "tests/SumTest.php:5", "broken", 2, 1),
        ),
        "crash": (
            {"tests/SumTest.php": _PHP + _BAD % "posix_kill(getmypid(), 9)"},
            Expected("error", "crash", None, ""),
        ),
    },
)  # fmt: skip

_BATS = "@test 'good' {\n  true\n}\n"
BATS = Suite(
    "bats", COMPILED, "[bats, a.bats]", "tap", "output",
    endings={
        "pass": ({"a.bats": _BATS}, GOOD),
        "fail": (
            {"a.bats": f"{_BATS}@test 'bad' {{\n  [ 1 = 2 ]\n}}\n"},
            Expected("failed", "tests_failed", "a.bats:5", "1 = 2", 2, 1),
        ),
    },
)  # fmt: skip

SCRIPTED = (PYTEST, NODE, JEST, VITEST, MOCHA)
NATIVE = (GTEST, CTEST, GO, CARGO, RSPEC, PHPUNIT, BATS)
