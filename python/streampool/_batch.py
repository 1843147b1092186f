# SPDX-License-Identifier: Apache-2.0
"""Batch queues: many runs of one model in flight, computed as batches."""
import operator
import typing

import streampool  # whose Future is imported by its first use

from . import _core
from ._convert import convert
from ._handle import Handle
from ._model import Model, _as_pair

_MOST_SECONDS = 2**32  # in nanoseconds they fit 64 bits


def _kind(name, wanted, value):
    return TypeError(f"{name} is {wanted}; an object of type {type(value).__name__} was given")


def _count(name, value):
    try:
        value = operator.index(value)
    except TypeError:
        raise _kind(name, "an integer", value) from None
    if not 0 <= value < 2**32:
        raise ValueError(f"{name} is {value}; it must be neither negative nor above {2**32 - 1}")
    return value


def _options(max_batch, max_delay, workers, max_waiting, refuse_when_full):
    try:
        is_in_range = 0 <= max_delay <= _MOST_SECONDS
    except TypeError:
        raise _kind("max_delay", "a number of seconds", max_delay) from None
    if not is_in_range:
        raise ValueError(f"max_delay is {max_delay}; it can be 0 to {_MOST_SECONDS} seconds")
    return (_count("max_batch", max_batch), round(max_delay * 1e9), _count("workers", workers),
            _count("max_waiting", max_waiting), bool(refuse_when_full))


def _require(value, name, kind):
    if not isinstance(value, kind):
        raise TypeError(f"{name} is of type {type(value).__name__}; it must be a "
                        f"streampool.{kind.__name__}")


class BatchQueue(Handle):
    """Runs of one model that wait in a queue and are computed together, with the bits of lone runs.

    max_batch: most runs of a batch, at most 64 (0: 64). max_delay: seconds that the oldest run waits
    for others. workers: batches in flight. max_waiting: runs that wait. refuse_when_full: a submit
    past that raises Error (Status.BUSY) instead of waiting. Raises ValueError for other values.

    Runs of a model whose shapes, branches or loops follow from values are not merged: they are
    submitted as by Model.submit, whatever the options are.
    """

    def __init__(self, model: Model, *, max_batch: int = 0, max_delay: float = 0.0, workers: int = 0,
                 max_waiting: int = 0, refuse_when_full: bool = False):
        _require(model, "model", Model)
        self._model = model
        self._core = _core.BatchQueue(
            model._core, *_options(max_batch, max_delay, workers, max_waiting, refuse_when_full))

    def submit(self, /, *values: typing.Any, **named: typing.Any) -> "streampool.Future":
        """Submits a run, as Model.submit."""
        return self._model._submit(self._core, values, named)

    def configure(self, *, max_batch: int = 0, max_delay: float = 0.0, workers: int = 0,
                  max_waiting: int = 0, refuse_when_full: bool = False) -> None:
        """Replaces all options, by their defaults where they are not given."""
        self._core.configure(*_options(max_batch, max_delay, workers, max_waiting, refuse_when_full))

    def flush(self) -> None:
        """Runs that are in the queue now wait for no others."""
        self._core.flush()

    def statistics(self) -> "dict[str, typing.Any]":
        """Counts of requests and batches, by name; times in nanoseconds."""
        return self._core.statistics()


def configure_batch_queue(queue: BatchQueue, **options: typing.Any) -> None:
    """Replaces the options of a queue: queue.configure(**options)."""
    _require(queue, "queue", BatchQueue)
    queue.configure(**options)


def batch_inference(model: Model, requests: "typing.Iterable[typing.Any]") -> "list[typing.Any]":
    """Runs the model on many inputs, each an array, a sequence or a mapping, as batches.

    Returns the results in order, each as a call would. If one fails, all others are computed, and
    its exception is raised. If one cannot be taken as inputs, none is computed. The exception
    names the request in its message or in a note.
    """
    _require(model, "model", Model)
    pairs = (convert(model.inputs, *_as_pair(request)) for request in list(requests))
    return [model._finish(result) for result in _core.batch_inference(model._core, pairs)]
