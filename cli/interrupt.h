/* SPDX-License-Identifier: Apache-2.0 */
/* Ctrl-C as a request: the first SIGINT is noted, a second one ends the process at once. */
#ifndef SP_CLI_INTERRUPT_H
#define SP_CLI_INTERRUPT_H

#include <stdbool.h>

/* From now on. A SIGINT that the caller of the program ignores stays ignored. */
void interrupt_catch(void);
bool is_interrupted(void);

/* Ends the process as SIGINT does, after the output was flushed: a shell then ends its script. */
void interrupt_exit(void);

#endif
