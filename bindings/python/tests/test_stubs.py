"""The type stubs say what the module has, name by name and parameter by parameter."""

import ast
import inspect
from pathlib import Path

import lapa
from lapa import _lapa

TREE = ast.parse(Path(_lapa.__file__).with_name("_lapa.pyi").read_text(encoding="utf-8"))


def parameters_of_stub(function):
    """(name, kind, has a default) of each parameter but self and cls."""
    arguments = function.args
    plain = arguments.posonlyargs + arguments.args
    without = len(plain) - len(arguments.defaults)
    listed = [(a.arg, "plain", place >= without) for place, a in enumerate(plain)]
    keyword = zip(arguments.kwonlyargs, arguments.kw_defaults)
    listed += [(a.arg, "keyword", default is not None) for a, default in keyword]
    return [item for item in listed if item[0] not in ("self", "cls")]


def parameters_of(thing):
    kinds = {inspect.Parameter.KEYWORD_ONLY: "keyword"}
    listed = inspect.signature(thing).parameters.values()
    return [
        (p.name, kinds.get(p.kind, "plain"), p.default is not inspect.Parameter.empty)
        for p in listed
        if p.name not in ("self", "cls")
    ]


def public(thing):
    return {name for name in vars(thing) if not name.startswith("_")}


def test_the_stub_has_the_names_of_the_module():
    named = {node.name for node in TREE.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    assert named == public(_lapa)
    assert set(lapa.__all__) - {"__version__"} == named - {"main"}


def test_functions_have_the_same_parameters():
    functions = [node for node in TREE.body if isinstance(node, ast.FunctionDef)]
    for node in functions:
        assert parameters_of_stub(node) == parameters_of(getattr(_lapa, node.name)), node.name


def test_classes_have_the_same_members_and_parameters():
    for node in TREE.body:
        if not isinstance(node, ast.ClassDef) or node.name.endswith("Error") or node.name == "Refused":
            continue
        thing = getattr(_lapa, node.name)
        members = {member.name: member for member in node.body if isinstance(member, ast.FunctionDef)}
        assert {name for name in members if name != "__new__"} == public(thing), node.name
        for name, member in members.items():
            decorators = {d.id for d in member.decorator_list if isinstance(d, ast.Name)}
            if name == "__new__":
                assert parameters_of_stub(member) == parameters_of(thing), node.name
            elif "property" in decorators:
                assert inspect.isdatadescriptor(vars(thing)[name]), f"{node.name}.{name}"
            else:
                real = getattr(thing, name)
                assert parameters_of_stub(member) == parameters_of(real), f"{node.name}.{name}"


def test_exceptions_descend_from_one():
    for name in ("ConfigError", "DataError", "LedgerError", "Refused"):
        assert issubclass(getattr(lapa, name), lapa.LapaError)
        assert getattr(lapa, name).__module__ == "lapa"
