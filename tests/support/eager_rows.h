/* SPDX-License-Identifier: Apache-2.0 */
/* A table of small uses of all ops. */
#ifndef SP_TESTS_SUPPORT_EAGER_ROWS_H
#define SP_TESTS_SUPPORT_EAGER_ROWS_H

#include "support/eager_case.h"

extern const eager_row eager_rows[];
extern const uint32_t eager_row_count;

#endif
