/* SPDX-License-Identifier: Apache-2.0 */
#include "progress.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#define ERASE_LINE "\r\033[K"

static bool is_shown; /* process-wide: one terminal. Of the main thread */

void progress_show(const char *format, ...)
{
    va_list values;
    if (!isatty(STDERR_FILENO)) return;
    fputs(ERASE_LINE, stderr);
    va_start(values, format);
    vfprintf(stderr, format, values);
    va_end(values);
    fflush(stderr);
    is_shown = true;
}

void progress_clear(void)
{
    if (!is_shown) return;
    fputs(ERASE_LINE, stderr);
    fflush(stderr);
    is_shown = false;
}
