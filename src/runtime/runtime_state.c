/* SPDX-License-Identifier: Apache-2.0 */
/* Bringing the runtime up and down, and the table of devices. */
#include "runtime/runtime_state.h"

#include <streampool/runtime.h>

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/fork.h"
#include "base/heap.h"
#include "base/option.h"
#include "base/tsan.h"
#include "device/kind.h"
#include "device/thread_record.h"
#include "runtime/checker.h"
#include "runtime/command_list.h"
#include "runtime/current_stream.h"
#include "runtime/event.h"
#include "runtime/host_memory.h"
#include "runtime/device_log.h"
#include "runtime/storage.h"

sp_atomic_u32 sp__runtime_phase;  /* process-wide: the runtime is; see sp__runtime_reset */
sp_atomic_u64 sp__closed_devices; /* process-wide: the same */

/* A device that is being opened; on its opener's stack. */
typedef struct opening {
    const char *name; /* the device's name once open */
    struct opening *next;
} opening;

static struct {
    sp_mutex lock; /* up, down, and which devices are open or being opened */
    sp_atomic_u32 has_fork_handler;
    /* Published by release; entries stay until sp__runtime_reset. */
    SP_ATOMIC(sp_rt_device *) devices[SP_MAX_DEVICES];
    sp_atomic_u32 device_count;
    opening *openings SP_GUARDED_BY(lock);
    sp_cond opened;                                   /* an opening has ended, successful or not */
    sp_once down;                                     /* the one execution of sp_shutdown */
} runtime = {.lock = SP_MUTEX_INIT(SP_LOCK_RUNTIME)}; /* process-wide: see sp__runtime_reset */

/* ---- devices ---- */

sp_dev *sp__rt_device_dev(sp_rt_device *device)
{
    return device->dev;
}

sp_stream_pool *sp__rt_device_pool(sp_rt_device *device)
{
    return &device->pool;
}

sp_device sp__rt_device_handle(const sp_rt_device *device)
{
    return (sp_device){SP_FIRST_DEVICE_HANDLE + device->index};
}

static inline sp_status device_find(sp_device handle, sp_rt_device **out)
{
    SP_TRY(sp__runtime_enter());
    const uint64_t index = sp__rt_device_index(handle);
    /* Pairs with the release in add_device_locked. */
    sp_rt_device *device = index < SP_MAX_DEVICES ? sp_load_acquire(&runtime.devices[index]) : NULL;
    sp_tsan_acquire(&runtime.devices);
    if (device == NULL) {
        return sp__fail(SP_INVALID,
                        "handle %#llx is not a device: get one from sp_device_at or sp_device_open",
                        (unsigned long long)handle.bits);
    }
    if (sp__rt_device_is_closed(index)) {
        return sp__fail(SP_CLOSED, "device %s (%u) was closed", device->dev->limits.name,
                        device->index);
    }
    *out = device;
    return SP_OK;
}

sp_status sp__rt_device_find(sp_device handle, sp_rt_device **out)
{
    return device_find(handle, out);
}

sp_status sp__rt_device_find_working(sp_device handle, sp_rt_device **out)
{
    SP_TRY(device_find(handle, out));
    return sp__device_check((*out)->dev);
}

static sp_stream_pool_options pool_options(void)
{
    const int64_t wait_ms = sp_option_int(SP_OPTION_STREAM_WAIT_MS);
    return (sp_stream_pool_options){
        .count = (uint32_t)sp_option_int(SP_OPTION_STREAMS),
        .policy = (sp_option_policy)sp_option_enum(SP_OPTION_STREAM_POLICY),
        .wait_ns = wait_ms < 0 ? -1 : wait_ms * 1000000,
    };
}

static void init_allocators(sp_rt_device *device)
{
    const uint64_t high = sp_option_bytes(SP_OPTION_CACHE);
    sp__allocator_init(&device->allocator, device, device->dev);
    sp__allocator_init_staging(&device->staging, device, device->dev);
    sp__allocator_set_watermarks(&device->allocator, high / 4 * 3, high);
    sp__allocator_set_watermarks(&device->staging, high / 4 * 3, high);
    sp__workspaces_init(&device->workspaces, &device->allocator);
}

static void deinit_allocators(sp_rt_device *device)
{
    sp__workspaces_deinit(&device->workspaces);
    sp__allocator_deinit(&device->staging);
    sp__allocator_deinit(&device->allocator);
}

static sp_status add_device_locked(sp_dev *dev, sp_rt_device **out) SP_REQUIRES(&runtime.lock)
{
    const uint32_t index = sp_load_relaxed(&runtime.device_count);
    if (index == SP_MAX_DEVICES) {
        return sp__fail(SP_EXHAUSTED, "%d devices were opened; restart the process for more",
                        SP_MAX_DEVICES);
    }
    sp_rt_device *device = sp_aligned_malloc(SP_CACHE_LINE, sizeof *device);
    if (device == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for one more device");
    memset(device, 0, sizeof *device);
    device->dev = dev;
    device->index = index;
    if (dev->vtable->kind->numbering == SP_DEVICE_UNBOUNDED) {
        /* "null" becomes "null:1": distinguishes devices of one kind in messages. */
        const size_t used = strlen(dev->limits.name);
        snprintf(dev->limits.name + used, sizeof dev->limits.name - used, ":%u", index);
    }
    init_allocators(device);
    const sp_stream_pool_options options = pool_options();
    const sp_status status = sp__stream_pool_init(&device->pool, device, &options);
    if (status != SP_OK) {
        deinit_allocators(device);
        sp__stream_pool_deinit(&device->pool);
        sp_free(device);
        return status;
    }
    sp_tsan_release(&runtime.devices);
    if (SP_PLANTED(count_before_device)) sp_store_release(&runtime.device_count, index + 1);
    if (SP_PLANTED(relaxed_device)) {
        sp_store_relaxed(&runtime.devices[index], device);
    } else {
        sp_store_release(&runtime.devices[index], device);
    }
    sp_store_release(&runtime.device_count, index + 1);
    *out = device;
    return SP_OK;
}

sp_status sp__runtime_add_device(sp_dev *dev, sp_rt_device **out)
{
    SP_TRY(sp__runtime_enter());
    sp_mutex_lock(&runtime.lock);
    const bool is_up = sp_load_relaxed(&sp__runtime_phase) == SP_RUNTIME_UP;
    const sp_status status = is_up ? add_device_locked(dev, out) : SP_CLOSED;
    sp_mutex_unlock(&runtime.lock);
    if (is_up) return status;
    const sp_status why = sp__runtime_enter_slow(); /* with the message */
    return why != SP_OK ? why : status;
}

sp_status sp__runtime_each_device(sp_status (*fn)(sp_rt_device *device, void *ctx), void *ctx)
{
    const uint32_t count = sp_load_acquire(&runtime.device_count);
    for (uint32_t i = 0; i < count; i++) SP_TRY(fn(sp_load_relaxed(&runtime.devices[i]), ctx));
    return SP_OK;
}

/* ---- up ---- */

static void on_fork_child(void)
{
    if (sp_load_relaxed(&sp__runtime_phase) != SP_RUNTIME_NEW) {
        sp_store_relaxed(&sp__runtime_phase, SP_RUNTIME_FORKED);
        sp_store_relaxed(&sp__fork_is_child, 1);
    }
}

/* NEW -> COMING_UP. Without a lock, which a fork could leave held forever: two threads may both
 * register the handler, and then it runs twice. */
static sp_status begin_coming_up(void)
{
    if (sp_load_relaxed(&runtime.has_fork_handler) == 0) {
        if (!sp_fork_on_child(on_fork_child)) {
            return sp__fail(SP_OUT_OF_MEMORY, "no memory for the fork handler");
        }
        sp_store_relaxed(&runtime.has_fork_handler, 1);
    }
    uint32_t phase = SP_RUNTIME_NEW;
    /* Sequentially consistent: a fork copies memory as it is, and a child that finds the lock held
     * has to find this phase too. An acquiring lock does not order the stores before it. */
    (void)sp_cas_seq_cst(&sp__runtime_phase, &phase, SP_RUNTIME_COMING_UP);
    return SP_OK;
}

static sp_device_open_options open_options(uint32_t ordinal)
{
    const uint32_t workers = (uint32_t)sp_option_int(SP_OPTION_CPU_WORKERS);
    return (sp_device_open_options){.ordinal = ordinal, .worker_count = workers};
}

static sp_status runtime_come_up_locked(void) SP_REQUIRES(&runtime.lock)
{
    const sp_device_open_options options = open_options(0);
    sp_dev *fallback;
    sp_rt_device *device;
    SP_TRY(sp__device_kind_fallback()->open(&options, &fallback));
    const sp_status status = add_device_locked(fallback, &device);
    if (status != SP_OK) {
        fallback->vtable->close(fallback);
        return status;
    }
    sp__check_start();
    if (SP_PLANTED(relaxed_up)) {
        sp_store_relaxed(&sp__runtime_phase, SP_RUNTIME_UP);
    } else {
        sp_store_release(&sp__runtime_phase, SP_RUNTIME_UP);
    }
    return SP_OK;
}

static sp_status fail_closed(void)
{
    return sp__fail(SP_CLOSED, "streampool was shut down (sp_shutdown) in this process");
}

sp_status sp__runtime_enter_slow(void)
{
    sp_status status = SP_OK;
    switch ((sp_runtime_phase)sp_load_relaxed(&sp__runtime_phase)) {
    case SP_RUNTIME_DOWN:
        return fail_closed();
    case SP_RUNTIME_FORKED:
        return sp__fail(SP_FORKED,
                        "this is the forked child of a process that used streampool: "
                        "its threads do not exist here; use exec, or fork before first use");
    case SP_RUNTIME_NEW:
        SP_TRY(begin_coming_up());
        break;
    case SP_RUNTIME_COMING_UP:
    case SP_RUNTIME_UP: /* the lock orders it */
        break;
    }
    /* Before the lock: it may call the user's log callback, which may call the library. */
    sp_option_load();
    sp_mutex_lock(&runtime.lock);
    if (SP_PLANTED(up_twice) || sp_load_relaxed(&sp__runtime_phase) == SP_RUNTIME_COMING_UP) {
        status = runtime_come_up_locked();
    }
    sp_mutex_unlock(&runtime.lock);
    /* Relaxed: ordered by the lock. */
    if (status != SP_OK || sp_load_relaxed(&sp__runtime_phase) == SP_RUNTIME_UP) return status;
    return fail_closed(); /* shut down by another thread */
}

/* ---- public ---- */

sp_status sp_init(void)
{
    return sp__runtime_enter();
}

const char *sp_version(void)
{
    return "0.1.0";
}

/* Inside a host function or callback, or on a thread that runs one, a drain would wait for
 * itself. */
static sp_status check_outside_callbacks(const char *what)
{
    const sp_thread_record *record = sp__thread_record();
    if (record == NULL) return SP_OUT_OF_MEMORY;
    if (!sp__thread_is_inside_callback(record)) return SP_OK;
    return sp__fail(SP_DEADLOCK, "%s inside a host function or callback would wait for itself",
                    what);
}

static sp_status stop_device(void *arg)
{
    sp_rt_device *device = arg;
    sp__stream_pool_close(&device->pool);
    device->dev->vtable->stop(device->dev);
    return SP_OK;
}

/* process-wide: set by layers above, constant then. Sequentially consistent with the phase: see
 * sp__runtime_set_stop. */
static SP_ATOMIC(sp_runtime_stop_fn) stop_fns[SP_RUNTIME_THREADS];

void sp__runtime_set_stop(sp_runtime_threads threads, sp_runtime_stop_fn fn)
{
    sp_store_seq_cst(&stop_fns[threads], fn);
}

static sp_status runtime_take_down(void *unused)
{
    (void)unused;
    for (uint32_t i = 0; i < SP_RUNTIME_THREADS; i++) {
        const sp_runtime_stop_fn stop = sp_load_seq_cst(&stop_fns[i]);
        if (stop != NULL) stop();
    }
    const uint32_t count = sp_load_acquire(&runtime.device_count);
    /* All of them first: what one device completes may wait for a stream of another. */
    for (uint32_t i = 0; i < count; i++) {
        sp__stream_pool_close(&sp_load_relaxed(&runtime.devices[i])->pool);
    }
    for (uint32_t i = 0; i < count; i++) {
        sp_rt_device *device = sp_load_relaxed(&runtime.devices[i]);
        (void)sp_once_run(&device->stopped, stop_device, device); /* stopping cannot fail */
    }
    sp__host_executor_stop();
    return SP_OK;
}

sp_status sp_shutdown(void)
{
    if (sp__runtime_is_forked()) return SP_OK;
    uint32_t phase = SP_RUNTIME_NEW;
    if (sp_cas_relaxed(&sp__runtime_phase, &phase, SP_RUNTIME_DOWN)) return SP_OK; /* no lock */
    SP_TRY(check_outside_callbacks("sp_shutdown"));
    if (sp__thread_record()->ends_with_shutdown) {
        return sp__fail(SP_DEADLOCK, "sp_shutdown in the log's callback, on a thread of the "
                                     "library, would wait for itself");
    }
    sp_mutex_lock(&runtime.lock);
    phase = sp_load_relaxed(&sp__runtime_phase);
    /* From here on the phase refuses new calls; calls in progress are refused by the closed
     * queues. */
    if (phase == SP_RUNTIME_COMING_UP || phase == SP_RUNTIME_UP) {
        sp_store_seq_cst(&sp__runtime_phase, SP_RUNTIME_DOWN); /* see sp__runtime_set_stop */
    }
    /* A device that is being opened has threads: they end before this call returns. */
    while (!SP_PLANTED(shutdown_past_opening) && runtime.openings != NULL) {
        sp_cond_wait(&runtime.opened, &runtime.lock);
    }
    sp_mutex_unlock(&runtime.lock);
    /* A second caller returns when the shutdown has completed, not before. */
    SP_TRY(sp_once_run(&runtime.down, runtime_take_down, NULL));
    const uint32_t count = sp_load_acquire(&runtime.device_count);
    for (uint32_t i = 0; i < count; i++) {
        sp__log_unreported(sp_load_relaxed(&runtime.devices[i]));
    }
    return SP_OK;
}

uint32_t sp_device_count(void)
{
    if (sp__runtime_enter() != SP_OK) return 0;
    const uint64_t closed = sp_load_relaxed(&sp__closed_devices);
    return sp_load_relaxed(&runtime.device_count) - (uint32_t)__builtin_popcountll(closed);
}

sp_status sp_device_at(uint32_t index, sp_device *out)
{
    if (out == NULL) return sp__fail(SP_INVALID, "sp_device_at: out is NULL");
    *out = (sp_device){0};
    SP_TRY(sp__runtime_enter());
    const uint64_t closed = sp_load_relaxed(&sp__closed_devices);
    const uint32_t count = sp_load_acquire(&runtime.device_count);
    uint32_t open = 0;
    for (uint32_t i = 0; i < count; i++) {
        if ((closed >> i & 1) != 0 || open++ != index) continue;
        *out = sp__rt_device_handle(sp_load_relaxed(&runtime.devices[i]));
        return SP_OK;
    }
    return sp__fail(SP_NOT_FOUND, "there is no device %u: %u are open", index, open);
}

/* The arguments of sp_device_open, parsed. */
typedef struct wanted_device {
    const sp_device_kind *kind;
    uint32_t ordinal;
    char name[32]; /* before the runtime numbers it */
} wanted_device;

/* One device is shared by all that open it. */
static bool is_device_shared(const wanted_device *wanted)
{
    return wanted->kind->numbering != SP_DEVICE_UNBOUNDED;
}

static bool device_find_open_locked(const char *name, sp_device *out) SP_REQUIRES(&runtime.lock)
{
    const uint32_t count = sp_load_relaxed(&runtime.device_count);
    for (uint32_t i = 0; i < count; i++) {
        const sp_rt_device *device = sp_load_relaxed(&runtime.devices[i]);
        if (sp__rt_device_is_closed(i) || strcmp(device->dev->limits.name, name) != 0) continue;
        *out = sp__rt_device_handle(device);
        return true;
    }
    return false;
}

/* ---- opening ---- */

static bool is_opening_locked(const char *name) SP_REQUIRES(&runtime.lock)
{
    const opening *other = SP_PLANTED(open_gpu_twice) ? NULL : runtime.openings;
    while (other != NULL && strcmp(other->name, name) != 0) other = other->next;
    return other != NULL;
}

/* Registers an opening, for which sp_shutdown waits, unless the device is open already: then its
 * handle is in *out. Waits while another thread opens the same device. SP_CLOSED when down. */
static sp_status opening_begin(opening *self, bool is_shared, sp_device *out)
{
    sp_mutex_lock(&runtime.lock);
    while (is_shared && is_opening_locked(self->name)) sp_cond_wait(&runtime.opened, &runtime.lock);
    const bool is_up = sp_load_relaxed(&sp__runtime_phase) == SP_RUNTIME_UP;
    if (is_up && !(is_shared && device_find_open_locked(self->name, out))) {
        self->next = runtime.openings;
        runtime.openings = self;
    }
    sp_mutex_unlock(&runtime.lock);
    return is_up ? SP_OK : SP_CLOSED;
}

static void opening_end(opening *self)
{
    sp_mutex_lock(&runtime.lock);
    opening **place = &runtime.openings;
    while (*place != self) place = &(*place)->next;
    *place = self->next;
    sp_cond_broadcast(&runtime.opened);
    sp_mutex_unlock(&runtime.lock);
}

/* Without the lock, since opening a GPU is slow. A device that is opened too late for a shutdown,
 * which waits for the end of this, is closed again. */
static sp_status device_open_and_add(const wanted_device *wanted, sp_rt_device **out)
{
    const sp_device_open_options options = open_options(wanted->ordinal);
    sp_dev *dev;
    SP_TRY(wanted->kind->open(&options, &dev));
    const sp_status status = sp__runtime_add_device(dev, out);
    if (status != SP_OK) dev->vtable->close(dev);
    return status;
}

sp_status sp_device_open(const char *kind, sp_device *out)
{
    if (out == NULL) return sp__fail(SP_INVALID, "sp_device_open: out is NULL");
    *out = (sp_device){0};
    SP_TRY(sp__runtime_enter());
    if (kind == NULL)
        return sp__fail(SP_INVALID, "sp_device_open: kind is NULL; pass one such as \"cpu\"");
    wanted_device wanted;
    SP_TRY(sp__device_kind_parse(kind, &wanted.kind, &wanted.ordinal));
    sp__device_kind_name(wanted.kind, wanted.ordinal, wanted.name, sizeof wanted.name);
    opening self = {.name = wanted.name};
    if (opening_begin(&self, is_device_shared(&wanted), out) != SP_OK) {
        return sp__runtime_enter_slow(); /* with the message */
    }
    if (out->bits != 0) return SP_OK;
    sp_rt_device *opened;
    const sp_status status = device_open_and_add(&wanted, &opened);
    opening_end(&self);
    SP_TRY(status);
    *out = sp__rt_device_handle(opened);
    sp__log_opened(opened);
    return SP_OK;
}

sp_status sp_device_close(sp_device handle)
{
    if (sp__runtime_is_forked()) return SP_OK;
    sp_rt_device *device = NULL;
    SP_TRY(sp__rt_device_find(handle, &device));
    if (device->dev->vtable->kind->numbering == SP_DEVICE_SINGLE) {
        return sp__fail(SP_INVALID, "%s is closed by sp_shutdown only", device->dev->limits.name);
    }
    SP_TRY(check_outside_callbacks("sp_device_close"));
    const uint64_t bit = (uint64_t)1 << device->index;
    if ((sp_fetch_or_relaxed(&sp__closed_devices, bit) & bit) != 0) {
        return sp__fail(SP_CLOSED, "device %s is being closed", device->dev->limits.name);
    }
    const sp_status status = sp_once_run(&device->stopped, stop_device, device);
    /* All accepted work has completed. */
    sp__log_unreported(device);
    sp__allocator_close(&device->allocator);
    sp__allocator_close(&device->staging);
    return status;
}

/* ---- reset ---- */

void sp__runtime_reset(void)
{
    sp_shutdown();
    sp__current_stream_forget();
    const uint32_t count = sp_load_relaxed(&runtime.device_count);
    for (uint32_t i = 0; i < count; i++) {
        sp_rt_device *device = sp_load_relaxed(&runtime.devices[i]);
        sp_store_relaxed(&runtime.devices[i], NULL);
        deinit_allocators(device);
        sp__stream_pool_deinit(&device->pool);
        device->dev->vtable->close(device->dev);
        sp_free(device);
    }
    sp_store_relaxed(&runtime.device_count, 0);
    sp_store_relaxed(&sp__closed_devices, 0);
    runtime.down = (sp_once){0};
    sp__stream_leases_deinit();
    sp__storages_deinit();
    sp__command_lists_deinit();
    sp__events_deinit();
    sp__host_tickets_deinit();
    sp__host_memory_deinit();
    sp__check_reset();
    sp__thread_records_deinit();
    sp_store_relaxed(&sp__runtime_phase, SP_RUNTIME_NEW);
}
