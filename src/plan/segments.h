/* SPDX-License-Identifier: Apache-2.0 */
/* A plan in segments: runs of consecutive steps that stay together, in turns on the model's device
 * and on the cpu device, and what must be copied between the two. Pure data of a plan and of one
 * answer for each step; knows nothing of devices, streams or memory.
 *
 *     list[0], list[2], ... are the device's, list[1], list[3], ... the cpu's; count is odd
 *
 * So a run begins and ends on the device; its first and its last segment may have no steps.
 *
 * The cpu's steps find all that they touch at the same places in memory of the host: inputs and
 * outputs where the run's caller has them, the arena in a mirror. Copies between the two belong to
 * the device's segments. Each value (an input, an output, what lives in a stretch of the arena) is
 * copied as a whole, once for each time that it is needed where it was not written last. */
#ifndef SP_PLAN_SEGMENTS_H
#define SP_PLAN_SEGMENTS_H

#include "plan/plan.h"

typedef struct sp_segment_copy {
    sp_place_kind where; /* SP_PLACE_INPUT, SP_PLACE_OUTPUT or SP_PLACE_ARENA */
    uint32_t index;      /* of the input or output; 0 for the arena */
    uint64_t offset;     /* in the arena; 0 elsewhere */
    uint64_t bytes;
} sp_segment_copy;

typedef struct sp_segment {
    uint32_t first_step, step_count;
    /* Of the device's: copies from the host before its steps, copies to the host behind them. */
    uint32_t copies_in, copies_out;
    const sp_segment_copy *copies; /* those in, then those out */
} sp_segment;

typedef struct sp_segments {
    sp_segment *list;
    sp_segment_copy *copies; /* of all segments */
    uint32_t count, copy_count;
    uint32_t cpu_step_count;
} sp_segments;

/* Which steps of the plan run on the cpu device though the model's is another one: those for whose
 * kernel `own`, the device's table, has no entry (NULL: it has all), and
 * those whose op stands in the list `cpu_ops` (op_list.h). How many they are. */
uint32_t sp__segments_choose(const sp_graph_plan *plan, const sp_kernel *own, const char *cpu_ops,
                             bool *is_on_cpu);

/* Cuts the plan; is_on_cpu has an answer for each step. Errors: SP_OUT_OF_MEMORY; then there is
 * nothing to free. */
sp_status sp__segments_cut(const sp_graph_plan *plan, const bool *is_on_cpu, sp_segments *out);
void sp__segments_free(sp_segments *segments);

/* The `index`-th op type with steps on the cpu, in the order of their first ones, and how many of
 * its steps are. False past the end. */
bool sp__segments_cpu_op(const sp_segments *segments, const sp_graph_plan *plan, uint32_t index,
                         const char **name, uint32_t *step_count);

#endif
