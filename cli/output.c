/* SPDX-License-Identifier: Apache-2.0 */
#include "output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "text.h"

/* errno of the first flush that failed, or 0. process-wide: as standard output is. */
static int first_error;

bool output_flush(void)
{
    if (fflush(stdout) != 0 && first_error == 0) first_error = errno;
    return first_error == 0 && ferror(stdout) == 0;
}

int output_finish(int code)
{
    const bool had_error = ferror(stdout) != 0;
    if (fclose(stdout) != 0 && first_error == 0) first_error = errno;
    if (first_error == 0 && !had_error) return code;
    fprintf(stderr, "streampool: cannot write to standard output%s%s\n",
            first_error != 0 ? ": " : "", first_error != 0 ? show_error(first_error).text : "");
    return code == EXIT_SUCCESS ? EXIT_FAILURE : code;
}
