#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# streampool inspect: output for a model, for a model with an unknown op, and for other files.
# usage: test_inspect.sh PROGRAM MODEL, with MODEL of the demo
set -u
program=$1
model=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# expect CODE PATTERN... -- ARGUMENTS...
expect() {
    local code=$1 patterns=()
    shift
    while [[ $1 != -- ]]; do
        patterns+=("$1")
        shift
    done
    shift
    "$program" inspect "$@" >"$work/out" 2>&1
    local got=$? pattern
    for pattern in "${patterns[@]}"; do
        if [[ $got -ne $code ]] || ! grep -qE -- "$pattern" "$work/out"; then
            echo "FAILED: inspect $* (exit $got, expected $code; output without /$pattern/)"
            cat "$work/out"
            failures=$((failures + 1))
        fi
    done
}

expect 0 '^inputs$' '^  input:0: f32 \[1,128,128,3\]$' '^outputs$' '^ +37 Conv$' \
    '^plan: [0-9]+ steps, [0-9]+ bytes of memory for each run beside [0-9]+ of weights' \
    '^ +[0-9]+ Conv\+Relu +conv_blocked_f32 +reads [0-9]+, writes [0-9]+' \
    '^  on a cuda device 0 of [0-9]+ steps run on the cpu$' -- "$model"
# An unknown op name of the same length.
sed 's/Relu/Rolu/g' "$model" >"$work/unknown.onnx"
expect 1 '^ +37 Conv$' '^ +[0-9]+ Rolu: not supported$' \
    'SP_UNSUPPORTED: 1 op types are not supported' -- "$work/unknown.onnx"
head -c 1000 "$model" >"$work/cut.onnx"
expect 1 'SP_CORRUPT' -- "$work/cut.onnx"
expect 1 'SP_IO' -- "$work/nowhere.onnx"
expect 2 'usage' --
expect 2 'usage' -- "$model" "$model"
for dim in batch batch= =3 batch=x batch=-1; do expect 2 'usage' -- "$model" --dim "$dim"; done
expect 2 'usage' -- "$model" --dim
[[ $failures -eq 0 ]] && echo "inspect says what there is"
exit $((failures > 0))
