/* SPDX-License-Identifier: Apache-2.0 */
/* Pinned host memory: alignment, recognising addresses, misuse, many threads. */
#include "runtime_fixture.h"

#include <string.h>

TEST(pinned_memory_is_zeroed_and_aligned_to_a_page)
{
    runtime_begin();
    unsigned char *data;
    CHECK_OK(sp_host_alloc(CPU, 10000, (void **)&data));
    CHECK_EQ_U64((uintptr_t)data % 4096, 0);
    for (int i = 0; i < 10000; i++) REQUIRE_EQ_INT(data[i], 0);
    memset(data, 1, 10000);
    CHECK_OK(sp_host_free(data));
    CHECK_OK(sp_host_alloc(CPU, 0, (void **)&data));
    CHECK(data != NULL && sp_host_is_pinned(data, 0));
    CHECK_OK(sp_host_free(data));
    runtime_end();
}

TEST(an_address_is_pinned_inside_and_not_beside)
{
    runtime_begin();
    unsigned char *data;
    unsigned char local;
    CHECK(!sp_host_is_pinned(&local, 1)); /* before any allocation */
    CHECK_OK(sp_host_alloc(CPU, 10000, (void **)&data));
    CHECK(sp_host_is_pinned(data, 10000));
    CHECK(sp_host_is_pinned(data + 9999, 1));
    CHECK(!sp_host_is_pinned(data, 10001));
    CHECK(!sp_host_is_pinned(data + 9999, 2));
    CHECK(!sp_host_is_pinned(data + 10000, 0));
    CHECK(!sp_host_is_pinned(data + 1, UINT64_MAX));
    CHECK(!sp_host_is_pinned(data - 1, 2));
    CHECK(!sp_host_is_pinned(&local, 1));
    CHECK(!sp_host_is_pinned(NULL, 1));
    CHECK_OK(sp_host_free(data));
    CHECK(!sp_host_is_pinned(data, 1));
    runtime_end();
}

TEST(what_is_not_pinned_is_not_freed)
{
    runtime_begin();
    unsigned char *data;
    unsigned char local;
    CHECK_OK(sp_host_alloc(CPU, 100, (void **)&data));
    CHECK_STATUS(sp_host_free(&local), SP_INVALID);
    CHECK_STATUS(sp_host_free(data + 1), SP_INVALID);
    CHECK_OK(sp_host_free(data));
    CHECK_STATUS(sp_host_free(data), SP_INVALID);
    CHECK_OK(sp_host_free(NULL));
    CHECK_STATUS(sp_host_alloc(CPU, 100, NULL), SP_INVALID);
    CHECK_STATUS(sp_host_alloc((sp_device){77}, 100, (void **)&data), SP_INVALID);
    CHECK(data == NULL);
    runtime_end();
}

TEST(more_pinned_memory_than_the_machine_has_is_refused)
{
    runtime_begin();
    sp_device_info info = {0};
    void *data;
    void *half;
    CHECK_OK(sp_device_get_info(CPU, &info));
    CHECK_STATUS(sp_host_alloc(CPU, UINT64_MAX, &data), SP_OUT_OF_MEMORY);
    CHECK_OK(sp_host_alloc(CPU, info.memory_bytes / 2 + 1, &half));
    CHECK_STATUS(sp_host_alloc(CPU, info.memory_bytes / 2 + 1, &data), SP_OUT_OF_MEMORY);
    CHECK_OK(sp_host_free(half));
    runtime_end();
}

static void free_data(void *ctx, void *data)
{
    CHECK_OK(sp_host_free(data));
    raise_by_one(ctx);
}

TEST(adopted_pinned_memory_is_freed_in_its_release_and_what_is_left_after_a_shutdown)
{
    runtime_begin();
    sp_atomic_u32 freed = {0};
    void *data;
    void *kept;
    sp_storage storage;
    CHECK_OK(sp_host_alloc(CPU, 4096, &data));
    CHECK_OK(sp_host_alloc(CPU, 4096, &kept));
    const sp_adopt_options options = {.release = free_data, .ctx = &freed};
    CHECK_OK(sp_storage_adopt(CPU, data, 4096, &options, &storage));
    fill(current_stream(), storage, 3);
    CHECK_OK(sp_storage_release(storage));
    await_at_least(&freed, 1);
    CHECK(!sp_host_is_pinned(data, 1));
    CHECK_OK(sp_shutdown());
    CHECK_STATUS(sp_host_alloc(CPU, 1, &data), SP_CLOSED);
    CHECK(sp_host_is_pinned(kept, 4096));
    CHECK_OK(sp_host_free(kept));
    runtime_end();
}

#define KEPT 20

static void allocate_and_free(void *arg, uint32_t index)
{
    const uint64_t rounds = *(const uint64_t *)arg;
    unsigned char *kept[KEPT] = {NULL};
    for (uint64_t i = 0; i < rounds; i++) {
        unsigned char **place = &kept[(i * 7 + index) % KEPT];
        if (*place != NULL) {
            CHECK(sp_host_is_pinned(*place, 5000));
            CHECK_EQ_INT((*place)[4999], (int)index + 1); /* no other thread has it */
            CHECK_OK(sp_host_free(*place));
        }
        CHECK_OK(sp_host_alloc(CPU, 5000, (void **)place));
        (*place)[4999] = (unsigned char)(index + 1);
    }
    for (int i = 0; i < KEPT; i++) CHECK_OK(sp_host_free(kept[i]));
}

TEST(threads_that_allocate_and_free_never_get_the_same_memory)
{
    runtime_begin();
    uint64_t rounds = test_count(20000, 1000);
    test_threads(4, allocate_and_free, &rounds);
    runtime_end();
}

TEST_MAIN
