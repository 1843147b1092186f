/* SPDX-License-Identifier: Apache-2.0 */
/* Reading of options: all at once, by the first thread that asks, then from an array. */
#include "base/option.h"

#include <streampool/option.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/atomic.h"
#include "base/error.h"
#include "base/log.h"
#include "base/macros.h"
#include "base/thread.h"

static const sp_option_row rows[SP_OPTION_COUNT] = {
#define OPTION_ROW(name, type, fallback, min, max, choices, meaning)                               \
    [SP_OPTION_##name] = {                                                                         \
        "STREAMPOOL_" #name, SP_OPTION_TYPE_##type, fallback, min, max, choices, meaning},
    SP_OPTION_LIST(OPTION_ROW)
#undef OPTION_ROW
};

/* process-wide: options belong to the process as its environment does; sp__option_reset forgets
 * them. Written by the one run of load_all, whose end (sp_once) publishes them to every reader. */
static sp_once loaded;
static sp_atomic_i64 values[SP_OPTION_COUNT];
static sp_atomic_u32 was_set[SP_OPTION_COUNT];
static char texts[SP_OPTION_COUNT][SP_OPTION_TEXT_BYTES];

/* What load_all tells the thread that ran it: the options to complain about, one bit each. */
typedef struct load_report {
    uint64_t bad_mask;
} load_report;

_Static_assert(SP_OPTION_COUNT <= 64, "load_report has one bit per option");

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
    /* strtoll would also skip spaces and take a plus sign. */
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

/* getenv is safe beside other readers; a program that calls setenv beside any library's getenv is
 * wrong already. Hence the exceptions. */
static sp_status load_all(void *opaque)
{
    load_report *report = opaque;
    for (size_t i = 0; i < SP_OPTION_COUNT; ++i) {
        const char *text = getenv(rows[i].variable); /* NOLINT(concurrency-mt-unsafe) */
        int64_t value = rows[i].fallback;
        /* An empty variable counts as unset, as shells make it easy to leave one behind. */
        const bool is_given = text != NULL && text[0] != '\0';
        const bool is_good = is_given && sp_option_parse(&rows[i], text, &value);
        if (is_given && !is_good) report->bad_mask |= UINT64_C(1) << i;
        const bool is_text = rows[i].type == SP_OPTION_TYPE_TEXT;
        snprintf(texts[i], sizeof texts[i], "%s", is_text && is_good ? text : "");
        sp_store_relaxed(&values[i], value);
        sp_store_relaxed(&was_set[i], is_good ? 1u : 0u);
    }
    return SP_OK;
}

static void log_bad_values(uint64_t bad_mask)
{
    for (size_t i = 0; i < SP_OPTION_COUNT; ++i) {
        if ((bad_mask >> i & 1) == 0) continue;
        char used[32];
        sp_option_format((sp_option)i, used, sizeof used);
        const char *text = getenv(rows[i].variable); /* NOLINT(concurrency-mt-unsafe) */
        SP_LOG(SP_LOG_WARN, "%s=%s is not allowed; using %s (%s)", rows[i].variable,
               text != NULL ? text : "", used, rows[i].meaning);
    }
}

void sp_option_load(void)
{
    load_report report = {0};
    (void)sp_once_run(&loaded, load_all, &report); /* load_all cannot fail */
    /* After the once, since the log asks for its own option. */
    if (SP_UNLIKELY(report.bad_mask != 0)) log_bad_values(report.bad_mask);
}

static int64_t value_of(sp_option option)
{
    sp_option_load();
    return sp_load_relaxed(&values[option]);
}

int64_t sp_option_int(sp_option option)
{
    SP_ASSERT(rows[option].type == SP_OPTION_TYPE_INT);
    return value_of(option);
}

bool sp_option_bool(sp_option option)
{
    SP_ASSERT(rows[option].type == SP_OPTION_TYPE_BOOL);
    return value_of(option) != 0;
}

uint32_t sp_option_enum(sp_option option)
{
    SP_ASSERT(rows[option].type == SP_OPTION_TYPE_ENUM);
    return (uint32_t)value_of(option);
}

uint64_t sp_option_bytes(sp_option option)
{
    SP_ASSERT(rows[option].type == SP_OPTION_TYPE_BYTES);
    return (uint64_t)value_of(option);
}

const char *sp_option_text(sp_option option)
{
    SP_ASSERT(rows[option].type == SP_OPTION_TYPE_TEXT);
    (void)value_of(option);
    return texts[option];
}

const sp_option_row *sp_option_describe(sp_option option)
{
    return &rows[option];
}

void sp_option_format(sp_option option, char *out, size_t out_bytes)
{
    const int64_t value = value_of(option);
    if (rows[option].type == SP_OPTION_TYPE_TEXT) {
        snprintf(out, out_bytes, "%s", texts[option]);
        return;
    }
    if (rows[option].type != SP_OPTION_TYPE_ENUM) {
        snprintf(out, out_bytes, "%" PRId64, value);
        return;
    }
    const char *word = rows[option].choices;
    for (int64_t i = 0; i < value; ++i) word = strchr(word, '|') + 1;
    snprintf(out, out_bytes, "%.*s", (int)strcspn(word, "|"), word);
}

bool sp_option_is_set(sp_option option)
{
    (void)value_of(option);
    return sp_load_relaxed(&was_set[option]) != 0;
}

uint32_t sp_option_count(void)
{
    return SP_OPTION_COUNT;
}

_Static_assert(SP_OPTION_VALUE_BYTES >= SP_OPTION_TEXT_BYTES, "every value has room");

sp_status sp_option_get_info(uint32_t index, sp_option_info *out)
{
    if (out == NULL) return sp__fail(SP_INVALID, "sp_option_get_info needs a place to write to");
    if (index >= SP_OPTION_COUNT) {
        return sp__fail(SP_NOT_FOUND, "there are %d options, none with index %u", SP_OPTION_COUNT,
                        index);
    }
    const sp_option option = (sp_option)index;
    *out = (sp_option_info){.variable = rows[index].variable,
                            .meaning = rows[index].meaning,
                            .choices = rows[index].choices,
                            .is_set = sp_option_is_set(option)};
    sp_option_format(option, out->value, sizeof out->value);
    return SP_OK;
}

void sp__option_reset(void)
{
    loaded = (sp_once){0};
}
