/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of the free dimensions of inputs: given by --dim, --shape and files, or chosen. */
#ifndef SP_CLI_SIZES_H
#define SP_CLI_SIZES_H

#include "inputs.h"

#define MAX_SIZE (INT64_C(1) << 40)

/* "1x3x224", or "scalar". */
bool sizes_parse(const char *text, uint32_t *rank, int64_t sizes[SP_MAX_RANK]);

/* Collects the free dimensions of the ports. */
sp_status sizes_collect(model_inputs *inputs);

/* Applies the given sizes; files have been read. SP_NOT_FOUND for an unknown name, SP_INVALID for a
 * name given twice, SP_MISMATCH for contradicting sizes. */
sp_status sizes_take(model_inputs *inputs);

/* Chooses the remaining sizes: the first candidates for which the model has a plan. Describes all
 * tensors. If no candidate works, the message names the options that give sizes. */
sp_status sizes_choose(model_inputs *inputs);

bool sizes_are_chosen(const model_inputs *inputs);

/* Prints "sizes chosen: batch=1, seq=8" to standard output; nothing if no size was chosen. */
void sizes_print(const model_inputs *inputs);

#endif
