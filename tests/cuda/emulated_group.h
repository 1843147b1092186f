/* SPDX-License-Identifier: Apache-2.0 */
/* In place of arch/group.cuh: products of warpgroups, each as late as it may be, when it is
 * awaited. So a stage of shared memory that is filled too early is read too late. Copies are made
 * at once, and what orders threads' writes before a processor's own reads is not emulated. */
#ifndef SP_TESTS_CUDA_EMULATED_GROUP_H
#define SP_TESTS_CUDA_EMULATED_GROUP_H

#define SP_CUDA_GROUPS

/* A product that one thread has begun. */
struct emulated_product {
    bool is_first;
    uint64_t left, right;
    float *sum;
    int sums;
    void (*run)(const emulated_product &product);
};

enum { EMULATED_PRODUCTS = 64, EMULATED_ENDS = 16 };

/* Of one thread: products that have not been run, and their number at each end of a group. */
struct emulated_products {
    emulated_product at[EMULATED_PRODUCTS];
    int count, ends[EMULATED_ENDS], end_count;
};
static emulated_products emulated_products_of[8][256]; /* of the blocks of a cluster */

static inline emulated_products &emulated_own_products()
{
    return emulated_products_of[blockIdx.x % 8][threadIdx.x];
}

/* Element `step` of a line, of those whose parts the operand's 128 bytes are in the order of. */
template <class E> static inline float emulated_element(uint64_t operand, int line, int step)
{
    uint64_t at = operand + (uint64_t)(line / 8 * 1024 + line % 8 * 128 + step * E::bytes);
    at ^= (at >> 7 & 7) << 4;
    return E::widen(*(const typename E::type *)at);
}

template <class E> static inline void emulated_multiply(const emulated_product &product)
{
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32 % 4;
    for (int i = 0; i < product.sums; i++) {
        const int row = warp * 16 + lane / 4 + i / 2 % 2 * 8;
        const int column = i / 4 * 8 + lane % 4 * 2 + i % 2;
        if (product.is_first) product.sum[i] = -0.0f;
        for (int k = 0; k < E::step; k++) {
            product.sum[i] =
                __fmaf_rn(emulated_element<E>(product.left, row, k),
                          emulated_element<E>(product.right, column, k), product.sum[i]);
        }
    }
}

static inline uint64_t sp_group_operand(const char *lines)
{
    return (uint64_t)lines;
}
static inline char *sp_group_memory(char *pool)
{
    return pool + (-(uint64_t)pool & 1023);
}
static inline void sp_group_begin() {}
template <int count> static inline void sp_group_hold(float (&)[count]) {}

template <class E, int count>
static inline void sp_multiply_group(E, bool is_first, uint64_t left, uint64_t right,
                                     float (&sum)[count])
{
    emulated_products &own = emulated_own_products();
    if (own.count == EMULATED_PRODUCTS) abort();
    own.at[own.count++] = {is_first, left, right, sum, count, emulated_multiply<E>};
}

static inline void sp_group_end()
{
    emulated_products &own = emulated_own_products();
    if (own.end_count == EMULATED_ENDS) abort();
    own.ends[own.end_count++] = own.count;
}

template <int newest> static inline void sp_group_await()
{
    emulated_products &own = emulated_own_products();
    const int ended = own.end_count - newest;
    if (ended <= 0) return;
    const int count = own.ends[ended - 1];
    for (int i = 0; i < count; i++) own.at[i].run(own.at[i]);
    own.count -= count;
    own.end_count -= ended;
    for (int i = 0; i < own.count; i++) own.at[i] = own.at[count + i];
    for (int i = 0; i < own.end_count; i++) own.ends[i] = own.ends[ended + i] - count;
}

#endif
