#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# streampool run and inspect: inputs and outputs by name, in every kind of file, from standard input
# and generated; refusals of both.
# usage: test_cli_run.sh PROGRAM
set -u
program=$1
. "$(dirname "$0")/cli_fixture.sh"
unary "$work/m.onnx" Relu x y 1 batch 2
one=0000803f minus=000080bf zero=00000000
npy "$work/x.npy" $one$minus$one$minus 2 2
cp "$work/x.npy" "$work/x=1.npy"
cd "$work" || exit 1

elements() { # FILE COUNT: the last COUNT elements of f32
    tail -c $((4 * $2)) "$1" | od -An -v -tx1 | tr -d ' \n'
}
expect_elements() { # FILE HEX
    local got
    got=$(elements "$1" $((${#2} / 8)))
    [[ $got == "$2" ]] || fail "$1 holds $got, expected $2"
}
both() { # CODE PATTERN ARGUMENT...: run and inspect agree
    local code=$1 pattern=$2
    shift 2
    expect "$code" "$pattern" "$program" run "$@"
    expect "$code" "$pattern" "$program" inspect "$@"
}

# A name with an '=': the longest name in the model is used; the file's name may have an '=' too.
unary eq.onnx Relu a=b y=z 1 n=m 2
expect 0 '^bits equal$' "$program" run eq.onnx --input a=b=x.npy --output y=z=o.npy
expect_elements o.npy $one$zero$one$zero
expect 0 '^bits equal$' "$program" run eq.onnx --input a=b=x=1.npy --output y=z=o=1.npz
[[ -s o=1.npz ]] || fail "o=1.npz was not written"
both 0 'a=b: f32 \[5,2\]|y=z: f32 \[5,2\]' eq.onnx --dim n=m=5
both 0 'a=b: f32 \[3,2\]|y=z: f32 \[3,2\]' eq.onnx --shape a=b=3x2
expect 1 "no input 'a'; it has: a=b" "$program" run eq.onnx --input a=x.npy

# Unknown names, and names given twice.
both 1 "--dim batsch=7: no input has a free dimension of that name; there are: batch$" \
    m.onnx --dim batsch=7
both 1 "no input 'nonsense'; it has: x" m.onnx --shape nonsense=1x2
both 1 "no input 'nonsense'; it has: x" m.onnx --input nonsense=x.npy
both 1 "input 'x' is given twice" m.onnx --input x=x.npy --input x=x.npy
both 1 "dimension 'batch' is given twice" m.onnx --dim batch=1 --dim batch=1
both 1 "the input's shape is given twice" m.onnx --shape x=1x2 --shape x=1x2
both 1 "the input's shape is given twice: its file has one" m.onnx --shape x=1x2 --input x=x.npy
both 1 "dimension 'batch' is 7 by --dim, but 2 in" m.onnx --dim batch=7 --input x=x.npy
both 1 "dimension 'batch' is 7 by --dim, but 3 in" m.onnx --dim batch=7 --shape x=3x2
both 1 'the input has 2 dimensions, not 1' m.onnx --shape x=3
both 1 'dimension 1 is 2, not 4' m.onnx --shape x=3x4
expect 1 "no output 'nonsense'; it has: y" "$program" run m.onnx --output nonsense=y.npy
expect 1 'o.npy would be written twice' "$program" run m.onnx --output y=o.npy --output y=o.npy

# Archives: written with all outputs or one, read with all inputs or one.
expect 0 '^bits equal$' "$program" run m.onnx --input x=x.npy --output y.npz
unary back.onnx Neg y z 1 batch 2
expect 0 'z: f32 \[2,2\]' "$program" run back.onnx --input y.npz --output z=z.npy
expect_elements z.npy 000080bf00000080000080bf00000080
both 0 '(y|z): f32 \[2,2\]' back.onnx --input y=y.npz
both 1 "--input y.npz: the model has no input 'y'" m.onnx --input y.npz
both 1 "there is no array 'x'" m.onnx --input x=y.npz
both 1 'SP_IO' m.onnx --input nowhere.npz

# A folder of ONNX's test data: its numbered files are the first inputs, others are generated.
mkdir data "da=ta" empty gap wide
expect 0 '^bits equal$' "$program" run m.onnx --input x=x.npy --output y=data/input_0.pb
cp data/input_0.pb "da=ta"
cp data/input_0.pb gap/input_1.pb
cp data/input_0.pb wide
cp data/input_0.pb wide/input_1.pb
expect 0 'z: f32 \[2,2\]' "$program" run back.onnx --input data --output z=z.npy
expect_elements z.npy 000080bf00000080000080bf00000080
both 0 '(x|y): f32 \[2,2\]' m.onnx --input "da=ta"
both 1 "input 'x' is given twice" m.onnx --input data --input x=x.npy
both 1 '--input empty: it has no input_0.pb' m.onnx --input empty
both 1 '--input gap: input_1.pb exists but input_0.pb does not' m.onnx --input gap
both 1 '--input wide: it has 2 inputs, the model 1' m.onnx --input wide
echo nonsense >gap/input_0.pb
both 1 '--input gap: ' m.onnx --input gap
expect 2 "--input cannot be 'nowhere'" "$program" run m.onnx --input nowhere

# Standard input is the model or one input.
expect 0 '^bits equal$' bash -c '"$1" run - <m.onnx' - "$program"
expect 0 '^standard input: ONNX IR 8' bash -c '"$1" inspect - <m.onnx' - "$program"
expect 0 '^output y: f32 \[2,2\]' bash -c '"$1" run m.onnx --input x=- --output y=y.npy <x.npy' - "$program"
expect_elements y.npy $one$zero$one$zero
expect 0 '^bits equal$' "$program" run m.onnx --input x=x.npy --output y=y.pb
expect 0 '^output y: f32 \[2,2\]' bash -c '"$1" run m.onnx --input x=- <y.pb' - "$program"
expect 1 'standard input: an archive cannot be read: give its file' \
    bash -c '"$1" run m.onnx --input x=- <y.npz' - "$program"
both 1 'standard input can be read only once, but - is given 2 times' m.onnx --input x=- --input x=-
expect 1 'standard input: this is not an ONNX model' bash -c '"$1" run - <x.npy' - "$program"
expect 1 'cannot read standard input' bash -c '"$1" run - <&-' - "$program"

# A file that is not an ONNX model is reported as such, with its name; a truncated one is malformed.
echo 'some text' >text.onnx
: >empty.onnx
head -c 20 m.onnx >cut.onnx
for file in text.onnx empty.onnx x.npy y.pb; do both 1 "$file: this is not an ONNX model" "$file"; done
both 1 'cut.onnx: malformed file' cut.onnx
both 1 'nowhere.onnx: No such file' nowhere.onnx
both 1 'not a regular file' .

# The command line must give what the file leaves out.
unary no_shape.onnx Relu x y 1 none
unary no_type.onnx Relu x y 0 2 2
both 1 "shape of input 'x': use --shape, as in --shape x=1x3x224x224$" no_shape.onnx
both 0 '(x|y): f32 \[1,3,224,224\]' no_shape.onnx --shape x=1x3x224x224
both 0 '(x|y): f32 \[\]' no_shape.onnx --shape x=scalar
both 0 '(x|y): f32 \[2,2\]' no_shape.onnx --input x=x.npy
both 1 "type of input 'x': use --input, as in --input x=FILE.npy$" no_type.onnx
both 1 'max_run_bytes allows 1$' m.onnx --max-memory 1
both 1 'no device kind "nonsense"' m.onnx --device nonsense

# Generated values are the same for one seed, and differ for another.
made_up() { # FILE ARGUMENT...
    expect 0 '^bits equal$' "$program" run m.onnx --shape x=50x2 --output y="$1" "${@:2}"
}
made_up default.npy
made_up seed0.npy --seed 0
made_up seed7.npy --seed 7
made_up again7.npy --seed=7
cmp -s default.npy seed0.npy || fail "the default seed is not 0"
cmp -s seed0.npy seed7.npy && fail "another seed gives the same values"
cmp -s seed7.npy again7.npy || fail "one seed gives several values"

# All outputs to a new folder; characters that a file name cannot have become _.
unary slash.onnx Relu x a/b 1 2
expect 0 '^bits equal$' "$program" run slash.onnx --output-dir made
expect 0 '^bits equal$' "$program" run m.onnx --input x=x.npy --output-dir made
unary bf16.onnx Identity x half 16 2
expect 0 '^bits equal$' "$program" run bf16.onnx --output-dir made
[[ $(ls made) == $'a_b.npy\nhalf.pb\ny.npy' ]] || fail "--output-dir wrote $(ls made)"
expect_elements made/y.npy $one$zero$one$zero
expect 1 'cannot create nowhere/made: No such file' "$program" run m.onnx --output-dir nowhere/made
expect 1 'cannot create x.npy: File exists' "$program" run m.onnx --output-dir x.npy

# New files get the mode of the umask; existing files keep theirs; links are followed.
umask 026
expect 0 '^bits equal$' "$program" run m.onnx --output y=new.npy --output y=new.pb --output new.npz
for file in new.npy new.pb new.npz; do
    [[ $(stat -c %a "$file") == 640 ]] || fail "$file has mode $(stat -c %a "$file")"
done
chmod 604 new.npy
mkdir inner
ln -s inner/target.npy link.npy
ln -s new.npy kept.npy
expect 0 '^bits equal$' "$program" run m.onnx --input x=x.npy --output y=link.npy --output y=kept.npy
[[ -L link.npy && -f inner/target.npy && -L kept.npy ]] || fail "a link was replaced"
[[ $(stat -c %a new.npy) == 604 ]] || fail "a replaced file has mode $(stat -c %a new.npy)"
expect_elements new.npy $one$zero$one$zero
expect_elements inner/target.npy $one$zero$one$zero
finish "inputs and outputs are what the command line says"
