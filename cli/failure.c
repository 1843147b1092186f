/* SPDX-License-Identifier: Apache-2.0 */
/* Thread-local messages. primitive: the compiler's thread-local storage, since the program uses
 * only the library's public API. */
#include "failure.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "output.h"

/* process-wide: thread-local, as the library's last error is. */
static _Thread_local char message[FAILURE_BYTES];

sp_status fail(sp_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return status;
}

sp_status fail_prefix(sp_status status, const char *format, ...)
{
    char former[FAILURE_BYTES];
    va_list args;
    memcpy(former, message, sizeof former);
    va_start(args, format);
    const int length = vsnprintf(message, sizeof message, format, args);
    va_end(args);
    const size_t used = length < 0 ? 0 : (size_t)length;
    if (used < sizeof message) snprintf(message + used, sizeof message - used, "%s", former);
    return status;
}

sp_status from_library(sp_status status)
{
    if (status != SP_OK) snprintf(message, sizeof message, "%s", sp_last_error());
    return status;
}

const char *failure_message(void)
{
    return message;
}

void failure_print(sp_status status)
{
    (void)output_flush(); /* before the message, if both go to one file */
    fprintf(stderr, "streampool: %s: %s\n", sp_status_name(status), message);
}
