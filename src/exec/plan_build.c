/* SPDX-License-Identifier: Apache-2.0 */
/* The executable of one plan of a cache: compiled, with packed weights and a first context. */
#include <string.h>

#include "base/error.h"
#include "base/heap.h"
#include "exec/plan_cache_build.h"

bool sp__plan_cache_is_for_cpu(const sp_plan_cache *cache)
{
    return cache->device->dev->vtable->kind->is_fallback;
}

/* The request, for the kernels that the cache's device has. */
static sp_plan_request request_for(const sp_plan_cache *cache, const sp_plan_request *request)
{
    sp_plan_request own = *request;
    own.is_blocked = own.is_strided = sp__plan_cache_is_for_cpu(cache);
    own.precision = cache->precision;
    return own;
}

sp_status sp__plan_cache_compile(sp_plan_cache *cache, const sp_plan_request *request,
                                 bool may_wait, sp_executable **out)
{
    const sp_plan_request own = request_for(cache, request);
    const sp_graph_plan *plan;
    sp_executable *executable;
    SP_TRY(sp__plan_compile(cache->graph, &own, &plan));
    SP_TRY(sp__executable_create(plan, cache->device, cache->weights, cache->cpu_ops, &executable));
    const sp_status status = sp__executable_pack(executable, cache->packed, may_wait);
    if (status == SP_OK) *out = executable;
    else sp__executable_destroy(executable);
    return status;
}

/* Errors: as sp__plan_compile; SP_EXHAUSTED if a run would exceed max_run_bytes. */
static sp_status plan_compile(const sp_plan_cache *cache, const sp_plan_request *request,
                              const sp_graph_plan **out)
{
    const sp_plan_request own = request_for(cache, request);
    SP_TRY(sp__plan_compile(cache->graph, &own, out));
    const sp_status status = sp__plan_check_bytes(*out, cache->max_run_bytes);
    if (status != SP_OK) sp__plan_destroy(*out);
    return status;
}

/* The entry's lanes, for this plan and later ones. */
static sp_status lanes_create(sp_plan_entry *entry)
{
    if (sp_load_relaxed(&entry->lanes) != NULL) return SP_OK;
    const size_t bytes = SP_LANES * sizeof(sp_lane);
    sp_lane *lanes = sp_aligned_malloc(_Alignof(sp_lane), bytes);
    if (lanes == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a plan");
    memset(lanes, 0, bytes);
    sp_store_release(&entry->lanes, lanes);
    return SP_OK;
}

sp_status sp__plan_cache_build(sp_plan_cache *cache, const sp_plan_request *request,
                               const sp_plan_key *key, bool may_wait, sp_plan_entry *entry)
{
    sp_fetch_add_relaxed(&cache->build_count, (uint64_t)1);
    const size_t bytes = key->count * sizeof *entry->words;
    const sp_graph_plan *plan;
    SP_TRY(plan_compile(cache, request, &plan));
    SP_TRY(sp__executable_create(plan, cache->device, cache->weights, cache->cpu_ops,
                                 &entry->executable));
    entry->word_count = key->count;
    entry->words = sp_malloc(bytes);
    if (entry->words == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a plan's key");
    memcpy(entry->words, key->words, bytes);
    if (!entry->is_private) SP_TRY(lanes_create(entry));
    SP_TRY(sp__executable_pack(entry->executable, cache->packed, may_wait));
    return sp__executable_prepare(entry->executable);
}
