/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_OPS_CPU_RECURRENT_CELL_ROWS_H
#define SP_OPS_CPU_RECURRENT_CELL_ROWS_H

/* Batch rows that one tile computes for the whole sequence. */
#define SP_CELL_ROWS 4

#endif
