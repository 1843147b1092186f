/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions of any set of dimensions (ops/cpu/reduce/reduce.c). */

/* ---- how an element joins a lane, and lanes are combined ---- */

/* Sums and products; those of integers wrap. */
template <class T> struct sp_arithmetic {
    SP_CUDA_MEMBER T add(T a, T b)
    {
        return (T)((uint64_t)a + (uint64_t)b);
    }
    SP_CUDA_MEMBER T mul(T a, T b)
    {
        return (T)((uint64_t)a * (uint64_t)b);
    }
    SP_CUDA_MEMBER T size(T x)
    {
        return x < 0 ? mul(x, (T)-1) : x;
    }
    SP_CUDA_MEMBER T square(T x, T)
    {
        return mul(x, x);
    }
    SP_CUDA_MEMBER T exp(T x, T)
    {
        return x; /* integers have no such reduction */
    }
    SP_CUDA_MEMBER T finish(const sp_reduce_constants &k, T sum, T)
    {
        return k.reduction == SP_REDUCE_MEAN ? (T)((int64_t)sum / k.extent) : sum;
    }
};

template <class T> struct sp_float_arithmetic {
    SP_CUDA_MEMBER T add(T a, T b)
    {
        return a + b;
    }
    SP_CUDA_MEMBER T mul(T a, T b)
    {
        return a * b;
    }
    SP_CUDA_MEMBER T size(T x)
    {
        return x < 0 ? -x : x;
    }
    SP_CUDA_MEMBER T square(T x, T shift)
    {
        const T distance = x - shift;
        return distance * distance;
    }
    SP_CUDA_MEMBER T exp(T x, T shift)
    {
        return sp_exp(x - shift);
    }
    SP_CUDA_MEMBER T finish(const sp_reduce_constants &k, T sum, T shift)
    {
        switch (k.reduction) {
        case SP_REDUCE_MEAN:
        case SP_REDUCE_VARIANCE:
            return sum / T((typename T::element)k.extent);
        case SP_REDUCE_L2:
            return sp_sqrt(sum);
        case SP_REDUCE_LOG_SUM:
            return sp_log(sum);
        case SP_REDUCE_LOG_SUM_EXP:
            return sp_log(sum) + shift;
        case SP_REDUCE_FINITE_MAX:
            return sum < sp_limits<T>::most() && sum > sp_limits<T>::least() ? sum : T(0);
        default:
            return sum;
        }
    }
};
template <> struct sp_arithmetic<sp_f32> : sp_float_arithmetic<sp_f32> {
};
template <> struct sp_arithmetic<sp_f64> : sp_float_arithmetic<sp_f64> {
};

/* The reduction of the constants: all threads of a launch take the same branches. */
template <class T> struct sp_reducer {
    uint32_t reduction;
    T shift;

    __device__ __forceinline__ T neutral() const
    {
        if (is_max()) return sp_limits<T>::least();
        if (reduction == SP_REDUCE_MIN) return sp_limits<T>::most();
        return reduction == SP_REDUCE_PROD ? T(1) : T(0);
    }

    __device__ __forceinline__ bool is_max() const
    {
        return reduction == SP_REDUCE_MAX || reduction == SP_REDUCE_FINITE_MAX;
    }

    __device__ __forceinline__ T combine(T a, T b) const
    {
        if (is_max()) return sp_join_max(a, b);
        if (reduction == SP_REDUCE_MIN) return sp_join_min(a, b);
        if (reduction == SP_REDUCE_PROD) return sp_arithmetic<T>::mul(a, b);
        return sp_arithmetic<T>::add(a, b);
    }

    __device__ __forceinline__ T map(T x) const
    {
        if (reduction == SP_REDUCE_SUM_SQUARE || reduction == SP_REDUCE_L2 ||
            reduction == SP_REDUCE_VARIANCE) {
            return sp_arithmetic<T>::square(x, shift);
        }
        if (reduction == SP_REDUCE_L1) return sp_arithmetic<T>::size(x);
        if (reduction == SP_REDUCE_LOG_SUM_EXP) return sp_arithmetic<T>::exp(x, shift);
        return x;
    }
};

/* The offset of index `i` of some dimensions. */
SP_CUDA_FUNCTION int64_t sp_offset_of(int64_t i, uint32_t rank, const int64_t *dims,
                                      const int64_t *strides)
{
    int64_t offset = 0;
#pragma unroll 1
    for (uint32_t d = rank; d-- > 1;) offset += sp_take_coordinate(&i, dims[d]) * strides[d];
    return rank > 0 ? offset + i * strides[0] : 0;
}

template <class E>
SP_CUDA_FUNCTION void sp_reduce(const sp_gpu_bindings &bindings, const sp_reduce_constants &k)
{
    typedef sp_wide<E> T;
    __shared__ T pool[SP_LANE_POOL];
    const E *x = (const E *)bindings.at[0];
    const E *shifts = k.has_shift ? (const E *)bindings.at[1] : nullptr;
    E *y = (E *)bindings.at[k.has_shift ? 2 : 1];
    const sp_lane_place place = sp_make_lane_place(k.count, k.extent, k.is_columns);
    const int64_t blocks = sp_cuda_reduction_blocks(k.count, k.extent, k.is_columns);
#pragma unroll 1
    for (int64_t round = 0; round * gridDim.x + blockIdx.x < blocks; round++) {
        const int64_t output = sp_lane_output(place, round);
        const bool is_there = output < k.count;
        const E *from = x;
        sp_reducer<T> reducer = {k.reduction, T(0)};
        if (is_there) {
            from += sp_offset_of(output, k.kept_rank, k.kept_dims, k.kept_strides);
            if (shifts) reducer.shift = sp_load(shifts[output]);
        }
        const T result = sp_lane_reduce(
            place, k.extent, is_there, reducer.neutral(), pool,
            [&](T lane, int64_t i) {
                const E element = from[sp_offset_of(i, k.reduced_rank, k.dims, k.strides)];
                return reducer.combine(lane, reducer.map(sp_load(element)));
            },
            [&](T a, T b) { return reducer.combine(a, b); });
        if (is_there && sp_is_first_lane(place)) {
            y[output] = sp_stored<E>::from(sp_arithmetic<T>::finish(k, result, reducer.shift));
        }
    }
}

#define SP_REDUCE_KERNEL(suffix, E)                                                                \
    SP_CUDA_KERNEL(reduce_##suffix, sp_reduce_constants)                                           \
    {                                                                                              \
        sp_reduce<E>(bindings, k);                                                                 \
    }

SP_REDUCE_KERNEL(f32, float)
SP_REDUCE_KERNEL(f64, double)
SP_REDUCE_KERNEL(f16, sp_f16)
SP_REDUCE_KERNEL(i32, int32_t)
SP_REDUCE_KERNEL(i64, int64_t)
SP_REDUCE_KERNEL(i8, int8_t)
SP_REDUCE_KERNEL(u8, uint8_t)
