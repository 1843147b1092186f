#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# streampool bench --against: both sides in turns, as text and as JSON, on a library of the test that has
# the C API of ONNX Runtime; libraries, models and options that are refused; Ctrl-C.
# usage: test_cli_bench_against.sh PROGRAM LIBRARY
set -u
program=$1
library=$2
. "$(dirname "$0")/cli_fixture.sh"
cd "$work" || exit 1
unary m.onnx Relu x y 1 batch 2
unary 'quo"te.onnx' Relu x y 1 3
short=(--window 50 --warm-up 5)
number='[0-9]+\.[0-9]+'

# Times and memory of both sides, and two rows for each number of threads; the first has the ratio.
expect 0 "^ +1 +$number +$number( +$number){6}  streampool\$" \
    "$program" bench m.onnx "${short[@]}" --threads 1,3 --against "$library"
for line in '^sizes chosen: batch=1$' \
    "^streampool: loaded in $number ms, first run in $number ms, memory at rest: $number MB\$" \
    "^ONNX Runtime 9.8.7: loaded in $number ms, first run in $number ms, memory at rest: $number MB\$" \
    '^outputs differ by 0 at most$' '^threads +runs/s +ratio +cores .* peak MB  side$' \
    "^ +3 +$number +$number( +$number){6}  streampool\$" "^ +3 +$number( +$number){6}  ONNX Runtime 9.8.7\$"; do
    grep -qE "$line" out || fail "no line /$line/: $(cat out)"
done
[[ $(head -1 out) == 'sizes chosen'* && $(wc -l <out) -eq 9 ]] || fail "other lines: $(cat out)"

# JSON: an object for each side and point; the ratio is that of the two rates.
expect 0 '^\{"model":"quo\\"te.onnx","side":"ONNX Runtime 9.8.7","threads":2,' \
    "$program" bench 'quo"te.onnx' "${short[@]}" --threads 1,2 --against "$library" --json
awk '
    function number(key) { return match($0, "\"" key "\":[0-9.]+[,}]") ? \
        substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 4) + 0 : -1 }
    !/^\{"model":".*\}$/ || number("per_second") <= 0 || number("cores") < 0 || number("load_ms") < 0 ||
    number("first_run_ms") < 0 || number("rest_bytes") < 100000 ||
    number("peak_bytes") < number("rest_bytes") || number("p99_us") < number("p50_us") ||
    number("max_us") < number("p99_us") { exit wrong = 1 }
    /"side":"streampool"/ { rate = number("per_second"); ratio = number("ratio") }
    /"side":"ONNX/ { share = rate / number("per_second"); if (share - ratio > 0.01 || ratio - share > 0.01) exit wrong = 1 }
    END { exit wrong || NR != 4 }' out || fail "JSON: $(cat out)"
# Arrivals, batch queues and steps of our side.
expect 0 '"missed":0' "$program" bench m.onnx --rate 500 --window 500 --threads 4 --against "$library" --json
expect 0 '"ratio":' "$program" bench m.onnx "${short[@]}" --threads 2 --against "$library" --json --batching queue
expect 0 '^m.onnx: 1 steps on one thread' "$program" bench m.onnx "${short[@]}" --threads 1 --against "$library" --per-op
# A name without a folder is a file of the working folder, if there is one.
cp "$library" libpeer.so
expect 0 '^ONNX Runtime 9.8.7: ' "$program" bench m.onnx "${short[@]}" --threads 1 --against libpeer.so

# Libraries that are none, or fail.
against() { # FAULT PATTERN
    expect 1 "SP_[A-Z_]+: --against $library: $2" \
        env FAKE_PEER="$1" "$program" bench m.onnx "${short[@]}" --threads 1 --against "$library"
}
expect 1 'SP_IO: --against none.so: it cannot be opened: .*none.so' "$program" bench m.onnx --against none.so
expect 1 'SP_IO: --against m.onnx: it cannot be opened: ' "$program" bench m.onnx --against m.onnx
expect 1 'SP_UNSUPPORTED: --against libm.so.6: it is not the library of ONNX Runtime: it has no function OrtGetApiBase' \
    "$program" bench m.onnx --against libm.so.6
against old 'it is ONNX Runtime 9.8.7, which has no version [0-9]+ of its C API'
against refused 'ONNX Runtime: the model is refused'
against wrong "output 'y' of ONNX Runtime has .* where ours has "
against type "output 'y' of ONNX Runtime has another type or size"
against small "output 'y' of ONNX Runtime has another type or size"
against dies 'the process has ended'
# Failures of our side are as they are without a peer.
expect 1 '^streampool: SP_IO: cannot open none.onnx' "$program" bench none.onnx --against "$library"
expect 1 '^streampool: SP_MISMATCH: m.onnx: --shape x=3x1' "$program" bench m.onnx --shape x=3x1 --against "$library"

# Options that do not go with it.
refuse() { # PATTERN ARGUMENT...
    local pattern=$1
    shift
    expect 2 "^streampool bench: --against does not go with $pattern" \
        "$program" bench "$@" --against "$library"
}
refuse '--in-flight: ' m.onnx --in-flight 2
refuse '--statistics: ' m.onnx --statistics
refuse 'several models: ' m.onnx m.onnx
refuse '--device: ' m.onnx --device null
refuse 'standard input: ' -
expect 2 "^streampool bench: --against cannot be ''" "$program" bench m.onnx --against ''

# Ctrl-C in a run of the peer that takes long: all processes end.
SECONDS=0
FAKE_PEER=slow timeout --foreground --preserve-status -s INT 0.5 \
    "$program" bench m.onnx --threads 1 --against "$library" >out 2>err
[[ $? -eq 130 && $SECONDS -lt 5 ]] && grep -q '^streampool bench: interrupted$' err ||
    fail "Ctrl-C after $SECONDS s: $(cat out err)"
finish "bench: against another library"
