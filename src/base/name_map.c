/* SPDX-License-Identifier: Apache-2.0 */
/* Open addressing with linear probing, at most half full. */
#include "base/name_map.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/heap.h"

/* One step of a 64-bit multiply-and-fold hash. */
static uint64_t hash_mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ (hash >> 29);
}

static uint64_t hash_bytes(const void *bytes, size_t len, uint64_t key)
{
    const unsigned char *at = bytes;
    uint64_t hash = hash_mix(key, len);
    for (; len >= 8; at += 8, len -= 8) {
        uint64_t word;
        memcpy(&word, at, sizeof(word));
        hash = hash_mix(hash, word);
    }
    uint64_t rest = 0;
    if (len > 0) memcpy(&rest, at, len);
    return hash_mix(hash_mix(hash, rest), key);
}

uint64_t sp__name_map_key(const void *bytes, size_t len)
{
    return hash_bytes(bytes, len, 0x5bd1e9955bd1e995u);
}

sp_status sp__name_map_init(sp_name_map *map, uint64_t capacity, uint64_t key)
{
    *map = (sp_name_map){.capacity = capacity};
    uint64_t slots = 16;
    while (slots < 2 * capacity) slots *= 2;
    map->slots = sp_calloc((size_t)slots, sizeof(*map->slots));
    if (map->slots == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for the graph's names");
    map->mask = slots - 1;
    /* The address, which is random, is not known to who writes a file: names with equal hashes
     * cannot be chosen. Results do not depend on it. */
    map->key = hash_mix(key, (uint64_t)(uintptr_t)map->slots);
    for (uint64_t i = 0; i < slots; i++) map->slots[i].value = SP_NO_VALUE;
    return SP_OK;
}

void sp__name_map_deinit(sp_name_map *map)
{
    sp_free(map->slots);
    *map = (sp_name_map){0};
}

/* The slot of the name, or the free slot for it. */
static sp_name_slot *map_probe(const sp_name_map *map, sp_text name, uint64_t hash)
{
    for (uint64_t i = hash;; i++) {
        sp_name_slot *slot = &map->slots[i & map->mask];
        if (slot->value == SP_NO_VALUE) return slot;
        if (slot->hash == hash && sp__text_equal(slot->name, name)) return slot;
    }
}

uint32_t sp__name_map_find(const sp_name_map *map, sp_text name)
{
    return map_probe(map, name, hash_bytes(name.ptr, name.len, map->key))->value;
}

bool sp__name_map_add(sp_name_map *map, sp_text name, uint32_t value)
{
    const uint64_t hash = hash_bytes(name.ptr, name.len, map->key);
    sp_name_slot *slot = map_probe(map, name, hash);
    if (slot->value != SP_NO_VALUE) return false;
    SP_ASSERT(map->count < map->capacity);
    map->count++;
    *slot = (sp_name_slot){.name = name, .hash = hash, .value = value};
    return true;
}
