/* SPDX-License-Identifier: Apache-2.0 */
/* One line on stderr that is overwritten, if stderr is a terminal; otherwise nothing. At most
 * 25 lines a second; others are left out. */
#ifndef SP_CLI_PROGRESS_H
#define SP_CLI_PROGRESS_H

void progress_show(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Before other output to the terminal. */
void progress_clear(void);

#endif
