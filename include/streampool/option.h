/* SPDX-License-Identifier: Apache-2.0 */
/* The options of the library: environment variables STREAMPOOL_..., for listings.
 *
 * All are read together by the first call that needs one, and never change afterwards. A value that
 * is not allowed is logged, and the default used. These calls may be made from any thread, and need
 * no device. */
#ifndef STREAMPOOL_OPTION_H
#define STREAMPOOL_OPTION_H

#include <stdbool.h>
#include <stdint.h>

#include <streampool/status.h>

SP_EXTERN_C_BEGIN

#define SP_OPTION_VALUE_BYTES 512

typedef struct sp_option_info {
    const char *variable; /* "STREAMPOOL_STREAMS" */
    const char *meaning;  /* one line */
    const char *choices;  /* words with | between them; "" if any number or text will do */
    bool is_set;          /* by the environment, to a value that is allowed */
    char value[SP_OPTION_VALUE_BYTES]; /* in use; numbers in decimal, sizes in bytes */
} sp_option_info;

/* How many options there are. */
SP_API uint32_t sp_option_count(void);

/* The `index`-th option. The strings live as long as the library is loaded. SP_NOT_FOUND past the
 * end, SP_INVALID for NULL. */
SP_API sp_status sp_option_get_info(uint32_t index, sp_option_info *out);

SP_EXTERN_C_END

#endif
