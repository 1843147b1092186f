/* SPDX-License-Identifier: Apache-2.0 */
/* Random convolutions in blocks of channels, and their tiles. */
#ifndef SP_TESTS_CONV_CASES_H
#define SP_TESTS_CONV_CASES_H

#include "ops/blocked.h"
#include "ops/cpu/tiling.h"
#include "support/model_data.h"

/* low ... high */
int64_t conv_pick(data_random *random, int64_t low, int64_t high);

sp_conv_constants conv_random(data_random *random);

/* Tiles smaller than the kernel's own, which have many outputs. */
sp_tiling conv_random_tiling(const sp_blocked_call *call, data_random *random);

/* Runs the kernel on random blocks of the tiles of each image. */
void conv_run_blocks(const sp_kernel *kernel, const sp_tiling *tiling, void *const *bindings,
                     const void *constants, data_random *random);

/* Have two images in blocks of that form the same bits? Lanes beyond the channels have no meaning.
 */
bool conv_is_same(const sp_image_form *form, const float *a, const float *b);

/* Of the caller, to free. */
float *conv_random_floats(data_random *random, int64_t count);

#endif
