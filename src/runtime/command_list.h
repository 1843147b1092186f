/* SPDX-License-Identifier: Apache-2.0 */
/* Command lists inside the library. */
#ifndef SP_RUNTIME_COMMAND_LIST_H
#define SP_RUNTIME_COMMAND_LIST_H

/* Frees the table of lists. For tests, when no handle is left. */
void sp__command_lists_deinit(void);

#endif
