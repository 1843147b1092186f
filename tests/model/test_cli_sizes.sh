#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Chosen sizes of free dimensions: small sizes that work, the same for run and inspect; otherwise a
# message with the options to use.
# usage: test_cli_sizes.sh PROGRAM DATA; STREAMPOOL_TEST_DATA overrides DATA
set -u
program=$1
data=${STREAMPOOL_TEST_DATA:-$2}
. "$(dirname "$0")/cli_fixture.sh"
cd "$work" || exit 1

both() { # CODE PATTERN ARGUMENT...
    local code=$1 pattern=$2
    shift 2
    expect "$code" "$pattern" "$program" run "$@"
    expect "$code" "$pattern" "$program" inspect "$@"
}

# binary FILE OP ATTRIBUTE DIMS DIMS: y = OP(a, b).
binary() { # FILE OP ATTRIBUTE DIMS DIMS
    local a b
    read -ra a <<<"$4"
    read -ra b <<<"$5"
    model "$1" "$(field 1 "$(node "$2" y a b)$3")" \
        "$(field 11 "$(port a 1 "${a[@]}")")$(field 11 "$(port b 1 "${b[@]}")")" \
        "$(field 12 "$(port y 0 none)")"
}
unary one.onnx Relu x y 1 batch '?' seq 3
both 0 '^sizes chosen: batch=1, x\[1\]=1, seq=1$' one.onnx
both 0 '^sizes chosen: x\[1\]=1, seq=1$' one.onnx --dim batch=4
both 0 '(x|y): f32 \[4,5,6,3\]' one.onnx --shape x=4x5x6x3
"$program" run one.onnx --shape x=4x5x6x3 | grep -q chosen && fail "given sizes are called chosen"
# The inner sizes first: MatMul of [batch, n] and [64, 2] has n = 64.
binary matmul.onnx MatMul '' 'batch n' '64 2'
both 0 '^sizes chosen: batch=1, n=64$' matmul.onnx
# Then a single one, even if it is the first dimension of an input: [1, 32] and [n, 2].
binary first.onnx MatMul '' 'm 32' 'n 2'
both 0 '^sizes chosen: m=1, n=32$' first.onnx
# 77 is not among the candidates; the options of the message work with that size.
binary none.onnx MatMul '' 'batch n' '77 2'
both 1 'SP_MISMATCH.*no small sizes .* work: set them, as in --dim batch=1 --dim n=512$' none.onnx
both 0 '(y|output y): f32 \[1,2\]' none.onnx --dim batch=1 --dim n=77
binary unnamed.onnx MatMul '' '? ?' '77 2'
both 1 'set them, as in --shape a=1x512$' unnamed.onnx
both 0 '(y|output y): f32 \[1,2\]' unnamed.onnx --shape a=1x77
binary quoted.onnx MatMul '' 'batch n;m' '77 2'
both 1 "as in --dim batch=1 --dim 'n;m'=512\$" quoted.onnx
# Sizes of a file apply to generated inputs too.
npy b.npy 0000803f0000803f0000803f0000803f 4 1
binary shared.onnx MatMul '' 'batch n' 'n 1'
both 0 '^sizes chosen: batch=1$' shared.onnx --input b=b.npy

[[ -d $data/models ]] || { echo "no shared data: its models are left out"; finish "small sizes are chosen"; }
for model in "$data"/models/*/model.onnx; do
    expect 0 '^bits equal$' "$program" run "$model"
    chosen=$(grep '^sizes chosen' out)
    expect 0 '^plan: ' "$program" inspect "$model"
    [[ $(grep '^sizes chosen' out) == "$chosen" ]] || fail "run and inspect choose other sizes for $model"
done
both 0 'sizes chosen: .*DynamicDimension.0=1, .*DynamicDimension.1=64, .*DynamicDimension.2=64$' \
    "$data/models/ppocr_cls/model.onnx"
both 0 '^sizes chosen: batch=1, sequence=192$' "$data/models/silero_vad_v4/model.onnx"
both 0 '^sizes chosen: input\[0\]=1, input\[1\]=96, state\[1\]=1$' \
    "$data/models/silero_vad_v5/model.onnx"
finish "small sizes are chosen"
