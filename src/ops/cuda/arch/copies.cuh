/* SPDX-License-Identifier: Apache-2.0 */
/* Copies from global to shared memory beside other work, complete after sp_await_copies by the
 * thread that made them. Processors without them copy at once. */

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800

/* Both addresses are multiples of 16. */
SP_CUDA_FUNCTION void sp_copy_vector(float *to, const float *from)
{
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from) : "memory");
}

SP_CUDA_FUNCTION void sp_copy_float(float *to, const float *from)
{
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(to);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(at), "l"(from) : "memory");
}

/* The copy, or zeros. */
SP_CUDA_FUNCTION void sp_copy_vector_if(bool is_there, float *to, const float *from)
{
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(to);
    const int bytes = is_there ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(bytes)
                 : "memory");
}

SP_CUDA_FUNCTION void sp_copy_float_if(bool is_there, float *to, const float *from)
{
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(to);
    const int bytes = is_there ? 4 : 0;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(at), "l"(from), "r"(bytes)
                 : "memory");
}

SP_CUDA_FUNCTION void sp_await_copies()
{
    asm volatile("cp.async.wait_all;" ::: "memory");
}

/* Ends a group of copies, which may have none. */
SP_CUDA_FUNCTION void sp_end_copies()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Waits for all groups of copies but the newest `count`. */
template <int count> SP_CUDA_FUNCTION void sp_await_copies_before()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(count) : "memory");
}

#else

SP_CUDA_FUNCTION void sp_copy_vector(float *to, const float *from)
{
    *(float4 *)to = *(const float4 *)from;
}

SP_CUDA_FUNCTION void sp_copy_float(float *to, const float *from)
{
    *to = *from;
}

SP_CUDA_FUNCTION void sp_copy_vector_if(bool is_there, float *to, const float *from)
{
    if (is_there) sp_copy_vector(to, from);
    else *(float4 *)to = {0, 0, 0, 0};
}

SP_CUDA_FUNCTION void sp_copy_float_if(bool is_there, float *to, const float *from)
{
    if (is_there) sp_copy_float(to, from);
    else *to = 0;
}

SP_CUDA_FUNCTION void sp_await_copies() {}
SP_CUDA_FUNCTION void sp_end_copies() {}
template <int> SP_CUDA_FUNCTION void sp_await_copies_before() {}

#endif
