/* SPDX-License-Identifier: Apache-2.0 */
/* Hash map from names to small numbers, for the import of a graph. Its capacity is fixed at init.
 * The hash is keyed with a hash of the file's whole content and with an address, so that no file
 * can be crafted whose names all collide. Owned by one thread. */
#ifndef SP_BASE_NAME_MAP_H
#define SP_BASE_NAME_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include <streampool/status.h>

#include "base/text.h"

#define SP_NO_VALUE UINT32_MAX

typedef struct sp_name_slot {
    sp_text name;
    uint64_t hash;
    uint32_t value; /* SP_NO_VALUE: the slot is free */
} sp_name_slot;

/* Invariant: count <= capacity, and the slots are a power of two, at least twice the capacity. */
typedef struct sp_name_map {
    sp_name_slot *slots; /* owned */
    uint64_t mask, key;
    uint64_t count, capacity;
} sp_name_map;

/* A key for sp__name_map_init from the bytes that contain the names. */
uint64_t sp__name_map_key(const void *bytes, size_t len);

/* Allocates for `capacity` names. Errors: SP_OUT_OF_MEMORY. */
sp_status sp__name_map_init(sp_name_map *map, uint64_t capacity, uint64_t key);
void sp__name_map_deinit(sp_name_map *map);

/* The number of `name`, or SP_NO_VALUE. */
uint32_t sp__name_map_find(const sp_name_map *map, sp_text name);

/* False if the map has the name already. The caller must not exceed the capacity. */
bool sp__name_map_add(sp_name_map *map, sp_text name, uint32_t value);

#endif
