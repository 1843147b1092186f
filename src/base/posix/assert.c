/* SPDX-License-Identifier: Apache-2.0 */
/* A broken internal invariant aborts the process: continuing could corrupt a caller's data. */
#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>

_Noreturn void sp__assert_failed(const char *file, int line, const char *expression)
{
    fprintf(stderr, "streampool: %s:%d: broken invariant: %s\n", file, line, expression);
    abort();
}
