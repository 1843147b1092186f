/* SPDX-License-Identifier: Apache-2.0 */
/* Which planted bug is enabled. Compiled only with SP_PLANTS. */
#include "base/macros.h"

#include <stdlib.h>
#include <string.h>

static const char *planted; /* process-wide: written before main */

__attribute__((constructor)) static void read_planted(void)
{
    planted = getenv("STREAMPOOL_PLANT"); /* NOLINT(concurrency-mt-unsafe): before main */
}

int sp__is_planted(const char *name)
{
    return SP_UNLIKELY(planted != NULL) && strcmp(planted, name) == 0;
}
