/* SPDX-License-Identifier: Apache-2.0 */
/* The options of the library: environment variables STREAMPOOL_..., or sp_set_option.
 *
 * All are read at once by the first call that needs one, and never change afterwards. A variable
 * whose value is not allowed is logged as a warning and its default used; an unknown variable is
 * logged as a warning, unless its name begins with STREAMPOOL_TEST_. These calls may be made from
 * any thread and need no device. */
#ifndef STREAMPOOL_OPTION_H
#define STREAMPOOL_OPTION_H

#include <stdbool.h>
#include <stdint.h>

#include <streampool/status.h>

SP_EXTERN_C_BEGIN

#define SP_OPTION_VALUE_BYTES 512

typedef enum sp_option_origin {
    SP_OPTION_DEFAULT,
    SP_OPTION_BY_ENVIRONMENT,
    SP_OPTION_BY_PROGRAM, /* sp_set_option */
    SP_OPTION_REFUSED     /* the environment's value is not allowed: the default is in use */
} sp_option_origin;

typedef struct sp_option_info {
    const char *variable; /* "STREAMPOOL_STREAMS" */
    const char *meaning;  /* one line */
    const char *choices;  /* words separated by |; "" for an option with a number or a text */
    char allowed[128];    /* the allowed values as a phrase: "1 to 64" */
    sp_option_origin origin;
    char value[SP_OPTION_VALUE_BYTES]; /* in use; numbers in decimal, sizes in bytes */
} sp_option_info;

/* Sets an option by its name, "STREAMS" or "STREAMPOOL_STREAMS", to a value in the format of the
 * environment variable, which it overrides. A NULL value undoes an earlier call. Only allowed
 * before the first use of the library; sp_option_get_info is a use, the calls of log.h are not.
 * Errors: SP_NOT_FOUND for an unknown name; SP_INVALID for a value that is not allowed (the message
 * has the allowed ones); SP_BUSY once the options are in use; SP_FORKED in a forked child. */
SP_API sp_status sp_set_option(const char *name, const char *value);

/* Number of options. */
SP_API uint32_t sp_option_count(void);

/* The `index`-th option; the options are in use from then on. The strings live as long as the
 * library is loaded. SP_NOT_FOUND past the end, SP_INVALID for NULL. */
SP_API sp_status sp_option_get_info(uint32_t index, sp_option_info *out);

SP_EXTERN_C_END

#endif
