/* SPDX-License-Identifier: Apache-2.0 */
/* Indices from data: each is checked, so no access is out of bounds, and one that is out of range
 * is reported. */

/* sp_gpu_report (device/gpu_kernel.h), stored at once: several threads may report. */
struct __align__(16) sp_report_words {
    int64_t number, most;
};

/* Reports a number that is not below the limit; `at` is the number of the dispatch's bindings. */
SP_CUDA_FUNCTION void sp_report(const sp_gpu_bindings &bindings, int at, int64_t number,
                                int64_t limit)
{
    sp_report_words *report = (sp_report_words *)bindings.at[at];
    if (report) *report = {number, limit + 1};
}

SP_CUDA_FUNCTION int64_t sp_index_load(const void *indices, int64_t at, uint32_t index_bytes)
{
    return index_bytes == 4 ? ((const int32_t *)indices)[at] : ((const int64_t *)indices)[at];
}

/* A negative index counts from the end. The result is out of range if it is not in [0, size). */
SP_CUDA_FUNCTION int64_t sp_index_wrap(int64_t index, int64_t size)
{
    return index < 0 ? index + size : index;
}

SP_CUDA_FUNCTION bool sp_index_is_inside(int64_t index, int64_t size)
{
    return (uint64_t)index < (uint64_t)size;
}

/* The index at `at` of a dimension; -1: out of range. The kernel has three bindings, here and
 * below. */
SP_CUDA_FUNCTION int64_t sp_index_of(const sp_gpu_bindings &bindings, const void *indices,
                                     int64_t at, uint32_t index_bytes, int64_t size)
{
    const int64_t given = sp_index_load(indices, at, index_bytes);
    const int64_t index = sp_index_wrap(given, size);
    if (sp_index_is_inside(index, size)) return index;
    sp_report(bindings, 3, given, size);
    return -1;
}

/* The offset of an index of `depth` numbers, with strides in any unit; -1: out of range. */
SP_CUDA_FUNCTION int64_t sp_index_offset(const sp_gpu_bindings &bindings, const void *indices,
                                         int64_t at, uint32_t index_bytes, uint32_t depth,
                                         const int64_t *dims, const int64_t *strides)
{
    int64_t offset = 0;
#pragma unroll 1
    for (uint32_t i = 0; i < depth; i++) {
        const int64_t index = sp_index_of(bindings, indices, at + i, index_bytes, dims[i]);
        if (index < 0) return -1;
        offset += index * strides[i];
    }
    return offset;
}
