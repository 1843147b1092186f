#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# verify: the visited folders, the compared files, and tolerances.
# usage: test_verify.sh PROGRAM
set -u
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# expect CODE PATTERN COMMAND...
expect() {
    local code=$1 pattern=$2
    shift 2
    timeout 60 "$@" >"$work/out" 2>&1
    local got=$?
    if [[ $got -ne $code ]] || ! grep -qE "$pattern" "$work/out"; then
        echo "FAILED: $* (exit $got, expected $code; output without /$pattern/)"
        cat "$work/out"
        failures=$((failures + 1))
    fi
}

# y = Cast(x) to f16 and z = Neg(x), of four values in f32.
model='\x08\x08\x3a\x5c\x0a\x17\x0a\x01\x78\x12\x01\x79\x22\x04\x43\x61\x73\x74\x2a\x09\x0a\x02\x74\x6f\x18'
model+='\x0a\xa0\x01\x02\x0a\x0b\x0a\x01\x78\x12\x01\x7a\x22\x03\x4e\x65\x67\x12\x01\x67\x5a\x0f\x0a\x01\x78'
model+='\x12\x0a\x0a\x08\x08\x01\x12\x04\x0a\x02\x08\x04\x62\x0f\x0a\x01\x79\x12\x0a\x0a\x08\x08\x0a\x12\x04'
model+='\x0a\x02\x08\x04\x62\x0f\x0a\x01\x7a\x12\x0a\x0a\x08\x08\x01\x12\x04\x0a\x02\x08\x04\x42\x04\x0a\x00'
model+='\x10\x0d'
ones='\x00\x00\x80\x3f'
one_half='\x00\x3c'
minus_ones='\x00\x00\x80\xbf'

# tensor FILE ELEMENT_TYPE BYTES VALUE: the value four times.
tensor() {
    printf "\\x08\\x04\\x10\\x$2\\x4a\\x$3$4$4$4$4" >"$1"
}

# make_case FOLDER: one set with correct files.
make_case() {
    mkdir -p "$1/test_data_set_0"
    printf "$model" >"$1/model.onnx"
    tensor "$1/test_data_set_0/input_0.pb" 01 10 "$ones"
    tensor "$1/test_data_set_0/output_0.pb" 0a 08 "$one_half"
    tensor "$1/test_data_set_0/output_1.pb" 01 10 "$minus_ones"
}

make_case "$work/right"
expect 0 '^passed   [^(]*\(largest difference 0\)$' "$program" verify "$work/right"

# Each folder once, however many links lead to it.
make_case "$work/links/a"
make_case "$work/links/b c"
mkdir "$work/links/loop"
ln -s .. "$work/links/loop/up"
ln -s . "$work/links/here"
ln -s a "$work/links/another"
ln -s nowhere "$work/links/dangling"
expect 0 '^2 passed, 0 failed, 0 skipped$' "$program" verify "$work/links"
expect 0 '^4 passed, 0 failed, 0 skipped$' "$program" verify "$work/links" "$work/links"

# The tolerance of an output is that of its type: -1.005 for -1 is too far in f32, and
# 1.005 for 1 is not in f16.
make_case "$work/far"
tensor "$work/far/test_data_set_0/output_1.pb" 01 10 '\xd7\xa3\x80\xbf'
expect 1 '^FAILED   .*output 1: 4 elements differ too much' "$program" verify "$work/far"
make_case "$work/near"
tensor "$work/near/test_data_set_0/output_0.pb" 0a 08 '\x05\x3c'
expect 0 '^1 passed, 0 failed, 0 skipped$' "$program" verify "$work/near"

# Fewer files than outputs: the line states what was compared.
make_case "$work/fewer"
rm "$work/fewer/test_data_set_0/output_1.pb"
expect 0 '^passed   .*\(compared 1 of 2 outputs, largest difference 0\)$' \
    "$program" verify "$work/fewer"
make_case "$work/more"
cp "$work"/more/test_data_set_0/output_{1,2}.pb
expect 1 '^FAILED   ' "$program" verify "$work/more"

# A gap in the numbers is an error, not the end.
make_case "$work/gap"
mv "$work"/gap/test_data_set_0/output_{1,2}.pb
expect 1 'FAILED   .*: SP_IO: output_2.pb exists but output_1.pb does not$' "$program" verify "$work/gap"
make_case "$work/late"
mv "$work/late/test_data_set_0/output_1.pb" "$work/late/test_data_set_0/output_100.pb"
expect 1 'FAILED   .*: SP_IO: output_100.pb exists but output_1.pb does not$' "$program" verify "$work/late"
make_case "$work/first"
mv "$work/first/test_data_set_0/output_0.pb" "$work/first/test_data_set_0/output_2.pb"
expect 1 'FAILED   .*: SP_IO: output_1.pb exists but output_0.pb does not$' "$program" verify "$work/first"
make_case "$work/inputs"
cp "$work"/inputs/test_data_set_0/input_{0,2}.pb
expect 1 'FAILED   .*: SP_IO: input_2.pb exists but input_1.pb does not$' "$program" verify "$work/inputs"
make_case "$work/sets"
cp -r "$work"/sets/test_data_set_{0,2}
expect 1 'FAILED   .*: SP_IO: test_data_set_2 exists but test_data_set_1 does not$' \
    "$program" verify "$work/sets"
expect 1 '^1 passed, 1 failed, 0 skipped$' "$program" verify "$work/sets"
# Files with other names are not compared.
make_case "$work/other"
touch "$work"/other/test_data_set_0/{output_2.pb.bak,output_02.pb,output_x.pb,xoutput_2.pb}
expect 0 '^1 passed, 0 failed, 0 skipped$' "$program" verify "$work/other"

[[ $failures -eq 0 ]] && echo "verify visits and compares what it should"
exit $((failures > 0))
