"""Programs of `torch.export` (.pt2), read without running anything that is in the file.

`torch.export.load` unpickles: example inputs always, weights and constants where the file says so; it evaluates the
expressions of symbolic sizes, and a graph may name any function that can be reached from `torch`. So the archive is
read here first. A file that needs a pickle, or names anything but operators and arithmetic, is refused; the example
inputs and the guards, which an audit does not need, are left out of the copy that torch gets to see.
"""

import ast
import io
import json
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from augury.core.errors import InputError

TARGETS = re.compile(r"torch\.ops\.(aten|higher_order|prims)\.[\w.]+|torch\.sym_\w+|math\.\w+|_operator\.\w+")
"""What a graph may call."""

FORBIDDEN = ("_operator.attrgetter", "_operator.methodcaller", "_operator.call")
"""Functions of `operator` that reach anywhere."""

NODES = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.operator, ast.unaryop, ast.cmpop, ast.boolop,
    ast.Constant, ast.Name, ast.Load, ast.Call, ast.keyword,
)  # fmt: skip
"""What an expression of sizes may be made of: no attributes, no subscripts, no lambdas."""

NAMES = re.compile(
    r"[suz]\w*\d+|Symbol|Integer|Add|Mul|Max|Min|Mod|PythonMod|FloorDiv|CeilDiv|ModularIndexing|Eq|Ne|Lt|Le|Gt|Ge|"
    r"And|Or|Not|floor|ceiling|True|False|int_oo|oo"
)
"""What it may name."""


def load_program(path: Path) -> Callable[[Tensor], Any]:
    """Return the function that an exported program is."""
    try:
        program = torch.export.load(_clean_copy(path))
    except InputError:
        raise
    except Exception as error:  # torch raises whatever it meets in a damaged archive
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(
            f"{path} is not a program of torch.export that this torch can read ({reason})."
        ) from error
    names = program.graph_signature.user_inputs
    if len(names) != 1:
        raise InputError(
            f"{path} must take one tensor of inputs; it takes {len(names)}. Export a model that does."
        )
    node = next(node for node in program.graph.nodes if node.name == names[0])
    module, size = program.module(), node.meta["val"].shape[0]
    return _in_batches(module, size) if isinstance(size, int) else module


def _in_batches(module: Callable[[Tensor], Any], size: int) -> Callable[[Tensor], Any]:
    """Feed a program that was exported for a fixed batch size, the last batch filled up with its last input."""

    def call(x: Tensor) -> Any:
        outputs = []
        for part in x.split(size):
            missing = size - len(part)
            whole = torch.cat([part, part[-1:].expand(missing, *part.shape[1:])]) if missing else part
            output = module(whole)
            if not isinstance(output, Tensor):
                return output
            outputs.append(output[: len(part)])
        return torch.cat(outputs)

    return call


def _clean_copy(path: Path) -> io.BytesIO:
    """Return the archive without example inputs and guards, or raise where it asks for more than data."""
    copy = io.BytesIO()
    try:
        with zipfile.ZipFile(path) as archive, zipfile.ZipFile(copy, "w", zipfile.ZIP_STORED) as clean:
            names = [name.partition("/")[2] for name in archive.namelist()]
            if not any(name.startswith("models/") for name in names):
                raise _refused(path, "it holds no exported program")
            for full, name in zip(archive.namelist(), names, strict=True):
                clean.writestr(full, _checked(path, name, archive.read(full)))
    except zipfile.BadZipFile as error:
        raise _refused(path, "it is not an archive") from error
    copy.seek(0)
    return copy


def _checked(path: Path, name: str, content: bytes) -> bytes:
    if name.startswith("data/sample_inputs/"):
        return b""
    if name.startswith("data/aotinductor/"):
        raise _refused(path, "it holds compiled code")
    if name.endswith("_config.json"):
        entries = json.loads(content)["config"].values()
        if any(
            e.get("use_pickle") or not str(e["path_name"]).startswith(("weight_", "tensor_")) for e in entries
        ):
            raise _refused(path, "some of its weights or constants are pickles")
    elif name.endswith((".pt", ".pkl")):
        raise _refused(path, f"{name} in it is a pickle")
    elif name.startswith("models/"):
        graph = json.loads(content)
        _check_graph(path, graph)
        return json.dumps({**graph, "guards_code": []}).encode()
    return content


def _check_graph(path: Path, graph: Any) -> None:
    for key, value in _entries(graph):
        if key == "target" and isinstance(value, str):
            if not TARGETS.fullmatch(value) or value in FORBIDDEN:
                raise _refused(path, f"its graph calls '{value:.60}', which is no operator")
        elif key == "expr_str" and not _is_arithmetic(str(value)):
            raise _refused(path, f"'{value:.60}' in it is no arithmetic of sizes")
        elif key == "range_constraints" and not all(map(_is_arithmetic, value)):
            raise _refused(path, "its range constraints are no arithmetic of sizes")


def _entries(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key, inner
            yield from _entries(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _entries(inner)


def _is_arithmetic(text: str) -> bool:
    try:
        nodes = list(ast.walk(ast.parse(text, mode="eval")))
    except SyntaxError:
        return False
    return all(_is_plain(node) for node in nodes)


def _is_plain(node: ast.AST) -> bool:
    if isinstance(node, ast.Name):
        return NAMES.fullmatch(node.id) is not None
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return NAMES.fullmatch(node.value) is not None
    return isinstance(node, NODES) and (not isinstance(node, ast.Call) or isinstance(node.func, ast.Name))


def _refused(path: Path, why: str) -> InputError:
    return InputError(
        f"{path} is refused: {why}, and nothing that could run code on loading is ever loaded. The safe way: "
        f"torch.export.save(torch.export.export(model.eval(), (x,)), 'model.pt2') with plain weights, or "
        f"safetensors.torch.save_file(model.state_dict(), 'model.safetensors') and --architecture NAME."
    )
