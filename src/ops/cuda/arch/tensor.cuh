/* SPDX-License-Identifier: Apache-2.0 */
/* Products on tensor cores: operands rounded to a narrow type, and a warp's product of 16 rows, 8
 * columns and 32 bytes of the depth (docs/decisions/0072). The order of the sum in it is the
 * processor's, the same for each output; it is the only arithmetic here whose bits are not defined.
 *
 * Lane l has of the outputs those of the rows l / 4 and l / 4 + 8, and of the columns 2 * (l % 4) and
 * the next one. Processors before compute capability 8.0 lack the instructions: no model asks for them
 * there. On the host (the emulator of the tests) the sum is a chain, with the bits of the CPU's
 * kernels. */

/* Types of operands. `step` elements are 32 bytes. */
struct sp_tensor_f16 {
    static constexpr int bytes = 2, step = 16;
    typedef uint16_t type;
    SP_CUDA_MEMBER type round(float x)
    {
        return sp_f16_of_float(x);
    }
    SP_CUDA_MEMBER float widen(type x)
    {
        return sp_wide_plain(sp_float_of_f16(x));
    }
};
struct sp_tensor_bf16 {
    static constexpr int bytes = 2, step = 16;
    typedef uint16_t type;
    SP_CUDA_MEMBER type round(float x)
    {
        return sp_bf16_of_float(x);
    }
    SP_CUDA_MEMBER float widen(type x)
    {
        return sp_wide_plain(sp_float_of_bf16(x));
    }
};
/* 10 bits of fraction, in the place of an f32. */
struct sp_tensor_tf32 {
    static constexpr int bytes = 4, step = 8;
    typedef uint32_t type;
    SP_CUDA_MEMBER type round(float x)
    {
        return sp_tf32_bits_of_float(x);
    }
    SP_CUDA_MEMBER float widen(type x)
    {
        return __uint_as_float(x);
    }
};

#if defined(__CUDA_ARCH__)

/* ---- two elements at once, the first in the low bits ---- */

#if __CUDA_ARCH__ >= 800
#define SP_TENSOR_INSTRUCTION(...) asm volatile(__VA_ARGS__)
#else
#define SP_TENSOR_INSTRUCTION(...) __trap()
#endif

#define SP_TENSOR_PAIR(E, instruction)                                                             \
    SP_CUDA_FUNCTION uint32_t sp_round_pair(E, float low, float high)                              \
    {                                                                                              \
        uint32_t pair = 0;                                                                         \
        SP_TENSOR_INSTRUCTION(instruction " %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));      \
        return pair;                                                                               \
    }
SP_TENSOR_PAIR(sp_tensor_f16, "cvt.rn.f16x2.f32")
SP_TENSOR_PAIR(sp_tensor_bf16, "cvt.rn.bf16x2.f32")

/* ---- the fragments of a lane ---- */

template <class E> struct sp_left_fragment {
    uint32_t at[4];
};
template <class E> struct sp_right_fragment {
    uint32_t at[2];
};

/* Four matrices of 8 rows of 16 bytes; lane l gives the address of row l % 8 of matrix l / 8. */
SP_CUDA_FUNCTION void sp_load_matrices(const void *from, uint32_t &a, uint32_t &b, uint32_t &c,
                                       uint32_t &d)
{
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(from);
    SP_TENSOR_INSTRUCTION("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                          : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
                          : "r"(at)
                          : "memory");
}

/* 16 rows of rounded elements, `pitch` bytes apart. */
template <class E>
SP_CUDA_FUNCTION void sp_read_left(const char *rows, int pitch, sp_left_fragment<E> &to)
{
    const int lane = (int)threadIdx.x % 32;
    sp_load_matrices(rows + lane % 16 * pitch + lane / 16 * 16, to.at[0], to.at[1], to.at[2],
                     to.at[3]);
}

/* 16 rows of f32, whose rows and steps are so many floats apart, which are rounded here. */
template <class E>
SP_CUDA_FUNCTION void sp_round_left(const float *rows, int pitch, int step, sp_left_fragment<E> &to)
{
    const int lane = (int)threadIdx.x % 32;
    rows += lane / 4 * pitch + lane % 4 * 2 * step;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const float *at = rows + i % 2 * 8 * pitch + i / 2 * 8 * step;
        to.at[i] = sp_round_pair(E(), at[0], at[step]);
    }
}
SP_CUDA_FUNCTION void sp_round_left(const float *rows, int pitch, int step,
                                    sp_left_fragment<sp_tensor_tf32> &to)
{
    const int lane = (int)threadIdx.x % 32;
    rows += lane / 4 * pitch + lane % 4 * step;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        to.at[i] = sp_tensor_tf32::round(rows[i % 2 * 8 * pitch + i / 2 * 4 * step]);
    }
}

/* 16 columns, `pitch` bytes apart. */
template <class E>
SP_CUDA_FUNCTION void sp_read_right(const char *columns, int pitch, sp_right_fragment<E> *to)
{
    const int lane = (int)threadIdx.x % 32;
    sp_load_matrices(columns + (lane / 16 * 8 + lane % 8) * pitch + lane / 8 % 2 * 16, to[0].at[0],
                     to[0].at[1], to[1].at[0], to[1].at[1]);
}

/* 16 columns, of 16 rows of elements of two bytes, `pitch` bytes apart. */
template <class E>
SP_CUDA_FUNCTION void sp_read_right_rows(const char *rows, int pitch, sp_right_fragment<E> *to)
{
    const int lane = (int)threadIdx.x % 32;
    const char *from = rows + lane % 16 * pitch + lane / 16 * 16;
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(from);
    SP_TENSOR_INSTRUCTION("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                          : "=r"(to[0].at[0]), "=r"(to[0].at[1]), "=r"(to[1].at[0]),
                            "=r"(to[1].at[1])
                          : "r"(at)
                          : "memory");
}

/* The outputs of two products, of neighbouring columns, as a left operand of two bytes. */
template <class E>
SP_CUDA_FUNCTION void sp_round_sums(const float (&first)[4], const float (&second)[4],
                                    sp_left_fragment<E> &to)
{
    to.at[0] = sp_round_pair(E(), first[0], first[1]);
    to.at[1] = sp_round_pair(E(), first[2], first[3]);
    to.at[2] = sp_round_pair(E(), second[0], second[1]);
    to.at[3] = sp_round_pair(E(), second[2], second[3]);
}

#define SP_TENSOR_PRODUCT(E, shape_and_types)                                                      \
    SP_CUDA_FUNCTION void sp_multiply_fragments(const sp_left_fragment<E> &left,                   \
                                                const sp_right_fragment<E> &right,                 \
                                                float (&sum)[4])                                   \
    {                                                                                              \
        SP_TENSOR_INSTRUCTION("mma.sync.aligned." shape_and_types                                  \
                              " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"   \
                              : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])             \
                              : "r"(left.at[0]), "r"(left.at[1]), "r"(left.at[2]),                 \
                                "r"(left.at[3]), "r"(right.at[0]), "r"(right.at[1]));              \
    }
SP_TENSOR_PRODUCT(sp_tensor_f16, "m16n8k16.row.col.f32.f16.f16.f32")
SP_TENSOR_PRODUCT(sp_tensor_bf16, "m16n8k16.row.col.f32.bf16.bf16.f32")
SP_TENSOR_PRODUCT(sp_tensor_tf32, "m16n8k8.row.col.f32.tf32.tf32.f32")

/* Four rounded elements, side by side. */
template <class E> SP_CUDA_FUNCTION void sp_store_rounded(E, const float4 &x, char *to)
{
    *(uint2 *)to = {sp_round_pair(E(), x.x, x.y), sp_round_pair(E(), x.z, x.w)};
}
SP_CUDA_FUNCTION void sp_store_rounded(sp_tensor_tf32, const float4 &x, char *to)
{
    *(uint4 *)to = {sp_tensor_tf32::round(x.x), sp_tensor_tf32::round(x.y),
                    sp_tensor_tf32::round(x.z), sp_tensor_tf32::round(x.w)};
}

/* Two elements. */
template <class E> SP_CUDA_FUNCTION void sp_store_rounded(E, float low, float high, char *to)
{
    *(uint32_t *)to = sp_round_pair(E(), low, high);
}
SP_CUDA_FUNCTION void sp_store_rounded(sp_tensor_tf32, float low, float high, char *to)
{
    *(uint2 *)to = {sp_tensor_tf32::round(low), sp_tensor_tf32::round(high)};
}

#else

/* A lane's rows and columns. */
template <class E> struct sp_left_fragment {
    float at[2][E::step];
};
template <class E> struct sp_right_fragment {
    float at[2][E::step];
};

template <class E>
SP_CUDA_FUNCTION void sp_read_left(const char *rows, int pitch, sp_left_fragment<E> &to)
{
    for (int i = 0; i < 2; i++) {
        const int row = (int)threadIdx.x % 32 / 4 + i * 8;
        const auto *at = (const typename E::type *)(rows + row * pitch);
        for (int k = 0; k < E::step; k++) to.at[i][k] = E::widen(at[k]);
    }
}

template <class E>
SP_CUDA_FUNCTION void sp_round_left(const float *rows, int pitch, int step, sp_left_fragment<E> &to)
{
    for (int i = 0; i < 2; i++) {
        const float *row = rows + ((int)threadIdx.x % 32 / 4 + i * 8) * pitch;
        for (int k = 0; k < E::step; k++) to.at[i][k] = E::widen(E::round(row[k * step]));
    }
}

template <class E>
SP_CUDA_FUNCTION void sp_read_right(const char *columns, int pitch, sp_right_fragment<E> *to)
{
    for (int i = 0; i < 4; i++) {
        const int column = i / 2 * 8 + (int)threadIdx.x % 4 * 2 + i % 2;
        const auto *at = (const typename E::type *)(columns + column * pitch);
        for (int k = 0; k < E::step; k++) to[i / 2].at[i % 2][k] = E::widen(at[k]);
    }
}

template <class E>
SP_CUDA_FUNCTION void sp_read_right_rows(const char *rows, int pitch, sp_right_fragment<E> *to)
{
    for (int i = 0; i < 4; i++) {
        const int column = i / 2 * 8 + (int)threadIdx.x % 4 * 2 + i % 2;
        for (int k = 0; k < E::step; k++) {
            const auto *at = (const typename E::type *)(rows + k * pitch);
            to[i / 2].at[i % 2][k] = E::widen(at[column]);
        }
    }
}

template <class E>
SP_CUDA_FUNCTION void sp_round_sums(const float (&first)[4], const float (&second)[4],
                                    sp_left_fragment<E> &to)
{
    const int quad = (int)threadIdx.x % 32 / 4 * 4;
    for (int k = 0; k < E::step; k++) {
        const float(&sums)[4] = k < 8 ? first : second;
        for (int i = 0; i < 2; i++) {
            const float sum = __shfl_sync(0xffffffffu, sums[i * 2 + k % 2], quad + k % 8 / 2);
            to.at[i][k] = E::widen(E::round(sum));
        }
    }
}

template <class E>
SP_CUDA_FUNCTION void sp_multiply_fragments(const sp_left_fragment<E> &left,
                                            const sp_right_fragment<E> &right, float (&sum)[4])
{
    for (int i = 0; i < 4; i++) {
        for (int k = 0; k < E::step; k++) {
            sum[i] = __fmaf_rn(left.at[i / 2][k], right.at[i % 2][k], sum[i]);
        }
    }
}

template <class E> SP_CUDA_FUNCTION void sp_store_rounded(E, const float4 &x, char *to)
{
    auto *at = (typename E::type *)to;
    const float values[] = {x.x, x.y, x.z, x.w};
    for (int i = 0; i < 4; i++) at[i] = E::round(values[i]);
}

template <class E> SP_CUDA_FUNCTION uint32_t sp_round_pair(E, float low, float high)
{
    return E::round(low) | (uint32_t)E::round(high) << 16;
}

template <class E> SP_CUDA_FUNCTION void sp_store_rounded(E, float low, float high, char *to)
{
    auto *at = (typename E::type *)to;
    at[0] = E::round(low);
    at[1] = E::round(high);
}

#endif
