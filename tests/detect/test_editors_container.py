"""A devcontainer without a stack: the programs that files start run in the editor's container."""

from devbay.detect.propose import propose

PACKAGE = '{"name": "notes", "scripts": {"start": "node server.js", "test": "node --test"}}'


def test_a_script_is_started_on_the_editors_image_at_the_forwarded_port(repo):
    config = '{"image": "node:20", "forwardPorts": [3000], "containerEnv": {"MODE": "dev"}}'
    view = repo({".devcontainer/devcontainer.json": config, "package.json": PACKAGE})
    service = propose(view, "shop").services["notes"]
    assert (service["image"], service["start"], service["port"]) == ("node:20", ["npm", "run", "start"], 3000)
    assert service["env"] == {"MODE": "dev"}


def test_a_built_editors_container_starts_in_the_sources(repo):
    config = '{"build": {"dockerfile": "Dockerfile", "context": ".."}, "forwardPorts": [3000]}'
    files = {".devcontainer/devcontainer.json": config, ".devcontainer/Dockerfile": "FROM node:20\n"}
    service = propose(repo({**files, "package.json": PACKAGE}), "shop").services["notes"]
    assert service["build"] == {"context": ".", "dockerfile": ".devcontainer/Dockerfile"}
    assert service["workdir"] == "/workspace"


def test_without_a_program_the_editors_container_stands_and_its_start_is_a_question(repo):
    draft = propose(repo({".devcontainer.json": '{"name": "bare", "image": "node:20"}'}), "shop")
    assert draft.services["bare"]["image"] == "node:20"
    assert "services/bare/start" in [question.about for question in draft.questions]
