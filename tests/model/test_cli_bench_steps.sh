#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# streampool bench --per-op: steps and op types with their times, shares and multiply-adds, as text and
# as JSON; devices and models whose steps cannot be timed; Ctrl-C.
# usage: test_cli_bench_steps.sh PROGRAM
set -u
program=$1
. "$(dirname "$0")/cli_fixture.sh"
cd "$work" || exit 1
short=(--window 50 --warm-up 5 --threads 1)

# Three steps of two op types: a product of 2 * 16 * 3 multiply-adds, and two without any.
model product.onnx "$(field 1 "$(node MatMul p a b)")$(field 1 "$(node Neg q p)")$(
    field 1 "$(node Neg y q)")" \
    "$(field 11 "$(port a 1 2 16)")$(field 11 "$(port b 1 16 3)")" "$(field 12 "$(port y 0 none)")"
number='[0-9]+\.[0-9]+'
expect 0 "^ +0 +$number +$number % +$number +$number %  MatMul +p\$" \
    "$program" bench product.onnx "${short[@]}" --per-op
for line in "^product.onnx: 3 steps on one thread, medians of [1-9][0-9]* runs; a core has a peak of [1-9][0-9.]* GFLOP/s \((avx512|avx2|portable)\)\$" \
    "^ +2 +$number +$number % +Neg +y\$" \
    "^ +1 +$number +$number % +$number +$number %  MatMul\$" "^ +2 +$number +$number % +Neg\$" \
    "^ +3 +$number +100.0 % +$number +$number %  all\$" "^ +1 .* product.onnx\$"; do
    grep -qE "$line" out || fail "no line /$line/: $(cat out)"
done

# JSON: an object for each step, each op type, the run, and the point.
expect 0 '^\{"model":"product.onnx","step":0,"op":"MatMul",.*"multiply_adds":96,.*"kernel":"gemm[a-z0-9_]*","node":"p"\}$' \
    "$program" bench product.onnx "${short[@]}" --per-op --json
awk '
    function number(key) { return match($0, "\"" key "\":[0-9.]+[,}]") ? \
        substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 4) + 0 : -1 }
    /"step":/ { steps++; us += number("us"); share += number("share") }
    /"steps":/ && !/"timed_runs":/ { ops++; of_ops += number("us") }
    /"timed_runs":/ { if (number("timed_runs") < 1 || number("peak_gflops") < 0.1) exit wrong = 1; all = number("us") }
    /"op":"Neg"/ && (number("gflops") != 0 || number("share_of_peak") != 0) { exit wrong = 1 }
    /"threads":/ { points++ }
    END {
        exit wrong || steps != 3 || ops != 2 || points != 1 || us - all > 0.01 || all - us > 0.01 ||
            of_ops - all > 0.01 || share < 0.99 || share > 1.01 }' out || fail "JSON: $(cat out)"

# The steps of several models, then their points.
unary m.onnx Relu x y 1 batch 2
expect 0 '^m.onnx: 1 steps on one thread' "$program" bench product.onnx m.onnx "${short[@]}" --per-op
# Runs longer than the window: one is timed.
expect 0 'medians of [1-9]' "$program" bench m.onnx --window 1 --warm-up 0 --threads 1 --per-op

# What cannot be timed is a failure, before any point.
expect 1 'SP_UNSUPPORTED: m.onnx: --per-op: the steps of a model are timed on the cpu only; its device is null' \
    "$program" bench m.onnx "${short[@]}" --per-op --device null
model partial.onnx "$(field 1 "$(node NonZero p x)")$(field 1 "$(node Abs y p)")" \
    "$(field 11 "$(port x 1 100 2)")" "$(field 12 "$(port y 0 none)")"
expect 1 'SP_UNSUPPORTED: partial.onnx: --per-op: the steps of a model are timed if one plan computes it' \
    "$program" bench partial.onnx "${short[@]}" --per-op
grep -q '^threads' out && fail "points after a failure: $(cat out)"
expect 2 '--per-op takes no value' "$program" bench m.onnx --per-op=1
expect 2 '--per-op is given twice' "$program" bench m.onnx --per-op --per-op

# Ctrl-C during the runs: no table, and no points.
interrupt '^memory at rest' out "$program" bench m.onnx --warm-up 600000 --per-op
[[ $? -eq 130 ]] && grep -q '^streampool bench: interrupted$' err && ! grep -q 'steps on' out ||
    fail "Ctrl-C: $(cat out err)"
finish "bench: the time of each step"
