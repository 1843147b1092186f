/* SPDX-License-Identifier: Apache-2.0 */
/* Plans by key. A key is everything in the request that a plan depends on, written out as words; it
 * is compared as a whole, the hash only picks the bucket. */
#include "model/plan_cache.h"

#include <string.h>

#include "base/delay.h"
#include "base/error.h"
#include "base/heap.h"

/* Words per tensor: dtype and rank in one, then the dimensions. */
#define TENSOR_WORDS (1 + SP_MAX_RANK)
/* Enough for all the inputs and overrides of a run, of the highest rank, so that a look-up
 * allocates only where values decide shapes. */
#define INLINE_WORDS (1 + 2 * SP_MODEL_MAX_PORTS * TENSOR_WORDS)

typedef struct plan_key {
    uint64_t *words; /* inline_words, or memory of its own */
    uint32_t count;
    uint32_t capacity;
    uint64_t inline_words[INLINE_WORDS];
} plan_key;

struct sp_plan_entry {
    sp_plan_entry *next; /* constant once published */
    sp_compiled *compiled;
    uint32_t word_count;
    uint64_t words[];
};

/* A build that is going on; lives on its builder's stack. */
struct sp_plan_building {
    sp_plan_building *next;
    const plan_key *key;
};

/* ---- keys ---- */

static void key_word(plan_key *key, uint64_t word)
{
    if (key->count < key->capacity) key->words[key->count] = word;
    key->count++;
}

static void key_tensor(plan_key *key, uint64_t place, const sp_plan_input *input)
{
    key_word(key, place << 32 | (uint64_t)input->dtype << 16 | input->shape.rank);
    for (uint32_t i = 0; i < input->shape.rank; i++) {
        key_word(key, (uint64_t)input->shape.dims[i]);
    }
    if (input->data == NULL) return;
    /* The plan depends on the values too. */
    const uint64_t bytes = sp__shape_count(&input->shape) * sp_dtype_bytes(input->dtype);
    key_word(key, bytes);
    for (uint64_t at = 0; at < bytes; at += sizeof(uint64_t)) {
        uint64_t word = 0;
        const uint64_t left = bytes - at;
        memcpy(&word, (const char *)input->data + at, left < sizeof word ? left : sizeof word);
        key_word(key, word);
    }
}

static void key_write(plan_key *key, const sp_plan_request *request)
{
    key->count = 0;
    key_word(key, (uint64_t)(uintptr_t)request->kernels);
    for (uint32_t i = 0; i < request->input_count; i++) key_tensor(key, i, &request->inputs[i]);
    for (uint32_t i = 0; i < request->override_count; i++) {
        const sp_plan_override *override = &request->overrides[i];
        key_tensor(key, (uint64_t)1 << 31 | override->index, &override->input);
    }
}

/* Writes the key of a request. */
static sp_status key_make(plan_key *key, const sp_plan_request *request)
{
    key->words = key->inline_words;
    key->capacity = INLINE_WORDS;
    key_write(key, request);
    if (SP_LIKELY(key->count <= key->capacity)) return SP_OK;
    key->words = sp_malloc(key->count * sizeof *key->words);
    if (key->words == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a plan's key");
    key->capacity = key->count;
    key_write(key, request);
    return SP_OK;
}

static void key_free(plan_key *key)
{
    if (key->words != key->inline_words) sp_free(key->words);
}

static uint32_t bucket_of(const plan_key *key)
{
    uint64_t hash = 0x9e3779b97f4a7c15u;
    for (uint32_t i = 0; i < key->count; i++) {
        hash = (hash ^ key->words[i]) * 0xff51afd7ed558ccdu;
        hash ^= hash >> 32;
    }
    return (uint32_t)(hash % SP_PLAN_CACHE_BUCKETS);
}

static bool is_key(const plan_key *key, const uint64_t *words, uint32_t count)
{
    return key->count == count && memcmp(key->words, words, count * sizeof *words) == 0;
}

/* ---- look-up and build ---- */

static sp_compiled *look_up(sp_plan_cache *cache, const plan_key *key)
{
    /* Pairs with the release in publish_locked: the entry and its plan are complete. */
    const sp_plan_entry *entry = sp_load_acquire(&cache->buckets[bucket_of(key)]);
    while (entry != NULL && !is_key(key, entry->words, entry->word_count)) entry = entry->next;
    return entry != NULL ? entry->compiled : NULL;
}

static void publish_locked(sp_plan_cache *cache, sp_plan_entry *entry, const plan_key *key)
    SP_REQUIRES(&cache->lock)
{
    const uint32_t bucket = bucket_of(key);
    entry->next = sp_load_relaxed(&cache->buckets[bucket]);
    sp_store_release(&cache->buckets[bucket], entry);
    sp_store_release(&cache->newest, entry->compiled);
    sp_fetch_add_relaxed(&cache->plan_count, 1);
}

static bool is_building_locked(sp_plan_cache *cache, const plan_key *key) SP_REQUIRES(&cache->lock)
{
    const sp_plan_building *other = cache->building;
    while (other != NULL && !is_key(key, other->key->words, other->key->count)) other = other->next;
    return other != NULL;
}

/* Outside of every lock: a build takes long and builds of other keys go on beside it. */
static sp_status build(sp_plan_cache *cache, const sp_plan_request *request, const plan_key *key,
                       sp_plan_entry **out)
{
    sp_fetch_add_relaxed(&cache->build_count, (uint64_t)1);
    sp_plan_entry *entry = sp_malloc(sizeof *entry + key->count * sizeof *entry->words);
    if (entry == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a plan");
    entry->word_count = key->count;
    memcpy(entry->words, key->words, key->count * sizeof *entry->words);
    const sp_plan *plan;
    sp_status status = sp__plan_compile(cache->graph, request, &plan);
    if (status == SP_OK) {
        status = sp__compiled_create(plan, cache->device, cache->weights, &entry->compiled);
    }
    if (status != SP_OK) {
        sp_free(entry);
        return status;
    }
    status = sp__compiled_prepare(entry->compiled);
    if (status != SP_OK) {
        sp__compiled_destroy(entry->compiled);
        sp_free(entry);
        return status;
    }
    *out = entry;
    return SP_OK;
}

static void end_building_locked(sp_plan_cache *cache, const sp_plan_building *mine)
    SP_REQUIRES(&cache->lock)
{
    sp_plan_building **place = &cache->building;
    while (*place != mine) place = &(*place)->next;
    *place = mine->next;
}

static SP_NOINLINE sp_status find_or_build(sp_plan_cache *cache, const sp_plan_request *request,
                                           const plan_key *key, sp_compiled **out)
{
    sp_plan_building mine = {.key = key};
    sp_mutex_lock(&cache->lock);
    while ((*out = look_up(cache, key)) == NULL && !SP_PLANTED(build_twice) &&
           is_building_locked(cache, key)) {
        sp_cond_wait(&cache->built, &cache->lock);
    }
    if (*out != NULL) {
        sp_mutex_unlock(&cache->lock);
        return SP_OK;
    }
    mine.next = cache->building;
    cache->building = &mine;
    sp_mutex_unlock(&cache->lock);

    sp_plan_entry *entry = NULL;
    sp_delay_point();
    const sp_status status = build(cache, request, key, &entry);

    sp_mutex_lock(&cache->lock);
    end_building_locked(cache, &mine);
    if (status == SP_OK) publish_locked(cache, entry, key);
    sp_mutex_unlock(&cache->lock);
    sp_cond_broadcast(&cache->built);
    if (status == SP_OK) *out = entry->compiled;
    return status;
}

sp_status sp__plan_cache_find(sp_plan_cache *cache, const sp_plan_request *request,
                              sp_compiled **out)
{
    plan_key key;
    SP_TRY(key_make(&key, request));
    sp_status status = SP_OK;
    *out = look_up(cache, &key);
    if (SP_UNLIKELY(*out == NULL)) status = find_or_build(cache, request, &key, out);
    key_free(&key);
    return status;
}

/* ---- life ---- */

void sp__plan_cache_init(sp_plan_cache *cache, const sp_graph *graph, sp_rt_device *device,
                         const sp_memory *weights)
{
    cache->graph = graph;
    cache->device = device;
    cache->weights = weights;
    sp_mutex_init(&cache->lock, SP_LOCK_PLAN_CACHE);
    sp_cond_init(&cache->built);
}

void sp__plan_cache_deinit(sp_plan_cache *cache)
{
    for (uint32_t i = 0; i < SP_PLAN_CACHE_BUCKETS; i++) {
        sp_plan_entry *entry = sp_load_acquire(&cache->buckets[i]);
        while (entry != NULL) {
            sp_plan_entry *next = entry->next;
            sp__compiled_destroy(entry->compiled);
            sp_free(entry);
            entry = next;
        }
    }
    sp_cond_deinit(&cache->built);
    sp_mutex_deinit(&cache->lock);
}

uint32_t sp__plan_cache_sessions(sp_plan_cache *cache)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < SP_PLAN_CACHE_BUCKETS; i++) {
        const sp_plan_entry *entry = sp_load_acquire(&cache->buckets[i]);
        for (; entry != NULL; entry = entry->next) {
            count += sp_load_relaxed(&entry->compiled->session_count);
        }
    }
    return count;
}
