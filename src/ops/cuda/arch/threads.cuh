/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of constants, and indices of threads and elements. */

#define SP_CONSTANTS_CHECK(type, bytes) static_assert(sizeof(type) == bytes, "one layout");
SP_CONSTANTS_LIST(SP_CONSTANTS_CHECK)
#undef SP_CONSTANTS_CHECK

SP_CUDA_FUNCTION int64_t sp_thread_index()
{
    return (int64_t)blockIdx.x * SP_CUDA_THREADS + threadIdx.x;
}

SP_CUDA_FUNCTION int64_t sp_thread_stride()
{
    return (int64_t)gridDim.x * SP_CUDA_THREADS;
}

/* Quotient of numbers that are not negative. Most fit 32 bits, for which a division is several
 * times faster. */
SP_CUDA_FUNCTION int64_t sp_quotient(int64_t a, int64_t b)
{
    if ((uint64_t)(a | b) >> 32 == 0) return (uint32_t)a / (uint32_t)b;
    return a / b;
}

/* Splits the innermost coordinate, of a dimension of `size`, off a linear index. */
SP_CUDA_FUNCTION int64_t sp_take_coordinate(int64_t *index, int64_t size)
{
    const int64_t outer = sp_quotient(*index, size);
    const int64_t coordinate = *index - outer * size;
    *index = outer;
    return coordinate;
}

/* Places of element `index`, in row-major order, in two operands by their strides. */
struct sp_places {
    int64_t a, b;
};

SP_CUDA_FUNCTION sp_places sp_places_of(int64_t index, uint32_t rank, const int64_t *dims,
                                        const int64_t *a, const int64_t *b)
{
    sp_places places = {0, 0};
#pragma unroll 1
    for (uint32_t d = rank - 1; d > 0; d--) {
        const int64_t coordinate = sp_take_coordinate(&index, dims[d]);
        places.a += coordinate * a[d];
        places.b += coordinate * b[d];
    }
    places.a += index * a[0];
    places.b += index * b[0];
    return places;
}
