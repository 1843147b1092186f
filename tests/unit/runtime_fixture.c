/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime_fixture.h"
#include "runtime_gpu.h"

#include <streampool/check.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/announce.h"
#include "base/delay.h"
#include "base/error.h"
#include "base/heap.h"
#include "base/option.h"
#include "gpu_fixture.h"
#include "runtime/checker.h"
#include "runtime/storage.h"
#include "tensor/tensor.h"

/* ---- life ---- */

void set_delays(uint32_t per_mille)
{
    sp_delay_configure(per_mille, per_mille, 50000);
}

void delay_everywhere(void)
{
    sp_delay_configure(1, 1000, 10000);
#if !defined(SP_DELAYS)
    test_note("no delays in this build");
#endif
}

/* An empty variable counts as unset. */
static void set_variable(const char *name, const char *value)
{
    setenv(name, value != NULL ? value : "", 1);
}

/* What CTest gave this run stays for the tests that do not ask for a number of their own. */
static const char *workers_of_run(void)
{
    static char given[16];
    static bool is_known;
    const char *value = getenv("STREAMPOOL_CPU_WORKERS");
    if (!is_known && value != NULL) snprintf(given, sizeof given, "%s", value);
    is_known = true;
    return given;
}

static bool are_reports_expected;

void expect_reports(void)
{
    are_reports_expected = true;
}

static bool is_on_gpu(void)
{
    const char *kind = getenv("STREAMPOOL_TEST_DEVICE");
    return kind != NULL && strcmp(kind, "cuda") == 0;
}

sp_device tested_device(void)
{
    sp_device device = CPU;
    if (is_on_gpu()) CHECK_OK(sp_device_open("cuda:0", &device));
    return device;
}

bool has_meetings(void)
{
    return !is_on_gpu() || gpu_is_fake();
}

void runtime_begin_with(const runtime_setting *setting)
{
    if (is_on_gpu()) runtime_gpu_begin();
    are_reports_expected = false;
    const char *workers = workers_of_run();
    set_variable("STREAMPOOL_STREAMS", setting->streams);
    set_variable("STREAMPOOL_STREAM_POLICY", setting->policy);
    set_variable("STREAMPOOL_STREAM_WAIT_MS", setting->wait_ms);
    set_variable("STREAMPOOL_CPU_WORKERS", setting->workers != NULL ? setting->workers : workers);
    sp__option_reset();
    /* So many of 1,000 marked places sleep. */
    const char *delays = getenv("STREAMPOOL_TEST_DELAYS");
    set_delays(delays != NULL ? (uint32_t)strtoul(delays, NULL, 10) : 0);
}

void runtime_begin(void)
{
    runtime_begin_with(&(runtime_setting){0});
}

static sp_status check_device(sp_rt_device *device, void *ctx)
{
    (void)ctx;
    sp_memory_stats stats;
    sp__allocator_stats(&device->allocator, &stats);
    CHECK_EQ_U64(stats.in_use_bytes, 0);
    CHECK_EQ_U64(stats.allocations, stats.frees);
    for (uint32_t i = 0; i < device->pool.count; i++) {
        sp_queue *queue = sp__stream_queue_if_made(&device->pool.streams[i]);
        if (queue == NULL) continue;
        /* accepted = done + failed: the points that were given out have all passed */
        const uint64_t accepted = device->dev->vtable->last_value(queue);
        CHECK_EQ_U64(sp_load_acquire(&queue->timeline.done), accepted);
        CHECK(sp_load_relaxed(&queue->timeline.failure_total) <= accepted);
    }
    const bool is_consistent = sp__allocator_check(&device->allocator);
    CHECK(is_consistent);
    if (!is_consistent) test_note("%s", sp_last_error());
    return SP_OK;
}

static void check_reports(void)
{
    if (!sp_check_is_on()) return;
    const uint64_t reports = sp_check_report_count();
    if (are_reports_expected) {
        CHECK(reports > 0);
    } else {
        CHECK_EQ_U64(reports, 0);
    }
}

void runtime_end(void)
{
    set_delays(0);
    sp_heap_fail_after(UINT64_MAX);
    check_reports();
    sp_shutdown();
    sp__runtime_each_device(check_device, NULL);
    sp__runtime_reset();
    sp__tensors_free();
}

bool is_thread_sanitized(void)
{
#if defined(SP_HAS_TSAN)
    return true;
#else
    return false;
#endif
}

bool is_address_sanitized(void)
{
#if defined(__SANITIZE_ADDRESS__)
    return true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
    return true;
#else
    return false;
#endif
#else
    return false;
#endif
}

/* ---- threads ---- */

typedef struct single {
    void (*fn)(void *arg);
    void *arg;
} single;

static void run_single(void *arg, uint32_t index)
{
    const single *self = arg;
    (void)index;
    self->fn(self->arg);
}

void run_on_thread(void (*fn)(void *arg), void *arg)
{
    single self = {fn, arg};
    test_threads(1, run_single, &self);
}

void await_at_least(sp_atomic_u32 *word, uint32_t value)
{
    const uint64_t deadline = sp_clock_deadline(30 * SECOND);
    while (sp_load_acquire(word) < value) {
        REQUIRE(sp_clock_now() < deadline);
        sp_clock_sleep(20000);
    }
}

void raise_by_one(sp_atomic_u32 *word)
{
    sp_fetch_add_acq_rel(word, 1);
}

/* ---- streams ---- */

sp_stream current_stream(void)
{
    sp_stream stream;
    CHECK_OK(sp_stream_current(TESTED, &stream));
    return stream;
}

sp_stream new_stream_on(sp_device device)
{
    sp_stream stream;
    CHECK_OK(sp_stream_from_pool(device, &stream));
    return stream;
}

sp_stream new_stream(void)
{
    return new_stream_on(TESTED);
}

sp_stream_info info_of(sp_stream stream)
{
    sp_stream_info info = {0};
    CHECK_OK(sp_stream_get_info(stream, &info));
    return info;
}

uint32_t index_of(sp_stream stream)
{
    return info_of(stream).index;
}

uint32_t holders_of(sp_stream stream)
{
    return info_of(stream).holders;
}

static void note_callback(void *ctx, sp_status status)
{
    CHECK_STATUS(status, SP_OK);
    raise_by_one(ctx);
}

void let_callbacks_come(void)
{
    sp_atomic_u32 called = {0};
    sp_event event;
    CHECK_OK(sp_event_create(NULL, &event));
    CHECK_OK(sp_event_record(event, current_stream()));
    CHECK_OK(sp_event_on_complete(event, note_callback, &called));
    await_at_least(&called, 1);
    CHECK_OK(sp_event_release(event));
}

sp_device open_null(void)
{
    sp_device device;
    CHECK_OK(sp_device_open("null", &device));
    return device;
}

sp_rt_device *rt_device(sp_device device)
{
    sp_rt_device *found = NULL;
    CHECK_OK(sp__rt_device_find(device, &found));
    return found;
}

/* ---- storages ---- */

sp_storage new_storage_on(sp_device device, uint64_t bytes, bool is_untracked)
{
    sp_storage storage;
    const sp_storage_options options = {.is_untracked = is_untracked};
    CHECK_OK(sp_storage_create(device, bytes, &options, &storage));
    return storage;
}

sp_storage new_storage(uint64_t bytes)
{
    return new_storage_on(TESTED, bytes, false);
}

sp_storage_range whole(sp_storage storage)
{
    sp_storage_info info = {0};
    CHECK_OK(sp_storage_get_info(storage, &info));
    return (sp_storage_range){storage, 0, info.bytes};
}

sp_use use_of(sp_storage storage, sp_access access)
{
    return (sp_use){.storage = storage, .bytes = whole(storage).bytes, .access = access};
}

void fill(sp_stream stream, sp_storage storage, uint8_t value)
{
    CHECK_OK(sp_storage_fill_async(stream, whole(storage), &value, 1));
}

void copy(sp_stream stream, sp_storage to, sp_storage from)
{
    CHECK_OK(sp_storage_copy_async(stream, whole(to), whole(from)));
}

int64_t first_other(sp_storage storage, uint8_t value)
{
    void *data;
    const uint64_t bytes = whole(storage).bytes;
    if (!test_check_status(TEST_HERE_, "host_begin", sp_storage_host_begin(storage, SP_READ, &data),
                           SP_OK)) {
        return 0;
    }
    const unsigned char *at = data;
    uint64_t i = 0;
    while (i < bytes && at[i] == value) i++;
    CHECK_OK(sp_storage_host_end(storage, SP_READ));
    return i == bytes ? -1 : (int64_t)i;
}

void *address_of(sp_storage storage)
{
    void *data = NULL;
    CHECK_OK(sp_storage_host_begin(storage, SP_WRITE, &data));
    CHECK_OK(sp_storage_host_end(storage, SP_WRITE));
    return data;
}

/* Without waiting for the memory: who asks wants to know whether it was given out too early. */
static const void *peek_address(sp_storage handle) SP_NO_LOCK_ANALYSIS
{
    sp_rt_storage *storage = sp__storage_peek(handle);
    if (!sp__storage_lock(storage, handle)) return NULL;
    const void *address = (const char *)storage->memory->host + storage->offset;
    sp_mutex_unlock(&storage->lock);
    return address;
}

bool is_taken_again(const void *address, uint64_t bytes)
{
    enum { MOST = 1024 };
    sp_storage storages[MOST];
    int count = 0;
    bool is_same = false;
    const uint64_t asked = stats_of(CPU).device_allocations;
    while (count < MOST && stats_of(CPU).device_allocations == asked) {
        storages[count] = new_storage(bytes);
        if (peek_address(storages[count]) == address) is_same = true;
        count++;
    }
    CHECK(count < MOST);
    for (int i = 0; i < count; i++) CHECK_OK(sp_storage_release(storages[i]));
    return is_same;
}

sp_memory_stats stats_of(sp_device device)
{
    sp_memory_stats stats = {0};
    CHECK_OK(sp_device_get_memory_stats(device, &stats));
    return stats;
}

/* ---- kernels ---- */

static sp_status run_fail(const sp_tile *tile)
{
    (void)tile;
    return sp__fail(SP_FAILED, "asked to fail");
}

static sp_status run_slow_fill(const sp_tile *tile)
{
    const kernel_constants *constants = tile->constants;
    if (constants->ns > 0) sp_clock_sleep(constants->ns);
    memset(tile->bindings[0], (int)constants->value, constants->bytes);
    return SP_OK;
}

static sp_status run_slow_copy(const sp_tile *tile)
{
    const kernel_constants *constants = tile->constants;
    if (constants->ns > 0) sp_clock_sleep(constants->ns);
    memcpy(tile->bindings[0], tile->bindings[1], constants->bytes);
    return SP_OK;
}

static sp_status run_meet(const sp_tile *tile)
{
    const kernel_constants *constants = tile->constants;
    const uint64_t deadline = sp_clock_deadline(5 * SECOND);
    sp_fetch_add_acq_rel(constants->inside, 1);
    while (sp_load_acquire(constants->inside) < constants->wanted) {
        if (sp_clock_now() > deadline) return SP_OK;
        sp_thread_yield();
    }
    sp_fetch_add_relaxed(constants->met, 1);
    return SP_OK;
}

static SP_NO_TSAN sp_status run_quiet_fill(const sp_tile *tile)
{
    const kernel_constants *constants = tile->constants;
    /* Volatile: a memset would be ThreadSanitizer's own. */
    volatile unsigned char *bytes = tile->bindings[0];
    for (uint64_t i = 0; i < constants->bytes; i++) bytes[i] = (unsigned char)constants->value;
    return SP_OK;
}

/* A reader without order would see a mix. */
static sp_status run_two_halves(const sp_tile *tile)
{
    const kernel_constants *constants = tile->constants;
    unsigned char *bytes = tile->bindings[0];
    memset(bytes, (int)constants->value, constants->bytes / 2);
    for (int i = 0; i < 20; i++) sp_thread_yield();
    memset(bytes + constants->bytes / 2, (int)constants->value,
           constants->bytes - constants->bytes / 2);
    return SP_OK;
}

#define KERNEL(kernel) {.name = #kernel, .run = run_##kernel, .gpu = &runtime_gpu_##kernel}
const sp_kernel kernel_fail = KERNEL(fail);
const sp_kernel kernel_slow_fill = KERNEL(slow_fill);
const sp_kernel kernel_slow_copy = KERNEL(slow_copy);
const sp_kernel kernel_meet = KERNEL(meet);
const sp_kernel kernel_quiet_fill = KERNEL(quiet_fill);
const sp_kernel kernel_two_halves = KERNEL(two_halves);

sp_status dispatch(sp_stream stream, const sp_kernel *kernel, const kernel_constants *constants,
                   const sp_use *uses, uint32_t use_count)
{
    sp_stream_ref ref;
    SP_TRY(sp__runtime_enter());
    SP_TRY(sp__stream_find(stream, &ref));
    sp_command command = {.type = SP_COMMAND_DISPATCH,
                          .kernel = kernel,
                          .grid = {1, 1, 1},
                          .constants = constants,
                          .constant_bytes = constants != NULL ? sizeof *constants : 0};
    sp_point point;
    return sp__submit_command(&ref, &command, uses, use_count, NULL, &point);
}

void submit_failing(sp_stream stream, sp_storage storage)
{
    const bool has_storage = storage.bits != 0;
    sp_use use = {
        .storage = storage, .bytes = has_storage ? whole(storage).bytes : 0, .access = SP_WRITE};
    CHECK_OK(dispatch(stream, &kernel_fail, NULL, &use, has_storage ? 1 : 0));
}

void submit_slow_fill(sp_stream stream, sp_storage storage, uint8_t value, uint64_t ns)
{
    const sp_use use = {.storage = storage, .bytes = whole(storage).bytes, .access = SP_WRITE};
    const kernel_constants constants = {.ns = ns, .bytes = use.bytes, .value = value};
    CHECK_OK(dispatch(stream, &kernel_slow_fill, &constants, &use, 1));
}

/* ---- a gate ---- */

gate gate_closed(sp_device device)
{
    void *data;
    gate self = {.device = device, .key = new_storage_on(device, 1, false)};
    CHECK_OK(sp_storage_host_begin(self.key, SP_WRITE, &data));
    memset(data, 1, 1);
    return self;
}

void gate_hold(gate *self, sp_stream stream)
{
    REQUIRE(self->held < GATE_HOLDS);
    const sp_storage scratch = new_storage_on(self->device, 1, true);
    self->scratch[self->held++] = scratch;
    copy(stream, scratch, self->key);
}

void gate_open(gate *self)
{
    CHECK_OK(sp_storage_host_end(self->key, SP_WRITE));
}

void gate_destroy(gate *self)
{
    CHECK_OK(sp_storage_release(self->key));
    for (uint32_t i = 0; i < self->held; i++) CHECK_OK(sp_storage_release(self->scratch[i]));
}
