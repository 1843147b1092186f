# SPDX-License-Identifier: Apache-2.0
"""Arguments of a module's forward: which are tensors, and which are constants of the compilation."""
import inspect

import torch

from . import _structure


class Arguments:
    """The form that a module was compiled for, from its example inputs."""

    def __init__(self, module, args, kwargs):
        self._signature = inspect.signature(module.forward)
        self.tensors = []  # of the example
        bound = self._bind(args, kwargs).arguments
        self._parameters = {name: _structure.flatten(value, name, self.tensors)
                            for name, value in bound.items()}
        self.names = _structure.unique(name for tree in self._parameters.values()
                                       for name in _structure.leaf_names(tree))
        is_plain = not kwargs and all(isinstance(value, torch.Tensor) for value in args)
        # A call with so many positional tensors, and nothing else, needs no look at the structure.
        self.plain_count = len(args) if is_plain else None

    def _bind(self, args, kwargs):
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return bound

    def take(self, args, kwargs):
        """The tensors of a call, in order. TypeError, ValueError if it has another form."""
        tensors = []
        bound = self._bind(args, kwargs).arguments
        for name, tree in self._parameters.items():
            _structure.take(tree, bound[name], tensors)
        return tensors

    def rebuild(self, tensors):
        """(args, kwargs) of a call with these tensors."""
        values = {name: _structure.rebuild(tree, tensors) for name, tree in self._parameters.items()}
        bound = inspect.BoundArguments(self._signature, values)
        return bound.args, bound.kwargs
