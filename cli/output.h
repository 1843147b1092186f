/* SPDX-License-Identifier: Apache-2.0 */
/* Standard output, which may fail: on a full disk, or a closed pipe. */
#ifndef SP_CLI_OUTPUT_H
#define SP_CLI_OUTPUT_H

#include <stdbool.h>

/* Flushes it. False: this or an earlier flush has failed, so that a command that still has much to
 * do stops; output_finish reports it. */
bool output_flush(void);

/* Closes it. Returns `code`, or after a failure, which it prints, one that is not 0. */
int output_finish(int code);

#endif
