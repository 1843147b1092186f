/* SPDX-License-Identifier: Apache-2.0 */
/* The row rules of all ops (ops/rows.h) on random calls: where a rule says that rows are separable,
 * a batch has the bits of its rows, in any order and in parts; and wrong rules are found. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "ops/registry.h"
#include "support/rows_case.h"
#include "support/test.h"

/* ---- patterns ---- */

#define ANY_SHAPE "T[<a|a,b|a,b,c|b,a,c,d>]"
#define PAIR                                                                                       \
    "<T[a,b,c] T[a,b,c]|T[a,b,c] T[c]|T[a,b,c] T[a,1,c]|T[b,c] T[a,b,c]|T[a,b] T[1,b]|"            \
    "T[a,b,c] T[1]|T[a] T[a]|T[a,b] T[a,1]|T[a,b] !T=b|T[a,b,c,d] T[b,1,d]>"
#define IMAGE "<f32[a,b,e,f]|f32[a,2,5,4]|f32[a,3,6]|f32[1,b,5,5]>"
#define HALVES "<f32|f16|bf16>"
#define FLOATS "<f32|f64|f16|bf16>"
#define NUMBERS "<f32|f64|f16|i32|i64|i8|u8>"

enum { NEWEST = SP_OPSET_NEWEST };

/* clang-format off */
static const rows_pattern patterns[] = {
    {"Abs", 13, NEWEST, NUMBERS, ANY_SHAPE, "", 1},
    {"Acos", 7, NEWEST, HALVES, ANY_SHAPE, "", 1},
    {"Acosh", 9, NEWEST, HALVES, ANY_SHAPE, "", 1},
    {"Add", 7, NEWEST, NUMBERS, PAIR, "", 1},
    {"Add", 6, 6, "f32", "<T[a,b,c] T[b]|T[a,b,c] T[a,b]|T[a,b,c] T[c]>", "broadcast=1 <|axis=0|axis=1>", 1},
    {"And", 7, NEWEST, "bool", PAIR, "", 1},
    {"ArgMax", 13, NEWEST, "<f32|f64|i32>", "T[<a,b|a,b,c>]", "axis=<0|1|-1> keepdims=<0|1> select_last_index=<0|1>", 1},
    {"ArgMin", 13, NEWEST, "f32", "T[<a,b|a,b,c>]", "axis=<0|1|-1> keepdims=<0|1>", 1},
    {"Asin", 7, NEWEST, HALVES, ANY_SHAPE, "", 1},
    {"Asinh", 9, NEWEST, HALVES, ANY_SHAPE, "", 1},
    {"Atan", 7, NEWEST, HALVES, ANY_SHAPE, "", 1},
    {"Atanh", 9, NEWEST, HALVES, ANY_SHAPE, "", 1},
    {"AveragePool", 11, 18, "", IMAGE, "kernel_shape=[<1|2|2,2|3,2>] <|strides=[2,1]|pads=[1,0,0,1]|auto_pad='SAME_UPPER'>", 1},
    {"AveragePool", 19, NEWEST, "", IMAGE, "kernel_shape=[<2|2,2>] <|dilations=[2,1]|count_include_pad=1 pads=[1,1,1,1]|ceil_mode=1>", 1},
    {"BatchNormalization", 9, NEWEST, "", "<f32[a,b]|f32[a,b,c]|f32[a,b,c,d]> f32[b] f32[b] f32[b] f32[b]", "<|epsilon=0.5>", 1},
    {"BatchNormalization", 14, NEWEST, "", "f32[a,b,c] f32[b] f32[b] f32[b] f32[b]", "training_mode=1", 1},
    {"Cast", 13, NEWEST, NUMBERS, ANY_SHAPE, "to=<1|10|7|6|9|11|3>", 1},
    {"CastLike", 15, NEWEST, FLOATS, ANY_SHAPE " <i32[1]|f64[a]|f32[b,1]|u8[]>", "", 1},
    {"Ceil", 13, NEWEST, FLOATS, ANY_SHAPE, "", 1},
    {"Celu", 12, NEWEST, HALVES, ANY_SHAPE, "alpha=1.5", 1},
    {"Clip", 6, 10, FLOATS, ANY_SHAPE, "min=-0.5 max=0.5", 1},
    {"Clip", 11, NEWEST, "<f32|f64|i32>", ANY_SHAPE " <T[]|#T:-1|-> <#T:1|T[1]|T[]>", "", 1},
    {"Concat", 4, NEWEST, NUMBERS, "<T[a,b] T[a,b]|T[a,b] T[a,c] T[a,b]|T[a,b,c] T[a,b,d]|T[a,b,c] T[d,b,c]|T[1,b] T[2,b]|T[a,b]>", "axis=<0|1|-1>", 1},
    {"ConstantOfShape", 9, NEWEST, "", "!i64=<a|a,b|2,a,b>", "", 1},
    {"Conv", 11, NEWEST, FLOATS, "T[a,<2,5,4|2,6|2,3,3,4>] T[c,2,<2,2|3|1,2,2|1,1>] <T[c]|->", "<|pads=[1,0,0,1]|strides=[2,1]|dilations=[1,2]>", 1},
    {"Conv", 11, NEWEST, "f32", "T[a,4,5,5] <T[4,1,3,3]|T[8,2,2,2]>", "group=<2|4>", 1},
    {"ConvTranspose", 11, NEWEST, "f32", "T[a,2,<3,3|4>] T[2,c,<2,2|3>] <T[c]|->", "<|strides=[2,2]|pads=[1,0,0,1]|output_padding=[1,0] strides=[2,2]>", 1},
    {"Cos", 7, NEWEST, HALVES, ANY_SHAPE, "", 1},
    {"Cosh", 9, NEWEST, HALVES, ANY_SHAPE, "", 1},
    {"CumSum", 11, NEWEST, "<f32|f64|i64>", "T[<a,b|a,b,c>] #i64:<0|1|-1>", "reverse=<0|1> exclusive=<0|1>", 1},
    {"DepthToSpace", 11, NEWEST, NUMBERS, "T[a,<4|8>,b,c]", "blocksize=2 mode=<'CRD'|'DCR'>", 1},
    {"Div", 7, NEWEST, NUMBERS, PAIR, "", 1},
    {"Dropout", 7, 11, "f32", ANY_SHAPE, "", 2},
    {"Dropout", 12, NEWEST, FLOATS, ANY_SHAPE " <|f32[]|#f32:0.5 #bool:0>", "", 1},
    {"Dropout", 12, NEWEST, FLOATS, ANY_SHAPE, "", 2},
    {"Einsum", 12, NEWEST, "<f32|f64|f16|i32>", "<T[a,b] T[b,c]|T[a,19] T[19,33]>", "equation='ij,jk->ik'", 1},
    {"Einsum", 12, NEWEST, "f32", "<T[a,b] T[b,c]|T[a,19] T[19,33]>", "equation='ij,jk->ki'", 1},
    {"Einsum", 12, NEWEST, "<f32|f16>", "T[a,b,c] T[a,c,d]", "equation='bij,bjk->bik'", 1},
    {"Einsum", 12, NEWEST, "f32", "T[a,b,c] T[a,d,c]", "equation='bik,bjk->jbi'", 1},
    {"Einsum", 12, NEWEST, "f32", "<T[a,b,c] T[c,d]|T[b,a,c] T[1,c,d]|T[1,b,c] T[a,c,d]>", "equation='...ij,...jk->...ik'", 1},
    {"Einsum", 12, NEWEST, "f32", "T[a,b] T[a,c]", "equation='ij,ik->jk'", 1},
    {"Einsum", 12, NEWEST, "f32", "<T[a,b] T[1,c]|T[1,b] T[a,c]|T[a,b] T[a,c]>", "equation='ij,ik->kij'", 1},
    {"Einsum", 12, NEWEST, "f32", "<T[a,b] T[1,c]|T[a,1] T[b,c]>", "equation='ij,jk->ik'", 1},
    {"Einsum", 12, NEWEST, "f32", "T[a,b,b]", "equation='ijj->ji'", 1},
    {"Einsum", 12, NEWEST, "f32", "T[a,b,c]", "equation='ijk->ji'", 1},
    {"Elu", 6, NEWEST, HALVES, ANY_SHAPE, "", 1},
    {"Equal", 11, NEWEST, NUMBERS, PAIR, "", 1},
    {"Erf", 13, NEWEST, HALVES, ANY_SHAPE, "", 1},
    {"Exp", 13, NEWEST, FLOATS, ANY_SHAPE, "", 1},
    {"Expand", 8, NEWEST, NUMBERS, "<T[a,1]|T[1]|T[a,b]|T[b,1,c]|T[]> !i64=<a,b|c,a,b|1,b,c|d,1,1>", "", 1},
    {"Flatten", 13, NEWEST, NUMBERS, "T[<a,b|a,b,c|a,b,c,d>]", "axis=<0|1|2|-1>", 1},
    {"Floor", 13, NEWEST, FLOATS, ANY_SHAPE, "", 1},
    {"GRU", 7, NEWEST, "", "f32[a,b,3] f32[1,9,3] f32[1,9,3] <-|f32[1,18]> <-|i32%a[b]> <-|f32[1,b,3]>", "hidden_size=3 <|linear_before_reset=1|direction='reverse'>", 2},
    {"Gather", 1, NEWEST, NUMBERS, "<T[a,b] i64%a[c]|T[a,b] i64%a[c,d]|T[a,b,c] i64%a[]|T[a,b,c] i32%a[2]>", "axis=0", 1},
    {"Gather", 1, NEWEST, NUMBERS, "<T[a,b] i64%b[c]|T[a,b,c] i64%b[c,d]|T[a,b,c] i64%b[]>", "axis=1", 1},
    {"GatherElements", 11, NEWEST, NUMBERS, "<T[a,b] i64%a[c,b]|T[a,b,d] i64%a[c,b,d]|T[a,2,d] i32%a[c,1,d]>", "axis=0", 1},
    {"GatherElements", 11, NEWEST, NUMBERS, "<T[a,b] i64%b[a,c]|T[a,b,d] i64%b[a,c,d]|T[a,b] i64%b[1,c]>", "axis=1", 1},
    {"GatherND", 12, NEWEST, NUMBERS, "<T[a,b,c] i64%a[d,1]|T[a,b,c] i64%a[1]|T[2,2,c] i64%2[a,d,2]|T[2,b,c] i64%2[a,1]>", "", 1},
    {"GatherND", 12, NEWEST, NUMBERS, "<T[a,b,c] i64%b[a,1]|T[a,b,c] i64%b[a,d,1]|T[a,2,2,c] i64%2[a,2]>", "batch_dims=1", 1},
    {"Gelu", 20, NEWEST, HALVES, ANY_SHAPE, "<|approximate='tanh'>", 1},
    {"Gemm", 11, NEWEST, FLOATS, "<T[a,b] T[b,c]|T[a,19] T[19,17]> <-|T[c]|T[a,c]|T[1,c]|T[a,1]|T[17]>", "<|alpha=0.5 beta=2.0>", 1},
    {"Gemm", 11, NEWEST, FLOATS, "T[b,a] T[<b,c|c,b>] <-|T[c]>", "transA=1 transB=<0|1>", 1},
    {"GlobalAveragePool", 1, NEWEST, FLOATS, "T[a,b,<c|c,d|3,3,2>]", "", 1},
    {"GridSample", 16, 19, "", "<f32[a,b,4,5] f32[a,c,d,2]|f32[a,2,3,1] f32[a,b,1,2]>", "mode=<'bilinear'|'nearest'|'bicubic'> padding_mode=<'zeros'|'border'|'reflection'>", 1},
    {"GridSample", 20, NEWEST, "", "f32[a,b,4,5] f32[a,c,d,2]", "mode='cubic' align_corners=1", 1},
    {"GlobalMaxPool", 1, NEWEST, FLOATS, "T[a,b,<c|c,d|3,3,2>]", "", 1},
    {"Greater", 9, NEWEST, NUMBERS, PAIR, "", 1},
    {"GreaterOrEqual", 16, NEWEST, NUMBERS, PAIR, "", 1},
    {"GroupNormalization", 18, NEWEST, "", "f32[a,4,<b|b,c>] f32[<2|4>] f32[<2|4>]", "num_groups=2", 1},
    {"HardSigmoid", 6, NEWEST, FLOATS, ANY_SHAPE, "", 1},
    {"HardSwish", 14, NEWEST, FLOATS, ANY_SHAPE, "", 1},
    {"Hardmax", 1, NEWEST, "f32", "T[<a,b|a,b,c>]", "axis=<0|1|-1>", 1},
    {"Identity", 1, NEWEST, NUMBERS, ANY_SHAPE, "", 1},
    {"If", 11, NEWEST, NUMBERS, "#bool:<0|1> T[a,b] T[c,d]", "", 1},
    {"InstanceNormalization", 6, NEWEST, "", "f32[a,b,<c|c,d>] f32[b] f32[b]", "", 1},
    {"IsInf", 10, NEWEST, "<f32|f64>", ANY_SHAPE, "", 1},
    {"IsNaN", 9, NEWEST, "<f32|f64|f16>", ANY_SHAPE, "", 1},
    {"LRN", 13, NEWEST, "", "f32[a,<b|5>,c,d]", "size=<1|2|3>", 1},
    {"LSTM", 7, NEWEST, "", "f32[a,b,3] f32[1,8,3] f32[1,8,2] <-|f32[1,16]> <-|i32%a[b]> <-|f32[1,b,2]> <-|f32[1,b,2]>", "hidden_size=2", 3},
    {"LSTM", 14, NEWEST, "", "f32[b,a,3] f32[1,8,3] f32[1,8,2] <-|f32[1,16]> <-|i32%a[b]> <-|f32[b,1,2]>", "hidden_size=2 layout=1", 3},
    {"LSTM", 14, NEWEST, "", "f32[a,b,3] f32[2,8,3] f32[2,8,2]", "hidden_size=2 direction='bidirectional'", 3},
    {"LayerNormalization", 17, NEWEST, "", "<f32[a,b,c] f32[c] f32[c]|f32[a,b] f32[b]|f32[a,b,20] f32[20] f32[1]>", "axis=-1", 1},
    {"LayerNormalization", 17, NEWEST, "", "<f32[a,b,c] f32[c] f32[c]|f32[a,b] f32[b]|f32[a,b,20] f32[20] f32[1]>", "axis=-1", 3},
    {"LayerNormalization", 17, NEWEST, "", "<f32[a,b,c] f32[b,c] f32[b,c]|f32[a,b,c,d] f32[d]>", "axis=1", 1},
    {"LayerNormalization", 17, NEWEST, "", "<f32[a,b,c] f32[b,c] f32[b,c]|f32[a,b,c,d] f32[d]>", "axis=1", 3},
    {"LeakyRelu", 6, NEWEST, FLOATS, ANY_SHAPE, "", 1},
    {"Less", 9, NEWEST, NUMBERS, PAIR, "", 1},
    {"LessOrEqual", 16, NEWEST, NUMBERS, PAIR, "", 1},
    {"Log", 13, NEWEST, FLOATS, ANY_SHAPE, "", 1},
    {"LogSoftmax", 1, NEWEST, FLOATS, "T[<a,b|a,b,c>]", "axis=<0|1|-1>", 1},
    {"LpNormalization", 1, NEWEST, "", "f32[<a,b|a,b,c>]", "axis=<0|1|-1> p=<1|2>", 1},
    {"MatMul", 9, NEWEST, "<f32|f64|f16|i32>", "<T[a,b] T[b,c]|T[a,b] T[b]|T[b] T[b,c]|T[d,a,b] T[b,c]|T[d,a,b] T[d,b,c]|T[d,1,a,b] T[e,b,c]|T[1,a,b] T[d,b,c]|T[a,b] T[d,b,c]|T[a,19] T[19,33]|T[b] T[d,b,c]|T[d,a,b] T[b]>", "", 1},
    {"Max", 13, NEWEST, NUMBERS, "<T[a,b] T[b] T[1]|T[a,b]|T[a,b] T[a,b]|T[a,1] T[b] T[a,b]>", "", 1},
    {"MaxPool", 11, NEWEST, "", "<f32[a,b,5,4]|f32[a,b,6]|f64[a,b,5,4]|u8[a,b,4,4]|f32[a,2,3,3,4]>", "kernel_shape=[<2|2,2|2,1,2>] <|strides=[2,1]|ceil_mode=1>", 1},
    {"MaxPool", 11, NEWEST, "", "<f32[a,b,5,4]|f32[a,b,6]|f64[a,b,5,4]|u8[a,b,4,4]|f32[a,2,3,3,4]>", "kernel_shape=[<2|2,2|2,1,2>] <|strides=[2,1]|ceil_mode=1>", 2},
    {"Mean", 13, NEWEST, FLOATS, "<T[a,b] T[b] T[1]|T[a,b]|T[a,b] T[a,b]>", "", 1},
    {"MeanVarianceNormalization", 9, NEWEST, "", "f32[a,b,c,d]", "<|axes=[1]|axes=[2,3]|axes=[0,2]|axes=[1,2,3]>", 1},
    {"Min", 13, NEWEST, NUMBERS, "<T[a,b] T[b] T[1]|T[a,b]|T[a,b] T[a,b]>", "", 1},
    {"Mish", 18, NEWEST, HALVES, ANY_SHAPE, "", 1},
    {"Mod", 10, NEWEST, "<i32|i64|u8>", PAIR, "", 1},
    {"Mod", 10, NEWEST, "<f32|f64>", PAIR, "fmod=1", 1},
    {"Mul", 7, NEWEST, NUMBERS, PAIR, "", 1},
    {"Neg", 6, NEWEST, "<f32|f64|i32>", ANY_SHAPE, "", 1},
    {"Not", 1, NEWEST, "bool", ANY_SHAPE, "", 1},
    {"OneHot", 9, NEWEST, NUMBERS, "i64%4[<a|a,b|a,b,c>] #i64:4 T[2]", "axis=<0|1|-1>", 1},
    {"Or", 7, NEWEST, "bool", PAIR, "", 1},
    {"PRelu", 7, NEWEST, "<f32|f64|i32>", "<T[a,b,c] T[c]|T[a,b,c] T[b,1]|T[a,b] T[a,b]|T[a,b] T[1]>", "", 1},
    {"PRelu", 6, 6, "f32", "<T[1,2,b] T[2]|T[a,b,c] T[b]|T[a,b] T[1]|T[1,b,a] T[a]|T[1,2,a] T[a]|T[1,4,a] T[a]>", "", 1},
    {"Pad", 2, 10, "f32", "T[a,b]", "pads=[<0,1,0,2|1,0,0,0|0,0,0,0>] mode=<'constant'|'edge'>", 1},
    {"Pad", 11, NEWEST, NUMBERS, "T[a,b,c] !i64=<0,1,0,0,0,2|0,0,0,0,0,0|1,0,0,0,0,0|0,0,1,0,0,1> <-|#T:2>", "mode=<'constant'|'edge'|'wrap'>", 1},
    {"Pow", 7, 11, "<f32|f64|i32>", PAIR, "", 1},
    {"Pow", 12, NEWEST, "<f32|f64|i64>", PAIR, "", 1},
    {"Pow", 12, NEWEST, "f32", ANY_SHAPE " #f32:<2|0.5|3>", "", 1},
    {"RNN", 7, NEWEST, "", "f32[a,b,3] f32[1,2,3] f32[1,2,2] <-|f32[1,4]> <-|i32%a[b]> <-|f32[1,b,2]>", "hidden_size=2", 2},
    {"Reciprocal", 6, NEWEST, FLOATS, ANY_SHAPE, "", 1},
    {"ReduceL1", 18, NEWEST, "<f32|f64|i32>", "T[<a,b,c|a,b,20>] #i64=<0|1|0,2|-1>", "keepdims=<0|1>", 1},
    {"ReduceL2", 11, 17, "f32", "T[<a,b,c|a,b,20>]", "axes=[<0|1|0,2|-1>] keepdims=<0|1>", 1},
    {"ReduceLogSum", 18, NEWEST, "f32", "T[a,b,c] #i64=<0|1|0,2|-1>", "keepdims=<0|1>", 1},
    {"ReduceLogSumExp", 18, NEWEST, "<f32|f64>", "T[a,b,c] #i64=<0|1|0,2|-1>", "keepdims=<0|1>", 1},
    {"ReduceMax", 18, NEWEST, "<f32|f64|i32|u8>", "T[a,b,c] #i64=<0|1|0,2|-1>", "keepdims=<0|1>", 1},
    {"ReduceMean", 18, NEWEST, "<f32|f64|f16|i32>", "T[<a,b,c|a,b,20>] #i64=<0|1|0,2|-1>", "keepdims=<0|1>", 1},
    {"ReduceMean", 18, NEWEST, "f32", "T[a,b,c] <-|#i64=>", "noop_with_empty_axes=<0|1>", 1},
    {"ReduceMin", 18, NEWEST, "<f32|f64|i32>", "T[a,b,c] #i64=<0|1|0,2|-1>", "keepdims=<0|1>", 1},
    {"ReduceProd", 18, NEWEST, "<f32|f64|i32>", "T[a,b,c] #i64=<0|1|0,2|-1>", "keepdims=<0|1>", 1},
    {"ReduceSum", 13, NEWEST, "<f32|f64|f16|i64>", "T[<a,b,c|a,b,20|17,a,b>] #i64=<0|1|0,2|-1>", "keepdims=<0|1>", 1},
    {"ReduceSumSquare", 18, NEWEST, "<f32|f64|i32>", "T[a,b,c] #i64=<0|1|0,2|-1>", "keepdims=<0|1>", 1},
    {"Relu", 6, NEWEST, "<f32|f64|i32>", ANY_SHAPE, "", 1},
    {"Reshape", 5, NEWEST, NUMBERS, "<T[a,b,c] !i64=<a,-1|ab,c|-1,c|0,0,-1|a,bc|abc|1,a,b,c>|T[ab] !i64=<a,b|-1,b|ba>|T[a,bc] !i64=<a,b,c|c,b,a>>", "", 1},
    {"Resize", 11, NEWEST, "<f32|f16>", "T[<a,b,3,4|1,1,a,b>] - #f32=<1,1,2,2|1,1,0.5,1|1,2,1,1|2,1,1,1>", "mode=<'nearest'|'linear'|'cubic'>", 1},
    {"Resize", 11, NEWEST, "<f32|u8>", "T[a,b,3,4] - - !i64=<a,b,6,4|a,b,2,3|1,1,5,5>", "mode='nearest'", 1},
    {"Resize", 13, NEWEST, "f32", "T[a,b,3,4] #f32=<0,0,0,0,1,1,1,1|0,0,0.25,0,1,1,0.75,1> #f32=1,1,2,1", "mode='linear' coordinate_transformation_mode='tf_crop_and_resize'", 1},
    {"Round", 11, NEWEST, FLOATS, ANY_SHAPE, "", 1},
    {"Scatter", 9, 10, "f32", "<T[a,b] i64%a[c,b] T[c,b]|T[a,b] i64%a[c,1] T[c,1]>", "axis=0", 1},
    {"ScatterElements", 11, NEWEST, "<f32|i64|f16>", "<T[a,b] i64%a[c,b] T[c,b]|T[a,b,d] i64%a[c,b,d] T[c,b,d]|T[a,b] i64%a[c,1] T[c,1]>", "axis=0", 1},
    {"ScatterElements", 18, NEWEST, "<f32|i64|f16>", "<T[a,b] i64%b[a,c] T[a,c]|T[a,b,d] i64%b[a,c,d] T[a,c,d]>", "axis=1 reduction=<'none'|'add'|'mul'|'max'>", 1},
    {"ScatterND", 18, NEWEST, "<f32|i64|f16>", "<T[a,b,c] i64%a[d,1] T[d,b,c]|T[2,2,c] i64%2[d,2] T[d,c]|T[a,b] i64%a[1] T[b]>", "reduction=<'none'|'add'|'max'>", 1},
    {"Selu", 6, NEWEST, HALVES, ANY_SHAPE, "", 1},
    {"Sigmoid", 6, NEWEST, HALVES, ANY_SHAPE, "", 1},
    {"Sign", 9, NEWEST, NUMBERS, ANY_SHAPE, "", 1},
    {"Sin", 7, NEWEST, HALVES, ANY_SHAPE, "", 1},
    {"Sinh", 9, NEWEST, HALVES, ANY_SHAPE, "", 1},
    {"Slice", 10, NEWEST, NUMBERS, "T[a,b,c] !i64=<0|1|-1|0,0> !i64=<1|2|99|99,1|a,b|-1> <-|#i64=<0|1|2|0,1>> <-|#i64=<1|-1|2>>", "", 1},
    {"Slice", 10, NEWEST, NUMBERS, "T[2a,b] !i64=<0|a> !i64=<a|2a> #i64=0", "", 1},
    {"Slice", 1, 9, "f32", "T[a,b]", "starts=[<0|1>] ends=[<1|9>] axes=[<0|1>]", 1},
    {"Softmax", 1, NEWEST, FLOATS, "T[<a,b|a,b,c|a,b,20>]", "axis=<0|1|-1>", 1},
    {"Softplus", 1, NEWEST, HALVES, ANY_SHAPE, "", 1},
    {"Softsign", 1, NEWEST, FLOATS, ANY_SHAPE, "", 1},
    {"SpaceToDepth", 13, NEWEST, NUMBERS, "T[a,b,4,2]", "blocksize=2", 1},
    {"Split", 2, 12, "f32", "T[a,4]", "axis=1 <|split=[1,3]>", 2},
    {"Split", 13, 17, NUMBERS, "<T[a,b,c] !i64=<1,b|b,c>|T[2a,b] !i64=a,a|T[3,b] !i64=<1,2|2,1>|T[2a,b]>", "axis=<0|1>", 2},
    {"Split", 18, NEWEST, NUMBERS, "T[<a,4|2a,b>]", "axis=<0|1> num_outputs=2", 2},
    {"Sqrt", 6, NEWEST, FLOATS, ANY_SHAPE, "", 1},
    {"Squeeze", 1, 12, "f32", "T[<a,1|1,a,b|1,1,a>]", "<|axes=[0]|axes=[1]>", 1},
    {"Squeeze", 13, NEWEST, NUMBERS, "T[<a,1|1,a,b|a,1,1>] <-|#i64=<0|1|1,2>>", "", 1},
    {"Sub", 7, NEWEST, NUMBERS, PAIR, "", 1},
    {"Sum", 8, NEWEST, FLOATS, "<T[a,b] T[b] T[1]|T[a,b]|T[a,b] T[a,b]>", "", 1},
    {"Tan", 7, NEWEST, HALVES, ANY_SHAPE, "", 1},
    {"Tanh", 6, NEWEST, HALVES, ANY_SHAPE, "", 1},
    {"ThresholdedRelu", 10, NEWEST, FLOATS, ANY_SHAPE, "", 1},
    {"Tile", 6, NEWEST, NUMBERS, "<T[a,b] !i64=<1,1|2,1|1,c>|T[a,b,c] !i64=<1,2,1|d,1,2|1,1,1>|T[a] !i64=c>", "", 1},
    {"TopK", 11, NEWEST, "<f32|f64|i64>", "T[<4,4|a,4|a,4,4>] #i64=<1|2|3>", "axis=<0|1|-1> largest=<0|1>", 2},
    {"Transpose", 1, NEWEST, NUMBERS, "<T[a,b]|T[a,b,c]>", "<|perm=[1,0]|perm=[1,0,2]|perm=[2,0,1]|perm=[0,2,1]>", 1},
    {"Trilu", 14, NEWEST, NUMBERS, "T[<a,b|a,b,c|a,b,c,d>] <-|#i64:<0|1|-1>>", "upper=<0|1>", 1},
    {"Unsqueeze", 1, 12, "f32", "T[<a|a,b>]", "axes=[<0|1|0,2>]", 1},
    {"Unsqueeze", 13, NEWEST, NUMBERS, "T[<a|a,b>] #i64=<0|1|0,2|-1>", "", 1},
    {"Upsample", 9, 9, "f32", "T[a,b,2,3] #f32=<1,1,2,3|1,1,1,1|2,1,1,1>", "mode=<'nearest'|'linear'>", 1},
    {"Where", 9, NEWEST, NUMBERS, "<bool[a,b] T[a,b] T[a,b]|bool[a,b] T[b] T[a,1]|bool[1] T[a,b] T[b]|bool[a,1] T[] T[1,b]>", "", 1},
    {"Xor", 7, NEWEST, "bool", PAIR, "", 1},
};
/* clang-format on */

/* Ops without a rule. */
static const struct {
    const char *op, *why;
} unproved[] = {
    {"Constant", "its output is known before the run"},
    {"EyeLike", "what is on the diagonal depends on the number of the row"},
    {"Loop", "a run computes its body between two plans"},
    {"NonZero", "the sizes follow from values of the run"},
    {"Range", "it counts: known before the run, or its size follows from values of the run"},
    {"Scan", "a run computes its body between two plans"},
    {"Shape", "its output is known before the run"},
    {"Size", "its output is known before the run"},
};

TEST(each_op_has_a_rule_or_a_reason)
{
    uint32_t count;
    const sp_op *ops = sp__op_table(&count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t reasons = 0, uses = 0;
        for (size_t k = 0; k < SP_COUNT_OF(unproved); k++) {
            reasons += strcmp(unproved[k].op, ops[i].name) == 0;
        }
        for (size_t k = 0; k < SP_COUNT_OF(patterns); k++) {
            uses += strcmp(patterns[k].op, ops[i].name) == 0;
        }
        const bool has_rule = ops[i].traits->rows != NULL;
        const bool is_right = has_rule ? reasons == 0 && uses > 0 : reasons == 1 && uses == 0;
        CHECK(is_right);
        if (!is_right) test_note("%s", ops[i].name);
    }
}

/* ---- a case ---- */

enum { MOST_ROWS = 5 };

/* A case with a number of rows. */
typedef struct row_batch {
    const rows_case *c;
    const sp_op *op;
    uint64_t rows;
    rows_built built, single;
    sp_rows_value inputs[ROWS_INPUTS], outputs[ROWS_INPUTS];
    const char *why; /* not separable; NULL: it is */
} row_batch;

static bool batch_prove(const rows_case *c, const sp_op *op, uint64_t rows, row_batch *out)
{
    *out = (row_batch){.c = c, .op = op, .rows = rows, .why = "it cannot be called"};
    rows_build(c, op, rows, &out->built);
    rows_build(c, op, 1, &out->single);
    for (uint32_t i = 0; i < c->input_count; i++) {
        out->inputs[i] = c->inputs[i].rows;
        if (c->inputs[i].grown != UINT32_MAX) out->inputs[i].kind = SP_ROWS_SIZES;
    }
    if (out->built.status == SP_OK && out->single.status == SP_OK) {
        const sp_rows_call call = {.many = &out->built.call,
                                   .single = &out->single.call,
                                   .rows = rows,
                                   .inputs = out->inputs,
                                   .outputs = out->outputs};
        out->why = sp__rows_prove(&call);
    }
    return out->why == NULL;
}

static void batch_deinit(row_batch *batch)
{
    rows_built_deinit(&batch->built);
    rows_built_deinit(&batch->single);
}

/* The inputs of `count` of its rows. */
static void inputs_take(const row_batch *batch, const sp_array *from, const uint64_t *rows,
                        const rows_built *to, uint64_t count, sp_array *out)
{
    for (uint32_t i = 0; i < batch->c->input_count; i++) {
        out[i] = (sp_array){0};
        if (from[i].data == NULL) continue;
        if (sp__array_init(&out[i], from[i].dtype, &to->inputs[i].shape) != SP_OK) abort();
        for (uint64_t k = 0; k < count; k++) {
            rows_copy(&batch->inputs[i], &from[i], batch->rows, rows[k], &out[i], count, k, 1);
        }
    }
}

/* Computes `count` rows alone; true if each has the bits that it has in the whole batch. */
static bool rows_agree(const row_batch *batch, const sp_array *inputs, const sp_array *outputs,
                       const rows_built *part, const uint64_t *rows, uint64_t count)
{
    sp_array taken[ROWS_INPUTS] = {0}, got[ROWS_INPUTS] = {0};
    inputs_take(batch, inputs, rows, part, count, taken);
    const sp_status status = rows_run(part, taken, got);
    bool is_same = status == SP_OK;
    for (uint32_t i = 0; is_same && i < batch->c->output_count; i++) {
        sp_array wanted = {0};
        if (sp__array_init(&wanted, got[i].dtype, &got[i].shape) != SP_OK) abort();
        for (uint64_t k = 0; k < count; k++) {
            rows_copy(&batch->outputs[i], &outputs[i], batch->rows, rows[k], &wanted, count, k, 1);
        }
        is_same = memcmp(wanted.data, got[i].data, (size_t)wanted.bytes) == 0;
        sp__array_deinit(&wanted);
    }
    data_free(got, ROWS_INPUTS);
    data_free(taken, ROWS_INPUTS);
    return is_same;
}

/* Rows alone, all in another order, and the batch in two parts. */
static bool batch_agrees(const row_batch *batch, data_random *random, const sp_array *inputs,
                         const sp_array *outputs)
{
    uint64_t order[MOST_ROWS];
    bool is_same = true;
    for (uint64_t i = 0; i < batch->rows; i++) order[i] = i;
    for (uint64_t i = 0; i < batch->rows; i++) {
        is_same = is_same && rows_agree(batch, inputs, outputs, &batch->single, &order[i], 1);
    }
    for (uint64_t i = 0; i + 1 < batch->rows; i++) {
        const uint64_t other = i + data_next(random) % (batch->rows - i);
        const uint64_t kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
    is_same = is_same && rows_agree(batch, inputs, outputs, &batch->built, order, batch->rows);
    const uint64_t cut = batch->rows - 1 - data_next(random) % (batch->rows - 1);
    for (uint64_t start = 0; is_same && start < batch->rows;
         start = start == 0 ? cut : batch->rows) {
        const uint64_t count = start == 0 ? cut : batch->rows - cut;
        row_batch part;
        const bool is_proved = count > 1 && batch_prove(batch->c, batch->op, count, &part);
        if (is_proved) {
            is_same = rows_agree(batch, inputs, outputs, &part.built, &order[start], count);
        }
        if (count > 1) batch_deinit(&part);
    }
    return is_same;
}

typedef enum case_result { CASE_UNPROVED, CASE_RIGHT, CASE_WRONG } case_result;

/* `op` is that of the case, or the same with another rule. */
static case_result case_check(const rows_case *c, const sp_op *op, data_random *random)
{
    row_batch batch;
    sp_array inputs[ROWS_INPUTS] = {0}, outputs[ROWS_INPUTS] = {0};
    case_result result = CASE_UNPROVED;
    bool has_rows = false;
    for (uint32_t i = 0; i < c->input_count; i++) {
        has_rows |= c->inputs[i].rows.kind != SP_ROWS_SHARED || c->inputs[i].grown != UINT32_MAX;
    }
    const uint64_t rows = 2 + data_next(random) % (MOST_ROWS - 1);
    if (has_rows && batch_prove(c, op, rows, &batch)) {
        rows_draw(c, &batch.built, random, inputs);
        if (rows_run(&batch.built, inputs, outputs) == SP_OK) {
            result = batch_agrees(&batch, random, inputs, outputs) ? CASE_RIGHT : CASE_WRONG;
        }
    }
    if (has_rows) batch_deinit(&batch);
    data_free(inputs, ROWS_INPUTS);
    data_free(outputs, ROWS_INPUTS);
    return result;
}

/* ---- all rules ---- */

static uint32_t pattern_check(const rows_pattern *pattern, uint64_t tries)
{
    data_random random = {.state = tries};
    uint32_t checked = 0;
    for (const char *at = pattern->op; *at != '\0'; at++) random.state += (uint64_t)*at << 8;
    for (uint64_t i = 0; i < tries; i++) {
        rows_case c;
        const uint64_t seed = random.state;
        rows_case_make(pattern, &random, &c);
        const case_result result = case_check(&c, c.op, &random);
        checked += result == CASE_RIGHT;
        CHECK(result != CASE_WRONG);
        if (result != CASE_WRONG) continue;
        test_note("%s(%s): seed %llu", pattern->op, pattern->inputs, (unsigned long long)seed);
        break;
    }
    return checked;
}

/* Calls that are never separable, for wrong rules. */
static bool is_inseparable(const rows_pattern *pattern)
{
    const bool has_indices = strcmp(pattern->op, "MaxPool") == 0 && pattern->outputs == 2;
    return has_indices || strstr(pattern->attributes, "training_mode=1") != NULL;
}

TEST(a_batch_has_the_bits_of_its_rows)
{
    const uint64_t tries = test_count(50000, 1000);
    uint64_t all = 0;
    for (size_t i = 0; i < SP_COUNT_OF(patterns); i++) {
        const uint32_t checked = pattern_check(&patterns[i], tries);
        const bool is_right = is_inseparable(&patterns[i]) ? checked == 0 : checked > 0;
        CHECK(is_right);
        if (!is_right) test_note("%s: %u separable calls", patterns[i].op, checked);
        all += checked;
    }
    test_note("%llu separable calls", (unsigned long long)all);
}

/* ---- wrong rules ---- */

/* The rows of input 0, whatever the op does along their axis. */
static const char *wrong_axis(const sp_rows_call *call)
{
    sp_rows_axis rows;
    const char *why = sp__rows_only_first(call, UINT32_MAX, &rows);
    if (why != NULL) return why;
    for (uint32_t i = 0; i < call->many->output_count; i++) {
        sp__rows_set_axis(call, i, rows.axis, &rows);
    }
    return NULL;
}

/* As if the rows were the outermost factor of their axis. */
static const char *wrong_factor(const sp_rows_call *call)
{
    sp_rows_axis rows;
    const char *why = wrong_axis(call);
    if (why != NULL) return why;
    if (!sp__rows_find_growth(call, 0, &rows)) return "no growth";
    sp__rows_set_axis(call, 0, rows.axis, &rows);
    return NULL;
}

/* The axis that grows, whatever the inputs are. */
static const char *wrong_growth(const sp_rows_call *call)
{
    for (uint32_t i = 0; i < call->many->output_count; i++) {
        sp_rows_axis rows;
        if (!sp__rows_find_growth(call, i, &rows)) return "no growth";
        sp__rows_set_axis(call, i, rows.axis, &rows);
    }
    return NULL;
}

/* Inputs that broadcast may have their rows anywhere; sizes of the batch are numbers. */
static const char *wrong_places(const sp_rows_call *call)
{
    sp_rows_axis rows = {0};
    for (uint32_t i = 0; i < call->many->input_count; i++) {
        if (call->inputs[i].kind != SP_ROWS_BATCHED) continue;
        const char *why = sp__rows_find_input(call, i, &rows);
        if (why != NULL) return why;
        rows.axis += call->many->outputs[0].shape.rank - call->many->inputs[i].shape.rank;
        break;
    }
    if (rows.inner == 0) return "no rows";
    sp__rows_set_axis(call, 0, rows.axis, &rows);
    return NULL;
}

static const struct {
    const char *what, *op;
    const char *(*rule)(const sp_rows_call *call);
} wrong_rules[] = {
    {"normalises along the batch", "Softmax", wrong_axis},
    {"normalises along the batch", "LpNormalization", wrong_axis},
    {"normalises along the batch", "LayerNormalization", wrong_axis},
    {"normalises along the batch", "MeanVarianceNormalization", wrong_axis},
    {"normalises along the batch", "InstanceNormalization", wrong_axis},
    {"adds along the batch", "CumSum", wrong_axis},
    {"picks along the batch", "GatherElements", wrong_growth},
    {"picks along the batch", "GatherND", wrong_growth},
    {"has one matrix of the batch", "Trilu", wrong_axis},
    {"counts the elements of all rows", "MaxPool", wrong_axis},
    {"has statistics of the batch", "BatchNormalization", wrong_axis},
    {"aligns slopes to axis 1", "PRelu", sp__elementwise_rows},
    {"adds the batch size", "Add", wrong_places},
    {"mixes places of rows", "Mul", wrong_places},
    {"mixes places of rows", "Where", wrong_places},
    {"mixes places of rows", "Concat", wrong_places},
    {"mixes places of rows", "MatMul", wrong_growth},
    {"moves the place of rows", "Relu", wrong_factor},
    {"moves the place of rows", "Transpose", wrong_factor},
    {"moves the place of rows", "Split", wrong_factor},
    {"moves the place of rows", "Tile", wrong_factor},
    {"goes through the batch", "LSTM", wrong_growth},
    {"slices the batch", "Slice", wrong_axis},
    {"writes along the batch", "ScatterElements", wrong_growth},
};

/* Is any of the op's patterns found to be wrong? */
static bool is_found(const char *name, const char *(*rule)(const sp_rows_call *call))
{
    for (size_t i = 0; i < SP_COUNT_OF(patterns); i++) {
        data_random random = {.state = 5};
        if (strcmp(patterns[i].op, name) != 0) continue;
        for (uint32_t k = 0; k < 3000; k++) {
            rows_case c;
            rows_case_make(&patterns[i], &random, &c);
            sp_op_traits traits = *c.op->traits;
            sp_op op = *c.op;
            traits.rows = rule;
            op.traits = &traits;
            if (case_check(&c, &op, &random) == CASE_WRONG) return true;
        }
    }
    return false;
}

TEST(wrong_rules_are_found)
{
    for (size_t i = 0; i < SP_COUNT_OF(wrong_rules); i++) {
        const bool found = is_found(wrong_rules[i].op, wrong_rules[i].rule);
        CHECK(found);
        if (!found) test_note("%s: %s", wrong_rules[i].op, wrong_rules[i].what);
    }
}

TEST_MAIN
