# SPDX-License-Identifier: Apache-2.0
# Shared by the tests of bench beside another library, which source it with their arguments: the program, a
# library of the tests, and its name and version. Works in a folder of its own with a model m.onnx.
set -u
program=$1
library=$2
peer=$3
label=${peer% *}
. "$(dirname "$0")/cli_fixture.sh"
cd "$work" || exit 1
unary m.onnx Relu x y 1 batch 2
short=(--window 50 --warm-up 5)
