"""Examples in docstrings and in docs/python.md run as they are written."""

import doctest
import inspect
import re
from pathlib import Path

import numpy
import pytest

import lapa

ROOT = Path(__file__).resolve().parents[3]
FLAGS = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL | doctest.NORMALIZE_WHITESPACE


def documented():
    """Every public object with a docstring, and its members."""
    for name in lapa.__all__:
        thing = getattr(lapa, name)
        yield name, inspect.getdoc(thing) or ""
        if inspect.isclass(thing):
            for member, value in vars(thing).items():
                if not member.startswith("_"):
                    yield f"{name}.{member}", inspect.getdoc(value) or ""


def test_everything_public_is_documented():
    missing = [name for name, text in documented() if name != "__version__" and not text.strip()]
    assert missing == []


def check(name, text):
    test = doctest.DocTestParser().get_doctest(text, {"lapa": lapa}, name, name, 0)
    output = []
    result = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=output.append)
    assert result.failed == 0, "".join(output)


@pytest.mark.parametrize(
    "name, text", [pair for pair in documented() if ">>>" in pair[1]], ids=lambda value: value[:40]
)
def test_examples_of_docstrings(name, text):
    check(name, text)


def test_examples_of_the_guide(tmp_path, monkeypatch):
    """The Python blocks of docs/python.md, one after the other in one namespace."""
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert blocks
    names = {"lapa": lapa, "numpy": numpy}
    for block in blocks:
        if "import torch" in block or "import flwr" in block or "pandas" in block:
            compile(block, "docs/python.md", "exec")
            continue
        exec(compile(block, "docs/python.md", "exec"), names)
