#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# streampool bench --against: both sides in turns, as text and as JSON, on a library of the tests that has
# the C API of another runtime; failures of either side; Ctrl-C.
# usage: test_cli_bench_against.sh PROGRAM LIBRARY NAME
. "$(dirname "$0")/bench_fixture.sh"
unary 'quo"te.onnx' Relu x y 1 3
unary scalar.onnx Relu x y 1
number='[0-9]+\.[0-9]+'

# Times and memory of both sides, and two rows for each number of threads; the first has the ratio.
expect 0 "^ +1 +$number +$number( +$number){6}  streampool\$" \
    "$program" bench m.onnx "${short[@]}" --threads 1,3 --against "$library"
for line in '^sizes chosen: batch=1$' \
    "^streampool: loaded in $number ms, first run in $number ms, memory at rest: $number MB\$" \
    "^$peer: loaded in $number ms, first run in $number ms, memory at rest: $number MB\$" \
    '^outputs differ by 0 at most$' '^threads +runs/s +ratio +cores .* peak MB  side$' \
    "^ +3 +$number +$number( +$number){6}  streampool\$" "^ +3 +$number( +$number){6}  $peer\$"; do
    grep -qE "$line" out || fail "no line /$line/: $(cat out)"
done
[[ $(head -1 out) == 'sizes chosen'* && $(wc -l <out) -eq 9 ]] || fail "other lines: $(cat out)"

# JSON: an object for each side and point; the ratio is that of the two rates.
expect 0 "^\{\"model\":\"quo\\\\\"te.onnx\",\"side\":\"$peer\",\"threads\":2," \
    "$program" bench 'quo"te.onnx' "${short[@]}" --threads 1,2 --against "$library" --json
awk '
    function number(key) { return match($0, "\"" key "\":[0-9.]+[,}]") ? \
        substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 4) + 0 : -1 }
    !/^\{"model":".*\}$/ || number("per_second") <= 0 || number("cores") < 0 || number("load_ms") < 0 ||
    number("first_run_ms") < 0 || number("rest_bytes") < 100000 ||
    number("peak_bytes") < number("rest_bytes") || number("p99_us") < number("p50_us") ||
    number("max_us") < number("p99_us") { exit wrong = 1 }
    /"side":"streampool"/ { rate = number("per_second"); ratio = number("ratio"); next }
    { share = rate / number("per_second"); if (share - ratio > 0.01 || ratio - share > 0.01) exit wrong = 1 }
    END { exit wrong || NR != 4 }' out || fail "JSON: $(cat out)"
# More threads and fewer; a scalar.
expect 0 "^ +1 .*  $peer\$" "$program" bench m.onnx "${short[@]}" --threads 2,4,1 --against "$library"
expect 0 "^ +1 .*  $peer\$" "$program" bench scalar.onnx "${short[@]}" --threads 1 --against "$library"
# Arrivals, batch queues and steps of our side.
expect 0 '"missed":0' "$program" bench m.onnx --rate 500 --window 500 --threads 4 --against "$library" --json
expect 0 '"ratio":' "$program" bench m.onnx "${short[@]}" --threads 2 --against "$library" --json --batching queue
expect 0 '^m.onnx: 1 steps on one thread' "$program" bench m.onnx "${short[@]}" --threads 1 --against "$library" --per-op
# Threads of a run of the other library.
for count in 0 3; do
    FAKE_PEER_THREADS=$count expect 0 "^ +2 .*  $peer\$" \
        "$program" bench m.onnx "${short[@]}" --threads 1,2 --against "$library" --against-threads $count
done
# A name without a folder is a file of the working folder, if there is one.
cp "$library" libpeer.so
expect 0 "^$peer: " "$program" bench m.onnx "${short[@]}" --threads 1 --against libpeer.so

# What can be wrong with the library.
against() { # FAULT PATTERN
    expect 1 "SP_[A-Z_]+: --against $library: $2" \
        env FAKE_PEER="$1" "$program" bench m.onnx "${short[@]}" --threads 1 --against "$library"
}
against old "it is $label [0-9.]+(, which has no version [0-9]+ of its C API|; 2026.0 or newer is needed)\$"
against refused "$label: (GENERAL_ERROR: )?the model is refused\$"
against wrong "output 'y' of $label has .* where ours has "
against type "output 'y' of $label has another type or size"
against small "output 'y' of $label has another type or size"
against dies 'the process has ended'
# Failures of our side are as they are without a peer.
expect 1 '^streampool: SP_IO: cannot open none.onnx' "$program" bench none.onnx --against "$library"
expect 1 '^streampool: SP_MISMATCH: m.onnx: --shape x=3x1' "$program" bench m.onnx --shape x=3x1 --against "$library"

# Ctrl-C in a run of the peer that takes longer than this test may: all processes end.
FAKE_PEER=slow interrupt '^a slow run$' err "$program" bench m.onnx --threads 1 --against "$library"
[[ $? -eq 130 ]] && grep -q '^streampool bench: interrupted$' err || fail "Ctrl-C: $(cat out err)"
while kill -0 -- "-$job" 2>/dev/null; do sleep 0.02; done
finish "bench: against $peer"
