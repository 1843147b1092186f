#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What streampool inspect says of batches.
# usage: test_cli_inspect.sh PROGRAM DATA; STREAMPOOL_TEST_DATA overrides DATA
set -u
program=$1
data=${STREAMPOOL_TEST_DATA:-$2}
. "$(dirname "$0")/cli_fixture.sh"
cd "$work" || exit 1

inspect() { # PATTERN ARGUMENT...
    local pattern=$1
    shift
    expect 0 "$pattern" "$program" inspect "$@"
}

unary rows.onnx Relu x y 1 batch 3
inspect '^batching: a batch has the bits of its rows alone$' rows.onnx
inspect '^  input x: rows along axis 0$' rows.onnx
inspect '^  output y: rows along axis 0$' rows.onnx
# The file fixes the batch at 1, behind another dimension.
unary fixed.onnx Tanh x y 1 4 1 3
inspect '^  output y: rows along axis 1$' fixed.onnx
unary mixed.onnx Softmax x y 1 batch
inspect '^batching: the rows of a batch are not proved to be independent$' mixed.onnx
inspect '^  node y \(Softmax\): it normalises along the batch axis$' mixed.onnx
unary sizes.onnx Shape x y 1 batch 3
inspect '^  an output depends on the batch size$' sizes.onnx
inspect '^  no input has a dimension of 1 that can have the rows$' rows.onnx --dim batch=4

if [[ -d $data/models ]]; then
    inspect '^  input state: rows along axis 1$' "$data/models/silero_vad_v5/model.onnx"
    inspect '^  input sr: the same for all rows$' "$data/models/silero_vad_v5/model.onnx"
    inspect '^  a larger batch is refused: node .ScatterND_227. \(ScatterND\): updates of shape' \
        "$data/models/gtcrn_simple/model.onnx"
fi
finish "inspect tells what a batch computes"
