/* SPDX-License-Identifier: Apache-2.0 */
/* Barriers in shared memory (mbarriers, PTX ISA) which threads, copies and other blocks of a cluster
 * arrive at. A phase is complete when all arrivals were made and all bytes that were expected have come;
 * the next one begins then. */
#ifndef SP_CUDA_MBARRIER

typedef uint64_t sp_mbarrier;

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900

SP_CUDA_FUNCTION uint32_t sp_shared_address(const void *at)
{
    return (uint32_t)__cvta_generic_to_shared(at);
}

/* What the block of this rank has where `at` is here. */
SP_CUDA_FUNCTION uint32_t sp_shared_address_of(const void *at, int rank)
{
    uint32_t its;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(its) : "r"(sp_shared_address(at)), "r"(rank));
    return its;
}

/* By one thread, which calls sp_publish_mbarriers behind the last one; then a barrier of all that use
 * them. */
SP_CUDA_FUNCTION void sp_open_mbarrier(sp_mbarrier *barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(sp_shared_address(barrier)),
                 "r"(arrivals)
                 : "memory");
}

SP_CUDA_FUNCTION void sp_publish_mbarriers()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/* An arrival, and so many more bytes in this phase. They may come before. */
SP_CUDA_FUNCTION void sp_expect_at_mbarrier(sp_mbarrier *barrier, int bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                     sp_shared_address(barrier)),
                 "r"(bytes)
                 : "memory");
}

/* An arrival at that of the block of this rank, behind products and copies that the thread has awaited.
 * It orders no accesses of the thread itself among blocks: that would wait for all that it has stored. */
SP_CUDA_FUNCTION void sp_arrive_at_mbarrier(sp_mbarrier *barrier, int rank)
{
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(
                     sp_shared_address_of(barrier, rank))
                 : "memory");
}

#define SP_MBARRIER_AWAIT(name, order)                                                             \
    SP_CUDA_FUNCTION void name(sp_mbarrier *barrier, int parity)                                   \
    {                                                                                              \
        uint32_t is_complete = 0;                                                                  \
        while (!is_complete) {                                                                     \
            asm volatile("{\n"                                                                     \
                         ".reg .pred p;\n"                                                         \
                         "mbarrier.try_wait.parity" order ".shared::cta.b64 p, [%1], %2;\n"        \
                         "selp.u32 %0, 1, 0, p;\n"                                                 \
                         "}"                                                                       \
                         : "=r"(is_complete)                                                       \
                         : "r"(sp_shared_address(barrier)), "r"(parity)                            \
                         : "memory");                                                              \
        }                                                                                          \
    }
/* Until the phase of that parity is complete: 0 the first, 1 the second, 0 ... What copies have
 * brought is there. */
SP_MBARRIER_AWAIT(sp_await_mbarrier, "")
/* The same; what other blocks have written is there. */
SP_MBARRIER_AWAIT(sp_await_mbarrier_of_cluster, ".acquire.cluster")

/* Copies `bytes`, a multiple of 16, from global memory to where `to` is in the blocks of the ranks of
 * the mask, and tells the barriers that are there where `barrier` is here. */
SP_CUDA_FUNCTION void sp_copy_to_blocks(char *to, const char *from, int bytes, sp_mbarrier *barrier,
                                        uint32_t ranks)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1], %2, [%3], %4;" ::"r"(sp_shared_address(to)),
                 "l"(from), "r"(bytes), "r"(sp_shared_address(barrier)), "h"((uint16_t)ranks)
                 : "memory");
}

/* To this block alone. */
SP_CUDA_FUNCTION void sp_copy_to_block(char *to, const char *from, int bytes, sp_mbarrier *barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                 " [%0], [%1], %2, [%3];" ::"r"(sp_shared_address(to)),
                 "l"(from), "r"(bytes), "r"(sp_shared_address(barrier))
                 : "memory");
}

/* What kernels before have written is there for such copies, which the processor makes beside its own
 * accesses. */
SP_CUDA_FUNCTION void sp_publish_to_copies()
{
    asm volatile("fence.proxy.async;" ::: "memory");
}

#endif
#endif
