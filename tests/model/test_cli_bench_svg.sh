#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# streampool bench --svg: lines of models and of sides, files that cannot be written, failures and Ctrl-C.
# usage: test_cli_bench_svg.sh PROGRAM LIBRARY NAME
. "$(dirname "$0")/bench_fixture.sh"
unary 'a<b>&c.onnx' Neg x y 1 3

check_picture() { # FILE LINES POINTS LABEL...
    local file=$1 lines=$2 points=$3 label
    shift 3
    [[ $(grep -c '<polyline ' "$file") -eq $lines ]] || fail "$file has not $lines lines: $(cat "$file")"
    [[ $(grep -c '<circle ' "$file") -eq $((lines * points)) ]] || fail "$file has not $points points a line"
    for label in "$@"; do grep -qF ">$label<" "$file" || fail "$file has no label $label: $(cat "$file")"; done
    grep -qE 'nan|inf' "$file" && fail "$file has no numbers: $(cat "$file")"
    [[ $(head -c 4 "$file") == '<svg' && $(tail -n 1 "$file") == '</svg>' ]] || fail "$file is no SVG"
    command -v python3 >/dev/null || return
    python3 -c 'import sys, xml.dom.minidom as dom; dom.parse(sys.argv[1])' "$file" || fail "$file is no XML"
}
expect 0 '^ +3 ' "$program" bench m.onnx "${short[@]}" --threads 1,3 --svg one.svg
check_picture one.svg 1 2 m.onnx 1 3 threads
expect 0 '"threads":1' "$program" bench m.onnx 'a<b>&c.onnx' m.onnx "${short[@]}" --threads 1 --svg three.svg --json
check_picture three.svg 3 1 m.onnx 'a&lt;b&gt;&amp;c.onnx'
expect 0 'streampool$' "$program" bench m.onnx "${short[@]}" --threads 2,1,2 --against "$library" --svg two.svg
check_picture two.svg 2 3 'streampool: m.onnx' "$peer: m.onnx"
# A longer file is replaced.
cat two.svg three.svg >one.svg
expect 0 '^ +1 ' "$program" bench m.onnx "${short[@]}" --threads 1 --svg one.svg
check_picture one.svg 1 1 m.onnx
# A rate of zero.
expect 0 '^ +1 +0\.0 ' "$program" bench m.onnx --rate 1 --window 1 --warm-up 5 --threads 1 --svg zero.svg
check_picture zero.svg 1 1 m.onnx

# A path that cannot be written is refused before the bench; a full disk is found at its end.
expect 1 'SP_IO: --svg none/x.svg: it cannot be written: No such file or directory' \
    "$program" bench m.onnx --svg none/x.svg
grep -q threads out && fail "a bench without its picture: $(cat out)"
[[ ! -e /dev/full ]] || expect 1 'SP_IO: --svg /dev/full: it cannot be written: No space left on device' \
    "$program" bench m.onnx "${short[@]}" --threads 1 --svg /dev/full
expect 2 "^streampool bench: --svg cannot be ''" "$program" bench m.onnx --svg ''

# Without a point no file is made, and an existing one is kept.
expect 1 'SP_IO: cannot open none.onnx' "$program" bench none.onnx --svg new.svg
[[ ! -e new.svg ]] || fail "a picture without a point"
echo kept >old.svg
expect 1 'SP_IO: cannot open none.onnx' "$program" bench none.onnx --svg old.svg
[[ $(cat old.svg) == kept ]] || fail "a failure has changed a file"

# After Ctrl-C it has the points before.
interrupt ' m.onnx$' out "$program" bench m.onnx --window 100 --warm-up 100 \
    --threads "$(printf '1%.0s,' {1..60})2" --svg part.svg
[[ $? -eq 130 ]] || fail "Ctrl-C: $(cat out err)"
count=$(grep -c ' m.onnx$' out)
((count > 0 && count < 61)) || fail "$count points: $(cat out)"
check_picture part.svg 1 "$count" m.onnx
finish "bench: the picture"
