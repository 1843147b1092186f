/* SPDX-License-Identifier: Apache-2.0 */
/* The values that one run of a model in parts has at a time, by their numbers in the graph, in
 * memory that the host sees. Memory is shared by the values that are the same bytes, and given back
 * with the last of them. Owned by the run's thread.
 *
 * Up to PART_VALUE_SMALL bytes come from the heap; larger ones from the device's allocator, or from
 * that of pinned memory if the device has one. */
#ifndef SP_EXEC_PART_VALUES_H
#define SP_EXEC_PART_VALUES_H

#include "graph/graph.h"
#include "runtime/runtime_state.h"
#include "tensor/array.h"

typedef struct sp_part_memory sp_part_memory;

/* One value. `data` is not NULL where the value is there, also if it has no bytes. */
typedef struct sp_part_value {
    sp_dtype dtype;
    sp_shape shape;
    uint64_t bytes;
    const void *data;
    sp_part_memory *memory; /* what keeps `data`; NULL: the caller's, or the graph's */
    bool is_known;          /* later plans may depend on it, as on an input that decides */
} sp_part_value;

typedef struct sp_part_values {
    const sp_graph *graph;
    sp_rt_device *device;
    sp_part_value *list; /* by number */
    bool *is_stale;      /* constants that follow from an overridden default; NULL: none do */
    uint64_t bytes;      /* of all memory that is there */
    uint64_t most_bytes; /* the smaller one of STREAMPOOL_PART_MEMORY and the run's limit */
    uint64_t run_bytes; /* that limit, which counts the arena of the plan that runs, too; 0: none */
} sp_part_values;

/* `run_bytes`: all that the run may take; 0 is any number. Errors: SP_OUT_OF_MEMORY. Nothing is
 * there at first but what the graph has as constants. */
sp_status sp__part_values_init(sp_part_values *values, const sp_graph *graph, sp_rt_device *device,
                               uint64_t run_bytes);
void sp__part_values_deinit(sp_part_values *values);

/* After the values of overridden defaults were set: which constants of the graph do not hold. */
sp_status sp__part_values_find_stale(sp_part_values *values);

/* The value, or a constant; NULL if it is not there. */
const sp_part_value *sp__part_look(const sp_part_values *values, uint32_t index,
                                   sp_part_value *room);
/* Is it there, as a value of the run and not of the graph? */
bool sp__part_has(const sp_part_values *values, uint32_t index);

/* Takes over one reference to what `value` names; gives back what was there. */
void sp__part_set(sp_part_values *values, uint32_t index, const sp_part_value *value);
/* One more reference to it, for sp__part_set. */
sp_part_value sp__part_share(const sp_part_value *value);
/* Gives a reference back that was not set. */
void sp__part_drop(sp_part_values *values, sp_part_value *value);
/* The values that a body defines. */
void sp__part_clear(sp_part_values *values, const sp_graph_body *body);

/* Is there room for that many bytes more? Errors: SP_EXHAUSTED naming the limit. */
sp_status sp__part_check_room(const sp_part_values *values, uint64_t bytes);
/* May a plan with that arena run beside the values? Errors: SP_EXHAUSTED naming the limit. */
sp_status sp__part_check_arena(const sp_part_values *values, uint64_t bytes);
/* A value of that type and shape, its bytes undefined, in *out; *data is where to write. Errors:
 * SP_EXHAUSTED at the limit or for absurd shapes, SP_OUT_OF_MEMORY. */
sp_status sp__part_make(sp_part_values *values, sp_dtype dtype, const sp_shape *shape,
                        sp_part_value *out, void **data);
/* A value of the array, which is taken over, also on an error. */
sp_status sp__part_adopt(sp_part_values *values, sp_array *array, sp_part_value *out);

#endif
