# SPDX-License-Identifier: Apache-2.0
"""The operators that models use, on tensors: ops.MatMul(a, b), ops.Softmax(x, axis=-1).

Made from the library's table: a function for each operator, by its ONNX name. Inputs are
Tensors and attributes are keywords, None for what is left out. `outputs` is how many are returned,
as many as the operator must have by default: one as it is, several as a tuple. `device` is for
operators without inputs, `opset` selects an older version. A call returns when it is submitted.
Raises TypeError, ValueError, Error.
"""
from . import _core
from ._lifetime import inspect_module

_TYPES = {1: "float", 2: "int", 3: "str", 4: "array", 6: "floats", 7: "ints", 8: "strings"}
_GRAPH = 5


def _typed_attributes(name, types, given):
    unknown = given.keys() - types.keys()
    if unknown:
        raise TypeError(f"{name} has no attribute {', '.join(sorted(unknown))}; it has: "
                        f"{', '.join(types) or 'none'}")
    return [(key, types[key], value) for key, value in given.items() if value is not None]


def _numbers(least, most):
    """How many there may be, as a text."""
    if most is None:
        return f"{least} or more"
    return str(least) if least == most else f"{least} to {most}"


def _describe(row):
    name, least, most, _, _, dtypes, attributes = row
    lines = [f"The operator {name} of ONNX. Inputs: {_numbers(least, most)}."]
    for i, allowed in enumerate(dtypes):
        text = f"as input {allowed}" if isinstance(allowed, int) else ", ".join(allowed)
        lines.append(f"Input {i}: {text}.")
    for key, kind, is_required in attributes:
        lines.append(f"{key}: {_TYPES[kind]}{', required' if is_required else ''}.")
    return "\n".join(lines)


def _signature(attributes):
    inspect = inspect_module()
    kinds = inspect.Parameter
    keywords = [kinds(key, kinds.KEYWORD_ONLY, default=kinds.empty if is_required else None)
                for key, _, is_required in attributes]
    own = [kinds(key, kinds.KEYWORD_ONLY, default=None) for key in ("outputs", "device", "opset")]
    return inspect.Signature([kinds("inputs", kinds.VAR_POSITIONAL), *keywords, *own])


def _check_outputs(name, least, most, count):
    least = max(1, least)
    if least <= count and (most is None or count <= most):
        return
    what = "leave it out" if least == most else f"ask for so many, or leave it out for {least}"
    raise ValueError(f"outputs is {count}, but {name} has {_numbers(least, most)}: {what}")


def _make(row):
    name, least_outputs, most_outputs, attributes = row[0], row[3], row[4], row[6]
    types = {key: kind for key, kind, _ in attributes}

    def op(*inputs, outputs=None, device=None, opset=None, **given):
        count = max(1, least_outputs) if outputs is None else _core.integer(outputs, "outputs")
        if outputs is not None:
            known = (least_outputs, most_outputs) if opset is None else _core.op_outputs(name, opset)
            if known is not None:
                _check_outputs(name, *known, count)
        results = _core.op_run(name, list(inputs), _typed_attributes(name, types, given), count,
                               device, 0 if opset is None else opset)
        return results[0] if outputs is None and count == 1 else tuple(results)

    op.__name__ = op.__qualname__ = name
    op.__module__ = __name__
    op.__doc__ = _describe(row)
    op.__signature__ = _signature(attributes)
    return op


_ROWS = {row[0]: row for row in _core.op_table() if all(kind != _GRAPH for _, kind, _ in row[6])}
__all__ = list(_ROWS)


def __getattr__(name):
    """Makes the function of an operator, at its first use: all of them take longer than the import."""
    if name not in _ROWS:
        raise AttributeError(f"module 'streampool.ops' has no attribute '{name}'")
    return globals().setdefault(name, _make(_ROWS[name]))


def __dir__():
    return sorted({*globals(), *__all__})
