/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/packed_weights.h"

#include <string.h>

#include "base/error.h"
#include "base/fpenv.h"
#include "base/heap.h"
#include "base/pages.h"
#include "base/macros.h"
#include "base/size.h"
#include "exec/uploader.h"

#define ALIGNMENT 256u
#define CONSTANT_ALIGNMENT 16u

struct sp_packed_copy {
    sp_packed_copy *next; /* of the same weight */
    const sp_rt_device *device;
    const sp_kernel *kernels;
    sp_packing what; /* its constants are the batch's */
    sp_memory memory;
};

struct sp_packed_batch {
    sp_packed_batch *next;
    sp_rt_device *device;
    sp_block *block; /* device memory, or NULL: in the heap */
    void *heap;
    uint64_t bytes, constant_bytes;
    uint32_t count, made; /* copies that it has room for; those that are complete */
    sp_packed_copy *copies;
    unsigned char *constants; /* of all copies */
};

/* ---- look-up ---- */

static const sp_packed_copy *copy_find_locked(const sp_packed_weights *table,
                                              const sp_packed_request *request,
                                              const sp_packing *packing) SP_REQUIRES(&table->lock)
{
    const sp_packed_copy *copy = table->copies[packing->weight];
    for (; copy != NULL; copy = copy->next) {
        if (copy->device == request->device && copy->kernels == request->plan->kernels &&
            sp__packing_equal(&copy->what, packing)) {
            return copy;
        }
    }
    return NULL;
}

/* The copies that exist; true if these are all. */
static bool copies_find_locked(const sp_packed_weights *table, const sp_packed_request *request,
                               sp_memory *out) SP_REQUIRES(&table->lock)
{
    bool is_all = true;
    for (uint32_t i = 0; i < request->plan->packing_count; i++) {
        out[i] = (sp_memory){0};
        if (!request->is_needed[i]) continue;
        const sp_packed_copy *copy = copy_find_locked(table, request, &request->plan->packings[i]);
        if (copy != NULL) out[i] = copy->memory;
        else is_all = false;
    }
    return is_all;
}

/* ---- packing ---- */

static bool is_missing(const sp_packed_request *request, const sp_memory *found, uint32_t i)
{
    return request->is_needed[i] && found[i].device == NULL;
}

static sp_status count_missing(const sp_packed_request *request, const sp_memory *found,
                               sp_packed_batch *batch)
{
    for (uint32_t i = 0; i < request->plan->packing_count; i++) {
        if (!is_missing(request, found, i)) continue;
        const sp_packing *packing = &request->plan->packings[i];
        batch->count++;
        if (!sp_size_add(batch->bytes, packing->bytes, &batch->bytes) ||
            !sp_size_align(batch->bytes, ALIGNMENT, &batch->bytes) ||
            !sp_size_add(batch->constant_bytes, packing->constant_bytes, &batch->constant_bytes) ||
            !sp_size_align(batch->constant_bytes, CONSTANT_ALIGNMENT, &batch->constant_bytes)) {
            return sp__fail(SP_EXHAUSTED, "the size of the packed weights overflows");
        }
    }
    return SP_OK;
}

/* Memory for the batch's copies, one after the other; with host pointers, or they are uploaded. */
static sp_status batch_acquire_memory(sp_packed_batch *batch, sp_memory *out)
{
    sp_rt_device *device = batch->device;
    if (device->dev->vtable->staging_create != NULL) {
        SP_TRY(sp__allocator_acquire(&device->allocator, batch->bytes, NULL, &batch->block));
        const sp_memory *memory = &batch->block->slab->memory;
        *out = (sp_memory){.device = device->dev,
                           .bytes = batch->bytes,
                           .address = (char *)memory->address + batch->block->offset};
        return SP_OK;
    }
    const bool is_large = batch->bytes >= SP_HUGE_PAGE_BYTES;
    batch->heap =
        sp_aligned_malloc(is_large ? SP_HUGE_PAGE_BYTES : ALIGNMENT, (size_t)batch->bytes);
    if (batch->heap == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory to pack weights");
    sp_pages_prefer_huge(batch->heap, batch->bytes);
    *out = sp__memory_at_host(device->dev, batch->heap, batch->bytes);
    return SP_OK;
}

/* Where the copies of a batch go. */
typedef struct batch_target {
    sp_memory room;
    uint64_t at; /* of the next copy */
    /* Without host pointers: each copy is made in `scratch` and uploaded. */
    void *scratch;
    sp_uploader uploader;
} batch_target;

/* `constants`: room for a copy of the packing's. */
static sp_packed_copy copy_at(const sp_packed_request *request, const sp_packing *packing,
                              const batch_target *target, void *constants)
{
    char *host = target->room.host;
    sp_packed_copy copy = {.device = request->device,
                           .kernels = request->plan->kernels,
                           .what = *packing,
                           .memory = {.device = target->room.device,
                                      .bytes = packing->bytes,
                                      .address = (char *)target->room.address + target->at,
                                      .host = host != NULL ? host + target->at : NULL}};
    if (packing->constant_bytes > 0) {
        memcpy(constants, packing->constants, packing->constant_bytes);
    }
    copy.what.constants = constants;
    return copy;
}

/* Of host memory: the weight is parked as soon as its copy is complete, so that a batch needs the
 * memory of one weight more than its own. */
static sp_status weight_pack(sp_packed_weights *table, const sp_kernel *kernels,
                             const sp_packed_copy *copy, void *to)
{
    sp__weight_hold(&table->store, copy->what.weight);
    const sp_status status = sp__packing_run(table->graph, &copy->what, kernels, to);
    if (status == SP_OK && copy->memory.host != NULL) {
        sp__weight_offer(&table->store, &copy->what, copy->memory.host);
    }
    sp__weight_drop(&table->store, copy->what.weight);
    return status;
}

static sp_status copy_make(sp_packed_weights *table, const sp_packing *packing,
                           batch_target *target, const sp_packed_copy *copy)
{
    const uint64_t padding = (ALIGNMENT - packing->bytes % ALIGNMENT) % ALIGNMENT;
    void *to = copy->memory.host != NULL ? copy->memory.host : target->scratch;
    target->at += packing->bytes + padding;
    SP_TRY(weight_pack(table, copy->kernels, copy, to));
    if (copy->memory.host != NULL) return SP_OK;
    SP_TRY(sp__uploader_write(&target->uploader, to, packing->bytes));
    return sp__uploader_write(&target->uploader, NULL, padding);
}

static sp_status copies_make(sp_packed_weights *table, const sp_packed_request *request,
                             const sp_memory *found, sp_packed_batch *batch, batch_target *target)
{
    unsigned char *constants = batch->constants;
    for (uint32_t i = 0; i < request->plan->packing_count; i++) {
        if (!is_missing(request, found, i)) continue;
        const sp_packing *packing = &request->plan->packings[i];
        sp_packed_copy *copy = &batch->copies[batch->made];
        *copy = copy_at(request, packing, target, constants);
        SP_TRY(copy_make(table, packing, target, copy));
        batch->made++;
        const size_t used = (size_t)packing->constant_bytes + CONSTANT_ALIGNMENT - 1;
        constants += used / CONSTANT_ALIGNMENT * CONSTANT_ALIGNMENT;
    }
    return SP_OK;
}

static uint64_t largest_missing(const sp_packed_request *request, const sp_memory *found)
{
    uint64_t largest = 1;
    for (uint32_t i = 0; i < request->plan->packing_count; i++) {
        const uint64_t bytes = request->plan->packings[i].bytes;
        if (is_missing(request, found, i) && bytes > largest) largest = bytes;
    }
    return largest;
}

static sp_status copies_upload(sp_packed_weights *table, const sp_packed_request *request,
                               const sp_memory *found, sp_packed_batch *batch, batch_target *target)
{
    target->scratch = sp_aligned_malloc(ALIGNMENT, (size_t)largest_missing(request, found));
    if (target->scratch == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory to pack weights");
    sp_status status =
        sp__uploader_begin(&target->uploader, batch->device, &batch->block->slab->memory,
                           batch->block->offset, batch->bytes);
    if (status == SP_OK) status = copies_make(table, request, found, batch, target);
    status = sp__uploader_end(&target->uploader, status);
    sp_free(target->scratch);
    return status;
}

static sp_status batch_fill(sp_packed_weights *table, const sp_packed_request *request,
                            const sp_memory *found, sp_packed_batch *batch)
{
    batch_target target = {0};
    SP_TRY(count_missing(request, found, batch));
    batch->copies =
        sp_aligned_malloc(_Alignof(sp_packed_copy), batch->count * sizeof *batch->copies);
    /* Never 0 bytes, for which there may be no memory. */
    batch->constants =
        sp_aligned_malloc(CONSTANT_ALIGNMENT, (size_t)batch->constant_bytes + CONSTANT_ALIGNMENT);
    if (batch->copies == NULL || batch->constants == NULL) {
        return sp__fail(SP_OUT_OF_MEMORY, "no memory to pack weights");
    }
    SP_TRY(batch_acquire_memory(batch, &target.room));
    const sp_fpenv before = sp_fpenv_enter();
    const sp_status status = target.room.host != NULL
                                 ? copies_make(table, request, found, batch, &target)
                                 : copies_upload(table, request, found, batch, &target);
    sp_fpenv_leave(before);
    return status;
}

static void batch_destroy(sp_packed_batch *batch)
{
    if (batch == NULL) return;
    if (batch->block != NULL) sp__allocator_release(&batch->device->allocator, batch->block);
    sp_free(batch->heap);
    sp_free(batch->copies);
    sp_free(batch->constants);
    sp_free(batch);
}

/* A copy in the table that has all elements of the weight becomes its source if it has none. */
static void copies_offer(sp_packed_weights *table, uint32_t weight)
{
    sp_mutex_lock(&table->lock);
    const sp_packed_copy *copy = table->copies[weight];
    sp_mutex_unlock(&table->lock);
    /* Copies in the table stay as they are. */
    for (; copy != NULL; copy = copy->next) {
        if (copy->memory.host != NULL) {
            sp__weight_offer(&table->store, &copy->what, copy->memory.host);
        }
    }
}

/* Ends a batch whose copies are not in the table. Each weight that was parked for one is restored,
 * and parked again where the table has a copy from another packer. */
static void batch_discard(sp_packed_weights *table, sp_packed_batch *batch)
{
    for (uint32_t i = 0; i < batch->made; i++) {
        const sp_packed_copy *copy = &batch->copies[i];
        sp__weight_withdraw(&table->store, copy->what.weight, copy->memory.host);
        copies_offer(table, copy->what.weight);
    }
    batch_destroy(batch);
}

/* Creates the missing copies, in one block of memory; all or none. */
static sp_status batch_create(sp_packed_weights *table, const sp_packed_request *request,
                              const sp_memory *found, sp_packed_batch **out)
{
    sp_packed_batch *batch = sp_calloc(1, sizeof *batch);
    if (batch == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory to pack weights");
    batch->device = request->device;
    const sp_status status = batch_fill(table, request, found, batch);
    if (status != SP_OK) {
        batch_discard(table, batch);
        return status;
    }
    *out = batch;
    return SP_OK;
}

static void batch_add_locked(sp_packed_weights *table, sp_packed_batch *batch)
    SP_REQUIRES(&table->lock)
{
    batch->next = table->batches;
    table->batches = batch;
    for (uint32_t i = 0; i < batch->count; i++) {
        sp_packed_copy **first = &table->copies[batch->copies[i].what.weight];
        batch->copies[i].next = *first;
        *first = &batch->copies[i];
    }
    sp_fetch_add_relaxed(&table->bytes, batch->bytes);
}

/* ---- the table ---- */

/* False: the caller is a packer now and must create the copies that `out` lacks. */
static bool copies_find_or_begin(sp_packed_weights *table, const sp_packed_request *request,
                                 sp_memory *out)
{
    sp_mutex_lock(&table->lock);
    bool is_all = copies_find_locked(table, request, out);
    while (!is_all && table->packers > 0 && request->may_wait && !SP_PLANTED(pack_twice)) {
        sp_cond_wait(&table->changed, &table->lock);
        is_all = copies_find_locked(table, request, out);
    }
    if (!is_all) table->packers++;
    sp_mutex_unlock(&table->lock);
    return is_all;
}

/* Of a batch in the table. A weight's copy was offered when it was complete; the source that the
 * weight had then may have been withdrawn since. */
static void batch_offer(sp_packed_weights *table, const sp_packed_batch *batch)
{
    for (uint32_t i = 0; i < batch->made; i++) copies_offer(table, batch->copies[i].what.weight);
}

/* Ends a packer's work, with its batch or, after a failure, NULL. */
static void packing_end(sp_packed_weights *table, const sp_packed_request *request,
                        sp_packed_batch *batch, sp_memory *out)
{
    sp_mutex_lock(&table->lock);
    table->packers--;
    /* Another packer that did not wait either may have added the same copies. */
    const bool is_there = copies_find_locked(table, request, out);
    const bool is_added = batch != NULL && (!is_there || SP_PLANTED(keep_second_copy));
    if (is_added) {
        batch_add_locked(table, batch);
        (void)copies_find_locked(table, request, out);
    }
    if (!SP_PLANTED(quiet_packer)) sp_cond_broadcast(&table->changed);
    sp_mutex_unlock(&table->lock);
    if (is_added) batch_offer(table, batch);
    else if (batch != NULL) batch_discard(table, batch);
}

sp_status sp__packed_weights_get(sp_packed_weights *table, const sp_packed_request *request,
                                 sp_memory *out)
{
    if (copies_find_or_begin(table, request, out)) return SP_OK;
    sp_packed_batch *batch = NULL;
    const sp_status status = batch_create(table, request, out, &batch);
    packing_end(table, request, batch, out);
    return status;
}

sp_status sp__packed_weights_init(sp_packed_weights *table, const sp_graph *graph)
{
    *table = (sp_packed_weights){.graph = graph};
    sp_mutex_init(&table->lock, SP_LOCK_PACKED_WEIGHTS);
    sp_cond_init(&table->changed);
    sp_mutex_lock(&table->lock);
    table->copies = sp_calloc(graph->weight_count, sizeof *table->copies);
    const bool is_there = table->copies != NULL;
    sp_mutex_unlock(&table->lock);
    if (!is_there) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a model");
    return sp__weight_store_init(&table->store, graph);
}

void sp__packed_weights_deinit(sp_packed_weights *table)
{
    if (table->graph == NULL) return;
    sp_mutex_lock(&table->lock);
    sp_packed_batch *batch = table->batches;
    sp_packed_copy **copies = table->copies;
    sp_mutex_unlock(&table->lock);
    while (batch != NULL) {
        sp_packed_batch *next = batch->next;
        batch_destroy(batch);
        batch = next;
    }
    sp_free((void *)copies);
    sp__weight_store_deinit(&table->store);
    sp_cond_deinit(&table->changed);
    sp_mutex_deinit(&table->lock);
}
