/* SPDX-License-Identifier: Apache-2.0 */
/* Inboxes: a block of a cluster writes into the shared memory of another one, whose inbox counts
 * the bytes that have come. So a block waits for what it needs, and for nothing else that other
 * blocks do: no barrier of the cluster, whose release waits for all that was written before.
 *
 * An inbox has two sides, for exchanges by turns: a block whose exchange is complete may begin the
 * next one while others still wait for parts of the one before. In each exchange every block gives
 * something to every other one, so bytes of two exchanges are on their way at a time, and never of
 * three.
 *
 * sp_open_inbox: by one thread; then a barrier of the cluster.
 *
 * sp_push: by whoever has a value, once for each block of the cluster.
 *
 * sp_expect_bytes: once an exchange, by one thread, behind a barrier of the block.
 *
 * sp_await_inbox: by all threads of the block.
 *
 * A byte that comes orders nothing but itself: not what its thread has written before. That is for
 * the barrier in front of sp_expect_bytes. */
#ifndef SP_CUDA_INBOX

/* In shared memory. */
struct sp_inbox {
    sp_mbarrier sides[2]; /* of one arrival each */
};

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900

SP_CUDA_FUNCTION void sp_open_inbox(sp_inbox *inbox)
{
    for (int side = 0; side < 2; side++) sp_open_mbarrier(&inbox->sides[side], 1);
    sp_publish_mbarriers();
}

/* Bytes may come before it: the side is complete when it was called and all have come. */
SP_CUDA_FUNCTION void sp_expect_bytes(sp_inbox *inbox, int side, int bytes)
{
    sp_expect_at_mbarrier(&inbox->sides[side], bytes);
}

/* Writes where the block of this rank has what `to` is here. */
SP_CUDA_FUNCTION void sp_push(float *to, float value, int rank, sp_inbox *inbox, int side)
{
    asm volatile(
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.f32 [%0], %1, [%2];" ::"r"(
            sp_shared_address_of(to, rank)),
        "f"(value), "r"(sp_shared_address_of(&inbox->sides[side], rank))
        : "memory");
}

/* Until the side is complete for the time that `parity` names: 0 the first, 1 the second, 0 ... */
SP_CUDA_FUNCTION void sp_await_inbox(sp_inbox *inbox, int side, int parity)
{
    sp_await_mbarrier_of_cluster(&inbox->sides[side], parity);
}

#else

/* Without clusters nobody calls them. */
SP_CUDA_FUNCTION void sp_open_inbox(sp_inbox *) {}
SP_CUDA_FUNCTION void sp_expect_bytes(sp_inbox *, int, int) {}
SP_CUDA_FUNCTION void sp_push(float *, float, int, sp_inbox *, int) {}
SP_CUDA_FUNCTION void sp_await_inbox(sp_inbox *, int, int) {}

#endif
#endif
