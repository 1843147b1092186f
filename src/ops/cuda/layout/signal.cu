/* SPDX-License-Identifier: Apache-2.0 */
/* The last kernel of a list tells the host that the list is done. */

/* What the calling thread knows to be complete is visible to the host before the word is. */
SP_CUDA_FUNCTION void sp_store_release_to_host(uint64_t *word, uint64_t value)
{
#if defined(__CUDA_ARCH__)
    asm volatile("fence.acq_rel.sys;\n\tst.relaxed.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value)
                 : "memory");
#elif !defined(__CUDACC_RTC__)
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
#endif
}

/* The counter is in the GPU's memory and changed by this kernel alone, once in a launch of its list,
 * and one launch ends before the next begins: so it is read before the wait for the kernel in front. */
SP_CUDA_KERNEL_THAT_AWAITS(signal_done, sp_flat_constants)
{
    uint64_t *counter = (uint64_t *)bindings.at[0];
    const uint64_t count = *counter + (uint64_t)k.count;
    sp_await_kernels();
    *counter = count;
    sp_store_release_to_host((uint64_t *)bindings.at[1], count);
}
