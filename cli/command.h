/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of the program. Each gets its own name as argv[0] and returns the exit code. */
#ifndef SP_CLI_COMMAND_H
#define SP_CLI_COMMAND_H

#define SP_EXIT_USAGE 2

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

int sp__command_info(int argc, char **argv);
int sp__command_inspect(int argc, char **argv);
int sp__command_ops(int argc, char **argv);
int sp__command_run(int argc, char **argv);
int sp__command_verify(int argc, char **argv);

#endif
