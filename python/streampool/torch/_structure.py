# SPDX-License-Identifier: Apache-2.0
"""Nested arguments and results: trees whose leaves are tensors and constants.

A value is flattened once, at compile. Later values must have the same structure, and equal constants.
"""
import collections
import typing

import torch

from .._core import Tensor

_SCALARS = (type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.device,
            torch.layout, torch.memory_format)
ALLOWED = "tensors, numbers, strings, None, and tuples, lists and dicts of these"


class Leaf(typing.NamedTuple):
    """A tensor: its place in the list of tensors."""

    index: int
    name: str


class Constant(typing.NamedTuple):
    """Anything but a tensor."""

    value: typing.Any
    name: str


class Node(typing.NamedTuple):
    """A tuple, list or dict; `keys` is None of the first two."""

    kind: type
    keys: "tuple | None"
    children: tuple
    name: str


def _type_name(value):
    return type(value).__name__


def _items(value, name):
    """(keys, values, names) of a container, or None."""
    kind = type(value)
    if kind in (dict, collections.OrderedDict):
        return tuple(value), tuple(value.values()), [f"{name}_{key}" for key in value]
    if kind is list or isinstance(value, tuple):
        fields = getattr(kind, "_fields", range(len(value)))
        return None, tuple(value), [f"{name}_{field}" for field in fields]
    return None


def flatten(value, name, tensors):
    """The tree of a value, whose tensors are appended to a list. TypeError for other objects."""
    if isinstance(value, torch.Tensor):
        tensors.append(value)
        return Leaf(len(tensors) - 1, name)
    if isinstance(value, _SCALARS):
        return Constant(value, name)
    items = _items(value, name)
    if items is None:
        raise TypeError(f"'{name}' is of type {_type_name(value)}; it can have {ALLOWED}")
    keys, values, names = items
    children = tuple(flatten(child, own, tensors) for child, own in zip(values, names))
    return Node(type(value), keys, children, name)


def rebuild(tree, tensors):
    """The value of a tree with other tensors."""
    if isinstance(tree, Leaf):
        return tensors[tree.index]
    if isinstance(tree, Constant):
        return tree.value
    children = [rebuild(child, tensors) for child in tree.children]
    if tree.keys is not None:
        return tree.kind(zip(tree.keys, children))
    if hasattr(tree.kind, "_make"):
        return tree.kind._make(children)
    return tree.kind(children)


def _is_equal(one, other):
    """The signs of zeros count: 1 / x is another number."""
    if type(one) is not type(other):
        return False
    if isinstance(one, (float, complex)):
        return repr(one) == repr(other)
    return one == other


def _take_node(tree, value, tensors):
    if type(value) is not tree.kind:
        raise TypeError(f"'{tree.name}' is of type {_type_name(value)}; it was compiled as "
                        f"{tree.kind.__name__}")
    if tree.keys is not None and value.keys() != set(tree.keys):
        raise TypeError(f"'{tree.name}' has the keys {sorted(map(str, value))}; it was compiled with "
                        f"{sorted(map(str, tree.keys))}")
    if len(value) != len(tree.children):
        raise TypeError(f"'{tree.name}' has {len(value)} elements; it was compiled with "
                        f"{len(tree.children)}")
    values = value if tree.keys is None else [value[key] for key in tree.keys]
    for child, own in zip(tree.children, values):
        take(child, own, tensors)


def _of_streampool(value):
    """A copy on the host, also of bfloat16, which NumPy lacks."""
    if value.dtype == "bfloat16":
        return torch.from_dlpack(value.to("cpu")).clone()
    return torch.from_numpy(value.numpy())


def take(tree, value, tensors):
    """Appends the tensors of a value of the same structure. TypeError, ValueError for another one."""
    if isinstance(tree, Leaf):
        if isinstance(value, Tensor):
            value = _of_streampool(value)
        if not isinstance(value, torch.Tensor):
            raise TypeError(f"input '{tree.name}' is of type {_type_name(value)}; it was compiled as a "
                            "tensor")
        tensors.append(value)
    elif isinstance(tree, Constant):
        if isinstance(value, torch.Tensor) or not _is_equal(tree.value, value):
            shown = _type_name(value) if isinstance(value, torch.Tensor) else repr(value)
            if shown == repr(tree.value):  # numpy.int64(1) was "1" before NumPy 2
                shown += f" of type {_type_name(value)}"
            raise ValueError(f"'{tree.name}' is {shown}; it was compiled with the constant "
                             f"{tree.value!r}: compile the module for that too")
    else:
        _take_node(tree, value, tensors)


def select(tree, value, tensors):
    """Appends what a value has where the tree has tensors; where it has constants anything may be."""
    if isinstance(tree, Leaf):
        tensors.append(value)
    elif isinstance(tree, Node):
        values = value if tree.keys is None else [value[key] for key in tree.keys]
        for child, own in zip(tree.children, values):
            select(child, own, tensors)


def is_same(tree, other):
    """Whether two trees have one structure and equal constants."""
    return _form(tree) == _form(other)


def _form(tree):
    if isinstance(tree, Leaf):
        return Leaf
    if isinstance(tree, Constant):
        return type(tree.value), repr(tree.value)
    return tree.kind, tree.keys, [_form(child) for child in tree.children]


def leaf_names(tree):
    """The name of each tensor of a tree, in order."""
    if isinstance(tree, Leaf):
        yield tree.name
    elif isinstance(tree, Node):
        for child in tree.children:
            yield from leaf_names(child)


def unique(names):
    """Each name once: a later one gets underscores."""
    taken = []
    for name in names:
        while name in taken:
            name += "_"
        taken.append(name)
    return taken
