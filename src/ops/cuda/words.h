/* SPDX-License-Identifier: Apache-2.0 */
/* What the library's copy of the kernels' text abbreviates: W(letter, text) is written as '$' and
 * the letter, or digit. The build reads these lines too (cmake/shorten.cmake), in this order; the
 * text of no kernel has a '$'. */
#ifndef SP_OPS_CUDA_WORDS_H
#define SP_OPS_CUDA_WORDS_H

/* clang-format off */
#define SP_CUDA_WORD_LIST(W)                                                                       \
    W('a', "SP_CUDA_FUNCTION ") W('b', "const ") W('c', "int64_t ") W('d', "return ")              \
    W('e', "template <class ") W('f', "#pragma unroll") W('g', "__device__ __forceinline__ ")      \
    W('h', "bindings") W('i', "sp_f32 ") W('j', "float ") W('k', "sp_f64 ")                        \
    W('l', "SP_MATH_INLINE ") W('m', "#define ") W('n', "uint32_t") W('o', "typedef ")             \
    W('p', "struct ") W('q', "sp_two_f64 ") W('r', "int ") W('s', "SP_EACH_FLOAT(X,")              \
    W('t', "place") W('u', "SP_CUDA_KERNEL(") W('v', "count") W('w', "sp_take_coordinate(&")       \
    W('x', "if (") W('y', "for (") W('z', "template <> ") W('A', "first")                          \
    W('B', "sp_double_from_bits(") W('C', "bool ") W('D', "SP_CUDA_MEMBER ")                       \
    W('E', "sp_float_bits(") W('F', "[SP_KERNEL_RANK]") W('G', "void ") W('H', "##suffix,T,")      \
    W('I', "sp_float_from_bits(") W('J', "sp_double_bits(") W('K', "sp_thread_stride()")           \
    W('L', "columns") W('M', "SP_CUDA_REDUCTION") W('N', "sp_thread_index()")                      \
    W('O', "static constexpr ") W('P', "function") W('Q', "SP_FLOAT_UNARY(")                       \
    W('R', "threadIdx.x") W('S', "(uint64_t)") W('T', "SP_CUDA_THREADS") W('U', "1.0 / ")          \
    W('V', "SP_CUDA_ELEMENTS") W('W', "__syncthreads();") W('X', "SP_CUDA_LANES")                  \
    W('Y', "result") W('Z', "extent") W('0', "_constants") W('1', " sp_") W('2', "SP_CUDA_")       \
    W('3', "SP_ATTENTION_") W('4', "sp_attention") W('5', "float") W('6', "=sp_") W('7', "lane")   \
    W('8', "size") W('9', "column")
/* clang-format on */

#endif
