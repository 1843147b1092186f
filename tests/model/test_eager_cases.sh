#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_eager_cases.sh PROGRAM DATA: unpacks ONNX's development cases and runs the program on them.
set -euo pipefail
data=${STREAMPOOL_TEST_DATA:-$2}
archive=$data/onnx-node/onnx-node-dev.tar.gz
[[ -f $archive ]] || { echo "skipped: $archive is not there"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
tar -xzf "$archive" -C "$folder"
STREAMPOOL_CASES=$folder "$1"
