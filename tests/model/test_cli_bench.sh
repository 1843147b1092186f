#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# streampool bench: points, windows, rows of text and of JSON, several models, arrivals at a rate, runs
# in flight, batch queues, Ctrl-C, progress, and failures. Figures are not checked, except that they are consistent.
# usage: test_cli_bench.sh PROGRAM
set -u
program=$1
. "$(dirname "$0")/cli_fixture.sh"
cd "$work" || exit 1
unary m.onnx Relu x y 1 batch 2
unary 'quo"te.onnx' Neg x y 1 3
short=(--window 100 --warm-up 5)

# What precedes the points, a head, and one row for each number of threads.
expect 0 '^sizes chosen: batch=1$' "$program" bench m.onnx "${short[@]}" --threads 1,3,5
[[ $(grep -cE '^ +[135] +[1-9][0-9.]* +[0-9.]+( +[0-9.]+){7}  m\.onnx$' out) -eq 3 ]] ||
    fail "no three rows: $(cat out)"
[[ $(sed -n 4p out) == *threads*runs/s*'of best'*batch*cores*p50*p99.9*max*'peak MB'*model ]] || fail "no head"
grep -qE '^m\.onnx: loaded in [0-9]+\.[0-9] ms, first run in [0-9]+\.[0-9] ms$' out || fail "no load"
grep -qE '^memory at rest: [1-9][0-9]*\.[0-9] MB$' out || fail "no memory"
expect 0 '^ +64 ' "$program" bench m.onnx --window 2 --warm-up 0
# A run longer than the window.
expect 0 '^ +1 +[1-9][0-9]*\.[0-9]( +[0-9.]+){3} +[1-9][0-9]*\.[0-9] ' \
    "$program" bench m.onnx --shape x=5000000x2 --threads 1 --window 1 --warm-up 0

# JSON: one object per model and point, nothing else. Percentiles ascend.
expect 0 '"model":"quo\\"te.onnx","threads":2,' \
    "$program" bench m.onnx 'quo"te.onnx' --window 400 --warm-up 5 --threads 1,2 --json
# The rate is that of the runs, or at a rate of arrivals that of a number of runs that ended in the window.
check_rows() { # COUNT WINDOW_SECONDS [open]
    awk -v count="$1" -v seconds="$2" -v loop="${3:-closed}" '
        function number(key) { return match($0, "\"" key "\":[0-9.]+[,}]") ? \
            substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 4) + 0 : -1 }
        !/^\{"model":".*\}$/ { exit wrong = 1 }
        number("runs") <= 0 || number("missed") != 0 || number("share_of_best") <= 0 ||
        number("p50_us") <= 0 || number("p99_us") < number("p50_us") ||
        number("p999_us") < number("p99_us") || number("max_us") < number("p999_us") ||
        number("load_ms") <= 0 || number("first_run_ms") <= 0 || number("cores") < 0 ||
        number("rest_bytes") < 100000 || number("peak_bytes") < number("rest_bytes") ||
        number("runs_per_batch") < 1 || number("mean_us") > number("max_us") || number("mean_us") <= 0 { exit wrong = 1 }
        { ended = number("per_second") * seconds
          difference = ended - (loop == "open" ? int(ended + 0.5) : number("runs")) }
        difference > 0.1 || difference < -0.1 { exit wrong = 1 }
        END { exit wrong || NR != count }' out || fail "JSON: $(cat out)"
}
check_rows 4 0.4
! grep -q '"cores":0\.00' out || fail "runs without time of a processor" # fewer, at a rate, may round to none
# The rows of several models are followed by their sum.
expect 0 '  all$' "$program" bench m.onnx 'quo"te.onnx' "${short[@]}" --threads 2

# Arrivals at a rate: about that many are served; at a rate above the capacity it says what is not.
expect 0 '"missed":0' "$program" bench m.onnx --rate 1000 --window 400 --threads 4 --json
runs=$(sed -n 's/.*"runs":\([0-9]*\),.*/\1/p' out)
((runs > 300 && runs < 500)) || fail "$runs of 400 +- 5 standard deviations"
check_rows 1 0.4 open
awk '{ match($0, /"per_second":[0-9.]+/); ended = substr($0, RSTART + 13, RLENGTH - 13) * 0.4
       exit !(ended > 200 && ended < 600) }' out || fail "a rate that is not that of the arrivals: $(cat out)"
expect 0 'arrivals not served' "$program" bench m.onnx --rate 1000000000 --window 1 --warm-up 0 --threads 2
# The backlog is served for another window, and is not in the rate. What is not served is as much as
# arrives at the rate, and takes no time to count.
expect 0 '"missed":9[0-9]{7},' "$program" bench m.onnx --rate 1000000000 --window 100 --warm-up 0 --threads 1 --json
awk '{ match($0, /"per_second":[0-9.]+/); ended = substr($0, RSTART + 13, RLENGTH - 13) * 0.1
       match($0, /"runs":[0-9]+/); exit !(ended > 0 && ended < substr($0, RSTART + 7, RLENGTH - 7) + 0) }' out ||
    fail "the backlog is in the rate: $(cat out)"

# Runs in flight, through a queue or past it: all of them end, with the bits of the first.
expect 0 '^ +2 +[1-9]' "$program" bench m.onnx "${short[@]}" --threads 2 --in-flight 5
check_in_flight() { # ARGUMENT...: of 40 runs in flight on one thread some wait
    expect 0 '"waited":(0\.[0-9]*[1-9]|1)' env STREAMPOOL_CPU_WORKERS=1 \
        "$program" bench m.onnx "${short[@]}" --threads 1 --in-flight 40 --json "$@"
    check_rows 1 0.1
}
check_in_flight
check_in_flight --batching off
check_in_flight --batching combine
check_in_flight --batching queue
expect 0 '^ +3 +[1-9]' "$program" bench m.onnx 'quo"te.onnx' "${short[@]}" --threads 3 --batching queue
expect 0 '"missed":0' "$program" bench m.onnx --rate 1000 --window 100 --threads 4 --batching queue --json

# What became of the runs: in a second line, and always in JSON.
expect 0 '^ +0\.[0-9]{2} of the runs waited for a run slot, [0-9.]+ us on average' \
    "$program" bench m.onnx "${short[@]}" --threads 1 --statistics
expect 0 '"batches":\{\}' "$program" bench m.onnx "${short[@]}" --threads 31 --batching off --json
merging=(STREAMPOOL_BATCHING=always STREAMPOOL_CPU_WORKERS=1)
expect 0 '"batches":\{"[0-9]+":[1-9]' env "${merging[@]}" \
    "$program" bench m.onnx --window 300 --threads 1 --in-flight 40 --json
expect 0 '; batches of [0-9]+: [1-9]' env "${merging[@]}" \
    "$program" bench m.onnx --window 300 --threads 1 --in-flight 40 --statistics

# Ctrl-C ends the bench with its signal; the points before it are there, and no others. Arrivals that
# threads sleep for do not delay it.
points=$(printf '1%.0s,' {1..50})1
long=("$program" bench m.onnx --window 100 --warm-up 100 --threads "$points") # 0.2 s a point
interrupt ' m.onnx$' out "${long[@]}"
code=$?
count=$(grep -c ' m.onnx$' out)
[[ $code -eq 130 ]] && grep -q '^streampool bench: interrupted$' err && ((count > 0 && count < 51)) ||
    fail "Ctrl-C: exit $code, $count points: $(cat out err)"
SECONDS=0
interrupt ' m.onnx$' out "${long[@]}" --rate 1
[[ $? -eq 130 && $SECONDS -lt 5 ]] || fail "Ctrl-C between arrivals"
# A program that is started with the signal ignored goes on ignoring it.
: >out
"$program" bench m.onnx --window 300 --warm-up 0 --threads 1 >out 2>err & # ignored in the background
await '^memory at rest' out
kill -INT $!
wait $! || fail "an ignored signal ended the bench"

# Progress goes to terminals only, and is overwritten before a row.
if command -v script >/dev/null; then
    script -qec "'$program' bench m.onnx --window 200 --threads 1,2" /dev/null </dev/null >out
    grep -q 'point 2 of 2, 2 threads: [0-9]* %' out || fail "no progress: $(cat -v out)"
    grep -q "$(printf '\r\033\\[K *2 ')" out || fail "progress is not cleared: $(cat -v out)"
fi
"$program" bench m.onnx "${short[@]}" --threads 1 2>err >out
[[ ! -s err ]] || fail "progress without a terminal: $(cat err)"

# Nothing is computed for an output that is gone: all points would take two minutes.
if [[ -e /dev/full ]]; then
    SECONDS=0
    "$program" bench m.onnx --window 2000 --threads "$points" >/dev/full 2>err
    [[ $? -eq 1 && $SECONDS -lt 30 ]] && grep -q 'standard output: No space left on device$' err ||
        fail "a full disk: $SECONDS s, $(cat err)"
fi

# A name that is not UTF-8, in JSON.
cp m.onnx $'m\xff\xc3\xa4\xed\xa0\x80.onnx'
expect 0 $'^\\{"model":"m\\\\ufffd\xc3\xa4\\\\ufffd\\\\ufffd\\\\ufffd.onnx"' "$program" bench m?*.onnx "${short[@]}" --threads 1 --json

# Failures: of the file, of the sizes, and of a run.
expect 1 'SP_IO: cannot open none.onnx' "$program" bench m.onnx none.onnx "${short[@]}"
expect 1 'SP_MISMATCH: m.onnx: --shape x=3x1' "$program" bench m.onnx --shape x=3x1 "${short[@]}"
expect 1 'SP_[A-Z_]+: m.onnx: ' "$program" bench m.onnx --max-memory 1 "${short[@]}"
for value in '' 0 1025 1,,2 1,x ,1 1, "$(seq -s, 65)"; do
    expect 2 '^streampool bench: --threads ' "$program" bench m.onnx --threads "$value"
done
expect 2 '^streampool bench: --window cannot be .0.' "$program" bench m.onnx --window 0
expect 2 '^streampool bench: --rate cannot be .0.' "$program" bench m.onnx --rate 0
for value in '' 0 4097 x; do
    expect 2 '^streampool bench: --in-flight ' "$program" bench m.onnx --in-flight "$value"
done
for value in '' on always queues; do
    expect 2 '^streampool bench: --batching ' "$program" bench m.onnx --batching "$value"
done
expect 2 '^streampool bench: --rate and --in-flight exclude each other' \
    "$program" bench m.onnx --rate 1000 --in-flight 2
models=()
for ((i = 0; i < 17; i++)); do models+=(m.onnx); done
expect 2 'streampool bench: ' "$program" bench "${models[@]}"
finish "bench: points, JSON, several models, rates, runs in flight, Ctrl-C, progress and failures"
