/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles of narrow products: y = activation(alpha * sum + beta * c), where both operands are rounded to
 * a type of tensor cores (arch/tensor.cuh) and sums are f32.
 *
 * The depth is cut into chunks of 128 bytes, and SP_NARROW_CHUNKS chunks are a segment. A chain
 * goes through the 32 bytes of a segment in order, and the chains are added in order, from +0. So an
 * output's bits are the same in every tile: what a tile has are rows, columns, warps, and segments that
 * groups of warps compute side by side. The weights lie in the order in which blocks read them: [chunk]
 * [column][128 bytes], with zeros after the last column and step. */

template <class E, int Rows, int Columns, int WarpRows, int WarpColumns, int Groups, int Stages,
          int Left>
struct sp_narrow_tile {
    typedef E element;
    static constexpr int rows = Rows, columns = Columns, groups = Groups, stages = Stages;
    static constexpr int left = Left;
    static constexpr bool has_halves = false;
    static constexpr int chunk = SP_NARROW_BYTES / E::bytes; /* steps of the depth */
    static constexpr int steps = SP_NARROW_BYTES / 32;       /* products of a chunk */
    /* Of fragments, of a warp. */
    static constexpr int down = WarpRows / 16, across = WarpColumns / 8;
    static constexpr int warp_rows = WarpRows, warp_columns = WarpColumns;
    static constexpr int warps_across = Columns / WarpColumns;
    static constexpr int group_threads = Rows / WarpRows * warps_across * 32;
    static constexpr int threads = group_threads * Groups;
    /* Rows of shared memory begin in different banks. */
    static constexpr int pitch = SP_CUDA_NARROW_PITCH;
    static constexpr int raw_pitch = chunk + 16 / E::bytes;
    static constexpr int pixel_pitch = Rows + 2 * E::bytes;
    static constexpr int left_bytes = SP_CUDA_NARROW_LEFT_BYTES(Rows, Left, E::bytes);
    static constexpr int stage_bytes = left_bytes + Columns * pitch;
    static constexpr int group_bytes = Stages * stage_bytes;
    static constexpr int bytes = Groups * group_bytes + (Groups - 1) * Rows * Columns * 4;
    static constexpr int sums = down * across * 4; /* of a thread */
    static_assert(bytes == SP_CUDA_NARROW_TILE_BYTES(Rows, Columns, Groups, Stages, Left, E::bytes),
                  "as the host counts them");
    static_assert(across % 2 == 0, "fragments of columns are read in pairs");
};

/* The same whose results are rows of the type, scaled (kernel_constants.h). */
template <class T> struct sp_narrow_halves : T {
    static constexpr bool has_halves = true;
};

/* A thread's place in the block. */
struct sp_narrow_place {
    int group, thread; /* the thread in its group */
    int row, column;   /* of its warp, in the tile */
};

template <class T> SP_CUDA_FUNCTION sp_narrow_place sp_make_narrow_place()
{
    const int thread = (int)threadIdx.x % T::group_threads, warp = thread / 32;
    return {(int)threadIdx.x / T::group_threads, thread,
            warp / T::warps_across * T::warp_rows, warp % T::warps_across * T::warp_columns};
}

/* The chunks of a group: those of its segment, then of its next one. */
template <class T> struct sp_narrow_cursor {
    int chunk;

    __device__ __forceinline__ void advance()
    {
        chunk++;
        if (chunk % SP_NARROW_CHUNKS == 0) chunk += (T::groups - 1) * SP_NARROW_CHUNKS;
    }
};

/* Chunks of the first group, which has the most. */
template <class T> SP_CUDA_FUNCTION int sp_narrow_count(int chunks)
{
    constexpr int length = SP_NARROW_CHUNKS, round = length * T::groups;
    const int rest = chunks % round;
    return chunks / round * length + (rest < length ? rest : length);
}

/* ---- sums ---- */

template <class T> struct sp_narrow_sums {
    float at[T::down][T::across][4];

    __device__ __forceinline__ void clear()
    {
#pragma unroll
        for (int i = 0; i < T::sums; i++) (&at[0][0][0])[i] = 0;
    }

    __device__ __forceinline__ void add(const sp_narrow_sums &chain)
    {
#pragma unroll
        for (int i = 0; i < T::down; i++) {
#pragma unroll
            for (int j = 0; j < T::across; j++) {
#pragma unroll
                for (int e = 0; e < 4; e++) at[i][j][e] = __fadd_rn(at[i][j][e], chain.at[i][j][e]);
            }
        }
    }
};

/* The products of a chunk. */
template <class T>
SP_CUDA_FUNCTION void sp_narrow_multiply(const char *stage, const sp_narrow_place &place,
                                         sp_narrow_sums<T> &chain)
{
    typedef typename T::element E;
    const char *right = stage + T::left_bytes + place.column * T::pitch;
#pragma unroll
    for (int s = 0; s < T::steps; s++) {
        sp_left_fragment<E> a[T::down];
        sp_right_fragment<E> b[T::across];
#pragma unroll
        for (int j = 0; j < T::across; j += 2) {
            sp_read_right<E>(right + j * 8 * T::pitch + s * 32, T::pitch, b + j);
        }
#pragma unroll
        for (int i = 0; i < T::down; i++) {
            sp_narrow_left<T, T::left>::read(stage, place.row + i * 16, s, a[i]);
        }
#pragma unroll
        for (int i = 0; i < T::down; i++) {
#pragma unroll
            for (int j = 0; j < T::across; j++) sp_multiply_fragments(a[i], b[j], chain.at[i][j]);
        }
    }
}

/* Adds the chains of all groups to the sums of the first, in order. One without a segment adds +0. */
template <class T>
SP_CUDA_FUNCTION void sp_narrow_end_segment(const sp_narrow_place &place, float *chains,
                                            sp_narrow_sums<T> &chain, sp_narrow_sums<T> &sum)
{
    sum.add(chain);
    if (T::groups > 1) {
        float *mine = chains + place.thread;
        if (place.group > 0) {
#pragma unroll
            for (int i = 0; i < T::sums; i++) {
                mine[((place.group - 1) * T::sums + i) * T::group_threads] = (&chain.at[0][0][0])[i];
            }
        }
        /* The next chains are written behind the next chunk's barrier. */
        __syncthreads();
        if (place.group == 0) {
#pragma unroll 1
            for (int g = 1; g < T::groups; g++) {
#pragma unroll
                for (int i = 0; i < T::sums; i++) {
                    float *to = &sum.at[0][0][0] + i;
                    *to = __fadd_rn(*to, mine[((g - 1) * T::sums + i) * T::group_threads]);
                }
            }
        }
    }
    chain.clear();
}

/* The sums of a tile, in the first group. `memory` is the group's, `chains` is behind all groups'.
 * Weights are asked for before the kernel in front of this one has ended. */
template <class T, class Left, class Right>
SP_CUDA_FUNCTION void sp_narrow_run(char *memory, float *chains, int chunks,
                                    const sp_narrow_place &place, const Left &left,
                                    const Right &right, sp_narrow_sums<T> &sum)
{
    constexpr int stages = T::stages;
    const int count = sp_narrow_count<T>(chunks);
    sp_narrow_cursor<T> loads = {place.group * SP_NARROW_CHUNKS}, now = loads;
    sp_narrow_sums<T> chain;
    chain.clear();
    sum.clear();
#pragma unroll
    for (int s = 0; s < stages - 1; s++) {
        if (loads.chunk < chunks) right.copy(loads.chunk, memory + s * T::stage_bytes + T::left_bytes);
        loads.advance();
    }
    sp_await_launch();
    loads = now;
#pragma unroll
    for (int s = 0; s < stages - 1; s++) {
        if (loads.chunk < chunks) left.copy(loads.chunk, memory + s * T::stage_bytes);
        sp_end_copies();
        loads.advance();
    }
    char *stage = memory, *free = memory + (stages - 1) * T::stage_bytes;
    char *const end = memory + T::group_bytes;
#pragma unroll 1
    for (int i = 1; i <= count; i++) {
        sp_await_copies_before<stages - 2>();
        /* The chunk is there for all threads, and none uses the one before it any more. */
        __syncthreads();
        if (loads.chunk < chunks) {
            right.copy(loads.chunk, free + T::left_bytes);
            left.copy(loads.chunk, free);
        }
        sp_end_copies();
        loads.advance();
        if (now.chunk < chunks) sp_narrow_multiply<T>(stage, place, chain);
        now.advance();
        stage = stage + T::stage_bytes < end ? stage + T::stage_bytes : memory;
        free = free + T::stage_bytes < end ? free + T::stage_bytes : memory;
        if (i % SP_NARROW_CHUNKS == 0 || i == count) {
            sp_narrow_end_segment<T>(place, chains, chain, sum);
        }
    }
    sp_await_copies();
}
