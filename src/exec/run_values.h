/* SPDX-License-Identifier: Apache-2.0 */
/* The values that are available in one run of partial plans, by their numbers in the graph, in
 * memory that the host accesses. Values with the same bytes share counted memory, which is freed
 * with the last of them. Owned by the run's thread.
 *
 * Up to SMALL_VALUE_BYTES bytes come from the heap; larger ones from the device's allocator, or
 * from that of pinned memory if the device has one. */
#ifndef SP_EXEC_RUN_VALUES_H
#define SP_EXEC_RUN_VALUES_H

#include "plan/plan.h"
#include "runtime/runtime_state.h"
#include "tensor/array.h"

typedef struct sp_run_memory sp_run_memory;

/* One value. `data` is not NULL if the value is available, also if it has no bytes. */
typedef struct sp_run_value {
    sp_dtype dtype;
    sp_shape shape;
    uint64_t bytes;
    const void *data;
    sp_run_memory *memory; /* owns `data`; NULL: memory of the caller or the graph */
    bool is_known;         /* later plans may depend on it, as on a shape-determining input */
} sp_run_value;

typedef struct sp_run_values {
    const sp_graph *graph;
    sp_rt_device *device;
    sp_run_value *list;    /* by number of the value */
    bool *is_stale;        /* constants that follow from an overridden default; NULL: none do */
    uint64_t bytes;        /* of all memory in use */
    uint64_t most_bytes;   /* limit: the lower of `partial_bytes` and `bytes` of the run's limits */
    const char *most_name; /* name of the option with that limit, for errors */
    uint64_t run_bytes; /* the run's limit, which includes the arena of the current plan; 0: none */
} sp_run_values;

/* At first only the graph's constants are available. Errors: SP_OUT_OF_MEMORY. */
sp_status sp__run_values_init(sp_run_values *values, const sp_graph *graph, sp_rt_device *device,
                              const sp_run_limits *limits);
void sp__run_values_deinit(sp_run_values *values);

/* Finds the constants of the graph that overridden defaults make stale. Call after the values of
 * these defaults were set. */
sp_status sp__run_values_find_stale(sp_run_values *values);

/* The value, or the constant, which is described in *room; NULL if it is not available. */
const sp_run_value *sp__run_values_find(const sp_run_values *values, uint32_t index,
                                        sp_run_value *room);
/* Is it available, as a value of the run and not as a constant of the graph? */
bool sp__run_values_has(const sp_run_values *values, uint32_t index);

/* Takes over one reference to the memory of `value`; releases the value that was set before. */
void sp__run_values_set(sp_run_values *values, uint32_t index, const sp_run_value *value);
/* Adds a reference, for sp__run_values_set. */
sp_run_value sp__run_value_retain(const sp_run_value *value);
/* Releases a reference that was not passed to sp__run_values_set. */
void sp__run_value_release(sp_run_values *values, sp_run_value *value);
/* Releases the values that a body defines. */
void sp__run_values_clear(sp_run_values *values, const sp_graph_body *body);

/* Checks that `bytes` more are within the limit. Errors: SP_EXHAUSTED naming the limit. */
sp_status sp__run_values_check_room(const sp_run_values *values, uint64_t bytes);
/* Checks that an arena of `bytes` beside the values is within the run's limit. Errors: SP_EXHAUSTED
 * naming the limit. */
sp_status sp__run_values_check_arena(const sp_run_values *values, uint64_t bytes);
/* A new value of that type and shape with undefined bytes, which are writable at *data. Errors:
 * SP_EXHAUSTED at the limit or for shapes whose size overflows, SP_OUT_OF_MEMORY. */
sp_status sp__run_value_create(sp_run_values *values, sp_dtype dtype, const sp_shape *shape,
                               sp_run_value *out, void **data);
/* A value of the array; takes ownership of the array, also on an error. */
sp_status sp__run_value_adopt(sp_run_values *values, sp_array *array, sp_run_value *out);

#endif
