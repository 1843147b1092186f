/* SPDX-License-Identifier: Apache-2.0 */
/* The values that one run of a model in parts has at a time, by their numbers in the graph, in
 * memory that the host sees. Memory is shared by the values that are the same bytes, and given back
 * with the last of them. Owned by the run's thread.
 *
 * Up to PART_VALUE_SMALL bytes come from the heap; larger ones from the device's allocator, or from
 * that of pinned memory if the device has one. */
#ifndef SP_EXEC_RUN_VALUES_H
#define SP_EXEC_RUN_VALUES_H

#include "plan/plan.h"
#include "runtime/runtime_state.h"
#include "tensor/array.h"

typedef struct sp_run_memory sp_run_memory;

/* One value. `data` is not NULL where the value is there, also if it has no bytes. */
typedef struct sp_run_value {
    sp_dtype dtype;
    sp_shape shape;
    uint64_t bytes;
    const void *data;
    sp_run_memory *memory; /* what keeps `data`; NULL: the caller's, or the graph's */
    bool is_known;         /* later plans may depend on it, as on an input that decides */
} sp_run_value;

typedef struct sp_run_values {
    const sp_graph *graph;
    sp_rt_device *device;
    sp_run_value *list;    /* by number */
    bool *is_stale;        /* constants that follow from an overridden default; NULL: none do */
    uint64_t bytes;        /* of all memory that is there */
    uint64_t most_bytes;   /* the smaller one of the two limits, partial_bytes and bytes */
    const char *most_name; /* of the option that says so */
    uint64_t run_bytes;    /* the limit `bytes`, which counts the arena of the plan too; 0: none */
} sp_run_values;

/* No values but the constants of the graph. Errors: SP_OUT_OF_MEMORY. */
sp_status sp__run_values_init(sp_run_values *values, const sp_graph *graph, sp_rt_device *device,
                              const sp_run_limits *limits);
void sp__run_values_deinit(sp_run_values *values);

/* After the values of overridden defaults were set: which constants of the graph do not hold. */
sp_status sp__run_values_find_stale(sp_run_values *values);

/* The value, or a constant; NULL if it is not there. */
const sp_run_value *sp__run_values_find(const sp_run_values *values, uint32_t index,
                                        sp_run_value *room);
/* Is it there, as a value of the run and not of the graph? */
bool sp__run_values_has(const sp_run_values *values, uint32_t index);

/* Takes over one reference to what `value` names; gives back what was there. */
void sp__run_values_set(sp_run_values *values, uint32_t index, const sp_run_value *value);
/* One more reference to it, for sp__run_values_set. */
sp_run_value sp__run_value_retain(const sp_run_value *value);
/* Gives a reference back that was not set. */
void sp__run_value_release(sp_run_values *values, sp_run_value *value);
/* The values that a body defines. */
void sp__run_values_clear(sp_run_values *values, const sp_graph_body *body);

/* Is there room for that many bytes more? Errors: SP_EXHAUSTED naming the limit. */
sp_status sp__run_values_check_room(const sp_run_values *values, uint64_t bytes);
/* May a plan with that arena run beside the values? Errors: SP_EXHAUSTED naming the limit. */
sp_status sp__run_values_check_arena(const sp_run_values *values, uint64_t bytes);
/* A value of that type and shape, its bytes undefined, in *out; *data is where to write. Errors:
 * SP_EXHAUSTED at the limit or for absurd shapes, SP_OUT_OF_MEMORY. */
sp_status sp__run_value_create(sp_run_values *values, sp_dtype dtype, const sp_shape *shape,
                               sp_run_value *out, void **data);
/* A value of the array, which is taken over, also on an error. */
sp_status sp__run_value_adopt(sp_run_values *values, sp_array *array, sp_run_value *out);

#endif
