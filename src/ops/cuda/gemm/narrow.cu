/* SPDX-License-Identifier: Apache-2.0 */
/* Narrow products, and the packing of their weights. */

/* The sums of the tile at (row, column), in the first group of warps. */
template <class T>
SP_CUDA_FUNCTION void
sp_narrow_product_sums(const sp_gpu_bindings &bindings, const sp_gemm_constants &k,
                       const sp_narrow_place &place, char *pool, int64_t row, int64_t column,
                       sp_narrow_sums<T> &sum)
{
    const sp_narrow_left<T, T::left> left(k, bindings.at[0], row, place.thread);
    const auto right = sp_make_narrow_lines<T::columns, T::group_threads, T::pitch>(
        bindings.at[1], k.columns, column, place.thread);
    const int chunks = (int)sp_cuda_tiles(k.depth, T::chunk);
    sp_narrow_run<T>(pool + place.group * T::group_bytes,
                     (float *)(pool + T::groups * T::group_bytes), chunks, place, left, right, sum);
}

/* The tile at (row, column). */
template <class T>
SP_CUDA_FUNCTION void
sp_narrow_product_tile(const sp_gpu_bindings &bindings, const sp_gemm_constants &k,
                       const sp_narrow_place &place, char *pool, int64_t row, int64_t column)
{
    sp_narrow_sums<T> sum;
    sp_narrow_product_sums<T>(bindings, k, place, pool, row, column, sum);
    if (place.group == 0) sp_narrow_finish_tile<T>(bindings, k, place, row, column, sum);
    __syncthreads(); /* the next tile may use the memory */
}

/* Blocks: x over the rows, y over the columns. */
template <class T>
SP_CUDA_FUNCTION void sp_narrow_product(const sp_gpu_bindings &bindings, const sp_gemm_constants &k,
                                        char *pool)
{
    const sp_narrow_place place = sp_make_narrow_place<T>();
#pragma unroll 1
    for (int64_t column = (int64_t)blockIdx.y * T::columns; column < k.columns;
         column += (int64_t)gridDim.y * T::columns) {
#pragma unroll 1
        for (int64_t row = (int64_t)blockIdx.x * T::rows; row < k.rows;
             row += (int64_t)gridDim.x * T::rows) {
            sp_narrow_product_tile<T>(bindings, k, place, pool, row, column);
        }
    }
}

#define SP_NARROW_TILE(name, rows, columns, warp_rows, warp_columns, groups, stages, left)         \
    template <class E>                                                                             \
    using sp_narrow_##name =                                                                       \
        sp_narrow_tile<E, rows, columns, warp_rows, warp_columns, groups, stages, left>;
SP_CUDA_NARROW_TILE_LIST(SP_NARROW_TILE)
SP_CUDA_PACKED_TILE_LIST(SP_NARROW_TILE)

#define SP_NARROW_ENTRY(name, T, blocks)                                                           \
    SP_CUDA_KERNEL_ENTRY(name, sp_gemm_constants, __launch_bounds__(T::threads, blocks), (void)0)  \
    {                                                                                              \
        SP_CUDA_SHARED(pool);                                                                      \
        sp_narrow_product<T>(bindings, k, (char *)pool);                                           \
    }
template <class T> using sp_narrow_plain = T;
/* The last packed tile, by warpgroups where the processor has them. */
#if defined(SP_CUDA_GROUPS)
#define SP_NARROW_LARGE_ENTRY(name, E, columns, halves)                                            \
    SP_CUDA_KERNEL_ENTRY(name, sp_gemm_constants,                                                  \
                         __launch_bounds__(256, 1) SP_CUDA_CLUSTERED(SP_CUDA_GROUP_BLOCKS),        \
                         (void)0)                                                                  \
    {                                                                                              \
        typedef halves<sp_group_tile<E, columns>> Tile;                                            \
        static_assert(Tile::threads == 256, "as above");                                           \
        SP_CUDA_SHARED(pool);                                                                      \
        sp_group_product<Tile>(bindings, k, (char *)pool);                                         \
    }
#else
#define SP_NARROW_LARGE_ENTRY(name, E, columns, halves)                                            \
    SP_NARROW_ENTRY(name, halves<sp_narrow_128<E>>, 1)
#endif
#define SP_NARROW_PRODUCTS(suffix)                                                                 \
    SP_NARROW_ENTRY(gemm_narrow_##suffix, sp_narrow_few<sp_tensor_##suffix>, 2)                    \
    SP_NARROW_ENTRY(gemm_narrow_deep_##suffix, sp_narrow_deep<sp_tensor_##suffix>, 1)              \
    SP_NARROW_ENTRY(gemm_narrow_32_##suffix, sp_narrow_32<sp_tensor_##suffix>, 1)                  \
    SP_NARROW_ENTRY(gemm_narrow_64_##suffix, sp_narrow_64<sp_tensor_##suffix>, 2)                  \
    SP_NARROW_ENTRY(gemm_packed_##suffix, sp_narrow_packed<sp_tensor_##suffix>, 2)                 \
    SP_NARROW_ENTRY(gemm_packed_wide_##suffix, sp_narrow_wide<sp_tensor_##suffix>, 1)              \
    SP_NARROW_LARGE_ENTRY(gemm_packed_128_##suffix, sp_tensor_##suffix, 128, sp_narrow_plain)      \
    SP_NARROW_LARGE_ENTRY(gemm_packed_192_##suffix, sp_tensor_##suffix, 192, sp_narrow_plain)

SP_NARROW_PRODUCTS(tf32)
SP_NARROW_PRODUCTS(f16)
SP_NARROW_PRODUCTS(bf16)

/* With rows of the type. */
#define SP_NARROW_HALVES(suffix)                                                                   \
    SP_NARROW_ENTRY(gemm_halves_##suffix, sp_narrow_halves<sp_narrow_packed<sp_tensor_##suffix>>,  \
                    2)                                                                             \
    SP_NARROW_LARGE_ENTRY(gemm_halves_128_##suffix, sp_tensor_##suffix, 128, sp_narrow_halves)     \
    SP_NARROW_LARGE_ENTRY(gemm_halves_192_##suffix, sp_tensor_##suffix, 192, sp_narrow_halves)

SP_NARROW_HALVES(f16)
SP_NARROW_HALVES(bf16)

/* Where step `depth` is in its column. */
SP_CUDA_FUNCTION int64_t sp_pack_step(const sp_pack_constants &k, int64_t depth)
{
    if (k.block == 0) return depth * k.depth_stride;
    const int64_t block = sp_quotient(depth, k.block);
    return block * k.block_stride + (depth - block * k.block) * k.depth_stride;
}

/* Four steps of f32, of which `rest` are there. */
SP_CUDA_FUNCTION float4 sp_pack_load(const sp_pack_constants &k, const float *column,
                                     int64_t depth, int64_t rest)
{
    float4 x = {0, 0, 0, 0};
    if (rest > 0) x.x = column[sp_pack_step(k, depth)];
    if (rest > 1) x.y = column[sp_pack_step(k, depth + 1)];
    if (rest > 2) x.z = column[sp_pack_step(k, depth + 2)];
    if (rest > 3) x.w = column[sp_pack_step(k, depth + 3)];
    return x;
}

/* A thread for each 16 bytes. Neighbouring threads have neighbouring elements of b. */
template <class E>
SP_CUDA_FUNCTION void sp_narrow_pack(const sp_gpu_bindings &bindings,
                                     const sp_pack_constants &k)
{
    typedef typename E::type Element;
    constexpr int elements = 16 / E::bytes, parts = SP_NARROW_BYTES / 16;
    const void *b = bindings.at[0];
    const int64_t columns = sp_cuda_tiles(k.columns, SP_NARROW_LINES) * SP_NARROW_LINES;
    const int64_t count = sp_cuda_tiles(k.depth, elements * parts) * parts * columns;
    const bool is_along = k.depth_stride == 1;
    const int vector = k.is_half ? elements : 4;
    const bool is_wide = is_along && k.block == 0 && ((uint64_t)b & 15) == 0 &&
                         k.column_stride % vector == 0 && k.depth % elements == 0;
#pragma unroll 1
    for (int64_t i = sp_thread_index(); i < count; i += sp_thread_stride()) {
        int64_t chunk = i;
        const int64_t inner = sp_take_coordinate(&chunk, is_along ? parts : columns);
        const int64_t outer = sp_take_coordinate(&chunk, is_along ? columns : parts);
        const int64_t column = is_along ? outer : inner, part = is_along ? inner : outer;
        const int64_t depth = (chunk * parts + part) * elements;
        const int64_t rest = column < k.columns ? k.depth - depth : 0;
        char *to = (char *)bindings.at[1] + (chunk * columns + column) * SP_NARROW_BYTES +
                   sp_narrow_part((int)part, column) * 16;
        if (k.is_half) {
            const Element *from = (const Element *)b + column * k.column_stride;
            if (is_wide) {
                const float4 none = {0, 0, 0, 0};
                *(float4 *)to = rest > 0 ? *(const float4 *)(from + depth) : none;
                continue;
            }
#pragma unroll
            for (int j = 0; j < elements; j++) {
                ((Element *)to)[j] = rest > j ? from[sp_pack_step(k, depth + j)] : (Element)0;
            }
            continue;
        }
        const float *from = (const float *)b + column * k.column_stride;
#pragma unroll
        for (int j = 0; j < elements; j += 4) {
            float4 x = {0, 0, 0, 0};
            if (!is_wide) x = sp_pack_load(k, from, depth + j, rest - j);
            else if (rest > 0) x = *(const float4 *)(from + depth + j);
            sp_store_rounded(E(), x, to + j * E::bytes);
        }
    }
}

#define SP_NARROW_PACK(suffix)                                                                     \
    SP_CUDA_KERNEL(narrow_pack_##suffix, sp_pack_constants)                                        \
    {                                                                                              \
        sp_narrow_pack<sp_tensor_##suffix>(bindings, k);                                           \
    }

SP_NARROW_PACK(tf32)
SP_NARROW_PACK(f16)
SP_NARROW_PACK(bf16)
