/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that copy or repeat elements: all bits are kept, those of NaNs too. Memory is aligned to
 * its elements only; with a larger alignment a thread copies more bytes at once. */

template <class T>
SP_CUDA_FUNCTION void sp_copy_units(const sp_gpu_bindings &bindings, const sp_flat_constants &k)
{
    const T *x = (const T *)bindings.at[0];
    T *y = (T *)bindings.at[1];
    const int64_t whole = k.count / (int64_t)sizeof(T);
#pragma unroll 1
    for (int64_t i = sp_thread_index(); i < whole; i += sp_thread_stride()) y[i] = x[i];
    /* The rest is fewer bytes than a block has threads. */
    const int64_t at = whole * (int64_t)sizeof(T) + threadIdx.x;
    if (blockIdx.x == 0 && at < k.count) {
        ((uint8_t *)bindings.at[1])[at] = ((const uint8_t *)bindings.at[0])[at];
    }
}

SP_CUDA_KERNEL(copy_bytes, sp_flat_constants)
{
    const uint64_t bits = (uint64_t)bindings.at[0] | (uint64_t)bindings.at[1];
    SP_BY_UNIT(bits, sp_copy_units, bindings, k);
}

template <class T>
SP_CUDA_FUNCTION void sp_copy_elements(const sp_gpu_bindings &bindings, const sp_copy_constants &k)
{
    const T *x = (const T *)bindings.at[0] + k.x_first;
    T *y = (T *)bindings.at[1] + k.y_first;
#pragma unroll 1
    for (int64_t i = sp_thread_index(); i < k.count; i += sp_thread_stride()) {
        const sp_places at = sp_places_of(i, k.rank, k.dims, k.x, k.y);
        y[at.b] = x[at.a];
    }
}

/* By rows of words (sp_cuda_copy_has_words). */
SP_CUDA_FUNCTION void sp_copy_words(const uint8_t *x, uint8_t *y, const sp_copy_constants &k)
{
    const int64_t bytes = k.element_bytes, word = SP_CUDA_COPY_WORD;
    const int64_t width = k.dims[k.rank - 1] * bytes / word, count = k.count * bytes / word;
#pragma unroll 1
    for (int64_t i = sp_thread_index(); i < count; i += sp_thread_stride()) {
        int64_t row = i;
        const int64_t column = sp_take_coordinate(&row, width) * word;
        sp_places at = {0, 0};
        if (k.rank > 1) at = sp_places_of(row, k.rank - 1, k.dims, k.x, k.y);
        *(sp_word16 *)(y + at.b * bytes + column) = *(const sp_word16 *)(x + at.a * bytes + column);
    }
}

SP_CUDA_KERNEL(copy_strided, sp_copy_constants)
{
    const uint8_t *x = (const uint8_t *)bindings.at[0] + k.x_first * (int64_t)k.element_bytes;
    uint8_t *y = (uint8_t *)bindings.at[1] + k.y_first * (int64_t)k.element_bytes;
    const bool is_aligned = ((uint64_t)x | (uint64_t)y) % SP_CUDA_COPY_WORD == 0;
    if (is_aligned && sp_cuda_copy_has_words(&k)) sp_copy_words(x, y, k);
    else SP_BY_ELEMENT(k.element_bytes, sp_copy_elements, bindings, k);
}

/* Copies one part of each row, to the whole or from it. */
template <class T>
SP_CUDA_FUNCTION void sp_copy_rows(const sp_concat_constants &k, void *piece, void *part,
                                   int64_t part_bytes, bool is_split)
{
    const int64_t width = part_bytes / (int64_t)sizeof(T);
    const int64_t row_step = k.row_bytes / (int64_t)sizeof(T);
    const int64_t count = width * k.outer;
    T *in_whole = (T *)piece, *in_part = (T *)part;
#pragma unroll 1
    for (int64_t i = sp_thread_index(); i < count; i += sp_thread_stride()) {
        int64_t row = i;
        const int64_t column = sp_take_coordinate(&row, width);
        T *at = in_whole + row * row_step + column;
        if (is_split) in_part[i] = *at;
        else *at = in_part[i];
    }
}

/* For part blockIdx.y. */
SP_CUDA_FUNCTION void sp_copy_part(const sp_concat_constants &k, void *whole, void *part,
                                   bool is_split)
{
    const int64_t bytes = k.part_bytes[blockIdx.y];
    uint8_t *piece = (uint8_t *)whole + k.part_offset[blockIdx.y];
    const uint64_t bits = (uint64_t)piece | (uint64_t)part | (uint64_t)(k.row_bytes | bytes);
    SP_BY_UNIT(bits, sp_copy_rows, k, piece, part, bytes, is_split);
}

SP_CUDA_KERNEL(concat, sp_concat_constants)
{
    sp_copy_part(k, bindings.at[k.parts], bindings.at[blockIdx.y], false);
}

SP_CUDA_KERNEL(split, sp_concat_constants)
{
    sp_copy_part(k, bindings.at[0], bindings.at[blockIdx.y + 1], true);
}

template <class T>
SP_CUDA_FUNCTION void sp_fill_elements(const sp_gpu_bindings &bindings, const sp_fill_constants &k)
{
    T *y = (T *)bindings.at[0];
#pragma unroll 1
    for (int64_t i = sp_thread_index(); i < k.count; i += sp_thread_stride()) y[i] = (T)k.value;
}

SP_CUDA_KERNEL(fill, sp_fill_constants)
{
    SP_BY_ELEMENT(k.element_bytes, sp_fill_elements, bindings, k);
}

/* The input coordinate that output coordinate `at` copies, or -1 for the constant. */
SP_CUDA_FUNCTION int64_t sp_pad_source(const sp_pad_constants &k, int64_t at, uint32_t dim)
{
    const int64_t size = k.in[dim];
    int64_t from = at - k.lead[dim];
    if (from >= 0 && from < size) return from;
    if (k.mode == SP_PAD_CONSTANT) return -1;
    if (k.mode == SP_PAD_EDGE) return from < 0 ? 0 : size - 1;
    if (k.mode == SP_PAD_WRAP) {
        from %= size;
        return from < 0 ? from + size : from;
    }
    /* Mirrored at the outermost elements, repeatedly if the padding is longer than the input. */
    const int64_t period = 2 * (size - 1);
    if (period == 0) return 0;
    from %= period;
    if (from < 0) from += period;
    return from < size ? from : period - from;
}

/* Offset of the element that is copied to element `index` of y, or -1. */
SP_CUDA_FUNCTION int64_t sp_pad_offset(const sp_pad_constants &k, int64_t index)
{
    int64_t offset = 0, stride = 1;
#pragma unroll 1
    for (uint32_t i = k.rank; i-- > 0;) {
        const int64_t from = sp_pad_source(k, sp_take_coordinate(&index, k.out[i]), i);
        if (from < 0) return -1;
        offset += from * stride;
        stride *= k.in[i];
    }
    return offset;
}

template <class T>
SP_CUDA_FUNCTION void sp_pad_elements(const sp_gpu_bindings &bindings, const sp_pad_constants &k)
{
    const T *x = (const T *)bindings.at[0];
    T *y = (T *)bindings.at[k.has_value ? 2 : 1];
    const T value = k.has_value ? *(const T *)bindings.at[1] : (T)k.value;
    const int64_t count = k.rows * k.out[k.rank - 1];
#pragma unroll 1
    for (int64_t i = sp_thread_index(); i < count; i += sp_thread_stride()) {
        const int64_t from = sp_pad_offset(k, i);
        y[i] = from < 0 ? value : x[from];
    }
}

SP_CUDA_KERNEL(pad, sp_pad_constants)
{
    SP_BY_ELEMENT(k.element_bytes, sp_pad_elements, bindings, k);
}

/* The pieces of row blockIdx.y. */
template <class T>
SP_CUDA_FUNCTION void sp_move_pieces(const sp_rows_constants &k, void *row, void *whole)
{
    const int64_t width = k.chunk / (int64_t)sizeof(T);
    const int64_t count = width * k.outer;
    T *in_row = (T *)row, *in_whole = (T *)whole + blockIdx.y * width;
#pragma unroll 1
    for (int64_t i = sp_thread_index(); i < count; i += sp_thread_stride()) {
        int64_t piece = i;
        const int64_t column = sp_take_coordinate(&piece, width);
        T *at = in_whole + piece * k.rows * width + column;
        if (k.is_out != 0) in_row[i] = *at;
        else *at = in_row[i];
    }
}

SP_CUDA_KERNEL(move_rows, sp_rows_constants)
{
    uint8_t *row = (uint8_t *)bindings.at[1] + ((const int64_t *)bindings.at[0])[blockIdx.y];
    const uint64_t bits = (uint64_t)row | (uint64_t)bindings.at[2] | (uint64_t)k.chunk;
    SP_BY_UNIT(bits, sp_move_pieces, k, row, bindings.at[2]);
}
