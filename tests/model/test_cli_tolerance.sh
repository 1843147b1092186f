#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# streampool verify --tolerance: bounds of the command line replace those of the case.
# usage: test_cli_tolerance.sh PROGRAM
set -u
program=$1
. "$(dirname "$0")/cli_fixture.sh"
mkdir -p "$work/case/test_data_set_0"
unary "$work/case/model.onnx" Relu x y 1 2
tensor() { # FILE HEX: a TensorProto of two f32
    file "$1" "$(number 1 2)$(number 2 1)$(field 9 "$2")"
}
# Inputs 1 and 2; expected outputs 1 and 2.125.
tensor "$work/case/test_data_set_0/input_0.pb" 0000803f00000040
tensor "$work/case/test_data_set_0/output_0.pb" 0000803f00000840
expect 1 '^0 passed, 1 failed' "$program" verify "$work/case"
expect 0 '^1 passed, 0 failed' "$program" verify --tolerance 0.125 "$work/case"
expect 1 '^0 passed, 1 failed' "$program" verify --tolerance 0.1249 "$work/case"
expect 0 '^1 passed, 0 failed' "$program" verify "$work/case" --tolerance 0,0.06
expect 1 '^0 passed, 1 failed' "$program" verify "$work/case" --tolerance 0,0.05
expect 0 '^1 passed, 0 failed' "$program" verify --tolerance=0.1,1.2e-2 "$work/case"
# It may also be narrower than the case's own.
tensor "$work/case/test_data_set_0/output_0.pb" 0000803f01000040
expect 0 '^1 passed, 0 failed' "$program" verify "$work/case"
expect 1 '^0 passed, 1 failed' "$program" verify --tolerance 0 "$work/case"
# A precision is not ignored: the cpu has none.
expect 0 'precision bf16 needs a cuda device of compute capability 8' \
    "$program" verify --precision bf16 "$work/case"
expect 0 '^1 passed, 0 failed' "$program" verify --precision default "$work/case"
# A decimal number.
expect 2 '^streampool verify: --tolerance ' "$program" verify "$work/case" --tolerance 0x1p3

# A case whose first set is not number 0 is not passed over; a file is no folder of cases.
mv "$work/case/test_data_set_0" "$work/case/test_data_set_1"
expect 1 '^0 passed, 1 failed' "$program" verify "$work"
expect 1 '^FAILED .*model.onnx: cannot be read as a folder: Not a directory$' "$program" verify "$work/case/model.onnx"
# Other names that begin so are no sets.
mv "$work/case/test_data_set_1" "$work/case/test_data_set_x"
expect 1 'no folder with model.onnx and a numbered test_data_set' "$program" verify "$work"
finish "tolerances are those of the command line"
