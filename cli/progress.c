/* SPDX-License-Identifier: Apache-2.0 */
#include "progress.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "process.h"

#define ERASE_LINE "\r\033[K"
#define LEAST_NS UINT64_C(40000000) /* between two lines: short runs are not delayed by them */

static bool is_shown;     /* process-wide: one terminal. Of the main thread */
static uint64_t shown_ns; /* process-wide: the same */

void progress_show(const char *format, ...)
{
    va_list values;
    const uint64_t now_ns = clock_ns();
    if (now_ns - shown_ns < LEAST_NS || !isatty(STDERR_FILENO)) return;
    shown_ns = now_ns;
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
