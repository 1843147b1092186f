/* SPDX-License-Identifier: Apache-2.0 */
/* The list of device kinds; no other file names them all. */
#include "device/kind.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/macros.h"
#include "device/cpu/cpu.h"
#include "device/cuda/cuda.h"
#include "device/null/null.h"

#define MAX_ORDINAL 999u

static const sp_device_kind *const kinds[] = {&sp__cpu_kind, &sp__null_kind, &sp__cuda_kind};

const sp_device_kind *sp__device_kind_fallback(void)
{
    for (size_t i = 0; i < SP_COUNT_OF(kinds); i++) {
        if (kinds[i]->is_fallback) return kinds[i];
    }
    return NULL; /* not reached: one kind is the fallback */
}

/* Digits up to the end of the text, or up to MAX_ORDINAL. */
static bool ordinal_parse(const char *text, uint32_t *out)
{
    *out = 0;
    if (*text == '\0') return false;
    for (; *text >= '0' && *text <= '9' && *out <= MAX_ORDINAL; text++) {
        *out = *out * 10 + (uint32_t)(*text - '0');
    }
    return *text == '\0' && *out <= MAX_ORDINAL;
}

static bool kind_matches(const sp_device_kind *kind, const char *text, uint32_t *ordinal)
{
    const size_t length = strlen(kind->name);
    *ordinal = 0;
    if (strncmp(text, kind->name, length) != 0) return false;
    if (text[length] == '\0') return true;
    return kind->numbering == SP_DEVICE_BY_ORDINAL && text[length] == ':' &&
           ordinal_parse(text + length + 1, ordinal);
}

static sp_status kind_fail_unknown(const char *text)
{
    char names[128] = "";
    size_t used = 0;
    for (size_t i = 0; i < SP_COUNT_OF(kinds); i++) {
        const bool has_number = kinds[i]->numbering == SP_DEVICE_BY_ORDINAL;
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s%s", i > 0 ? ", " : "",
                                 kinds[i]->name, has_number ? ":N" : "");
    }
    return sp__fail(SP_NOT_FOUND, "no device kind \"%s\": use one of %s", text, names);
}

sp_status sp__device_kind_parse(const char *text, const sp_device_kind **kind, uint32_t *ordinal)
{
    for (size_t i = 0; i < SP_COUNT_OF(kinds); i++) {
        if (!kind_matches(kinds[i], text, ordinal)) continue;
        *kind = kinds[i];
        return SP_OK;
    }
    return kind_fail_unknown(text);
}

void sp__device_kind_name(const sp_device_kind *kind, uint32_t ordinal, char *out, size_t size)
{
    if (kind->numbering == SP_DEVICE_BY_ORDINAL) {
        snprintf(out, size, "%s:%u", kind->name, ordinal);
    } else {
        snprintf(out, size, "%s", kind->name);
    }
}
