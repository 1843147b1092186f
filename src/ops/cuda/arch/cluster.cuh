/* SPDX-License-Identifier: Apache-2.0 */
/* Clusters: neighbouring blocks, along x, that run at the same time and read each other's shared
 * memory. Processors before compute capability 9.0 have none; a kernel asks sp_has_clusters and
 * computes in one block what they would share.
 *
 * A barrier of the cluster's threads is in two halves. What a thread wrote before it arrived is
 * visible to those that have waited; what it read before is not overwritten by them. Threads that
 * have ended are not waited for. */
#ifndef SP_CUDA_CLUSTERED

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900

/* Of a kernel: it is launched in clusters of so many blocks. */
#define SP_CUDA_CLUSTERED(blocks) __cluster_dims__(blocks, 1, 1)

SP_CUDA_FUNCTION bool sp_has_clusters()
{
    return true;
}

SP_CUDA_FUNCTION void sp_cluster_arrive()
{
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

SP_CUDA_FUNCTION void sp_cluster_wait()
{
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/* What the block of this rank has where this one has `at`. */
SP_CUDA_FUNCTION float4 sp_cluster_read(const float4 *at, int rank)
{
    const uint32_t mine = (uint32_t)__cvta_generic_to_shared(at);
    uint32_t its;
    float4 v;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(its) : "r"(mine), "r"(rank));
    asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "r"(its));
    return v;
}

#else

#define SP_CUDA_CLUSTERED(blocks)

SP_CUDA_FUNCTION bool sp_has_clusters()
{
    return false;
}

SP_CUDA_FUNCTION void sp_cluster_arrive()
{
    __syncthreads();
}

SP_CUDA_FUNCTION void sp_cluster_wait() {}

SP_CUDA_FUNCTION float4 sp_cluster_read(const float4 *at, int)
{
    return *at;
}

#endif
#endif

#define SP_CUDA_KERNEL_OF_CLUSTERS(name, constants_type, threads, blocks, cluster)                 \
    SP_CUDA_KERNEL_ENTRY(name, constants_type,                                                     \
                         __launch_bounds__(threads, blocks) SP_CUDA_CLUSTERED(cluster),            \
                         sp_await_kernels())
