/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/staging.h"

#include <string.h>

#include "base/error.h"
#include "base/heap.h"

/* Up to this many bytes, kernels access pinned host memory over the bus. Measured on an H200:
 * reading 4 KiB in place takes a third of the time of a copy. */
#define DIRECT_BYTES 16384u
#define ALIGNMENT 256u

typedef struct staged_port {
    uint64_t bytes;
    uint64_t pinned_offset;
    uint64_t device_offset; /* in the blocks, if is_copied */
    bool is_copied;         /* has buffers on the devices */
    bool has_places;        /* of its rows, which are in the pinned memory too */
    uint64_t places_offset;
} staged_port;

struct sp_staging {
    const sp_target *targets;
    uint32_t target_count;
    sp_port_rows rows;
    sp_block *pinned; /* host memory, and its host address */
    void *host;
    sp_block *blocks[SP_MAX_TARGETS]; /* NULL if no port is copied, and of the fallback */
    uint32_t input_count, port_count;
    staged_port *ports;
};

static uint64_t align_up(uint64_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static const sp_plan_tensor *port_tensor(const sp_graph_plan *plan, uint32_t port)
{
    return port < plan->input_count ? &plan->inputs[port]
                                    : &plan->outputs[port - plan->input_count];
}

/* Of a device that has no memory but what the host reaches too, all buffers are in that. */
static bool has_own_memory(const sp_staging *staging)
{
    return staging->targets[SP_SEGMENT_MODEL].device->dev->vtable->staging_create != NULL;
}

static sp_allocator *pinned_allocator(const sp_staging *staging)
{
    sp_rt_device *device = staging->targets[SP_SEGMENT_MODEL].device;
    return has_own_memory(staging) ? &device->staging : &device->allocator;
}

/* Sets the offsets of all ports; *pinned and *device are the bytes needed in host memory and in
 * each device's. */
static void ports_lay_out(sp_staging *staging, const sp_graph_plan *plan, uint64_t *pinned,
                          uint64_t *device)
{
    *pinned = 0;
    *device = 0;
    for (uint32_t i = 0; i < staging->port_count; i++) {
        staged_port *port = &staging->ports[i];
        port->bytes = port_tensor(plan, i)->bytes;
        port->pinned_offset = *pinned;
        *pinned += align_up(port->bytes);
        port->has_places = staging->rows.count > 0 && staging->rows.pieces[i].chunk > 0;
        port->places_offset = *pinned;
        if (port->has_places) *pinned += align_up(staging->rows.count * sizeof(int64_t));
        port->is_copied =
            port->has_places || (port->bytes > DIRECT_BYTES && has_own_memory(staging));
        if (!port->is_copied) continue;
        port->device_offset = *device;
        *device += align_up(port->bytes);
    }
}

static sp_binding block_binding(const sp_block *block, uint64_t offset, uint64_t bytes)
{
    return (sp_binding){
        .memory = &block->slab->memory, .offset = block->offset + offset, .bytes = bytes};
}

static void places_reset(const sp_staging *staging, uint32_t port)
{
    int64_t *places = sp__staging_places(staging, port);
    if (places == NULL) return;
    const uint64_t bytes = sp__row_bytes(&staging->rows.pieces[port]);
    for (uint32_t row = 0; row < staging->rows.count; row++) places[row] = (int64_t)(row * bytes);
}

static sp_status staging_fill(sp_staging *staging, const sp_graph_plan *plan, bool is_spare)
{
    const sp_target *targets = staging->targets;
    staging->ports = sp_calloc(staging->port_count, sizeof *staging->ports);
    if (staging->ports == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a context");
    uint64_t pinned_bytes = 0;
    uint64_t device_bytes = 0;
    ports_lay_out(staging, plan, &pinned_bytes, &device_bytes);
    SP_TRY(sp__allocator_acquire_any(pinned_allocator(staging), pinned_bytes, is_spare,
                                     &staging->pinned));
    SP_TRY(sp__block_host(staging->pinned, &staging->host));
    for (uint32_t i = 0; i < staging->port_count; i++) places_reset(staging, i);
    for (uint32_t t = 0; device_bytes > 0 && t < staging->target_count; t++) {
        if (t == SP_SEGMENT_FALLBACK) continue;
        SP_TRY(sp__allocator_acquire_any(&targets[t].device->allocator, device_bytes, is_spare,
                                         &staging->blocks[t]));
    }
    return SP_OK;
}

sp_status sp__staging_create(const sp_target *targets, uint32_t target_count,
                             const sp_graph_plan *plan, const sp_port_rows *rows, bool is_spare,
                             sp_staging **out)
{
    sp_staging *staging = sp_calloc(1, sizeof *staging);
    if (staging == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a context");
    staging->targets = targets;
    staging->target_count = target_count;
    staging->rows = *rows;
    staging->input_count = plan->input_count;
    staging->port_count = plan->input_count + plan->output_count;
    const sp_status status = staging_fill(staging, plan, is_spare);
    if (status != SP_OK) {
        sp__staging_destroy(staging);
        return status;
    }
    *out = staging;
    return SP_OK;
}

void sp__staging_destroy(sp_staging *staging)
{
    if (staging == NULL) return;
    const sp_target *targets = staging->targets;
    for (uint32_t t = 0; t < staging->target_count; t++) {
        sp_block *block = staging->blocks[t];
        if (block != NULL) sp__allocator_release(&targets[t].device->allocator, block);
    }
    if (staging->pinned != NULL) {
        sp__allocator_release(pinned_allocator(staging), staging->pinned);
    }
    sp_free(staging->ports);
    sp_free(staging);
}

sp_binding sp__staging_bind(const sp_staging *staging, uint32_t target, uint32_t port)
{
    const staged_port *place = &staging->ports[port];
    if (place->is_copied && target != SP_SEGMENT_FALLBACK) {
        return block_binding(staging->blocks[target], place->device_offset, place->bytes);
    }
    return block_binding(staging->pinned, place->pinned_offset, place->bytes);
}

static char *pinned_address(const sp_staging *staging, uint32_t port)
{
    return (char *)staging->host + staging->ports[port].pinned_offset;
}

void *sp__staging_at(const sp_staging *staging, uint32_t port)
{
    return pinned_address(staging, port);
}

int64_t *sp__staging_places(const sp_staging *staging, uint32_t port)
{
    const staged_port *place = &staging->ports[port];
    return place->has_places ? (int64_t *)(void *)((char *)staging->host + place->places_offset)
                             : NULL;
}

sp_binding sp__staging_bind_places(const sp_staging *staging, uint32_t port)
{
    return block_binding(staging->pinned, staging->ports[port].places_offset,
                         staging->rows.count * sizeof(int64_t));
}

void sp__staging_copy_in(const sp_staging *staging, const void *const *inputs)
{
    for (uint32_t i = 0; i < staging->input_count; i++) {
        if (staging->ports[i].bytes == 0) continue;
        memcpy(pinned_address(staging, i), inputs[i], staging->ports[i].bytes);
    }
}

void sp__staging_copy_out(const sp_staging *staging, void *const *outputs)
{
    for (uint32_t i = staging->input_count; i < staging->port_count; i++) {
        void *output = outputs[i - staging->input_count];
        if (output == NULL || staging->ports[i].bytes == 0) continue;
        memcpy(output, pinned_address(staging, i), staging->ports[i].bytes);
    }
}
