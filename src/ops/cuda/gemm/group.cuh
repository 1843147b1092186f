/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles of narrow products by warpgroups, on processors of compute capability 9.0, and of no other
 * (docs/decisions/0090): the four warps of a group multiply 64 rows by all columns of the tile, both in
 * shared memory, while copies and other groups go on. A chain goes through the 32 bytes of a segment
 * in order, as in gemm/narrow.cuh, and the instruction has the bits of its instructions.
 *
 * The blocks of a cluster have tiles of the same columns, one below the other. Each copies the lines of
 * its own rows and its share of the columns' lines, which go to all blocks at once. A cluster computes
 * tile after tile, and the chunks of all of them are one sequence: while a tile is finished, the first
 * chunks of the next one come.
 *
 * Chunks of the sequence go through the stages in turn. A stage is
 *     filled  when its block's copies and the shares of the other blocks have come
 *     free    when all warps of all blocks have multiplied what it had
 * and a block copies to all blocks only when the stage is free in all of them. */
#if defined(SP_CUDA_GROUPS)

/* In shared memory, behind the stages. */
struct sp_group_stages {
    sp_mbarrier filled[SP_CUDA_GROUP_MOST_STAGES], free[SP_CUDA_GROUP_MOST_STAGES];
};

/* Two groups, and the fragments of sums that the instruction gives a thread. */
template <class E, int Columns>
struct sp_group_tile : sp_narrow_tile<E, 128, Columns, 16, Columns, 1, 4, SP_NARROW_PACKED> {
    static constexpr int pitch = SP_NARROW_BYTES, stages = SP_CUDA_GROUP_STAGES(Columns);
    static constexpr int blocks = SP_CUDA_GROUP_BLOCKS, warps = 8;
    static constexpr int share = Columns / blocks; /* columns whose lines a block copies */
    static constexpr int left_bytes = 128 * pitch, stage_bytes = (128 + Columns) * pitch;
    static constexpr int bytes = SP_CUDA_GROUP_BYTES(Columns);
    static_assert(bytes >= stages * stage_bytes + sizeof(sp_group_stages) + 1024,
                  "as the host counts them");
};

/* A place in the sequence of a cluster. */
template <class T> struct sp_group_walk {
    int tile, tiles, across; /* of the cluster's; all clusters', and those side by side */
    int chunk, chunks;
    int64_t row; /* of the first block's tile */
    int column;

    __device__ __forceinline__ explicit sp_group_walk(const sp_gemm_constants &k)
        : tile((int)blockIdx.x / T::blocks),
          across((int)sp_cuda_tiles(k.columns, T::columns)), chunk(0),
          chunks((int)sp_cuda_tiles(k.depth, T::chunk))
    {
        tiles = (int)sp_cuda_tiles(k.rows, T::rows * T::blocks) * across;
        enter_tile();
    }

    __device__ __forceinline__ void enter_tile()
    {
        row = (int64_t)(tile / across) * (T::rows * T::blocks);
        column = tile % across * T::columns;
    }

    __device__ __forceinline__ bool is_there() const
    {
        return tile < tiles;
    }

    __device__ __forceinline__ void next_tile()
    {
        tile += (int)gridDim.x / T::blocks;
        chunk = 0;
        enter_tile();
    }
};

/* The stage of a chunk, and the parity of the phase in which it has the chunk. */
template <class T> struct sp_group_stage {
    int at, parity;

    __device__ __forceinline__ void advance()
    {
        const bool is_last = ++at == T::stages;
        at = is_last ? 0 : at;
        parity ^= is_last;
    }
};

/* Lines for this block. They may lie in a workspace, whose memory is mapped in parts that begin at
 * multiples of 2 MiB (docs/decisions/0076); a copy stays within one, since compute-sanitizer counts
 * what is beyond as outside of any memory. */
SP_CUDA_FUNCTION void sp_copy_lines(char *to, const char *from, int bytes, sp_mbarrier *barrier)
{
    const int rest = SP_CUDA_RANGE_UNIT - (int)((uint64_t)from % SP_CUDA_RANGE_UNIT);
    if (rest < bytes) {
        sp_copy_to_block(to, from, rest, barrier);
        to += rest;
        from += rest;
        bytes -= rest;
    }
    sp_copy_to_block(to, from, bytes, barrier);
}

/* What a block copies of a chunk, and the bytes that come in it, with those of other blocks. */
struct sp_group_lines {
    const char *left, *right;
    int left_bytes, right_bytes, bytes;
};

/* The copies of a block, by its first thread. That has little time: its warp multiplies too, so what
 * changes with the tile alone is kept. */
template <class T> struct sp_group_copies {
    const char *left, *right;
    int64_t left_lines, right_lines; /* of a chunk */
    char *memory;
    sp_group_stages *stages;
    int rank;
    sp_group_walk<T> of; /* the next chunk to copy */
    sp_group_lines from;

    SP_CUDA_MEMBER int clamp(int64_t lines, int most)
    {
        return (lines < 0 ? 0 : lines < most ? (int)lines : most) * SP_NARROW_BYTES;
    }

    __device__ __forceinline__ void enter_tile()
    {
        const int64_t row = of.row + rank * T::rows;
        const int column = of.column + rank * T::share;
        from.left = left + row * SP_NARROW_BYTES;
        from.right = right + (int64_t)column * SP_NARROW_BYTES;
        from.left_bytes = clamp(left_lines - row, T::rows);
        from.right_bytes = clamp(right_lines - column, T::share);
        from.bytes = from.left_bytes + clamp(right_lines - of.column, T::columns);
    }

    __device__ __forceinline__ void next_chunk()
    {
        if (++of.chunk == of.chunks) {
            of.next_tile();
            enter_tile();
            return;
        }
        from.left += left_lines * SP_NARROW_BYTES;
        from.right += right_lines * SP_NARROW_BYTES;
    }

    /* Before the copies of this block; those of others may come before. */
    __device__ __forceinline__ void expect(int stage) const
    {
        sp_expect_at_mbarrier(&stages->filled[stage], from.bytes);
    }

    __device__ __forceinline__ void copy_right(int stage) const
    {
        if (from.right_bytes == 0) return;
        sp_copy_to_blocks(memory + stage * T::stage_bytes + T::left_bytes + rank * T::share * T::pitch,
                          from.right, from.right_bytes, &stages->filled[stage], (1u << T::blocks) - 1);
    }

    __device__ __forceinline__ void copy_left(int stage) const
    {
        if (from.left_bytes == 0) return;
        sp_copy_lines(memory + stage * T::stage_bytes, from.left, from.left_bytes,
                      &stages->filled[stage]);
    }
};

template <class T>
SP_CUDA_FUNCTION sp_group_copies<T> sp_make_group_copies(const sp_gpu_bindings &bindings,
                                                         const sp_gemm_constants &k, char *memory)
{
    sp_group_copies<T> copies = {(const char *)bindings.at[0],
                                 (const char *)bindings.at[1],
                                 sp_cuda_tiles(k.rows, SP_NARROW_LINES) * SP_NARROW_LINES,
                                 sp_cuda_tiles(k.columns, SP_NARROW_LINES) * SP_NARROW_LINES,
                                 memory,
                                 (sp_group_stages *)(memory + T::stages * T::stage_bytes),
                                 (int)blockIdx.x % T::blocks,
                                 sp_group_walk<T>(k),
                                 {}};
    copies.enter_tile();
    return copies;
}

template <class T> SP_CUDA_FUNCTION void sp_open_group_stages(sp_group_stages *stages)
{
    if (threadIdx.x == 0) {
        for (int s = 0; s < T::stages; s++) {
            sp_open_mbarrier(&stages->filled[s], 1);
            sp_open_mbarrier(&stages->free[s], T::warps * T::blocks);
        }
        sp_publish_mbarriers();
    }
    sp_cluster_arrive();
    sp_cluster_wait();
}

/* A block's way through the sequence. The chunk that is copied next is `ahead` chunks behind the one
 * that is multiplied next. */
template <class T> struct sp_group_pipe {
    static constexpr int ahead = T::stages - 2;
    sp_group_copies<T> copies;
    sp_group_stage<T> now, fill; /* of both */
    int before;                  /* the stage of the chunk before; -1: there is none */

    /* The right operand is the model's and there before the kernels in front have ended. */
    __device__ __forceinline__ void begin()
    {
        sp_group_copies<T> ready = copies;
        if (threadIdx.x == 0) {
#pragma unroll 1
            for (int s = 0; s < ahead && ready.of.is_there(); s++, ready.next_chunk()) {
                ready.expect(s);
                ready.copy_right(s);
            }
        }
        sp_await_launch();
        if (threadIdx.x == 0) sp_publish_to_copies();
#pragma unroll 1
        for (; fill.at < ahead && copies.of.is_there(); fill.advance(), copies.next_chunk()) {
            if (threadIdx.x == 0) copies.copy_left(fill.at);
        }
    }

    __device__ __forceinline__ char *await_filled() const
    {
        sp_await_mbarrier(&copies.stages->filled[now.at], now.parity);
        return copies.memory + now.at * T::stage_bytes;
    }

    /* This warp has multiplied all chunks before this one. */
    __device__ __forceinline__ void free_before() const
    {
        if (before < 0) return;
        const int lane = (int)threadIdx.x % 32;
        if (lane < T::blocks) sp_arrive_at_mbarrier(&copies.stages->free[before], lane);
    }

    /* Fills the stage of the chunk before the last one. */
    __device__ __forceinline__ void fill_next()
    {
        if (!copies.of.is_there()) return;
        /* Of the round before. In the first one there is nothing to wait for: a barrier begins behind a
         * phase of parity 1. */
        sp_await_mbarrier(&copies.stages->free[fill.at], fill.parity ^ 1);
        if (threadIdx.x == 0) {
            copies.expect(fill.at);
            copies.copy_right(fill.at);
            copies.copy_left(fill.at);
        }
        copies.next_chunk();
        fill.advance();
    }

    __device__ __forceinline__ void advance()
    {
        before = now.at;
        now.advance();
    }
};

/* The sums of the next tile of the sequence. */
template <class T>
SP_CUDA_FUNCTION void sp_group_sums(sp_group_pipe<T> &pipe, const sp_narrow_place &place, int chunks,
                                    sp_narrow_sums<T> &sum)
{
    const int own = place.row / 64 * 64 * T::pitch;
    sp_narrow_sums<T> chain;
    float(&chains)[T::sums] = *(float(*)[T::sums]) & chain.at[0][0][0];
    chain.clear();
    sum.clear();
#pragma unroll 1
    for (int first = 0; first < chunks; first += SP_NARROW_CHUNKS) {
        const int end = first + SP_NARROW_CHUNKS < chunks ? first + SP_NARROW_CHUNKS : chunks;
#pragma unroll 1
        for (int i = first; i < end; i++, pipe.advance()) {
            const char *stage = pipe.await_filled();
            sp_group_hold(chains);
            sp_group_begin();
#pragma unroll
            for (int s = 0; s < T::steps; s++) {
                sp_multiply_group(typename T::element(), i == first && s == 0,
                                  sp_group_operand(stage + own + s * 32),
                                  sp_group_operand(stage + T::left_bytes + s * 32), chains);
            }
            sp_group_end();
            sp_group_await<1>();
            pipe.free_before();
            pipe.fill_next();
        }
        sp_group_await<0>();
        sp_group_hold(chains);
        sum.add(chain);
    }
}

/* Blocks: clusters along x, each for some of the tiles. */
template <class T>
SP_CUDA_FUNCTION void sp_group_product(const sp_gpu_bindings &bindings, const sp_gemm_constants &k,
                                       char *pool)
{
    const sp_narrow_place place = sp_make_narrow_place<T>();
    sp_group_walk<T> of(k);
    sp_group_pipe<T> pipe = {
        sp_make_group_copies<T>(bindings, k, sp_group_memory(pool)), {0, 0}, {0, 0}, -1};
    sp_open_group_stages<T>(pipe.copies.stages);
    pipe.begin();
#pragma unroll 1
    for (; of.is_there(); of.next_tile()) {
        sp_narrow_sums<T> sum;
        sp_group_sums<T>(pipe, place, of.chunks, sum);
        sp_narrow_finish_tile<T>(bindings, k, place, of.row + pipe.copies.rank * T::rows,
                                 of.column, sum);
    }
    /* Others still arrive here and copy to here. */
    sp_cluster_arrive();
    sp_cluster_wait();
}

#endif
