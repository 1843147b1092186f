/* SPDX-License-Identifier: Apache-2.0 */
/* Pinned host memory: pages that the library records by address, and that the driver of a GPU
 * registers. They are the library's, not the driver's, so they outlive the device.
 *
 *     ranges[] is sorted by address, and no two overlap;  bytes == the sum of their sizes */
#include "runtime/host_memory.h"

#include <streampool/storage.h>

#include <string.h>

#include "base/error.h"
#include "base/heap.h"
#include "base/mutex.h"
#include "base/pages.h"
#include "runtime/runtime_state.h"

typedef struct host_range {
    uintptr_t address;
    uint64_t bytes;
    sp_dev *device;
} host_range;

static struct {
    sp_mutex lock;
    host_range *ranges SP_GUARDED_BY(lock);
    uint32_t count SP_GUARDED_BY(lock);
    uint32_t capacity SP_GUARDED_BY(lock);
    uint64_t bytes SP_GUARDED_BY(lock);
} pinned = {.lock = SP_MUTEX_INIT(SP_LOCK_PINNED)}; /* process-wide: pinned for all devices */

/* Number of ranges that begin at or before `address`. */
static uint32_t count_up_to_locked(uintptr_t address) SP_REQUIRES(&pinned.lock)
{
    uint32_t low = 0;
    uint32_t high = pinned.count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (pinned.ranges[middle].address <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool ranges_grow_locked(void) SP_REQUIRES(&pinned.lock)
{
    host_range *grown = sp_grow(pinned.ranges, pinned.count, &pinned.capacity, sizeof *grown);
    if (grown != NULL) pinned.ranges = grown;
    return grown != NULL;
}

/* The system may grant more pages than it has; this check does not. */
static bool has_memory_for_locked(uint64_t bytes) SP_REQUIRES(&pinned.lock)
{
    const uint64_t all = sp_pages_total_bytes();
    return bytes <= all && pinned.bytes <= all - bytes;
}

static bool range_insert_locked(void *address, uint64_t bytes, sp_dev *device)
    SP_REQUIRES(&pinned.lock)
{
    if (!ranges_grow_locked()) return false;
    const uint32_t at = count_up_to_locked((uintptr_t)address);
    memmove(&pinned.ranges[at + 1], &pinned.ranges[at], (pinned.count - at) * sizeof(host_range));
    pinned.ranges[at] = (host_range){(uintptr_t)address, bytes, device};
    pinned.count++;
    pinned.bytes += bytes;
    return true;
}

/* The range that begins at `address`, which is removed; of 0 bytes if there is none. */
static host_range range_remove_locked(uintptr_t address) SP_REQUIRES(&pinned.lock)
{
    const uint32_t behind = count_up_to_locked(address);
    if (behind == 0 || pinned.ranges[behind - 1].address != address) return (host_range){0};
    const host_range range = pinned.ranges[behind - 1];
    memmove(&pinned.ranges[behind - 1], &pinned.ranges[behind],
            (pinned.count - behind) * sizeof(host_range));
    pinned.count--;
    pinned.bytes -= range.bytes;
    return range;
}

static host_range range_remove(const void *data)
{
    sp_mutex_lock(&pinned.lock);
    const host_range range = range_remove_locked((uintptr_t)data);
    sp_mutex_unlock(&pinned.lock);
    return range;
}

static sp_status range_create(sp_dev *device, uint64_t bytes, void **out)
{
    sp_mutex_lock(&pinned.lock);
    void *pages = has_memory_for_locked(bytes) ? sp_pages_map(bytes) : NULL;
    const bool is_kept = pages != NULL && range_insert_locked(pages, bytes, device);
    const uint64_t others = pinned.bytes;
    sp_mutex_unlock(&pinned.lock);
    if (is_kept) {
        *out = pages;
        return SP_OK;
    }
    if (pages != NULL) sp_pages_unmap(pages, bytes);
    return sp__fail(SP_OUT_OF_MEMORY,
                    "no memory for %llu bytes of pinned host memory beside %llu in use",
                    (unsigned long long)bytes, (unsigned long long)others);
}

/* With no lock held, since the driver may take long. */
static sp_status pages_register(sp_dev *device, void *pages, uint64_t bytes)
{
    if (device->vtable->host_register == NULL) return SP_OK;
    const sp_status status = device->vtable->host_register(device, pages, bytes);
    if (status == SP_OK) return SP_OK;
    return sp__fail_prefix(status, "%s: %llu bytes of pinned host memory: ", device->limits.name,
                           (unsigned long long)bytes);
}

sp_status sp_host_alloc(sp_device device, uint64_t bytes, void **out)
{
    if (out == NULL) return sp__fail(SP_INVALID, "sp_host_alloc: out is NULL");
    *out = NULL;
    sp_rt_device *on;
    SP_TRY(sp__rt_device_find(device, &on));
    const uint64_t size = bytes > 0 ? bytes : 1;
    void *pages = NULL;
    SP_TRY(range_create(on->dev, size, &pages));
    const sp_status status = pages_register(on->dev, pages, size);
    if (status != SP_OK) {
        sp_pages_unmap(pages, range_remove(pages).bytes);
        return status;
    }
    *out = pages;
    return SP_OK;
}

sp_status sp_host_free(void *data)
{
    if (data == NULL || sp__runtime_is_forked()) return SP_OK;
    const host_range range = range_remove(data);
    if (range.bytes == 0)
        return sp__fail(SP_INVALID, "%p is not from sp_host_alloc, or was freed", data);
    const sp_device_vtable *vtable = range.device->vtable;
    if (vtable->host_unregister != NULL) vtable->host_unregister(range.device, data);
    sp_pages_unmap(data, range.bytes);
    return SP_OK;
}

bool sp_host_is_pinned(const void *data, uint64_t bytes)
{
    if (sp__runtime_is_forked()) return false; /* the lock may be held by a thread of the parent */
    const uintptr_t address = (uintptr_t)data;
    bool is_inside = false;
    sp_mutex_lock(&pinned.lock);
    const uint32_t behind = count_up_to_locked(address);
    if (behind > 0) {
        const host_range *range = &pinned.ranges[behind - 1];
        const uint64_t offset = address - range->address;
        is_inside = offset < range->bytes && bytes <= range->bytes - offset;
    }
    sp_mutex_unlock(&pinned.lock);
    return is_inside;
}

void sp__host_memory_deinit(void)
{
    sp_mutex_lock(&pinned.lock);
    for (uint32_t i = 0; i < pinned.count; i++) {
        /* Tests only: an address that the library itself mapped. */
        sp_pages_unmap((void *)pinned.ranges[i].address, pinned.ranges[i].bytes);
    }
    sp_free(pinned.ranges);
    pinned.ranges = NULL;
    pinned.count = pinned.capacity = 0;
    pinned.bytes = 0;
    sp_mutex_unlock(&pinned.lock);
}
