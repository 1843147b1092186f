/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/weight_store.h"

#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/heap.h"
#include "base/macros.h"
#include "base/pages.h"
#include "ops/unpack.h"

/* ---- bytes ---- */

/* Debug builds overwrite all bytes, also those that no whole page has: a thread that reads them
 * without a hold races with that, and has NaNs. */
#if defined(NDEBUG)
static void weight_spoil(const sp_weight *weight)
{
    (void)weight;
}
#else
static void weight_spoil(const sp_weight *weight)
{
    memset(weight->data, 0xff, (size_t)weight->bytes);
}
#endif

static void weight_park(const sp_weight *weight)
{
    weight_spoil(weight);
    sp_pages_discard(weight->data, weight->bytes);
}

static void weight_restore(const sp_weight *weight, const sp_weight_source *source)
{
    const sp_packing *packing = source->packing;
    sp__unpack(packing->kernel, packing->constants, source->copy, weight->data);
}

/* ---- states ---- */

static bool is_parkable(const sp_weight_store *store, uint32_t weight)
{
    return store->graph->weights[weight].is_parkable;
}

/* The weight, which no thread is moving. */
static sp_stored_weight *weight_at_rest_locked(sp_weight_store *store, uint32_t weight)
    SP_REQUIRES(&store->lock)
{
    sp_stored_weight *of = &store->weights[weight];
    while (of->is_moving && !SP_PLANTED(hold_half_restored)) {
        sp_cond_wait(&store->moved, &store->lock);
    }
    return of;
}

/* True: the caller parks it, then calls move_end. */
static bool park_begin_locked(sp_weight_store *store, sp_stored_weight *of)
    SP_REQUIRES(&store->lock)
{
    (void)store;
    const bool is_held = of->holds > 0 && !SP_PLANTED(park_held);
    if (is_held || of->is_moving || of->is_parked || of->source.packing == NULL) return false;
    of->is_moving = true;
    return true;
}

static void move_end_locked(sp_weight_store *store, sp_stored_weight *of, bool is_parked)
    SP_REQUIRES(&store->lock)
{
    of->is_parked = is_parked;
    of->is_moving = false;
    if (!SP_PLANTED(quiet_mover)) sp_cond_broadcast(&store->moved);
}

static void park_and_end(sp_weight_store *store, uint32_t weight)
{
    weight_park(&store->graph->weights[weight]);
    sp_mutex_lock(&store->lock);
    move_end_locked(store, &store->weights[weight], true);
    sp_mutex_unlock(&store->lock);
}

/* ---- holds ---- */

void sp__weight_hold(sp_weight_store *store, uint32_t weight)
{
    if (!is_parkable(store, weight)) return;
    sp_mutex_lock(&store->lock);
    sp_stored_weight *of = weight_at_rest_locked(store, weight);
    const sp_weight_source source = of->source;
    const bool must_restore = of->is_parked;
    of->holds++;
    of->is_moving = of->is_moving || must_restore;
    sp_mutex_unlock(&store->lock);
    if (!must_restore) return;
    weight_restore(&store->graph->weights[weight], &source);
    sp_mutex_lock(&store->lock);
    move_end_locked(store, &store->weights[weight], false);
    sp_mutex_unlock(&store->lock);
}

void sp__weight_drop(sp_weight_store *store, uint32_t weight)
{
    if (!is_parkable(store, weight)) return;
    sp_mutex_lock(&store->lock);
    sp_stored_weight *of = &store->weights[weight];
    SP_ASSERT(of->holds > 0);
    of->holds--;
    const bool must_park = park_begin_locked(store, of);
    sp_mutex_unlock(&store->lock);
    if (must_park) park_and_end(store, weight);
}

/* ---- sources ---- */

void sp__weight_offer(sp_weight_store *store, const sp_packing *packing, const void *copy)
{
    const sp_weight *weight = &store->graph->weights[packing->weight];
    if (!weight->is_parkable) return;
    if (!sp__unpack_is_possible(packing->kernel, packing->constants, packing->constant_bytes,
                                weight->bytes / sizeof(float))) {
        return;
    }
    sp_mutex_lock(&store->lock);
    sp_stored_weight *of = weight_at_rest_locked(store, packing->weight);
    bool must_park = false;
    if (of->source.packing == NULL) {
        of->source = (sp_weight_source){.packing = packing, .copy = copy};
        must_park = park_begin_locked(store, of);
    }
    sp_mutex_unlock(&store->lock);
    if (must_park) park_and_end(store, packing->weight);
}

void sp__weight_withdraw(sp_weight_store *store, uint32_t weight, const void *copy)
{
    if (!is_parkable(store, weight)) return;
    sp_mutex_lock(&store->lock);
    sp_stored_weight *of = weight_at_rest_locked(store, weight);
    const sp_weight_source source = of->source;
    const bool is_source = source.packing != NULL && source.copy == copy;
    const bool must_restore = is_source && of->is_parked && !SP_PLANTED(withdraw_parked);
    if (must_restore) {
        of->is_moving = true;
        sp_mutex_unlock(&store->lock);
        weight_restore(&store->graph->weights[weight], &source);
        sp_mutex_lock(&store->lock);
        of = &store->weights[weight];
    }
    if (is_source) {
        of->source = (sp_weight_source){0};
        move_end_locked(store, of, false);
    }
    sp_mutex_unlock(&store->lock);
}

/* ---- the store ---- */

sp_status sp__weight_store_init(sp_weight_store *store, const sp_graph *graph)
{
    *store = (sp_weight_store){.graph = graph};
    sp_mutex_init(&store->lock, SP_LOCK_WEIGHT_STORE);
    sp_cond_init(&store->moved);
    sp_mutex_lock(&store->lock);
    store->weights = sp_calloc(graph->weight_count, sizeof *store->weights);
    const bool is_there = store->weights != NULL;
    sp_mutex_unlock(&store->lock);
    return is_there ? SP_OK : sp__fail(SP_OUT_OF_MEMORY, "no memory for a model");
}

void sp__weight_store_deinit(sp_weight_store *store)
{
    if (store->graph == NULL) return;
    sp_mutex_lock(&store->lock);
    sp_stored_weight *weights = store->weights;
    sp_mutex_unlock(&store->lock);
    sp_free(weights);
    sp_cond_deinit(&store->moved);
    sp_mutex_deinit(&store->lock);
}
