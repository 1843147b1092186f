/* SPDX-License-Identifier: Apache-2.0 */
/* The ops, one row each: name, kernels, traits, and a schema for each range of opset versions that
 * has one. Included only by registry.c, once per column.
 *
 * ROW(name, kernels, traits, schemas...)
 *     kernels: what the op's lowering may emit, in the syntax of op_kernels.h. Ops with
 *         NO_KERNELS emit none: views, and values known before the run. A plan copies them
 *         (copy_bytes) where an output needs bytes of its own.
 *     traits: properties in all versions (sp_op_traits); ROWS names the op's row rule (ops/rows.h).
 *         An older version may have fewer inputs than there are bits. */
/* clang-format off */
ROW(Abs, "abs_*, ?cast_*", ROWS(elementwise),
    UNARY(Abs, 6, NUMBERS, sp__abs_lower, NO_ATTRIBUTES))
ROW(Acos, "acos_f32, ?cast_*", ROWS(elementwise),
    UNARY(Acos, 7, F32_AND_HALVES, sp__acos_lower, NO_ATTRIBUTES))
ROW(Acosh, "acosh_f32, ?cast_*", ROWS(elementwise),
    UNARY(Acosh, 9, F32_AND_HALVES, sp__acosh_lower, NO_ATTRIBUTES))
ROW(Add, "add_*, ?cast_*", ROWS(elementwise),
    BINARY(Add, NUMBERS, sp__binary_infer, sp__add_lower))
ROW(And, "and_bool", ROWS(elementwise),
    COMPARISON(And, 7, BOOLS, sp__and_lower))
ROW(ArgMax, "arg_*", ROWS(arg),
    ARG(ArgMax, sp__arg_max_lower))
ROW(ArgMin, "arg_*", ROWS(arg),
    ARG(ArgMin, sp__arg_min_lower))
ROW(Asin, "asin_f32, ?cast_*", ROWS(elementwise),
    UNARY(Asin, 7, F32_AND_HALVES, sp__asin_lower, NO_ATTRIBUTES))
ROW(Asinh, "asinh_f32, ?cast_*", ROWS(elementwise),
    UNARY(Asinh, 9, F32_AND_HALVES, sp__asinh_lower, NO_ATTRIBUTES))
ROW(Atan, "atan_f32, ?cast_*", ROWS(elementwise),
    UNARY(Atan, 7, F32_AND_HALVES, sp__atan_lower, NO_ATTRIBUTES))
ROW(Atanh, "atanh_f32, ?cast_*", ROWS(elementwise),
    UNARY(Atanh, 9, F32_AND_HALVES, sp__atanh_lower, NO_ATTRIBUTES))
ROW(AveragePool, "average_pool_*", ROWS(image),
    OP(AveragePool, 1, 18, 1, 1, 1, 1, F32, sp__pool_infer, sp__average_pool_lower, NULL,
       AVERAGE_POOL_ATTRIBUTES),
    OP(AveragePool, 19, NEWEST, 1, 1, 1, 1, F32, sp__pool_infer, sp__average_pool_lower, NULL,
       AVERAGE_POOL_ATTRIBUTES, ATTRIBUTE("dilations", INTS)))
ROW(BatchNormalization, "batch_norm_*, ?reduce_f32, ?blend_*", ROWS(batch_norm),
    OP(BatchNormalization, 6, 6, 5, 5, 1, 5, F32, sp__batch_norm_infer, sp__batch_norm_lower,
       NULL, ATTRIBUTE("epsilon", FLOAT), ATTRIBUTE("momentum", FLOAT), ATTRIBUTE("is_test", INT),
       ATTRIBUTE("spatial", INT)),
    OP(BatchNormalization, 7, 8, 5, 5, 1, 5, F32, sp__batch_norm_infer, sp__batch_norm_lower,
       NULL, ATTRIBUTE("epsilon", FLOAT), ATTRIBUTE("momentum", FLOAT), ATTRIBUTE("spatial", INT)),
    OP(BatchNormalization, 9, 13, 5, 5, 1, 5, F32, sp__batch_norm_infer, sp__batch_norm_lower,
       NULL, ATTRIBUTE("epsilon", FLOAT), ATTRIBUTE("momentum", FLOAT)),
    OP(BatchNormalization, 14, NEWEST, 5, 5, 1, 3, F32, sp__batch_norm_infer,
       sp__batch_norm_lower, NULL, ATTRIBUTE("epsilon", FLOAT), ATTRIBUTE("momentum", FLOAT),
       ATTRIBUTE("training_mode", INT)))
ROW(Cast, "cast_*", ROWS(elementwise),
    OP(Cast, 6, NEWEST, 1, 1, 1, 1, ANY, sp__cast_infer, sp__cast_lower, NULL,
       REQUIRED("to", INT), ATTRIBUTE("saturate", INT), ATTRIBUTE("round_mode", STRING)))
ROW(CastLike, "cast_*", ROWS(cast_like),
    OP(CastLike, 15, NEWEST, 2, 2, 1, 1, TYPES(ANY, ANY), sp__cast_like_infer, sp__cast_lower, NULL,
       ATTRIBUTE("saturate", INT), ATTRIBUTE("round_mode", STRING)))
ROW(Ceil, "ceil_*, ?cast_*", ROWS(elementwise),
    UNARY(Ceil, 6, FLOATS, sp__ceil_lower, NO_ATTRIBUTES))
ROW(Celu, "celu_f32, ?cast_*", ROWS(elementwise),
    UNARY(Celu, 12, F32_AND_HALVES, sp__celu_lower, ATTRIBUTE("alpha", FLOAT)))
ROW(Clip, "clip_*, max_*, min_*, ?cast_*", ROWS(elementwise),
    OP(Clip, 6, 10, 1, 1, 1, 1, FLOATS, sp__op_infer_same, sp__clip_lower, NULL,
       ATTRIBUTE("min", FLOAT), ATTRIBUTE("max", FLOAT)),
    OP(Clip, 11, NEWEST, 1, 3, 1, 1, NUMBERS, sp__clip_infer, sp__clip_lower, NULL,
       NO_ATTRIBUTES))
ROW(Concat, "concat", ROWS(concat),
    OP(Concat, 4, NEWEST, 1, SP_OP_VARIADIC, 1, 1, ANY, sp__concat_infer, sp__concat_lower, NULL,
       REQUIRED("axis", INT)))
ROW(Constant, NO_KERNELS, NO_TRAITS,
    OP(Constant, 1, 10, 0, 0, 1, 1, ANY, sp__constant_infer, sp__known_lower, NULL,
       REQUIRED("value", TENSOR)),
    OP(Constant, 11, NEWEST, 0, 0, 1, 1, ANY, sp__constant_infer, sp__known_lower, NULL,
       ATTRIBUTE("value", TENSOR), ATTRIBUTE("value_float", FLOAT),
       ATTRIBUTE("value_floats", FLOATS), ATTRIBUTE("value_int", INT),
       ATTRIBUTE("value_ints", INTS)))
ROW(ConstantOfShape, "fill", TRAITS(.shape_inputs = INPUT(0), ROWS(constant_of_shape)),
    OP(ConstantOfShape, 9, NEWEST, 1, 1, 1, 1, INTS, sp__constant_of_shape_infer,
       sp__constant_of_shape_lower, NULL, ATTRIBUTE("value", TENSOR)))
ROW(Conv,
    "conv_f32, conv_depthwise_f32, ?conv_3d_*, ?conv_any_*, ?conv_narrow_*, ?narrow_pack_*, ?cast_*",
    ROWS(image),
    OP(Conv, 1, NEWEST, 2, 3, 1, 1, FLOATS, sp__conv_infer, sp__conv_lower, sp__conv_pack,
       WINDOW_ATTRIBUTES, ATTRIBUTE("group", INT), ATTRIBUTE("kernel_shape", INTS)))
ROW(ConvTranspose, "conv_transpose_*", ROWS(image),
    OP(ConvTranspose, 1, NEWEST, 2, 3, 1, 1, F32, sp__conv_transpose_infer,
       sp__conv_transpose_lower, NULL, WINDOW_ATTRIBUTES, ATTRIBUTE("group", INT),
       ATTRIBUTE("kernel_shape", INTS), ATTRIBUTE("output_padding", INTS),
       ATTRIBUTE("output_shape", INTS)))
ROW(Cos, "cos_f32, ?cast_*", ROWS(elementwise),
    UNARY(Cos, 7, F32_AND_HALVES, sp__cos_lower, NO_ATTRIBUTES))
ROW(Cosh, "cosh_f32, ?cast_*", ROWS(elementwise),
    UNARY(Cosh, 9, F32_AND_HALVES, sp__cosh_lower, NO_ATTRIBUTES))
ROW(CumSum, "cumsum_*", TRAITS(.shape_inputs = INPUT(1), ROWS(cumsum)),
    OP(CumSum, 11, NEWEST, 2, 2, 1, 1, TYPES(F32 | F64 | INTS, INTS), sp__cumsum_infer, sp__cumsum_lower, NULL,
       ATTRIBUTE("exclusive", INT), ATTRIBUTE("reverse", INT)))
ROW(DepthToSpace, "copy_strided", ROWS(image),
    OP(DepthToSpace, 1, 10, 1, 1, 1, 1, ANY, sp__depth_to_space_infer, sp__depth_to_space_lower,
       NULL, REQUIRED("blocksize", INT)),
    OP(DepthToSpace, 11, NEWEST, 1, 1, 1, 1, ANY, sp__depth_to_space_infer,
       sp__depth_to_space_lower, NULL, REQUIRED("blocksize", INT), ATTRIBUTE("mode", STRING)))
ROW(Div, "div_*, ?cast_*", ROWS(elementwise),
    BINARY(Div, NUMBERS, sp__binary_infer, sp__div_lower))
ROW(Dropout, "copy_bytes, fill", TRAITS(.shape_inputs = INPUT(1) | INPUT(2), ROWS(elementwise)),
    OP(Dropout, 7, 11, 1, 1, 1, 2, FLOATS, sp__dropout_infer, sp__dropout_lower, NULL,
       ATTRIBUTE("ratio", FLOAT)),
    OP(Dropout, 12, NEWEST, 1, 3, 1, 2, TYPES(FLOATS, FLOATS, BOOLS), sp__dropout_infer, sp__dropout_lower, NULL,
       ATTRIBUTE("seed", INT)))
ROW(Einsum, "gemm_f32, ?gemm_any_*, copy_strided, ?fill", ROWS(einsum),
    OP(Einsum, 12, NEWEST, 1, SP_OP_VARIADIC, 1, 1, PRODUCT_TYPES, sp__einsum_infer,
       sp__einsum_lower, NULL, REQUIRED("equation", STRING)))
ROW(Elu, "elu_f32, ?cast_*", ROWS(elementwise),
    UNARY(Elu, 6, F32_AND_HALVES, sp__elu_lower, ATTRIBUTE("alpha", FLOAT)))
ROW(Equal, "equal_*, ?cast_*", ROWS(elementwise),
    COMPARISON(Equal, 7, NUMBERS | BOOLS, sp__equal_lower))
ROW(Erf, "erf_f32, ?cast_*", ROWS(elementwise),
    UNARY(Erf, 9, F32_AND_HALVES, sp__erf_lower, NO_ATTRIBUTES))
ROW(Exp, "exp_*, ?cast_*", ROWS(elementwise),
    UNARY(Exp, 6, FLOATS, sp__exp_lower, NO_ATTRIBUTES))
ROW(Expand, "copy_strided", TRAITS(.shape_inputs = INPUT(1), ROWS(expand)),
    OP(Expand, 8, NEWEST, 2, 2, 1, 1, TYPES(ANY, INTS), sp__expand_infer, sp__expand_lower, NULL,
       NO_ATTRIBUTES))
ROW(EyeLike, "eye", NO_TRAITS,
    OP(EyeLike, 9, NEWEST, 1, 1, 1, 1, ANY, sp__eye_like_infer, sp__eye_like_lower, NULL,
       ATTRIBUTE("dtype", INT), ATTRIBUTE("k", INT)))
ROW(Flatten, NO_KERNELS, ROWS(reshape),
    OP(Flatten, 1, NEWEST, 1, 1, 1, 1, ANY, sp__flatten_infer, sp__view_lower, NULL,
       ATTRIBUTE("axis", INT)))
ROW(Floor, "floor_*, ?cast_*", ROWS(elementwise),
    UNARY(Floor, 6, FLOATS, sp__floor_lower, NO_ATTRIBUTES))
ROW(GRU, "gemm_f32, gemm_pack_f32, gru_f32", ROWS(recurrent),
    RECURRENT(GRU, 7, 13, 6, 2, ATTRIBUTE("linear_before_reset", INT)),
    RECURRENT(GRU, 14, NEWEST, 6, 2, ATTRIBUTE("linear_before_reset", INT),
              ATTRIBUTE("layout", INT)))
ROW(Gather, "gather", ROWS(gather),
    OP(Gather, 1, NEWEST, 2, 2, 1, 1, TYPES(ANY, INTS), sp__gather_infer, sp__gather_lower, NULL,
       ATTRIBUTE("axis", INT)))
ROW(GatherElements, "gather_elements", ROWS(gather_elements),
    OP(GatherElements, 11, NEWEST, 2, 2, 1, 1, TYPES(ANY, INTS), sp__gather_elements_infer,
       sp__gather_elements_lower, NULL, ATTRIBUTE("axis", INT)))
ROW(GatherND, "gather_nd", ROWS(gather_nd),
    OP(GatherND, 11, 11, 2, 2, 1, 1, TYPES(ANY, INTS), sp__gather_nd_infer, sp__gather_nd_lower, NULL,
       NO_ATTRIBUTES),
    OP(GatherND, 12, NEWEST, 2, 2, 1, 1, TYPES(ANY, INTS), sp__gather_nd_infer, sp__gather_nd_lower, NULL,
       ATTRIBUTE("batch_dims", INT)))
ROW(Gelu, "gelu_f32, gelu_tanh_f32, ?cast_*", ROWS(elementwise),
    OP(Gelu, 20, NEWEST, 1, 1, 1, 1, F32_AND_HALVES, sp__gelu_infer, sp__gelu_lower, NULL,
       ATTRIBUTE("approximate", STRING)))
ROW(Gemm, "gemm_f32, gemm_pack_f32, ?gemm_any_*, ?gemm_narrow_*, ?gemm_packed_*, ?narrow_pack_*", ROWS(gemm),
    OP(Gemm, 6, 6, 3, 3, 1, 1, FLOATS, sp__gemm_infer, sp__gemm_lower, sp__gemm_pack,
       GEMM_ATTRIBUTES, ATTRIBUTE("broadcast", INT)),
    OP(Gemm, 7, 10, 3, 3, 1, 1, FLOATS, sp__gemm_infer, sp__gemm_lower, sp__gemm_pack,
       GEMM_ATTRIBUTES),
    OP(Gemm, 11, NEWEST, 2, 3, 1, 1, FLOATS, sp__gemm_infer, sp__gemm_lower, sp__gemm_pack,
       GEMM_ATTRIBUTES))
ROW(GlobalAveragePool, "reduce_*", ROWS(image),
    OP(GlobalAveragePool, 1, NEWEST, 1, 1, 1, 1, LANE_FLOATS, sp__global_pool_infer,
       sp__global_average_pool_lower, NULL, NO_ATTRIBUTES))
ROW(GlobalMaxPool, "reduce_*", ROWS(image),
    OP(GlobalMaxPool, 1, NEWEST, 1, 1, 1, 1, LANE_FLOATS, sp__global_pool_infer,
       sp__global_max_pool_lower, NULL, NO_ATTRIBUTES))
ROW(Greater, "less_*, ?cast_*", ROWS(elementwise),
    COMPARISON(Greater, 7, NUMBERS, sp__greater_lower))
ROW(GreaterOrEqual, "less_or_equal_*, ?cast_*", ROWS(elementwise),
    COMPARISON(GreaterOrEqual, 12, NUMBERS, sp__greater_or_equal_lower))
ROW(GridSample, "grid_sample_*", ROWS(grid_sample),
    OP(GridSample, 16, NEWEST, 2, 2, 1, 1, F32, sp__grid_sample_infer,
       sp__grid_sample_lower, NULL, ATTRIBUTE("align_corners", INT), ATTRIBUTE("mode", STRING),
       ATTRIBUTE("padding_mode", STRING)))
ROW(GroupNormalization, "norm_*", ROWS(image),
    OP(GroupNormalization, 18, NEWEST, 3, 3, 1, 1, F32, sp__group_norm_infer,
       sp__group_norm_lower, NULL, ATTRIBUTE("epsilon", FLOAT), REQUIRED("num_groups", INT),
       ATTRIBUTE("stash_type", INT)))
ROW(HardSigmoid, "hard_sigmoid_*, ?cast_*", ROWS(elementwise),
    UNARY(HardSigmoid, 6, FLOATS, sp__hard_sigmoid_lower, ATTRIBUTE("alpha", FLOAT),
          ATTRIBUTE("beta", FLOAT)))
ROW(HardSwish, "hard_swish_*, ?cast_*", ROWS(elementwise),
    UNARY(HardSwish, 14, FLOATS, sp__hard_swish_lower, NO_ATTRIBUTES))
ROW(Hardmax, "hardmax_*", ROWS(softmax),
    OP(Hardmax, 1, NEWEST, 1, 1, 1, 1, F32, sp__softmax_infer, sp__hardmax_lower, NULL,
       ATTRIBUTE("axis", INT)))
ROW(Identity, NO_KERNELS, ROWS(elementwise),
    OP(Identity, 1, NEWEST, 1, 1, 1, 1, ANY, sp__op_infer_same, sp__view_lower, NULL,
       NO_ATTRIBUTES))
ROW(If, NO_KERNELS, TRAITS(.shape_inputs = INPUT(0), .is_if = true, ROWS(if)),
    OP(If, 1, NEWEST, 1, 1, 1, SP_OP_VARIADIC, TYPES(BOOLS, ANY_OR_NONE, ANY_OR_NONE, ANY_OR_NONE, ANY_OR_NONE, ANY_OR_NONE), sp__if_infer,
       sp__if_lower, NULL, REQUIRED("then_branch", GRAPH), REQUIRED("else_branch", GRAPH)))
ROW(InstanceNormalization, "norm_*", ROWS(image),
    OP(InstanceNormalization, 6, NEWEST, 3, 3, 1, 1, F32, sp__instance_norm_infer,
       sp__instance_norm_lower, NULL, ATTRIBUTE("epsilon", FLOAT)))
ROW(IsInf, "is_inf_*, ?cast_*", ROWS(elementwise),
    PREDICATE(IsInf, 10, FLOATS, sp__is_inf_lower, ATTRIBUTE("detect_negative", INT),
              ATTRIBUTE("detect_positive", INT)))
ROW(IsNaN, "is_nan_*, ?cast_*", ROWS(elementwise),
    PREDICATE(IsNaN, 9, FLOATS, sp__is_nan_lower, NO_ATTRIBUTES))
ROW(LRN, "lrn_*", ROWS(image),
    OP(LRN, 1, NEWEST, 1, 1, 1, 1, F32, sp__lrn_infer, sp__lrn_lower, NULL,
       ATTRIBUTE("alpha", FLOAT), ATTRIBUTE("beta", FLOAT), ATTRIBUTE("bias", FLOAT),
       REQUIRED("size", INT)))
ROW(LSTM, "gemm_f32, gemm_pack_f32, lstm_f32", ROWS(recurrent),
    RECURRENT(LSTM, 7, 13, 8, 3, ATTRIBUTE("input_forget", INT)),
    RECURRENT(LSTM, 14, NEWEST, 8, 3, ATTRIBUTE("input_forget", INT), ATTRIBUTE("layout", INT)))
ROW(LayerNormalization, "norm_*, ?copy_strided", ROWS(layer_norm),
    OP(LayerNormalization, 17, NEWEST, 2, 3, 1, 3, F32, sp__layer_norm_infer,
       sp__layer_norm_lower, NULL, ATTRIBUTE("axis", INT), ATTRIBUTE("epsilon", FLOAT),
       ATTRIBUTE("stash_type", INT)))
ROW(LeakyRelu, "leaky_relu_*, ?cast_*", ROWS(elementwise),
    UNARY(LeakyRelu, 6, FLOATS, sp__leaky_relu_lower, ATTRIBUTE("alpha", FLOAT)))
ROW(Less, "less_*, ?cast_*", ROWS(elementwise),
    COMPARISON(Less, 7, NUMBERS, sp__less_lower))
ROW(LessOrEqual, "less_or_equal_*, ?cast_*", ROWS(elementwise),
    COMPARISON(LessOrEqual, 12, NUMBERS, sp__less_or_equal_lower))
ROW(Log, "log_*, ?cast_*", ROWS(elementwise),
    UNARY(Log, 6, FLOATS, sp__log_lower, NO_ATTRIBUTES))
ROW(LogSoftmax, "softmax_*", ROWS(softmax),
    OP(LogSoftmax, 1, NEWEST, 1, 1, 1, 1, LANE_FLOATS, sp__softmax_infer, sp__log_softmax_lower, NULL,
       ATTRIBUTE("axis", INT)))
ROW(Loop, NO_KERNELS, TRAITS(.has_body = true),
    OP(Loop, 1, NEWEST, 0, SP_OP_VARIADIC, 1, SP_OP_VARIADIC, TYPES(I64, BOOLS, ANY, ANY, ANY, ANY), sp__loop_infer,
       sp__loop_lower, NULL, REQUIRED("body", GRAPH)))
ROW(LpNormalization, "lp_norm_*", ROWS(lp_norm),
    OP(LpNormalization, 1, NEWEST, 1, 1, 1, 1, F32, sp__lp_norm_infer, sp__lp_norm_lower, NULL,
       ATTRIBUTE("axis", INT), ATTRIBUTE("p", INT)))
ROW(MatMul, "gemm_f32, gemm_pack_f32, ?gemm_any_*, ?gemm_narrow_*, ?gemm_packed_*, ?narrow_pack_*", ROWS(matmul),
    OP(MatMul, 1, NEWEST, 2, 2, 1, 1, PRODUCT_TYPES, sp__matmul_infer, sp__matmul_lower, sp__matmul_pack,
       NO_ATTRIBUTES))
ROW(Max, "max_*, ?cast_*", ROWS(elementwise),
    VARIADIC(Max, NUMBERS, sp__max_lower))
ROW(MaxPool, "max_pool_*, ?max_pool_any_*", ROWS(max_pool),
    OP(MaxPool, 1, NEWEST, 1, 1, 1, 2, F32 | F64 | BYTES, sp__pool_infer,
       sp__max_pool_lower, NULL, WINDOW_ATTRIBUTES, REQUIRED("kernel_shape", INTS),
       ATTRIBUTE("ceil_mode", INT), ATTRIBUTE("storage_order", INT)))
ROW(Mean, "add_*, divide_*, ?cast_*", ROWS(elementwise),
    VARIADIC(Mean, FLOATS, sp__mean_lower))
ROW(MeanVarianceNormalization, "reduce_f32, standardize_*", ROWS(mvn),
    OP(MeanVarianceNormalization, 9, NEWEST, 1, 1, 1, 1, F32, sp__mvn_infer, sp__mvn_lower, NULL,
       ATTRIBUTE("axes", INTS)))
ROW(Min, "min_*, ?cast_*", ROWS(elementwise),
    VARIADIC(Min, NUMBERS, sp__min_lower))
ROW(Mish, "mish_f32, ?cast_*", ROWS(elementwise),
    UNARY(Mish, 18, F32_AND_HALVES, sp__mish_lower, NO_ATTRIBUTES))
ROW(Mod, "mod_*, fmod_*, ?cast_*", ROWS(elementwise),
    OP(Mod, 10, NEWEST, 2, 2, 1, 1, NUMBERS, sp__binary_infer, sp__mod_lower, NULL,
       NARROWING("fmod", INT, "0", "1", ALL_INTS)))
ROW(Mul, "mul_*, ?cast_*", ROWS(elementwise),
    BINARY(Mul, NUMBERS, sp__binary_infer, sp__mul_lower))
ROW(Neg, "neg_*, ?cast_*", ROWS(elementwise),
    UNARY(Neg, 6, FLOATS | SIGNED_INTS, sp__neg_lower, NO_ATTRIBUTES))
ROW(NonZero, "non_zero", TRAITS(.shape_inputs = INPUT(0)),
    OP(NonZero, 9, NEWEST, 1, 1, 1, 1, ANY, sp__non_zero_infer, sp__non_zero_lower, NULL,
       NO_ATTRIBUTES))
ROW(Not, "not_bool", ROWS(elementwise),
    UNARY(Not, 1, BOOLS, sp__not_lower, NO_ATTRIBUTES))
ROW(OneHot, "one_hot", TRAITS(.shape_inputs = INPUT(1), ROWS(one_hot)),
    OP(OneHot, 9, NEWEST, 3, 3, 1, 1, TYPES(F32 | INTS, F32 | INTS, ANY), sp__one_hot_infer, sp__one_hot_lower, NULL,
       ATTRIBUTE("axis", INT)))
ROW(Or, "or_bool", ROWS(elementwise),
    COMPARISON(Or, 7, BOOLS, sp__or_lower))
ROW(PRelu, "prelu_*, ?cast_*", ROWS(prelu),
    OP(PRelu, 6, NEWEST, 2, 2, 1, 1, FLOATS | INTS | SP_DTYPE_BIT(SP_U32) | SP_DTYPE_BIT(SP_U64),
       sp__prelu_infer, sp__prelu_lower, NULL, NO_ATTRIBUTES))
ROW(Pad, "pad", TRAITS(.shape_inputs = INPUT(1) | INPUT(3), ROWS(pad)),
    OP(Pad, 2, 10, 1, 1, 1, 1, F32 | F64, sp__pad_infer, sp__pad_lower, NULL,
       ATTRIBUTE("mode", STRING), REQUIRED("pads", INTS), ATTRIBUTE("value", FLOAT)),
    OP(Pad, 11, 17, 2, 3, 1, 1, TYPES(ANY, INTS, SAME), sp__pad_infer, sp__pad_lower, NULL,
       ATTRIBUTE("mode", STRING)),
    OP(Pad, 18, NEWEST, 2, 4, 1, 1, TYPES(ANY, INTS, SAME, INTS), sp__pad_infer, sp__pad_lower, NULL,
       ATTRIBUTE("mode", STRING)))
ROW(Pow, "pow_*, ?cast_*", ROWS(elementwise),
    OP(Pow, 6, 6, 2, 2, 1, 1, FLOATS | INTS, sp__binary_infer, sp__pow_lower, NULL,
       ATTRIBUTE("axis", INT), ATTRIBUTE("broadcast", INT)),
    OP(Pow, 7, 11, 2, 2, 1, 1, FLOATS | INTS, sp__binary_infer, sp__pow_lower, NULL, NO_ATTRIBUTES),
    OP(Pow, 12, NEWEST, 2, 2, 1, 1, TYPES(FLOATS | INTS, NUMBERS), sp__binary_infer, sp__pow_lower,
       NULL, NO_ATTRIBUTES))
ROW(RNN, "gemm_f32, gemm_pack_f32, rnn_f32", ROWS(recurrent),
    RECURRENT(RNN, 7, 13, 6, 2, NO_ATTRIBUTES),
    RECURRENT(RNN, 14, NEWEST, 6, 2, ATTRIBUTE("layout", INT)))
ROW(Range, "range", TRAITS(.shape_inputs = INPUT(0) | INPUT(1) | INPUT(2)),
    OP(Range, 11, NEWEST, 3, 3, 1, 1, F32 | F64 | INTS | I16, sp__range_infer, sp__range_lower,
       NULL, NO_ATTRIBUTES))
ROW(Reciprocal, "reciprocal_*, ?cast_*", ROWS(elementwise),
    UNARY(Reciprocal, 6, FLOATS, sp__reciprocal_lower, NO_ATTRIBUTES))
ROW(ReduceL1, "reduce_*", TRAITS(.shape_inputs = INPUT(1), ROWS(reduce)),
    REDUCE(ReduceL1, 18, LANE_FLOATS | INTS, sp__reduce_infer, sp__reduce_l1_lower))
ROW(ReduceL2, "reduce_*", TRAITS(.shape_inputs = INPUT(1), ROWS(reduce)),
    REDUCE(ReduceL2, 18, LANE_FLOATS, sp__reduce_infer, sp__reduce_l2_lower))
ROW(ReduceLogSum, "reduce_*", TRAITS(.shape_inputs = INPUT(1), ROWS(reduce)),
    REDUCE(ReduceLogSum, 18, LANE_FLOATS, sp__reduce_infer, sp__reduce_log_sum_lower))
ROW(ReduceLogSumExp, "reduce_*", TRAITS(.shape_inputs = INPUT(1), ROWS(reduce)),
    REDUCE(ReduceLogSumExp, 18, LANE_FLOATS, sp__reduce_infer, sp__reduce_log_sum_exp_lower))
ROW(ReduceMax, "reduce_*", TRAITS(.shape_inputs = INPUT(1), ROWS(reduce)),
    REDUCE_ORDER(ReduceMax, sp__reduce_max_lower))
ROW(ReduceMean, "reduce_*", TRAITS(.shape_inputs = INPUT(1), ROWS(reduce)),
    REDUCE(ReduceMean, 18, LANE_FLOATS | INTS, sp__reduce_mean_infer, sp__reduce_mean_lower))
ROW(ReduceMin, "reduce_*", TRAITS(.shape_inputs = INPUT(1), ROWS(reduce)),
    REDUCE_ORDER(ReduceMin, sp__reduce_min_lower))
ROW(ReduceProd, "reduce_*", TRAITS(.shape_inputs = INPUT(1), ROWS(reduce)),
    REDUCE(ReduceProd, 18, LANE_FLOATS | INTS, sp__reduce_infer, sp__reduce_prod_lower))
ROW(ReduceSum, "reduce_*", TRAITS(.shape_inputs = INPUT(1), ROWS(reduce)),
    REDUCE(ReduceSum, 13, LANE_FLOATS | INTS, sp__reduce_infer, sp__reduce_sum_lower))
ROW(ReduceSumSquare, "reduce_*", TRAITS(.shape_inputs = INPUT(1), ROWS(reduce)),
    REDUCE(ReduceSumSquare, 18, LANE_FLOATS | INTS, sp__reduce_infer, sp__reduce_sum_square_lower))
ROW(Relu, "relu_*, ?cast_*", ROWS(elementwise),
    UNARY(Relu, 6, FLOATS | SIGNED_INTS, sp__relu_lower, NO_ATTRIBUTES))
ROW(Reshape, NO_KERNELS, TRAITS(.shape_inputs = INPUT(1), ROWS(reshape)),
    OP(Reshape, 5, 13, 2, 2, 1, 1, TYPES(ANY, INTS), sp__reshape_infer, sp__view_lower, NULL, NO_ATTRIBUTES),
    OP(Reshape, 14, NEWEST, 2, 2, 1, 1, TYPES(ANY, INTS), sp__reshape_infer, sp__view_lower, NULL,
       ATTRIBUTE("allowzero", INT)))
ROW(Resize, "resize_nearest, resize_*, ?cast_*", TRAITS(.shape_inputs = INPUT(1) | INPUT(2) | INPUT(3), ROWS(resize)),
    OP(Resize, 10, 10, 2, 2, 1, 1, TYPES(ANY, F32), sp__resize_infer, sp__resize_lower, NULL,
       RESIZE_MODE),
    OP(Resize, 11, 17, 1, 4, 1, 1, RESIZE_TYPES, sp__resize_infer, sp__resize_lower, NULL,
       RESIZE_ATTRIBUTES),
    OP(Resize, 18, NEWEST, 1, 4, 1, 1, RESIZE_TYPES, sp__resize_infer, sp__resize_lower, NULL,
       RESIZE_ATTRIBUTES, ATTRIBUTE("antialias", INT), ATTRIBUTE("axes", INTS),
       ATTRIBUTE("keep_aspect_ratio_policy", STRING)))
ROW(Round, "round_*, ?cast_*", ROWS(elementwise),
    UNARY(Round, 11, FLOATS, sp__round_lower, NO_ATTRIBUTES))
ROW(Scan, NO_KERNELS, TRAITS(.has_body = true),
    OP(Scan, 8, 8, 0, SP_OP_VARIADIC, 1, SP_OP_VARIADIC, ALL_ANY, sp__loop_infer, sp__loop_lower,
       NULL, REQUIRED("body", GRAPH), REQUIRED("num_scan_inputs", INT),
       ATTRIBUTE("directions", INTS)),
    OP(Scan, 9, NEWEST, 1, SP_OP_VARIADIC, 1, SP_OP_VARIADIC, ALL_ANY, sp__loop_infer,
       sp__loop_lower, NULL, REQUIRED("body", GRAPH), REQUIRED("num_scan_inputs", INT),
       ATTRIBUTE("scan_input_axes", INTS), ATTRIBUTE("scan_input_directions", INTS),
       ATTRIBUTE("scan_output_axes", INTS), ATTRIBUTE("scan_output_directions", INTS)))
ROW(Scatter, "copy_bytes, scatter_elements, ?cast_*", ROWS(scatter_elements),
    OP(Scatter, 9, 10, 3, 3, 1, 1, SCATTER_TYPES, sp__scatter_elements_infer, sp__scatter_elements_lower,
       NULL, ATTRIBUTE("axis", INT)))
ROW(ScatterElements, "copy_bytes, scatter_elements, ?cast_*", ROWS(scatter_elements),
    OP(ScatterElements, 11, 15, 3, 3, 1, 1, SCATTER_TYPES, sp__scatter_elements_infer,
       sp__scatter_elements_lower, NULL, ATTRIBUTE("axis", INT)),
    OP(ScatterElements, 16, NEWEST, 3, 3, 1, 1, SCATTER_TYPES, sp__scatter_elements_infer,
       sp__scatter_elements_lower, NULL, ATTRIBUTE("axis", INT), SCATTER_REDUCTION))
ROW(ScatterND, "copy_bytes, scatter_nd, ?copy_strided, ?cast_*", ROWS(scatter_nd),
    OP(ScatterND, 11, 15, 3, 3, 1, 1, SCATTER_TYPES, sp__scatter_nd_infer, sp__scatter_nd_lower, NULL,
       NO_ATTRIBUTES),
    OP(ScatterND, 16, NEWEST, 3, 3, 1, 1, SCATTER_TYPES, sp__scatter_nd_infer, sp__scatter_nd_lower, NULL,
       SCATTER_REDUCTION))
ROW(Selu, "selu_f32, ?cast_*", ROWS(elementwise),
    UNARY(Selu, 6, F32_AND_HALVES, sp__selu_lower, ATTRIBUTE("alpha", FLOAT),
          ATTRIBUTE("gamma", FLOAT)))
ROW(Shape, NO_KERNELS, TRAITS(.hides_values = true),
    OP(Shape, 1, 14, 1, 1, 1, 1, ANY, sp__shape_infer, sp__known_lower, NULL, NO_ATTRIBUTES),
    OP(Shape, 15, NEWEST, 1, 1, 1, 1, ANY, sp__shape_infer, sp__known_lower, NULL,
       ATTRIBUTE("start", INT), ATTRIBUTE("end", INT)))
ROW(Sigmoid, "sigmoid_f32, ?cast_*", ROWS(elementwise),
    UNARY(Sigmoid, 6, F32_AND_HALVES, sp__sigmoid_lower, NO_ATTRIBUTES))
ROW(Sign, "sign_*, ?cast_*", ROWS(elementwise),
    UNARY(Sign, 9, NUMBERS, sp__sign_lower, NO_ATTRIBUTES))
ROW(Sin, "sin_f32, ?cast_*", ROWS(elementwise),
    UNARY(Sin, 7, F32_AND_HALVES, sp__sin_lower, NO_ATTRIBUTES))
ROW(Sinh, "sinh_f32, ?cast_*", ROWS(elementwise),
    UNARY(Sinh, 9, F32_AND_HALVES, sp__sinh_lower, NO_ATTRIBUTES))
ROW(Size, NO_KERNELS, TRAITS(.hides_values = true),
    OP(Size, 1, NEWEST, 1, 1, 1, 1, ANY, sp__size_infer, sp__known_lower, NULL, NO_ATTRIBUTES))
ROW(Slice, "copy_strided", TRAITS(.shape_inputs = INPUT(1) | INPUT(2) | INPUT(3) | INPUT(4), ROWS(slice)),
    OP(Slice, 1, 9, 1, 1, 1, 1, ANY, sp__slice_infer, sp__slice_lower, NULL,
       REQUIRED("starts", INTS), REQUIRED("ends", INTS), ATTRIBUTE("axes", INTS)),
    OP(Slice, 10, NEWEST, 3, 5, 1, 1, TYPES(ANY, INTS, INTS, INTS, INTS), sp__slice_infer, sp__slice_lower, NULL, NO_ATTRIBUTES))
ROW(Softmax, "softmax_*", ROWS(softmax),
    OP(Softmax, 1, NEWEST, 1, 1, 1, 1, LANE_FLOATS, sp__softmax_infer, sp__softmax_lower, NULL,
       ATTRIBUTE("axis", INT)))
ROW(Softplus, "softplus_f32, ?cast_*", ROWS(elementwise),
    UNARY(Softplus, 1, F32_AND_HALVES, sp__softplus_lower, NO_ATTRIBUTES))
ROW(Softsign, "softsign_*, ?cast_*", ROWS(elementwise),
    UNARY(Softsign, 1, FLOATS, sp__softsign_lower, NO_ATTRIBUTES))
ROW(SpaceToDepth, "copy_strided", ROWS(image),
    OP(SpaceToDepth, 1, NEWEST, 1, 1, 1, 1, ANY, sp__space_to_depth_infer,
       sp__space_to_depth_lower, NULL, REQUIRED("blocksize", INT)))
ROW(Split, "split", TRAITS(.shape_inputs = INPUT(1), ROWS(split)),
    OP(Split, 2, 12, 1, 1, 1, SP_OP_VARIADIC, ANY, sp__split_infer, sp__split_lower, NULL,
       ATTRIBUTE("axis", INT), ATTRIBUTE("split", INTS)),
    OP(Split, 13, 17, 1, 2, 1, SP_OP_VARIADIC, TYPES(ANY, I64), sp__split_infer, sp__split_lower, NULL,
       ATTRIBUTE("axis", INT)),
    OP(Split, 18, NEWEST, 1, 2, 1, SP_OP_VARIADIC, TYPES(ANY, I64), sp__split_infer, sp__split_lower, NULL,
       ATTRIBUTE("axis", INT), ATTRIBUTE("num_outputs", INT)))
ROW(Sqrt, "sqrt_*, ?cast_*", ROWS(elementwise),
    UNARY(Sqrt, 6, FLOATS, sp__sqrt_lower, NO_ATTRIBUTES))
ROW(Squeeze, NO_KERNELS, TRAITS(.shape_inputs = INPUT(1), ROWS(reshape)),
    OP(Squeeze, 1, 12, 1, 1, 1, 1, ANY, sp__squeeze_infer, sp__view_lower, NULL,
       ATTRIBUTE("axes", INTS)),
    OP(Squeeze, 13, NEWEST, 1, 2, 1, 1, TYPES(ANY, INTS), sp__squeeze_infer, sp__view_lower, NULL,
       NO_ATTRIBUTES))
ROW(Sub, "sub_*, ?cast_*", ROWS(elementwise),
    BINARY(Sub, NUMBERS, sp__binary_infer, sp__sub_lower))
ROW(Sum, "add_*, ?cast_*", ROWS(elementwise),
    VARIADIC(Sum, FLOATS, sp__sum_lower))
ROW(Tan, "tan_f32, ?cast_*", ROWS(elementwise),
    UNARY(Tan, 7, F32_AND_HALVES, sp__tan_lower, NO_ATTRIBUTES))
ROW(Tanh, "tanh_f32, ?cast_*", ROWS(elementwise),
    UNARY(Tanh, 6, F32_AND_HALVES, sp__tanh_lower, NO_ATTRIBUTES))
ROW(ThresholdedRelu, "thresholded_relu_*, ?cast_*", ROWS(elementwise),
    UNARY(ThresholdedRelu, 10, FLOATS, sp__thresholded_relu_lower, ATTRIBUTE("alpha", FLOAT)))
ROW(Tile, "copy_strided", TRAITS(.shape_inputs = INPUT(1), ROWS(tile)),
    OP(Tile, 6, NEWEST, 2, 2, 1, 1, TYPES(ANY, INTS), sp__tile_infer, sp__tile_lower, NULL, NO_ATTRIBUTES))
ROW(TopK, "top_k", TRAITS(.shape_inputs = INPUT(1), ROWS(top_k)),
    OP(TopK, 1, 9, 1, 1, 2, 2, F32 | F64, sp__top_k_infer, sp__top_k_lower, NULL,
       ATTRIBUTE("axis", INT), REQUIRED("k", INT)),
    OP(TopK, 10, 10, 2, 2, 2, 2, TYPES(F32 | F64, INTS), sp__top_k_infer, sp__top_k_lower, NULL,
       ATTRIBUTE("axis", INT)),
    OP(TopK, 11, NEWEST, 2, 2, 2, 2, TYPES(F32 | F64 | ALL_INTS, INTS), sp__top_k_infer, sp__top_k_lower, NULL,
       ATTRIBUTE("axis", INT), ATTRIBUTE("largest", INT), ATTRIBUTE("sorted", INT)))
ROW(Transpose, "copy_strided", ROWS(transpose),
    OP(Transpose, 1, NEWEST, 1, 1, 1, 1, ANY, sp__transpose_infer, sp__transpose_lower, NULL,
       ATTRIBUTE("perm", INTS)))
ROW(Trilu, "trilu", TRAITS(.shape_inputs = INPUT(1), ROWS(trilu)),
    OP(Trilu, 14, NEWEST, 1, 2, 1, 1, TYPES(ANY, INTS), sp__trilu_infer, sp__trilu_lower, NULL,
       ATTRIBUTE("upper", INT)))
ROW(Unsqueeze, NO_KERNELS, TRAITS(.shape_inputs = INPUT(1), ROWS(reshape)),
    OP(Unsqueeze, 1, 12, 1, 1, 1, 1, ANY, sp__unsqueeze_infer, sp__view_lower, NULL,
       REQUIRED("axes", INTS)),
    OP(Unsqueeze, 13, NEWEST, 2, 2, 1, 1, TYPES(ANY, INTS), sp__unsqueeze_infer, sp__view_lower, NULL,
       NO_ATTRIBUTES))
ROW(Upsample, "resize_nearest, resize_*, ?cast_*", TRAITS(.shape_inputs = INPUT(1), ROWS(resize)),
    OP(Upsample, 7, 8, 1, 1, 1, 1, ANY, sp__resize_infer, sp__resize_lower, NULL,
       RESIZE_MODE, REQUIRED("scales", FLOATS)),
    OP(Upsample, 9, 9, 2, 2, 1, 1, TYPES(ANY, F32), sp__resize_infer, sp__resize_lower, NULL,
       RESIZE_MODE))
ROW(Where, "where_*", ROWS(elementwise),
    OP(Where, 9, NEWEST, 3, 3, 1, 1, TYPES(BOOLS, ANY, SP_DTYPES_LIKE(1)), sp__where_infer, sp__where_lower, NULL,
       NO_ATTRIBUTES))
ROW(Xor, "xor_bool", ROWS(elementwise),
    COMPARISON(Xor, 7, BOOLS, sp__xor_lower))
/* clang-format on */
