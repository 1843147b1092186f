#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The program: verify counts, fails on one changed value, and run reports equal bits.
# usage: test_cli.sh PROGRAM DATA; STREAMPOOL_TEST_DATA overrides DATA
set -u
program=$1
data=${STREAMPOOL_TEST_DATA:-$2}
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

# A single changed value must be detected: the sign of the first output element.
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
# If some steps of a device run on the cpu the program reports them; otherwise it prints nothing.
policy=$data/models/policy_go1/model.onnx
STREAMPOOL_CPU_OPS=Relu,Tanh,Add expect 0 '[0-9]+ of [0-9]+ steps on the cpu: [A-Za-z+]+ [0-9]+' \
    "$program" run "$policy" --device null
expect 0 '^bits equal$' "$program" run "$policy" --device null
if grep -q 'on the cpu' "$work/out"; then
    echo "FAILED: a run without steps on the cpu reports some"
    failures=$((failures + 1))
fi
expect 1 "no input 'nonsense'" "$program" run "$data/models/policy_go1/model.onnx" \
    --input nonsense="$data/models/policy_go1/test_data_set_1/input_0.pb"
# Input and output files: a .pb and a .npy have the same elements.
policy=$data/models/policy_go1
expect 0 '^bits equal$' "$program" run "$policy/model.onnx" \
    --input obs="$policy/test_data_set_1/input_0.pb" --output continuous_actions="$work/a.npy"
expect 0 '^bits equal$' "$program" run "$policy/model.onnx" \
    --input obs="$policy/test_data_set_1/input_0.pb" --output continuous_actions="$work/a.pb"
expect 1 "no output 'nonsense'" "$program" run "$policy/model.onnx" --output nonsense="$work/b.pb"
expect 1 'must end in .npy, .npz or .pb' "$program" run "$policy/model.onnx" --output continuous_actions="$work/b.txt"
expect 1 'SP_IO' "$program" run "$policy/model.onnx" --output continuous_actions="$work/nowhere/b.npy"
expect 1 'SP_MISMATCH' "$program" run "$policy/model.onnx" --input obs="$work/a.npy"
echo nonsense >"$work/c.npy"
expect 1 'not a .npy file' "$program" run "$policy/model.onnx" --input obs="$work/c.npy"
elements=$(($(stat -c %s "$work/a.npy") - 128))
cmp <(tail -c "$elements" "$work/a.npy") <(tail -c "$elements" "$work/a.pb") || failures=1
# The command line gives the size of a free dimension.
expect 0 '^  output [^ ]+: f32 \[7,' "$program" inspect "$data/models/torch_mlp/model.onnx" \
    --dim batch=7
# Limits: a model within them runs; a model beyond them is refused with both numbers.
expect 0 '^bits equal$' "$program" run "$policy/model.onnx" --max-memory 64K --max-trips 1
expect 1 'SP_EXHAUSTED: .* [0-9]+ bytes of memory .*; max_run_bytes allows 1$' \
    "$program" run "$policy/model.onnx" --max-memory 1
expect 0 '^2 passed' "$program" verify --max-memory 64K --device cpu "$policy"
expect 1 'max_run_bytes allows 1024$' "$program" verify --max-memory 1K "$policy"
expect 2 'usage' "$program" run "$policy/model.onnx" --max-memory 1x
expect 2 'usage' "$program" verify --max-trips 0 "$policy"
# The plan is checked before inputs are generated: t = Concat(x, x), y = ReduceMax(t), x of 32 GiB.
bomb=
bomb+='\x08\x08\x12\x00\x3a\x5a\x0a\x1e\x0a\x01\x78\x0a\x01\x78\x12\x01\x74\x22\x06\x43\x6f\x6e\x63\x61'
bomb+='\x74\x2a\x0b\x0a\x04\x61\x78\x69\x73\x18\x00\xa0\x01\x02\x0a\x11\x0a\x01\x74\x12\x01\x79\x22\x09'
bomb+='\x52\x65\x64\x75\x63\x65\x4d\x61\x78\x12\x01\x67\x5a\x17\x0a\x01\x78\x12\x12\x0a\x10\x08\x01\x12'
bomb+='\x0c\x0a\x06\x08\x80\x80\x80\x80\x04\x0a\x02\x08\x08\x62\x09\x0a\x01\x79\x12\x04\x0a\x02\x08\x01'
bomb+='\x42\x04\x0a\x00\x10\x0d'
printf "$bomb" >"$work/bomb.onnx"
expect 1 'would take 68719476740 bytes .* max_run_bytes allows 1073741824$' \
    "$program" run "$work/bomb.onnx" --max-memory 1G
# y = ReduceMax(x): the run takes 4 bytes, its input is generated.
bomb=
bomb+='\x08\x08\x12\x00\x3a\x3a\x0a\x11\x0a\x01\x78\x12\x01\x79\x22\x09\x52\x65\x64\x75\x63\x65\x4d\x61'
bomb+='\x78\x12\x01\x67\x5a\x17\x0a\x01\x78\x12\x12\x0a\x10\x08\x01\x12\x0c\x0a\x06\x08\x80\x80\x80\x80'
bomb+='\x04\x0a\x02\x08\x08\x62\x09\x0a\x01\x79\x12\x04\x0a\x02\x08\x01\x42\x04\x0a\x00\x10\x0d'
printf "$bomb" >"$work/bomb.onnx"
expect 1 'generated inputs would have 34359738368 bytes; --max-memory allows 1073741824$' \
    "$program" run "$work/bomb.onnx" --max-memory 1G
expect 1 'SP_IO' "$program" run "$work/nowhere.onnx"
expect 2 'usage' "$program" run
expect 2 'usage' "$program" run model --threads 0
expect 2 'usage' "$program" verify
expect 0 'device cpu' "$program" info
expect 0 'kernels for ([0-9]+) of \1 ops, (portable|avx2|avx512|neon) \((the best of|this machine lacks) .*\)$' \
    env -u STREAMPOOL_ISA "$program" info
expect 0 'ops, portable \(STREAMPOOL_ISA asks for it\)$' env STREAMPOOL_ISA=portable "$program" info
foreign=neon
[[ $(uname -m) == x86_64 ]] || foreign=avx2
expect 0 'ops, [a-z0-9]+ \(STREAMPOOL_ISA names kernels for other processors\)$' \
    env STREAMPOOL_ISA="$foreign" "$program" info
expect 0 '"name":"cpu",.*"instruction_set":"portable","instruction_set_reason":"STREAMPOOL_ISA asks for it"' \
    env STREAMPOOL_ISA=portable "$program" info --json
expect 0 '"variable":"STREAMPOOL_ISA","value":"portable","origin":"environment"' \
    env STREAMPOOL_ISA=portable "$program" info --json
if command -v python3 >/dev/null; then
    expect 0 '^[1-9]' python3 -c 'import json, subprocess, sys
info = json.loads(subprocess.check_output([sys.argv[1], "info", "--json"]))
print(len(info["devices"]), len(info["options"]))' "$program"
fi
[[ $failures -eq 0 ]] && echo "all calls of the program behave"
exit $((failures > 0))
