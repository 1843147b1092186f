#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The command lines of all commands: --help and --version, messages about wrong arguments, exit codes,
# and errors of writing standard output.
# usage: test_cli_arguments.sh PROGRAM
set -u
program=$1
. "$(dirname "$0")/cli_fixture.sh"
unary "$work/m.onnx" Relu x y 1 batch 2

# Every --help lists the three exit codes, examples and the limits of each value.
for command in bench help info inspect ops run verify; do
    for pattern in "^usage: streampool $command" '^examples$' "^  streampool $command" \
        '^  --help' '^  --version' '^  0  success' '^  1  something failed' \
        '^  2  the command line cannot be parsed'; do
        expect 0 "$pattern" "$program" "$command" --help
    done
    expect 0 "^usage: streampool $command" "$program" help "$command"
    expect 0 '^streampool [0-9]+\.[0-9]+\.[0-9]+$' "$program" "$command" --version
    expect 2 "^streampool $command: unknown option '--nonsense'" "$program" "$command" --nonsense
    expect 2 "streampool $command --help prints its options and examples" "$program" "$command" --nonsense
    # No line of the help except examples is wider than a terminal.
    "$program" "$command" --help | grep -v '^  streampool' | grep -E '.{81}' &&
        fail "$command --help has long lines"
done
expect 0 '^  verify ' "$program" --help
expect 0 '^  verify ' "$program" help
expect 0 '^streampool [0-9]' "$program" --version
expect 2 "unknown command 'nonsense'" "$program" nonsense
expect 2 'usage: streampool COMMAND' "$program"
# --help overrides wrong arguments, but after an option or -- it is a value or a file.
expect 0 '^usage' "$program" run --threads 0 --help
expect 1 'SP_IO: .*--help' "$program" run -- --help

# The message of each option with a value states the allowed values.
limit() { # COMMAND OPTION VALUE PATTERN
    expect 2 "^streampool $1: $2 cannot be '$3': $4" "$program" "$1" m.onnx "$2" "$3"
    expect 2 "^streampool $1: $2 cannot be '$3': $4" "$program" "$1" m.onnx "$2=$3"
    expect 2 "^streampool $1: $2 needs a value: $4" "$program" "$1" m.onnx "$2"
}
for value in 0 1025 -1 x 1x 99999999999999999999; do
    limit run --threads "$value" 'N is a number from 1 to 1024$'
done
limit run --repeat 0 'K is a number from 1 to 4294967295$'
limit run --input nonsense 'NAME=FILE is an input.s name and a .npy file'
limit run --input '=x.npy' 'NAME=FILE is an input.s name and a .npy file'
limit run --output nonsense 'NAME=FILE is an output.s name and a file named .npy, .npz or .pb'
for command in run inspect; do
    for value in batch batch= =3 batch=x batch=-1 batch=1099511627777; do
        limit "$command" --dim "$value" 'NAME=SIZE is .* a number from 0 to 2\^40$'
    done
    for value in x x= =1 x=1x x=x1 x=1xx2 x=1,2 x=1x2x3x4x5x6x7x8x9 x=1099511627777; do
        limit "$command" --shape "$value" 'NAME=SIZES is .* each from 0 to 2\^40'
    done
    limit "$command" --seed -1 'N is a number from 0 to 2\^64 - 1$'
    limit "$command" --seed 18446744073709551616 'N is a number from 0 to 2\^64 - 1$'
done
for command in run inspect verify; do
    for value in 0 1x 1KK K -1 9999999999G; do
        limit "$command" --max-memory "$value" 'BYTES is a number from 1 to 2\^63 - 1, or one followed by'
    done
    limit "$command" --precision f8 'TYPE is default, tf32, f16 or bf16$'
    limit "$command" --max-trips 0 'N is a number from 1 to 2\^63 - 1$'
done
for value in x -1 nan inf 1,x 1, ,1 1,2,3 1e999; do
    limit verify --tolerance "$value" 'ABSOLUTE\[,RELATIVE\] is a bound, or two'
done
expect 2 'run: --threads is given twice' "$program" run m.onnx --threads 1 --threads 2
expect 2 'run: MODEL is missing: an ONNX file, or - for standard input' "$program" run
expect 2 'verify: PATH is missing' "$program" verify
expect 2 "run: unexpected argument 'b': the command takes 1 MODEL" "$program" run a b
expect 2 "info: unexpected argument 'a': the command takes none" "$program" info a
expect 2 "help: 'nonsense' is not a valid COMMAND [(]the name of a command" "$program" help nonsense
expect 2 'help: --man takes no value' "$program" help --man=1
# In any order, and with = after the name.
expect 0 '^8 threads, 16 runs' "$program" run --threads=8 "$work/m.onnx" --repeat=2 --dim=batch=3

# A closed or full standard output fails every otherwise successful command.
for command in help info ops 'run --help' "inspect $work/m.onnx" "run $work/m.onnx" --version; do
    # shellcheck disable=SC2086
    expect 1 'cannot write to standard output' \
        bash -c '"$@" 3>&1 1>&- 2>&3' closed "$program" $command
    if [[ -w /dev/full ]]; then
        # shellcheck disable=SC2086
        expect 1 'cannot write to standard output: No space left' \
            bash -c '"$@" 2>&1 1>/dev/full' full "$program" $command
    fi
done
# If standard output is closed, no opened file takes its descriptor.
bash -c '"$@" >&-' closed "$program" run "$work/m.onnx" --output y="$work/y.npy" 2>"$work/out"
[[ $(head -c 6 "$work/y.npy" | tail -c 5) == NUMPY && $(stat -c %s "$work/y.npy") -eq 136 ]] ||
    fail "an output's file has unexpected contents"
# A pipe without a reader.
mkfifo "$work/pipe"
expect 1 'cannot write to standard output: Broken pipe' bash -c \
    'exec 3<>"$1"; exec 4>"$1" 3>&-; "$2" ops >&4' - "$work/pipe" "$program"
# One without a writer is no file, and is not waited for.
expect 1 'not a regular file' timeout 20 "$program" run "$work/pipe"
expect 2 '^streampool help: .* exclude each other' "$program" help --man run
finish "all command lines are answered"
