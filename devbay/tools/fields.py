"""Arguments that several tools share, with the words their schemas use."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

Repo = Annotated[
    str | None, Field(description="A path inside the repository (default: where the caller stands)")
]
BayArgument = Annotated[
    str, Field(min_length=1, max_length=200, description="Name, alias, <bay>--<project>, or id")
]
WaitS = Annotated[
    float, Field(ge=0, le=3600, description="Answer after this many seconds at the latest; work goes on")
]
Services = Annotated[
    list[str] | None, Field(description="Only these services, with what they need (default: all)")
]
DEFAULT_WAIT_S = 45.0
