#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench/bench_models: lines, table and picture of the models of a folder, alone and beside a library of the
# test; a model that fails; what is refused; Ctrl-C.
# usage: test_bench_models.sh PROGRAM LIBRARY NAME OPENVINO SCRIPT
# OPENVINO is a library of the test, too.
if ! command -v python3 >/dev/null; then
    echo "skipped: no python3"
    exit 77
fi
. "$(dirname "$0")/bench_fixture.sh"
openvino=$4
script=$5
for name in one two; do
    mkdir -p "models/$name"
    unary "models/$name/model.onnx" Relu x y 1 batch 2
done
mkdir models/empty # no model
bench=("$script" --program "$program" --models models --window 50 --threads 1,2)

check_json() { # COUNT KEY VALUE: of the lines that have it
    python3 -c '
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
assert lines[0]["bench"] == "bench_models" and lines[0]["cores"] > 0, lines[0]
found = [line for line in lines if str(line.get(sys.argv[3])) == sys.argv[4]]
assert len(found) == int(sys.argv[2]), found' out.json "$@" || fail "JSON: $(cat out.json)"
}
check_picture() { # BARS
    python3 -c '
import sys, xml.dom.minidom as dom
bars = dom.parse("out.svg").getElementsByTagName("rect")
assert len(bars) == 1 + int(sys.argv[1]), len(bars)' "$1" || fail "picture: $(cat out.svg)"
}
row() { grep -qE "^\| $1 \|$" out.md || fail "no row /$1/: $(cat out.md)"; }
number='[0-9.]+[kM]?'

expect 0 '^2 of 2: two$' "${bench[@]}" --against "$library" --out out
check_json 4 side streampool
check_json 4 side "$peer"
check_json 4 model one
check_picture 2
row "model \| runs/s, 1 / 2 threads \| $peer \| ratio \| load, ms \| memory at rest, MB \| p99 of the last, ms"
row "two \| $number / $number \| $number / $number \| $number / $number \| .* / .* \| .* / .* \| .* / .*"
grep -qE "^Geometric mean of the ratios: $number / $number\.$" out.md || fail "no mean: $(cat out.md)"

expect 0 '^1 of 1: one$' "${bench[@]}" --alone --out out one
check_json 2 model one
check_json 0 model two
check_picture 1
row "one \| $number / $number \| $number \| $number"

# Inputs are those of the test data.
mkdir -p data/one/test_data_set_0
cp models/one/model.onnx data/one
from_data=("$script" --program "$program" --models data --window 50 --threads 1 --alone --out out)
expect 1 'one: .*--input data/one/test_data_set_0: it has no input_0.pb' "${from_data[@]}"
expect 0 '^bits equal$' "$program" run models/one/model.onnx --shape x=3x2 --output y=data/one/test_data_set_0/input_0.pb
expect 0 '^1 of 1: one$' "${from_data[@]}"

# The libraries of bench/peers by their names.
mkdir -p tree/bench tree/build/peers
cp "${script%/*}"/{bench_models,draw_panel.py} tree/bench
cp "$library" tree/build/peers/libonnxruntime.so
named=(tree/bench/bench_models --program "$program" --models models --window 50 --threads 1 --out out)
expect 1 '^bench_models: there is no .*/libopenvino_c.so; bench/peers openvino downloads it$' "${named[@]}" --against openvino
cp "$openvino" tree/build/peers/libopenvino_c.so
for line in 'openvino:OpenVINO 9998.7.6' "onnxruntime:$peer" ":$peer"; do
    against=${line%%:*}
    expect 0 '^1 of 1: one$' "${named[@]}" ${against:+--against "$against"} one
    check_json 1 side "${line#*:}"
done
expect 0 '^1 of 1: one$' "${named[@]}" --alone one
check_json 0 side "$peer"

# A model that fails has a row, and the others are measured. The model's row has no cell too many.
mkdir models/bad
echo broken >models/bad/model.onnx
expect 1 '^bench_models: bad: streampool: SP_CORRUPT' "${bench[@]}" --against "$library" --out out
check_json 1 model bad
check_picture 2
row 'bad \| failed: streampool: SP_CORRUPT.*'
[[ $(grep '^| bad' out.md | tr -cd '|' | wc -c) -eq $(grep '^| one' out.md | tr -cd '|' | wc -c) ]] || fail "cells: $(cat out.md)"
FAKE_PEER=wrong expect 1 "^bench_models: one: .*has .* where ours has" "${bench[@]}" --against "$library" --out out one
check_picture 0

# What is refused before a model runs.
expect 1 '^bench_models: there is no models/none/model.onnx' "${bench[@]}" --out out none
expect 1 '^bench_models: models/empty has no folders with a file model.onnx' \
    "$script" --program "$program" --models models/empty --out out
expect 1 '^bench_models: none cannot be run: No such file or directory' \
    "$script" --program none --models models --alone --out out one
expect 1 '^bench_models: --out models/one/model.onnx/x: it cannot be written: ' \
    "${bench[@]}" --out models/one/model.onnx/x
expect 1 "^bench_models: streampool bench: --threads cannot be 'x'" "${bench[@]}" --threads x --alone --out out one
expect 2 'error: --alone and --against exclude each other' "${bench[@]}" --alone --against "$library"

# Ctrl-C, of a terminal: all processes get it. The program takes an hour for the second model. The files have
# the models before it.
rm -r models/bad out.*
cat >hour <<END
#!/bin/bash
[[ \$* != *models/two/* ]] || { echo begun >begun && exec sleep 3600; }
exec "$program" "\$@"
END
chmod +x hour
: >begun
set -m
"$script" --program ./hour --models models --window 50 --threads 1 --alone --out out >log 2>&1 &
set +m
await begun begun
kill -INT -- -$!
wait $!
[[ $? -eq 130 ]] && grep -q '^bench_models: interrupted$' log || fail "Ctrl-C: $(cat log)"
check_json 1 model one
check_json 0 model two
finish "bench_models: lines, table and picture"
