# SPDX-License-Identifier: Apache-2.0
"""Which dimension of each input has the batch."""
import typing

_FIXED = "or compile the module with dynamic_batch=False"


class Batch(typing.NamedTuple):
    """The batch of an example."""

    rows: int
    axes: "list[int | None]"  #: of each tensor: the dimension that has the rows


def _first_dimensions(tensors):
    """Dimension 0, of all tensors in which it has the size that it has in the first of them."""
    rows = next((tensor.shape[0] for tensor in tensors if tensor.dim() > 0), None)
    if rows is None:
        raise ValueError(f"no example input has a dimension that can be the batch: give one, {_FIXED}")
    return Batch(rows, [0 if tensor.shape[:1] == (rows,) else None for tensor in tensors])


def _named_dimensions(arguments, named):
    unknown = named.keys() - set(arguments.names)
    if unknown or not named:
        raise ValueError(f"dynamic_batch names the inputs {sorted(unknown)}; the tensors of the example "
                         f"are {arguments.names}")
    axes = [named.get(name) for name in arguments.names]
    sizes = {}
    for name, tensor, axis in zip(arguments.names, arguments.tensors, axes):
        if axis is None:
            continue
        if not hasattr(axis, "__index__"):
            raise TypeError(f"dynamic_batch gives an object of type {type(axis).__name__} as the dimension of "
                            f"input '{name}'; it must be an integer")
        if not 0 <= axis < tensor.dim():
            raise ValueError(f"dynamic_batch gives dimension {axis} of input '{name}', which has "
                             f"{tensor.dim()} dimensions")
        sizes[name] = tensor.shape[axis]
    if len(set(sizes.values())) != 1:
        raise ValueError(f"the dimensions of dynamic_batch have different sizes: {sizes}")
    return Batch(next(iter(sizes.values())), axes)


def batch_of(arguments, dynamic_batch):
    """The batch that is free, or None. ValueError if the example has none."""
    if not isinstance(dynamic_batch, (bool, dict)):
        raise TypeError(f"dynamic_batch is of type {type(dynamic_batch).__name__}; it can be True, False or a "
                        "dict of dimensions by the names of inputs")
    if not dynamic_batch and not isinstance(dynamic_batch, dict):
        return None
    if isinstance(dynamic_batch, dict):
        batch = _named_dimensions(arguments, dynamic_batch)
    else:
        batch = _first_dimensions(arguments.tensors)
    if batch.rows == 0:
        raise ValueError(f"the batch of the example is empty: give one with rows, {_FIXED}")
    return batch
