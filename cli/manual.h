/* SPDX-License-Identifier: Apache-2.0 */
/* The installed manual page and completion, generated from the tables of the commands. */
#ifndef SP_CLI_MANUAL_H
#define SP_CLI_MANUAL_H

/* The manual page: docs/streampool.1. */
void manual_print_page(void);
/* The completion for bash: docs/streampool.bash. */
void manual_print_completion(void);

#endif
