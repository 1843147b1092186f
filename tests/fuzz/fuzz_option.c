/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as the value of every option: parsed to a value within its bounds, or refused. */
#include "base/option.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* Of exactly this size, so that AddressSanitizer reports reads past the end. */
    char *text = malloc(size + 1);
    if (text == NULL) return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    for (int i = 0; i < SP_OPTION_COUNT; ++i) {
        const sp_option_row *info = sp_option_describe((sp_option)i);
        int64_t value = 0;
        if (!sp_option_parse(info, text, &value)) continue;
        if (value < info->min || value > info->max) abort();
    }
    free(text);
    return 0;
}
