#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The program: verify counts, fails on one changed value, and run reports equal bits.
# usage: test_cli.sh PROGRAM DATA; STREAMPOOL_DATA is instead of DATA
set -u
program=$1
data=${STREAMPOOL_DATA:-$2}
[[ -d $data/models ]] || { echo "no shared data: skipped"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# expect CODE PATTERN COMMAND...
expect() {
    local code=$1 pattern=$2
    shift 2
    "$@" >"$work/out" 2>&1
    local got=$?
    if [[ $got -ne $code ]] || ! grep -qE "$pattern" "$work/out"; then
        echo "FAILED: $* (exit $got, expected $code; output without /$pattern/)"
        cat "$work/out"
        failures=$((failures + 1))
    fi
}

models=(blazeface_front_128 mnist_8 policy_go1 policy_g1 torch_linear torch_mlp)
expect 0 '^13 passed, 0 failed, 0 skipped$' "$program" verify "${models[@]/#/$data/models/}"

# One changed value must be seen: the sign of the first output element.
cp -r "$data/models/policy_go1" "$work/changed"
chmod -R u+w "$work/changed"
output=$work/changed/test_data_set_0/output_0.pb
size=$(stat -c %s "$output")
last=$(od -An -tu1 -j $((size - 1)) -N 1 "$output")
printf "\\x$(printf %02x $((last ^ 128)))" |
    dd of="$output" bs=1 seek=$((size - 1)) conv=notrunc status=none
expect 1 '^1 passed, 1 failed, 0 skipped$' "$program" verify "$work/changed"

expect 1 '^0 passed, 1 failed, 0 skipped$' "$program" verify "$work/nowhere"
mkdir "$work/empty"
expect 1 '^0 passed, 1 failed, 0 skipped$' "$program" verify "$work/empty"
cp -r "$work/changed" "$work/broken"
echo garbage >"$work/broken/model.onnx"
expect 1 '^0 passed, 1 failed, 0 skipped$' "$program" verify "$work/broken"

expect 0 '^bits equal$' "$program" run "$data/models/policy_go1/model.onnx" --threads 8 --repeat 50
expect 0 '^bits equal$' "$program" run "$data/models/policy_go1/model.onnx" \
    --input obs="$data/models/policy_go1/test_data_set_1/input_0.pb"
# With a device whose steps are partly on the cpu the program says so, and else nothing.
policy=$data/models/policy_go1/model.onnx
STREAMPOOL_CPU_OPS=Relu,Tanh,Add expect 0 '[0-9]+ of [0-9]+ steps on the cpu: [A-Za-z+]+ [0-9]+' \
    "$program" run "$policy" --device null
expect 0 '^bits equal$' "$program" run "$policy" --device null
if grep -q 'on the cpu' "$work/out"; then
    echo "FAILED: a run without steps on the cpu speaks of some"
    failures=$((failures + 1))
fi
expect 1 "no input 'nonsense'" "$program" run "$data/models/policy_go1/model.onnx" \
    --input nonsense="$data/models/policy_go1/test_data_set_1/input_0.pb"
# Files in and out: what a .pb gave, the same through .npy, and by the bytes of each.
policy=$data/models/policy_go1
expect 0 '^bits equal$' "$program" run "$policy/model.onnx" \
    --input obs="$policy/test_data_set_1/input_0.pb" --output continuous_actions="$work/a.npy"
expect 0 '^bits equal$' "$program" run "$policy/model.onnx" \
    --input obs="$policy/test_data_set_1/input_0.pb" --output continuous_actions="$work/a.pb"
expect 1 "no output 'nonsense'" "$program" run "$policy/model.onnx" --output nonsense="$work/b.pb"
expect 1 'named .npy or .pb' "$program" run "$policy/model.onnx" --output continuous_actions="$work/b.txt"
expect 1 'SP_IO' "$program" run "$policy/model.onnx" --output continuous_actions="$work/nowhere/b.npy"
expect 1 'SP_MISMATCH' "$program" run "$policy/model.onnx" --input obs="$work/a.npy"
echo nonsense >"$work/c.npy"
expect 1 'no .npy file' "$program" run "$policy/model.onnx" --input obs="$work/c.npy"
elements=$(($(stat -c %s "$work/a.npy") - 128))
cmp <(tail -c "$elements" "$work/a.npy") <(tail -c "$elements" "$work/a.pb") || failures=1
expect 1 'SP_IO' "$program" run "$work/nowhere.onnx"
expect 2 'usage' "$program" run
expect 2 'usage' "$program" run model --threads 0
expect 2 'usage' "$program" verify
expect 0 'device cpu' "$program" info
expect 0 'kernels for ([0-9]+) of \1 ops' "$program" info
[[ $failures -eq 0 ]] && echo "all calls of the program behave"
exit $((failures > 0))
