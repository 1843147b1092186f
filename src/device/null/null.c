/* SPDX-License-Identifier: Apache-2.0 */
/* The null device: command queues with four workers, without helpers, and with injected faults. */
#include "device/null/null.h"

#include <streampool/dlpack.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/heap.h"
#include "base/size.h"
#include "device/queue/engine.h"
#include "device/queue/page_memory.h"

#define NEVER INT64_MAX
#define DEFAULT_QUEUE_BYTES ((uint64_t)1 << 20)
#define DEFAULT_MEMORY_BYTES ((uint64_t)1 << 30)
#define NAP_NS 200000u
#define WORKERS 4

typedef struct null_device {
    sp_queue_device common;
    /* Counters and settings of the faults: written by tests, read by every command. Relaxed: they
     * order nothing. */
    sp_atomic_i64 allocations_left; /* before the one that fails */
    sp_atomic_i64 commands_left;
    sp_atomic_u32 per_mille;
    sp_atomic_u64 seed;
    sp_atomic_u64 command_count;
    sp_atomic_u64 command_ns;
    sp_atomic_u32 is_lost;
    sp_atomic_u64 bytes_in_use;
    uint64_t memory_bytes;
    bool has_own_memory, hides_staging;
    sp_quirk quirk;
} null_device;

static null_device *null_of(sp_dev *device)
{
    return SP_CONTAINER_OF(sp__queue_device(device), null_device, common);
}

static bool fault_is_due(sp_atomic_i64 *left)
{
    return sp_load_relaxed(left) != NEVER && sp_fetch_sub_relaxed(left, (int64_t)1) == 0;
}

/* splitmix64 (S. Vigna). */
static uint64_t mix64(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static sp_status null_before_command(sp_queue_device *common, const char *label)
{
    (void)label;
    null_device *device = SP_CONTAINER_OF(common, null_device, common);
    const uint64_t latency = sp_load_relaxed(&device->command_ns);
    if (latency > 0) sp_clock_sleep(latency);
    if (sp_load_relaxed(&device->is_lost)) {
        return sp__fail(SP_DEVICE_LOST, "injected loss of the device");
    }
    const uint64_t number = sp_fetch_add_relaxed(&device->command_count, (uint64_t)1);
    const uint32_t per_mille = sp_load_relaxed(&device->per_mille);
    const bool is_unlucky =
        per_mille > 0 && mix64(sp_load_relaxed(&device->seed) ^ number) % 1000 < per_mille;
    if (is_unlucky || fault_is_due(&device->commands_left)) {
        return sp__fail(SP_FAILED, "injected fault in command %llu", (unsigned long long)number);
    }
    return SP_OK;
}

static sp_status null_memory_create(sp_dev *base, uint64_t bytes, sp_memory *out)
{
    null_device *device = null_of(base);
    if (fault_is_due(&device->allocations_left)) {
        return sp__fail(SP_OUT_OF_MEMORY, "injected failure of an allocation of %llu bytes",
                        (unsigned long long)bytes);
    }
    uint64_t used = sp_load_relaxed(&device->bytes_in_use);
    do {
        if (!sp_size_in_range(used, bytes, device->memory_bytes)) {
            return sp__fail(SP_OUT_OF_MEMORY, "%s: %llu bytes asked, %llu of %llu free",
                            base->limits.name, (unsigned long long)bytes,
                            (unsigned long long)(device->memory_bytes - used),
                            (unsigned long long)device->memory_bytes);
        }
    } while (!sp_cas_relaxed(&device->bytes_in_use, &used, used + bytes));
    const sp_status status = sp__page_memory_create(base, bytes, out);
    if (status != SP_OK) sp_fetch_sub_relaxed(&device->bytes_in_use, bytes);
    else if (device->has_own_memory) out->host = NULL;
    return status;
}

static void null_memory_destroy(sp_memory *memory)
{
    sp_fetch_sub_relaxed(&null_of(memory->device)->bytes_in_use, memory->bytes);
    sp__page_memory_destroy(memory);
}

/* Host memory, which does not count as the device's. */
static sp_status null_staging_create(sp_dev *base, uint64_t bytes, sp_memory *out)
{
    SP_TRY(sp__page_memory_create(base, bytes, out));
    if (null_of(base)->hides_staging) out->host = NULL;
    return SP_OK;
}

/* Of a device with memory of its own, any address counts as its memory. */
static sp_status null_memory_adopt(sp_dev *base, void *data, uint64_t bytes, sp_memory *out)
{
    *out = (sp_memory){.device = base, .bytes = bytes, .address = data};
    return SP_OK;
}

static sp_status null_open_kind(const sp_device_open_options *options, sp_dev **out)
{
    (void)options; /* the number of workers is fixed, part of the simulated device */
    return sp__null_open(&(sp_null_options){0}, out);
}

const sp_device_kind sp__null_kind = {
    .name = "null",
    .numbering = SP_DEVICE_UNBOUNDED,
    .kernel_form = SP_KERNEL_FORM_HOST,
    .dlpack_type = SP_DLPACK_CPU,
    .open = null_open_kind,
};

static void null_close(sp_dev *base)
{
    null_device *device = null_of(base);
    sp__queue_device_deinit(&device->common);
    sp_free(device);
}

static const sp_device_vtable null_vtable = {
    SP_QUEUE_VTABLE,
    .kind = &sp__null_kind,
    .close = null_close,
    .memory_create = null_memory_create,
    .memory_destroy = null_memory_destroy,
};

static const sp_device_vtable own_memory_vtable = {
    SP_QUEUE_VTABLE,
    .kind = &sp__null_kind,
    .close = null_close,
    .memory_create = null_memory_create,
    .memory_destroy = null_memory_destroy,
    .memory_adopt = null_memory_adopt,
    .staging_create = null_staging_create,
    .staging_destroy = sp__page_memory_destroy,
};

static void null_set_up(null_device *device, const sp_null_options *options)
{
    *device = (null_device){0};
    device->memory_bytes = options->memory_bytes > 0 ? options->memory_bytes : DEFAULT_MEMORY_BYTES;
    device->has_own_memory = options->has_own_memory;
    device->hides_staging = options->hides_staging;
    device->quirk = (sp_quirk){.name = "pretend library call",
                               .since = "always",
                               .measure = "at most so many at once",
                               .limit = options->quirk_limit};
    device->common.base.limits = (sp_device_limits){.memory_bytes = device->memory_bytes,
                                                    .width = WORKERS,
                                                    .run_slots = WORKERS,
                                                    .quirk_count = 1,
                                                    .quirks = &device->quirk};
    sp__device_kind_name(&sp__null_kind, 0, device->common.base.limits.name,
                         sizeof device->common.base.limits.name);
    sp_store_relaxed(&device->allocations_left, NEVER);
    sp_store_relaxed(&device->commands_left, NEVER);
    sp_store_relaxed(&device->command_ns, options->command_ns);
}

sp_status sp__null_check(const sp_dev *device)
{
    if (device->vtable->kind == &sp__null_kind) return SP_OK;
    return sp__fail(SP_INVALID, "%s is not a null device: only those have injected faults",
                    device->limits.name);
}

sp_status sp__null_open(const sp_null_options *options, sp_dev **out)
{
    null_device *device = sp_aligned_malloc(SP_CACHE_LINE, sizeof *device);
    if (device == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory to open a null device");
    null_set_up(device, options);
    const sp_queue_device_options queues = {
        .engine = &sp__host_engine,
        .worker_count = WORKERS,
        .queue_bytes = options->queue_bytes > 0 ? options->queue_bytes : DEFAULT_QUEUE_BYTES,
        .max_in_flight = options->max_in_flight,
        .nap_ns = NAP_NS,
        .before_command = null_before_command,
    };
    const sp_status status = sp__queue_device_init(
        &device->common, options->has_own_memory ? &own_memory_vtable : &null_vtable, &queues);
    if (status != SP_OK) {
        sp_free(device);
        return status;
    }
    *out = &device->common.base;
    return SP_OK;
}

/* ---- faults ---- */

static int64_t fault_countdown(uint64_t skip)
{
    return skip < NEVER ? (int64_t)skip : NEVER;
}

void sp__null_fail_allocation(sp_dev *device, uint64_t skip)
{
    sp_store_relaxed(&null_of(device)->allocations_left, fault_countdown(skip));
}

void sp__null_fail_command(sp_dev *device, uint64_t skip)
{
    sp_store_relaxed(&null_of(device)->commands_left, fault_countdown(skip));
}

bool sp__null_has_failed_command(sp_dev *device)
{
    return sp_load_relaxed(&null_of(device)->commands_left) < 0;
}

void sp__null_fail_randomly(sp_dev *device, uint32_t per_mille, uint64_t seed)
{
    sp_store_relaxed(&null_of(device)->seed, seed);
    sp_store_relaxed(&null_of(device)->per_mille, per_mille);
}

void sp__null_set_latency(sp_dev *device, uint64_t command_ns)
{
    sp_store_relaxed(&null_of(device)->command_ns, command_ns);
}

void sp__null_lose(sp_dev *device)
{
    sp_store_relaxed(&null_of(device)->is_lost, 1);
}
