/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of the free dimensions of inputs: given by --dim, --shape and files, or chosen. */
#ifndef SP_CLI_SIZES_H
#define SP_CLI_SIZES_H

#include "inputs.h"

#define MAX_SIZE (INT64_C(1) << 40)

/* "1x3x224", or "scalar". */
bool sizes_parse(const char *text, uint32_t *rank, int64_t sizes[SP_MAX_RANK]);

/* Finds the free dimensions of the ports. */
sp_status sizes_collect(model_inputs *inputs);

/* Takes the sizes that are given; files have been read. SP_NOT_FOUND for a name that is none,
 * SP_INVALID for one that is given twice, SP_MISMATCH where two do not agree. */
sp_status sizes_take(model_inputs *inputs);

/* Chooses the others: the first candidates for which the model has a plan. Describes all tensors.
 * Where none of the candidates works the message names the flags that give sizes. */
sp_status sizes_choose(model_inputs *inputs);

bool sizes_are_chosen(const model_inputs *inputs);

/* "sizes chosen: batch=1, seq=8", to standard output; nothing if none was. */
void sizes_print(const model_inputs *inputs);

#endif
