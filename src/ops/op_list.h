/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of ONNX op types as users write them: names between commas, spaces around them do not
 * count. */
#ifndef SP_OPS_OP_LIST_H
#define SP_OPS_OP_LIST_H

#include <stdbool.h>

#include "base/text.h"

/* The next name of the list, and *list behind it; false at the end. Empty names are left out. */
bool sp__op_list_next(const char **list, sp_text *name);

/* Does the list have the op, or one of several with a + between them ("Gemm+Relu")? */
bool sp__op_list_has(const char *list, const char *name);

/* Warns about each name that no op of the registry has. */
void sp__op_list_check(const char *what, const char *list);

#endif
