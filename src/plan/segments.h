/* SPDX-License-Identifier: Apache-2.0 */
/* A plan partitioned into segments: runs of consecutive steps on one device each, and the copies
 * between the devices' memories. Pure data that follows from a plan and one device index per step;
 * independent of devices, streams and memory.
 *
 * Devices are indices into the list of those that a plan runs on: SP_SEGMENT_MODEL is the model's,
 * SP_SEGMENT_FALLBACK works in host memory; every other device, the model's too, has its own
 * memory. Neighbouring segments are on different devices, and a run begins and ends on the model's:
 *
 *     list[0].device == list[count - 1].device == SP_SEGMENT_MODEL; these two may have no steps
 *
 * Each device has its own memory for all that its steps access: inputs, outputs, and an arena with
 * the same offsets. Inputs begin, and outputs end, in host memory. Each value (an input, an output,
 * a value in the arena) is copied as a whole, once each time that it is needed on a device that
 * does not have its newest bytes. A copy is between host memory and that of another device, and
 * belongs to a segment of that device; between two such devices a value is copied through host
 * memory. Segments run one after the other. */
#ifndef SP_PLAN_SEGMENTS_H
#define SP_PLAN_SEGMENTS_H

#include "plan/plan.h"

#define SP_SEGMENT_MODEL 0
#define SP_SEGMENT_FALLBACK 1
#define SP_SEGMENT_DEVICES 32 /* bits of the set of devices that have a value's newest bytes */

typedef struct sp_segment_copy {
    sp_place_kind where; /* SP_PLACE_INPUT, SP_PLACE_OUTPUT or SP_PLACE_ARENA */
    uint32_t index;      /* of the input or output; 0 for the arena */
    uint64_t offset;     /* in the arena; 0 elsewhere */
    uint64_t bytes;
} sp_segment_copy;

typedef struct sp_segment {
    uint32_t device;
    uint32_t first_step, step_count;
    /* Copies from the host before the steps, and to the host after them; the fallback has none. */
    uint32_t copies_in, copies_out;
    const sp_segment_copy *copies; /* those in, then those out */
} sp_segment;

typedef struct sp_segments {
    sp_segment *list;
    sp_segment_copy *copies; /* of all segments */
    uint32_t count, copy_count;
    uint32_t fallback_step_count;
} sp_segments;

/* Assigns a device to each step of the plan: the fallback if `own`, the kernel table of the model's
 * device, has no entry for its kernel (NULL: it has all), or if its op is in the list `cpu_ops`
 * (op_list.h), else the model's. Returns the number of steps on the fallback. */
uint32_t sp__segments_assign(const sp_graph_plan *plan, const sp_kernel *own, const char *cpu_ops,
                             uint8_t *devices);

/* Partitions the plan; devices[s] is the device of step s. Errors: SP_OUT_OF_MEMORY, SP_INTERNAL;
 * then there is nothing to free. */
sp_status sp__segments_partition(const sp_graph_plan *plan, const uint8_t *devices,
                                 sp_segments *out);
void sp__segments_deinit(sp_segments *segments);

/* The `index`-th op type with steps on the fallback, in the order of their first steps, and the
 * number of these steps. False past the end. */
bool sp__segments_fallback_op(const sp_segments *segments, const sp_graph_plan *plan,
                              uint32_t index, const char **name, uint32_t *step_count);

#endif
