/* SPDX-License-Identifier: Apache-2.0 */
/* On two GPUs of one machine: a model has the same bits on both, concurrently, and streams of one
 * wait for events of the other. Skipped with fewer GPUs. */
#include <streampool/device.h>
#include <streampool/event.h>
#include <streampool/storage.h>
#include <streampool/stream.h>

#include "run_fixture.h"

typedef struct pair {
    sp_device gpus[2];
    case_load loads[2];
} pair;

static bool open_pair(pair *out)
{
    return sp_device_open("cuda:0", &out->gpus[0]) == SP_OK &&
           sp_device_open("cuda:1", &out->gpus[1]) == SP_OK;
}

/* Even threads run on the first GPU. */
static void run_rounds(void *arg, uint32_t index)
{
    pair *p = arg;
    case_run_rounds(&p->loads[index % 2], index);
}

TEST(a_model_has_the_same_bits_on_two_gpus_at_the_same_time)
{
    pair p = {0};
    if (!open_pair(&p)) SKIP("no two GPUs");
    for (uint32_t i = 0; i < FIXTURE_MODELS; i++) {
        model_case cpu;
        model_case on[2];
        if (!case_open(fixture_models[i], NULL, &cpu)) SKIP("no shared data");
        for (uint32_t gpu = 0; gpu < 2; gpu++) {
            const sp_model_options options = {.device = p.gpus[gpu]};
            REQUIRE(case_open(fixture_models[i], &options, &on[gpu]));
            CHECK(case_is_same(&cpu, on[gpu].outputs));
            p.loads[gpu] = (case_load){.c = &on[gpu], .rounds = (uint32_t)test_count(2000, 200)};
        }
        test_threads(30, run_rounds, &p);
        for (uint32_t gpu = 0; gpu < 2; gpu++) {
            CHECK_EQ_U64(sp_load_relaxed(&p.loads[gpu].differing), 0);
            case_close(&on[gpu]);
        }
        case_close(&cpu);
    }
}

static sp_storage_range large_storage(sp_device device)
{
    const uint64_t bytes = UINT64_C(256) << 20;
    sp_storage storage;
    CHECK_OK(sp_storage_create(device, bytes, NULL, &storage));
    return (sp_storage_range){.storage = storage, .bytes = bytes};
}

TEST(a_stream_waits_for_an_event_of_the_other_gpu)
{
    pair p = {0};
    if (!open_pair(&p)) SKIP("no two GPUs");
    sp_stream streams[2];
    sp_storage_range ranges[2];
    for (uint32_t gpu = 0; gpu < 2; gpu++) {
        CHECK_OK(sp_stream_from_pool(p.gpus[gpu], &streams[gpu]));
        ranges[gpu] = large_storage(p.gpus[gpu]);
    }
    sp_event event;
    CHECK_OK(sp_event_create(NULL, &event));
    for (uint32_t i = 0; i < 20; i++) {
        const uint32_t from = i % 2;
        const uint32_t to = 1 - from;
        for (uint32_t k = 0; k < 4; k++) {
            CHECK_OK(sp_storage_fill_async(streams[from], ranges[from], &i, sizeof i));
        }
        CHECK_OK(sp_event_record(event, streams[from]));
        CHECK_OK(sp_stream_wait_event(streams[to], event));
        const sp_storage_range word = {.storage = ranges[to].storage, .bytes = sizeof i};
        CHECK_OK(sp_storage_fill_async(streams[to], word, &i, sizeof i));
        CHECK_OK(sp_stream_synchronize(streams[to]));
        CHECK_OK(sp_event_query(event)); /* the wait was for it */
    }
    CHECK_OK(sp_event_release(event));
    for (uint32_t gpu = 0; gpu < 2; gpu++) {
        CHECK_OK(sp_storage_release(ranges[gpu].storage));
        CHECK_OK(sp_stream_release(streams[gpu]));
    }
}

TEST_MAIN
