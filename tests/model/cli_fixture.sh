# SPDX-License-Identifier: Apache-2.0
# Shared by the tests of the program, which source it with the program's path in $program. File contents
# are built as hexadecimal text, since bash variables cannot contain zero bytes.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
# A program that ends with threads would wait a second, each time, for more races to report.
export TSAN_OPTIONS=${TSAN_OPTIONS:-}:atexit_sleep_ms=0

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# expect CODE PATTERN COMMAND...: checks its exit code and a line of its output, kept in $work/out.
expect() {
    local code=$1 pattern=$2
    shift 2
    "$@" >"$work/out" 2>&1
    local got=$?
    if [[ $got -ne $code ]] || ! grep -qE -- "$pattern" "$work/out"; then
        fail "$* (exit $got, expected $code; output without /$pattern/)"
        cat "$work/out"
    fi
}

# await PATTERN FILE: until a job has written such a line there, which is to take less than a minute.
await() {
    local end=$((SECONDS + 60))
    while ((SECONDS < end)); do
        grep -q -- "$1" "$2" && return
        sleep 0.02
    done
    fail "no line /$1/ in $2: $(cat "$2")"
}

# interrupt PATTERN FILE COMMAND...: Ctrl-C for a command once it has written such a line to its output, out,
# or its errors, err. Returns its exit code; its processes are those of the group $job.
interrupt() {
    local pattern=$1 file=$2
    shift 2
    : >out # else the ones before could be read, and the job killed before it is the program
    : >err
    set -m # else a job in the background ignores the signal
    "$@" >out 2>err &
    job=$!
    set +m
    await "$pattern" "$file"
    kill -INT "$job"
    wait "$job"
}

hex() { printf %s "$1" | od -An -v -tx1 | tr -d ' \n'; }

# file PATH HEX
file() { printf "$(sed 's/../\\x&/g' <<<"$2")" >"$1"; }

# field NUMBER HEX: a field of protobuf with fewer than 128 bytes; number NUMBER VALUE: one below 128.
field() { printf '%02x%02x%s' $(($1 << 3 | 2)) $((${#2} / 2)) "$2"; }
number() { printf '%02x%02x' $(($1 << 3)) "$2"; }

# port NAME TYPE DIM...: a ValueInfoProto of ONNX's element type. A DIM is a size, a name, or ? for
# one without a name; "none": the port has no shape. TYPE 0: it has no type.
port() {
    local name=$1 type=$2 dims= dim
    shift 2
    for dim in "$@"; do
        case $dim in
        none) ;;
        '?') dims+=$(field 1 '') ;;
        [0-9]*) dims+=$(field 1 "$(number 1 "$dim")") ;;
        *) dims+=$(field 1 "$(field 2 "$(hex "$dim")")") ;;
        esac
    done
    local tensor=
    ((type == 0)) || tensor=$(number 1 "$type")
    [[ ${1:-} == none ]] || tensor+=$(field 2 "$dims")
    field 1 "$(hex "$name")"
    ((type == 0)) && [[ ${1:-} == none ]] || field 2 "$(field 1 "$tensor")"
}

# node OP OUTPUT INPUT...
node() {
    local op=$1 output=$2 input
    shift 2
    for input in "$@"; do field 1 "$(hex "$input")"; done
    field 2 "$(hex "$output")"
    field 4 "$(hex "$op")"
}

# model PATH NODES INPUTS OUTPUTS: the latter three are the fields 1, 11 and 12 of a GraphProto.
model() {
    local graph=$2$3$4 bytes
    bytes=$((${#graph} / 2))
    file "$1" "$(number 1 8)$(printf '3a%02x%02x' $((bytes & 127 | 128)) $((bytes >> 7)))$graph$(
        field 8 "$(field 1 '')$(number 2 13)")"
}

# unary PATH OP INPUT OUTPUT TYPE DIM...: one node.
unary() {
    local path=$1 op=$2 input=$3 output=$4
    shift 4
    model "$path" "$(field 1 "$(node "$op" "$output" "$input")")" \
        "$(field 11 "$(port "$input" "$@")")" "$(field 12 "$(port "$output" 0 none)")"
}

# npy PATH HEX SIZE...: an array of f32.
npy() {
    local path=$1 elements=$2 shape
    shift 2
    shape=$(printf '%s, ' "$@")
    local header="{'descr': '<f4', 'fortran_order': False, 'shape': (${shape}), }"
    printf -v header '%-117s\n' "$header"
    file "$path" "934e554d505901007600$(hex "$header")$elements"
}

finish() {
    [[ $failures -eq 0 ]] && echo "$1"
    exit $((failures > 0))
}
