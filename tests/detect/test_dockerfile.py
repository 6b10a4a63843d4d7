from devbay.detect.dockerfile import stage_of, stages


def test_a_stage_inherits_from_an_earlier_one_and_not_from_others():
    text = (
        "FROM python:3.12-slim AS base\nWORKDIR /srv\nFROM base AS run\nCMD [\"python\", \"a.py\"]\n"
        "FROM base AS debug\nEXPOSE 5678\n"
    )  # fmt: skip
    stage = stage_of(text, "run")
    assert stage and (stage.base, stage.workdir, stage.cmd, stage.expose) == (
        "python:3.12-slim", "/srv", ("python", "a.py"), (),
    )  # fmt: skip
    assert [each.name for each in stages(text)] == ["base", "run", "debug"]


def test_ports_are_filled_in_from_arguments_and_environment():
    text = "ARG V=3.11\nFROM python:${V}-slim\nARG PORT=8080\nENV PORT=$PORT\nEXPOSE $PORT 9229/tcp 53/udp\n"
    stage = stage_of(text, args={"V": "3.12", "PORT": "8081"})
    assert stage and stage.base == "python:3.12-slim"
    assert stage.expose == (8081, 9229)
    assert stage.env == {"PORT": "8081"}


def test_continued_lines_comments_and_heredocs_are_read_as_one_instruction():
    text = "FROM a\nRUN one \\\n  # note\n  two\nRUN <<EOF\nEXPOSE 1\nEOF\n"
    text += "HEALTHCHECK --interval=1s CMD curl -f x\n"
    stage = stage_of(text)
    assert stage and stage.expose == ()
    assert stage.health == ("/bin/sh", "-c", "curl -f x")
    assert stage.runs[0].split() == ["one", "two"]


def test_a_target_that_is_not_there_is_none():
    assert stage_of("FROM a AS b", "c") is None
    assert stage_of("") is None
