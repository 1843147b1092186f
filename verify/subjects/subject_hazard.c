/* SPDX-License-Identifier: Apache-2.0 */
/* The hazard step: of two commands over the same storages, on any streams, the one submitted second
 * runs after the first, on all of them; so no read sees parts of two writes. And host accesses. */
#include "support.h"

#include <string.h>

#include <streampool/storage.h>

#include "base/clock.h"
#include "device/host_executor.h"
#include "device/wait.h"
#include "runtime/storage.h"
#include "runtime/submit.h"
#include "sched/subject.h"

typedef struct world {
    sp_queue_device *common;
    sp_rt_device *device;
    sp_stream leases[3];
    sp_stream_ref streams[3];
    sp_storage x, y;
    uint32_t memory[2];  /* plain: the contents of the storages */
    uint32_t seen[2];    /* plain: what the reader's command found */
    uint32_t released;   /* plain: calls of the owner's callback */
    uint32_t open_count; /* host accesses that are open when the threads start, for each storage */
} world;

/* ---- set-up ---- */

static void owner_called(void *ctx, void *data)
{
    world *w = ctx;
    w->released++;
    *(uint32_t *)data = 0; /* as free would: an access afterwards is a race */
}

static sp_storage adopt(world *w, uint32_t *data)
{
    const sp_adopt_options options = {.release = owner_called, .ctx = w};
    sp_storage storage;
    SP_SCHED_ASSERT(sp_storage_adopt((sp_device){0}, data, sizeof *data, &options, &storage) ==
                    SP_OK);
    return storage;
}

static void begin(world *w, uint32_t worker_count, uint32_t stream_count)
{
    memset(w, 0, sizeof *w);
    w->common = sp__subject_device(worker_count);
    w->device = sp__subject_runtime(w->common);
    for (uint32_t i = 0; i < stream_count; i++) {
        w->streams[i] = sp__subject_stream(w->device, &w->leases[i]);
    }
    w->x = adopt(w, &w->memory[0]);
    w->y = adopt(w, &w->memory[1]);
}

static void end(world *w)
{
    SP_SCHED_ASSERT(sp__host_executor_start() == SP_OK);
    SP_SCHED_ASSERT(sp_storage_release(w->x) == SP_OK);
    SP_SCHED_ASSERT(sp_storage_release(w->y) == SP_OK);
    for (uint32_t i = 0; i < 3; i++) sp__stream_lease_release(w->leases[i]);
    sp__subject_runtime_down();
    SP_SCHED_ASSERT(w->released == 2);
}

/* ---- commands ---- */

static sp_status write_both(const sp_tile *tile)
{
    uint32_t *first = tile->bindings[0];
    uint32_t *second = tile->bindings[1];
    *first = *second = *(const uint32_t *)tile->constants;
    return SP_OK;
}

static sp_status read_both(const sp_tile *tile)
{
    world *w;
    memcpy(&w, tile->constants, sizeof(world *));
    w->seen[0] = *(const uint32_t *)tile->bindings[0];
    w->seen[1] = *(const uint32_t *)tile->bindings[1];
    return SP_OK;
}

static sp_status write_one(const sp_tile *tile)
{
    *(uint32_t *)tile->bindings[0] = 7;
    return SP_OK;
}

static const sp_kernel write_kernel = {.name = "write both", .run = write_both};
static const sp_kernel read_kernel = {.name = "read both", .run = read_both};
static const sp_kernel write_one_kernel = {.name = "write one", .run = write_one};

static sp_use use_of(sp_storage storage, sp_access access)
{
    return (sp_use){.storage = storage,
                    .bytes = sizeof(uint32_t),
                    .access = access,
                    .is_overwritten = access == SP_WRITE};
}

static sp_point submit(world *w, uint32_t stream, const sp_kernel *kernel, const sp_use *uses,
                       uint32_t use_count, const void *constant, uint32_t constant_bytes)
{
    sp_command command = {.type = SP_COMMAND_DISPATCH,
                          .kernel = kernel,
                          .grid = {1, 1, 1},
                          .constants = constant,
                          .constant_bytes = constant_bytes};
    sp_point point;
    SP_SCHED_ASSERT(
        sp__submit_command(&w->streams[stream], &command, uses, use_count, NULL, &point) == SP_OK);
    return point;
}

static sp_point submit_write(world *w, uint32_t stream, sp_storage first, sp_storage second)
{
    const uint32_t value = stream + 1;
    const sp_use uses[2] = {use_of(first, SP_WRITE), use_of(second, SP_WRITE)};
    return submit(w, stream, &write_kernel, uses, 2, &value, sizeof value);
}

static void poll(world *w, sp_point point)
{
    sp__subject_poll(w->common, 4, point);
}

static void write_xy(void *arg)
{
    world *w = arg;
    poll(w, submit_write(w, 0, w->x, w->y));
}

static void write_yx(void *arg)
{
    world *w = arg;
    poll(w, submit_write(w, 1, w->y, w->x));
}

static void read_xy(void *arg)
{
    world *w = arg;
    const sp_use uses[2] = {use_of(w->x, SP_READ), use_of(w->y, SP_READ)};
    const sp_point point = submit(w, 2, &read_kernel, uses, 2, &w, sizeof(world *));
    poll(w, point);
    SP_SCHED_ASSERT(w->seen[0] == w->seen[1]);
}

static void subject_hazard_writes(void *arg)
{
    (void)arg;
    world w;
    begin(&w, 0, 2);
    sp__subject_run((const sp_thread_fn[]){write_xy, write_yx}, 2, &w);
    SP_SCHED_ASSERT(w.memory[0] == w.memory[1] && w.memory[0] > 0);
    end(&w);
}

static void subject_hazard_read(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    world w;
    begin(&w, 0, 3);
    sp__subject_run((const sp_thread_fn[]){write_xy, read_xy, write_yx}, threads, &w);
    SP_SCHED_ASSERT(w.memory[0] == w.memory[1] && w.memory[0] > 0);
    end(&w);
}

static void write_xy_and_wait(void *arg)
{
    world *w = arg;
    const sp_point point = submit_write(w, 0, w->x, w->y);
    SP_SCHED_ASSERT(sp__point_wait(point, SP_NO_DEADLINE) == SP_OK);
}

static void write_yx_and_wait(void *arg)
{
    world *w = arg;
    const sp_point point = submit_write(w, 1, w->y, w->x);
    SP_SCHED_ASSERT(sp__point_wait(point, SP_NO_DEADLINE) == SP_OK);
}

static void subject_hazard_worker(void *arg)
{
    (void)arg;
    world w;
    begin(&w, 1, 2);
    sp__subject_run((const sp_thread_fn[]){write_xy_and_wait, write_yx_and_wait}, 2, &w);
    SP_SCHED_ASSERT(w.memory[0] == w.memory[1] && w.memory[0] > 0);
    end(&w);
}

/* ---- host accesses ---- */

static void host_write(void *arg)
{
    world *w = arg;
    void *data;
    SP_SCHED_ASSERT(sp_storage_host_begin(w->x, SP_READ_WRITE, &data) == SP_OK);
    const uint32_t before = *(uint32_t *)data;
    *(uint32_t *)data = before + 10;
    SP_SCHED_ASSERT(*(uint32_t *)data == before + 10);
    SP_SCHED_ASSERT(sp_storage_host_end(w->x, SP_READ_WRITE) == SP_OK);
}

static void host_read(void *arg)
{
    world *w = arg;
    void *data;
    SP_SCHED_ASSERT(sp_storage_host_begin(w->x, SP_READ, &data) == SP_OK);
    const uint32_t value = *(uint32_t *)data;
    SP_SCHED_ASSERT(value % 10 <= 1);
    SP_SCHED_ASSERT(sp_storage_host_end(w->x, SP_READ) == SP_OK);
}

static void subject_hazard_host(void *arg)
{
    (void)arg;
    world w;
    begin(&w, 0, 1);
    sp__subject_run((const sp_thread_fn[]){write_xy, host_write}, 2, &w);
    SP_SCHED_ASSERT(w.memory[0] == 1 || w.memory[0] == 11);
    end(&w);
}

static void subject_hazard_hosts(void *arg)
{
    (void)arg;
    world w;
    begin(&w, 0, 1);
    sp__subject_run((const sp_thread_fn[]){write_xy, host_write, host_read}, 3, &w);
    SP_SCHED_ASSERT(w.memory[0] == 1 || w.memory[0] == 11);
    end(&w);
}

/* ---- more reads than a frontier has inline places, or a command waits for at once: each open host
 * access is a point of its own ---- */

static void open_reads(sp_storage storage, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        void *data;
        SP_SCHED_ASSERT(sp_storage_host_begin(storage, SP_READ, &data) == SP_OK);
    }
}

/* The memory may be read until the last access ends. */
static void end_reads(const uint32_t *data, sp_storage storage, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        SP_SCHED_ASSERT(*(const volatile uint32_t *)data == 0);
        SP_SCHED_ASSERT(sp_storage_host_end(storage, SP_READ) == SP_OK);
    }
}

static void end_reads_of_x(void *arg)
{
    world *w = arg;
    end_reads(&w->memory[0], w->x, w->open_count);
}

static void end_reads_of_both(void *arg)
{
    world *w = arg;
    end_reads(&w->memory[1], w->y, w->open_count);
    end_reads(&w->memory[0], w->x, w->open_count);
}

/* One more read, which drops those that have passed or finds no room among the rest; then a write,
 * which has to follow them all. */
static void read_and_write_x(void *arg)
{
    world *w = arg;
    const sp_use use = use_of(w->x, SP_WRITE);
    open_reads(w->x, 1);
    SP_SCHED_ASSERT(sp_storage_host_end(w->x, SP_READ) == SP_OK);
    poll(w, submit(w, 0, &write_one_kernel, &use, 1, NULL, 0));
}

static void subject_hazard_reads(void *arg)
{
    world w;
    begin(&w, 0, 1);
    w.open_count = *(const uint32_t *)arg;
    open_reads(w.x, w.open_count);
    sp__subject_run((const sp_thread_fn[]){end_reads_of_x, read_and_write_x}, 2, &w);
    SP_SCHED_ASSERT(w.memory[0] == 7);
    end(&w);
}

/* The waits of one command become several submissions. */
static void subject_hazard_spill(void *arg)
{
    (void)arg;
    world w;
    begin(&w, 0, 1);
    w.open_count = SP_MAX_WAITS / 2 + 1;
    open_reads(w.x, w.open_count);
    open_reads(w.y, w.open_count);
    sp__subject_run((const sp_thread_fn[]){end_reads_of_both, write_xy}, 2, &w);
    SP_SCHED_ASSERT(w.memory[0] == 1 && w.memory[1] == 1);
    end(&w);
}

/* ---- release while it is being used ---- */

static bool try_write(world *w, const sp_stream_ref *stream, sp_storage storage, sp_point *point)
{
    sp_command command = {
        .type = SP_COMMAND_DISPATCH, .kernel = &write_one_kernel, .grid = {1, 1, 1}};
    const sp_use use = use_of(storage, SP_WRITE);
    const sp_status status = sp__submit_command(stream, &command, &use, 1, NULL, point);
    (void)w;
    SP_SCHED_ASSERT(status == SP_OK || status == SP_INVALID);
    return status == SP_OK;
}

static void write_if_there(void *arg)
{
    world *w = arg;
    sp_point point;
    if (try_write(w, &w->streams[0], w->x, &point)) poll(w, point);
}

static void release_x(void *arg)
{
    world *w = arg;
    SP_SCHED_ASSERT(sp_storage_release(w->x) == SP_OK);
}

/* The owner is called once, after the last use. */
static void subject_storage_release(void *arg)
{
    (void)arg;
    world w;
    begin(&w, 0, 1);
    SP_SCHED_ASSERT(sp__host_executor_start() == SP_OK);
    sp__subject_run((const sp_thread_fn[]){write_if_there, release_x}, 2, &w);
    w.x = (sp_storage){0};
    end(&w);
}

/* ---- memory of one life used by the next ---- */

#define BLOCK_BYTES ((uint64_t)1 << 20) /* a slab of its own */

static sp_storage create(void)
{
    sp_storage storage;
    SP_SCHED_ASSERT(sp_storage_create((sp_device){0}, BLOCK_BYTES, NULL, &storage) == SP_OK);
    return storage;
}

static void write_and_release(void *arg)
{
    world *w = arg;
    sp_point point;
    SP_SCHED_ASSERT(try_write(w, &w->streams[0], w->x, &point));
    release_x(w);
    poll(w, point);
}

static void create_and_write(void *arg)
{
    world *w = arg;
    sp_point point;
    const sp_storage storage = create();
    SP_SCHED_ASSERT(try_write(w, &w->streams[1], storage, &point));
    SP_SCHED_ASSERT(sp_storage_release(storage) == SP_OK);
    poll(w, point);
}

static void begin_block(world *w)
{
    memset(w, 0, sizeof *w);
    w->common = sp__subject_device(0);
    w->device = sp__subject_runtime(w->common);
    for (uint32_t i = 0; i < 2; i++) w->streams[i] = sp__subject_stream(w->device, &w->leases[i]);
    w->x = create();
}

static void end_block(world *w)
{
    for (uint32_t i = 0; i < 2; i++) sp__stream_lease_release(w->leases[i]);
    sp__subject_runtime_down();
}

static void subject_storage_reuse(void *arg)
{
    (void)arg;
    world w;
    begin_block(&w);
    sp__subject_run((const sp_thread_fn[]){write_and_release, create_and_write}, 2, &w);
    end_block(&w);
}

static void write_and_leave(void *arg)
{
    world *w = arg;
    sp_point point;
    (void)try_write(w, &w->streams[0], w->x, &point);
}

/* Gets the block of the storage that it releases, and with it the use that came just before. */
static void release_and_fill(void *arg)
{
    world *w = arg;
    void *data;
    release_x(w);
    const sp_storage storage = create();
    SP_SCHED_ASSERT(sp_storage_host_begin(storage, SP_WRITE, &data) == SP_OK);
    *(uint32_t *)data = 1;
    SP_SCHED_ASSERT(sp_storage_host_end(storage, SP_WRITE) == SP_OK);
    SP_SCHED_ASSERT(sp_storage_release(storage) == SP_OK);
}

/* The release either sees the use or makes it fail. */
static void subject_storage_touch(void *arg)
{
    (void)arg;
    world w;
    begin_block(&w);
    sp__subject_run((const sp_thread_fn[]){write_and_leave, release_and_fill}, 2, &w);
    end_block(&w);
}

/* ---- the table ---- */

const sp_subject sp__subjects_hazard[] = {
    {.name = "hazard_writes",
     .test = subject_hazard_writes,
     .thread_count = 2,
     .inexhaustible = SP_ENDLESS_RUNTIME,
     .planted = "missing_storage_lock",
     .seconds = 0.4},
    {.name = "hazard_read_2",
     .test = subject_hazard_read,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .inexhaustible = SP_ENDLESS_RUNTIME,
     .planted = "missing_storage_lock",
     .seconds = 0.4},
    {.name = "hazard_read_3",
     .test = subject_hazard_read,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "missing_storage_lock",
     .seconds = 0.4},
    {.name = "hazard_worker",
     .test = subject_hazard_worker,
     .thread_count = 3,
     .planted = "missing_storage_lock",
     .options = SP_SLEEPERS,
     .seconds = 0.4},
    {.name = "hazard_host",
     .test = subject_hazard_host,
     .thread_count = 2,
     .inexhaustible_weak = SP_ENDLESS_RUNTIME,
     .dpor_seconds = 30,
     .planted = "begin_at_once",
     .options = SP_SPINNERS,
     .seconds = 0.4},
    {.name = "hazard_hosts",
     .test = subject_hazard_hosts,
     .thread_count = 3,
     .planted = "begin_at_once",
     .options = SP_SPINNERS,
     .seconds = 0.4},
    {.name = "hazard_prune",
     .test = subject_hazard_reads,
     .arg = SP_SUBJECT_ARG(4),
     .thread_count = 2,
     .inexhaustible = SP_ENDLESS_RUNTIME,
     .planted = "prune_drops_another",
     .options = SP_SPINNERS,
     .seconds = 0.4},
    {.name = "hazard_many_reads",
     .test = subject_hazard_reads,
     .arg = SP_SUBJECT_ARG(5),
     .thread_count = 2,
     .inexhaustible = SP_ENDLESS_RUNTIME,
     .planted = "only_inline_reads",
     .options = SP_SPINNERS,
     .seconds = 0.4},
    {.name = "hazard_spill",
     .test = subject_hazard_spill,
     .thread_count = 2,
     .inexhaustible = SP_ENDLESS_RUNTIME,
     .planted = "spill_forgets",
     .options = SP_SPINNERS,
     .seconds = 0.4},
    {.name = "storage_release",
     .test = subject_storage_release,
     .thread_count = 3,
     .planted = "owner_at_once",
     .seconds = 0.4},
    {.name = "storage_touch",
     .test = subject_storage_touch,
     .thread_count = 2,
     .planted = "release_touch",
     .options = SP_SPINNERS,
     .seconds = 0.4},
    {.name = "storage_reuse",
     .test = subject_storage_reuse,
     .thread_count = 2,
     .inexhaustible_weak = SP_ENDLESS_RUNTIME,
     .dpor_seconds = 25,
     .planted = "early_reuse",
     .seconds = 0.4},
    {0},
};
