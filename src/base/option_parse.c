/* SPDX-License-Identifier: Apache-2.0 */
/* Values of options as text: parsing, and the allowed values as a phrase. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/option.h"

static bool parse_bool(const char *text, int64_t *out)
{
    static const char *const words[] = {"0", "1", "no", "yes", "off", "on", "false", "true"};
    for (size_t i = 0; i < SP_COUNT_OF(words); ++i) {
        if (strcmp(text, words[i]) == 0) {
            *out = (int64_t)(i % 2);
            return true;
        }
    }
    return false;
}

static bool parse_choice(const char *choices, const char *text, int64_t *out)
{
    const size_t length = strlen(text);
    int64_t index = 0;
    for (const char *word = choices;; ++index) {
        const size_t word_length = strcspn(word, "|");
        if (word_length == length && memcmp(word, text, length) == 0) {
            *out = index;
            return true;
        }
        if (word[word_length] == '\0') return false;
        word += word_length + 1;
    }
}

static unsigned unit_shift(char unit)
{
    switch (unit) {
    case 'K':
        return 10;
    case 'M':
        return 20;
    case 'G':
        return 30;
    default:
        return 0;
    }
}

static bool parse_number(const char *text, bool has_unit, int64_t *out)
{
    /* strtoll would also accept leading spaces and a plus sign. */
    const char first = text[0] == '-' ? text[1] : text[0];
    if (first < '0' || first > '9') return false;
    char *end = NULL;
    errno = 0;
    const long long number = strtoll(text, &end, 10);
    if (errno != 0) return false;
    const unsigned shift = has_unit ? unit_shift(*end) : 0;
    if (shift > 0) ++end;
    int64_t scaled;
    if (*end != '\0' || __builtin_mul_overflow((int64_t)number, INT64_C(1) << shift, &scaled)) {
        return false;
    }
    *out = scaled;
    return true;
}

bool sp_option_parse(const sp_option_row *info, const char *text, int64_t *out)
{
    int64_t value = 0;
    bool is_parsed = false;
    switch (info->type) {
    case SP_OPTION_TYPE_INT:
        is_parsed = parse_number(text, false, &value);
        break;
    case SP_OPTION_TYPE_BYTES:
        is_parsed = parse_number(text, true, &value);
        break;
    case SP_OPTION_TYPE_BOOL:
        is_parsed = parse_bool(text, &value);
        break;
    case SP_OPTION_TYPE_ENUM:
        is_parsed = parse_choice(info->choices, text, &value);
        break;
    case SP_OPTION_TYPE_TEXT:
        if (strlen(text) >= SP_OPTION_TEXT_BYTES) return false;
        *out = (int64_t)strlen(text);
        return true;
    }
    if (!is_parsed || value < info->min || value > info->max) return false;
    *out = value;
    return true;
}

/* "a|b|c" as "a, b or c". */
static void format_choices(const char *choices, char *out, size_t out_bytes)
{
    size_t used = 0;
    for (const char *word = choices; *word != '\0' && used < out_bytes;) {
        const size_t length = strcspn(word, "|");
        const bool is_last = word[length] == '\0';
        const bool is_first = word == choices;
        const char *between = is_first ? "" : is_last ? " or " : ", ";
        used +=
            (size_t)snprintf(out + used, out_bytes - used, "%s%.*s", between, (int)length, word);
        word += length + (is_last ? 0 : 1);
    }
}

void sp_option_format_allowed(const sp_option_row *row, char *out, size_t out_bytes)
{
    const char *unit = row->type == SP_OPTION_TYPE_BYTES ? ", as in 64M" : "";
    switch (row->type) {
    case SP_OPTION_TYPE_INT:
    case SP_OPTION_TYPE_BYTES:
        if (row->max == INT64_MAX) {
            snprintf(out, out_bytes, "%" PRId64 " or more%s", row->min, unit);
        } else {
            snprintf(out, out_bytes, "%" PRId64 " to %" PRId64 "%s", row->min, row->max, unit);
        }
        break;
    case SP_OPTION_TYPE_BOOL:
        snprintf(out, out_bytes, "0 or 1");
        break;
    case SP_OPTION_TYPE_ENUM:
        format_choices(row->choices, out, out_bytes);
        break;
    case SP_OPTION_TYPE_TEXT:
        snprintf(out, out_bytes, "a text shorter than %d bytes", SP_OPTION_TEXT_BYTES);
        break;
    }
}
