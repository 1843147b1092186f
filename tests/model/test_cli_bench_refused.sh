#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# streampool bench --against: files that are no library of a peer, and options that do not go with it.
# usage: test_cli_bench_refused.sh PROGRAM LIBRARY NAME PART
# PART is a library with one function of the API.
. "$(dirname "$0")/bench_fixture.sh"
part=$4

expect 1 'SP_IO: --against none.so: it cannot be opened: .*none.so' "$program" bench m.onnx --against none.so
expect 1 'SP_IO: --against m.onnx: it cannot be opened: ' "$program" bench m.onnx --against m.onnx
expect 1 'SP_UNSUPPORTED: --against libm.so.6: it is neither the library of ONNX Runtime nor that of OpenVINO: it has no function OrtGetApiBase or ov_get_openvino_version$' \
    "$program" bench m.onnx --against libm.so.6
expect 1 "SP_UNSUPPORTED: --against $part: it has no function ov_version_free\$" "$program" bench m.onnx --against "$part"

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
expect 2 '^streampool bench: --against-threads is of the library that --against names, and there is none$' \
    "$program" bench m.onnx --against-threads 2
expect 2 "^streampool bench: --against-threads cannot be 'all'" "$program" bench m.onnx --against "$library" --against-threads all
expect 2 "^streampool bench: --against cannot be ''" "$program" bench m.onnx --against ''
finish "bench: what does not go with another library"
