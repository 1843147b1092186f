/* SPDX-License-Identifier: Apache-2.0 */
/* The installed pages about the program, from the tables of its commands. */
#ifndef SP_CLI_MANUAL_H
#define SP_CLI_MANUAL_H

/* The manual page: docs/streampool.1. */
void manual_print_page(void);
/* The completion of bash: docs/streampool.bash. */
void manual_print_completion(void);

#endif
