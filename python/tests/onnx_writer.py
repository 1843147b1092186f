# SPDX-License-Identifier: Apache-2.0
"""Small ONNX files, written without ONNX's own package: the protobuf encoding of what tests need."""
import numpy as np

DTYPES = {"float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7,
          "bool": 9, "float16": 10, "float64": 11, "uint32": 12, "uint64": 13, "bfloat16": 16}


def _varint(number):
    out = bytearray()
    number &= (1 << 64) - 1
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def _number(field, value):
    return _varint(field << 3) + _varint(value)


def _bytes(field, value):
    data = value.encode() if isinstance(value, str) else value
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def value(name, dtype, shape):
    """A ValueInfoProto; a size may be a name. Without a dtype it has no shape either."""
    if dtype is None:
        return _bytes(1, name) + _bytes(2, _bytes(1, b""))
    dims = b"".join(_bytes(1, _bytes(2, size) if isinstance(size, str) else _number(1, size))
                    for size in shape)
    tensor = _number(1, DTYPES[dtype]) + _bytes(2, dims)
    return _bytes(1, name) + _bytes(2, _bytes(1, tensor))


def initializer(name, array):
    """A TensorProto."""
    dims = b"".join(_number(1, size) for size in array.shape)
    return dims + _number(2, DTYPES[array.dtype.name]) + _bytes(8, name) + _bytes(9, array.tobytes())


def external(name, file, shape):
    """A TensorProto of float32 whose elements are in a file beside the model's."""
    dims = b"".join(_number(1, size) for size in shape)
    place = _bytes(13, _bytes(1, "location") + _bytes(2, file))
    return dims + _number(2, DTYPES["float32"]) + _bytes(8, name) + place + _number(14, 1)


def node(op, inputs, outputs, **attributes):
    """A NodeProto with attributes that are integers."""
    parts = [_bytes(1, name) for name in inputs] + [_bytes(2, name) for name in outputs]
    parts.append(_bytes(4, op))
    for name, number in attributes.items():
        parts.append(_bytes(5, _bytes(1, name) + _number(3, number) + _number(20, 2)))
    return b"".join(parts)


def _graph(nodes, inputs, outputs, initializers=()):
    """A GraphProto."""
    graph = b"".join(_bytes(1, part) for part in nodes) + _bytes(2, "g")
    graph += b"".join(_bytes(5, part) for part in initializers)
    graph += b"".join(_bytes(11, part) for part in inputs)
    return graph + b"".join(_bytes(12, part) for part in outputs)


def model(nodes, inputs, outputs, initializers=()):
    """The bytes of a file of opset 17."""
    graph = _graph(nodes, inputs, outputs, initializers)
    return _number(1, 8) + _bytes(8, _bytes(1, "") + _number(2, 17)) + _bytes(7, graph)


def linear(inner=4, outer=3):
    """y = tanh(x * w) of x[n, inner]."""
    weights = np.sin(np.arange(inner * outer, dtype=np.float32)).reshape(inner, outer)
    return model([node("MatMul", ["x", "w"], ["p"]), node("Tanh", ["p"], ["y"])],
                 [value("x", "float32", ["n", inner])], [value("y", "float32", ["n", outer])],
                 [initializer("w", weights)])


def unary(op, dtype, shape, to=None, out=None, **attributes):
    """y = op(x)."""
    return model([node(op, ["x"], ["y"], **attributes)], [value("x", dtype, shape)],
                 [value("y", to or dtype, shape if out is None else out)])


def two():
    """a + b and a - b; the outputs have names that are no identifiers."""
    return model([node("Add", ["a", "b"], ["Identity:0"]), node("Sub", ["a", "b"], ["758"])],
                 [value("a", "float32", ["n"]), value("b", "float32", ["n"])],
                 [value("Identity:0", "float32", ["n"]), value("758", "float32", ["n"])])


def long_running(size=512, count=40):
    """A chain of products that takes some tens of milliseconds."""
    weights = np.eye(size, dtype=np.float32)
    names = ["x"] + [f"v{i}" for i in range(count - 1)] + ["y"]
    nodes = [node("MatMul", [names[i], "w"], [names[i + 1]]) for i in range(count)]
    return model(nodes, [value("x", "float32", ["n", size])], [value("y", "float32", ["n", size])],
                 [initializer("w", weights)])


ENDLESS = 1 << 62


def repeated():
    """y: x, negated n times. ENDLESS times are until the run is cancelled."""
    body = _graph([node("Neg", ["v"], ["w"])],
                  [value("i", "int64", []), value("on", "bool", []), value("v", "float32", ["k"])],
                  [value("on", "bool", []), value("w", "float32", ["k"])])
    loop = node("Loop", ["n", "", "x"], ["y"]) + _bytes(5, _bytes(1, "body") + _bytes(6, body) + _number(20, 5))
    return model([loop], [value("n", "int64", []), value("x", "float32", ["k"])],
                 [value("y", "float32", ["k"])])


def table():
    """y = rows of a table of 5 at x: an index out of range fails the run."""
    rows = np.arange(15, dtype=np.float32).reshape(5, 3)
    return model([node("Gather", ["t", "x"], ["y"])], [value("x", "int64", ["n"])],
                 [value("y", "float32", ["n", 3])], [initializer("t", rows)])
