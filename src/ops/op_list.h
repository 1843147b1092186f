/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of ONNX op types in options: names separated by commas; spaces around them are ignored. */
#ifndef SP_OPS_OP_LIST_H
#define SP_OPS_OP_LIST_H

#include <stdbool.h>

#include "base/text.h"

/* Reads the next name and advances *list past it; false at the end. Empty names are skipped. */
bool sp__op_list_next(const char **list, sp_text *name);

/* Does the list have the op, or one of the ops of a fused step ("Gemm+Relu")? */
bool sp__op_list_has(const char *list, const char *name);

/* The same, but of a fused step only the ops that `counting` has too. */
bool sp__op_list_has_of(const char *list, const char *name, const char *counting);

/* Warns about each name that is no op of the registry. */
void sp__op_list_check(const char *what, const char *list);

#endif
