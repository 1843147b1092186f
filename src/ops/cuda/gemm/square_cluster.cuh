/* SPDX-License-Identifier: Apache-2.0 */
/* A tile by several blocks of a cluster: of `size` blocks, block r computes the segments r, r + size,
 * r + 2 size, ... of all outputs. After each such round each block adds the chains of all blocks to
 * the sums of its own part of the outputs, in the order of the segments. */

/* Few rows of a product; few pixels of a convolution. */
typedef sp_square<SP_CUDA_TEAM_ROWS, SP_CUDA_TEAM_COLUMNS, 8, 4, SP_CUDA_TEAM_STAGES> sp_team_wide;
typedef sp_square<SP_CUDA_TEAM_COLUMNS, SP_CUDA_TEAM_ROWS, 8, 4, SP_CUDA_TEAM_STAGES> sp_team_high;
static_assert(sp_team_wide::threads == SP_CUDA_TEAM_THREADS, "as the host launches them");
static_assert(sp_team_high::threads == SP_CUDA_TEAM_THREADS, "as the host launches them");

/* Writes this thread's chains for the other blocks, added to +0, which changes no sum. Without it the
 * compiler keeps the chains of four columns in neighbouring registers, to write them at once, and the
 * multiply-adds wait for registers of the same bank. */
template <class S>
SP_CUDA_FUNCTION void sp_square_give(float *chains, const sp_square_sums<S> &acc)
{
#pragma unroll
    for (int i = 0; i < S::rows; i++) {
#pragma unroll
        for (int group = 0; group < S::groups; group++) {
            const float4 zero = {0, 0, 0, 0};
            *sp_square_slot<S>(chains, i, group) = sp_square_added(zero, acc.at[i] + group * 4);
        }
    }
}

#define SP_SQUARE_SLOTS 4

/* Slots of outputs that a thread adds and finishes at a time, so that it waits once for what it
 * reads: slot i of `at` + i * threads, of those before `end`. */
template <class S, class Output> struct sp_square_slots {
    static constexpr int count = SP_SQUARE_SLOTS;
    const Output &output;
    int at, end, rows;
    float4 sum[count];

    __device__ __forceinline__ bool has(int i) const
    {
        return at + i * S::threads < end;
    }

    /* The sums of the rounds before; of the first one there are none. */
    __device__ __forceinline__ void begin(const float4 *sums)
    {
#pragma unroll
        for (int i = 0; i < count; i++) {
            sum[i] = {0, 0, 0, 0};
            if (sums && has(i)) sum[i] = sums[at + i * S::threads];
        }
    }

    __device__ __forceinline__ void keep(float4 *sums) const
    {
#pragma unroll
        for (int i = 0; i < count; i++) {
            if (has(i)) sums[at + i * S::threads] = sum[i];
        }
    }

    /* Adds the chains of `blocks` blocks of the cluster, in order. */
    __device__ __forceinline__ void add(const float4 *chains, int first, int blocks)
    {
#pragma unroll 2
        for (int block = 0; block < blocks; block++) {
            float4 chain[count] = {};
#pragma unroll
            for (int i = 0; i < count; i++) {
                if (has(i)) chain[i] = sp_cluster_read(chains + at + i * S::threads, first + block);
            }
#pragma unroll
            for (int i = 0; i < count; i++) {
                if (has(i)) sum[i] = sp_square_added(sum[i], &chain[i].x);
            }
        }
    }

    /* The row of slot i, and its columns. */
    __device__ __forceinline__ int row(int i) const
    {
        const int index = at + i * S::threads;
        return sp_make_square_place<S>(index % S::threads).row_of(index / S::threads / S::groups);
    }

    __device__ __forceinline__ auto columns(int i) const
    {
        const int index = at + i * S::threads;
        const sp_square_place place = sp_make_square_place<S>(index % S::threads);
        return output.columns(place.column_of(index / S::threads % S::groups));
    }

    __device__ __forceinline__ void finish()
    {
        const uint8_t activation = output.activation();
        float4 addend[count] = {};
#pragma unroll
        for (int i = 0; i < count; i++) {
            if (has(i) && row(i) < rows) addend[i] = output.addend(columns(i), row(i));
        }
#pragma unroll
        for (int i = 0; i < count; i++) {
            if (has(i) && row(i) < rows) sum[i] = sp_square_output(output, sum[i], addend[i]);
        }
        if (!sp_square_is_short(activation)) {
#pragma unroll 1
            for (int i = 0; i < count; i++) {
                sp_square_activate(activation, sum[0]);
                const float4 first = sum[0];
#pragma unroll
                for (int k = 0; k + 1 < count; k++) sum[k] = sum[k + 1];
                sum[count - 1] = first;
            }
        }
#pragma unroll
        for (int i = 0; i < count; i++) {
            if (has(i) && row(i) < rows) output.store(columns(i), row(i), sum[i]);
        }
    }
};

/* The blocks of a tile. */
struct sp_square_team {
    int rank, size; /* of this block in it; 1, 2, 4 or 8 blocks */
    int first;      /* the rank of its first block in the cluster */
    int64_t tile;

    /* Without clusters the first block computes all segments. */
    __device__ __forceinline__ bool has_part(int64_t tiles) const
    {
        return rank < size && tile < tiles;
    }

    /* Computes this block's part of a tile with `tile_rows` rows or more. */
    template <class S, class Right, class Output>
    __device__ __forceinline__ void run(float *pool, const sp_square_left<S> &left,
                                        const Right &right, int64_t tile_rows, int64_t depth,
                                        int segment, const Output &output) const
    {
        if (!sp_has_clusters()) {
            sp_run_square<S>(pool, left, right, tile_rows, depth, segment, output);
            return;
        }
        const int rows = tile_rows < S::height ? (int)tile_rows : S::height;
        const sp_square_place place = sp_make_square_place<S>((int)threadIdx.x);
        float *chains = pool + S::stages * (S::left + S::right);
        const int part = S::slots * S::threads / size, mine = rank * part;
        float4 *sums = (float4 *)(chains + S::height * S::width) - mine;
        sp_square_pipe<S, Right> pipe = {pool, left, right, depth, 0, segment, size, 0, 0};
        sp_square_sums<S> acc;
        pipe.begin(rank);
        const int64_t round = (int64_t)size * segment;
#pragma unroll 1
        for (int64_t rest = depth;; rest -= round) {
            const int64_t own = rest - (int64_t)rank * segment;
            acc.clear();
            pipe.run(place, own < segment ? (int)own : segment, acc);
            if (rest < depth) sp_cluster_wait(); /* for reads of the round before */
            sp_square_give<S>(chains, acc);
            sp_cluster_arrive();
            sp_cluster_wait();
            const int given = rest < round ? (int)((rest + segment - 1) / segment) : size;
#pragma unroll 1
            for (int at = mine + (int)threadIdx.x; at < mine + part; at += SP_SQUARE_SLOTS * S::threads) {
                sp_square_slots<S, Output> slots = {output, at, mine + part, rows, {}};
                slots.begin(rest < depth ? sums : nullptr);
                slots.add((const float4 *)chains, first, given);
                if (rest > round) slots.keep(sums);
                else slots.finish();
            }
            sp_cluster_arrive();
            if (rest <= round) break;
        }
        sp_cluster_wait(); /* shared memory remains until all have read it */
        sp_await_copies();
    }
};

/* Of `blocks` blocks that are launched for each tile, in clusters of `cluster`. */
SP_CUDA_FUNCTION sp_square_team sp_make_square_team(int blocks, int cluster)
{
    const int at = (int)blockIdx.x, rank = at & (blocks - 1);
    return {rank, sp_has_clusters() ? blocks : 1, at % cluster - rank, at / blocks};
}
