/* SPDX-License-Identifier: Apache-2.0 */
/* Options: all are read at once by the first query, later queries read an array. */
#include "base/option.h"

#include <streampool/option.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/atomic.h"
#include "base/error.h"
#include "base/fork.h"
#include "base/log.h"
#include "base/macros.h"
#include "base/mutex.h"
#include "base/thread.h"

#define PREFIX "STREAMPOOL_"
#define SHOWN "%.160s" /* of a text that the user gave: the rest of the message has room */

static const sp_option_row rows[SP_OPTION_COUNT] = {
#define OPTION_ROW(name, type, fallback, min, max, choices, meaning)                               \
    [SP_OPTION_##                                                                                  \
        name] = {PREFIX #name, SP_OPTION_TYPE_##type, fallback, min, max, choices, meaning},
    SP_OPTION_LIST(OPTION_ROW)
#undef OPTION_ROW
};

/* process-wide: options belong to the process, like its environment; sp__option_reset clears them.
 * Written by the one run of options_load_all, whose end (sp_once) publishes them to all readers. */
static sp_once loaded;
static sp_atomic_i64 values[SP_OPTION_COUNT];
static sp_atomic_u32 origins[SP_OPTION_COUNT]; /* sp_option_origin */
static char texts[SP_OPTION_COUNT][SP_OPTION_TEXT_BYTES];

/* Values of sp_set_option before the options were read. */
static struct {
    sp_mutex lock;
    bool is_read SP_GUARDED_BY(lock); /* no more values are accepted */
    bool is_given[SP_OPTION_COUNT] SP_GUARDED_BY(lock);
    char texts[SP_OPTION_COUNT][SP_OPTION_TEXT_BYTES] SP_GUARDED_BY(lock);
} given = {.lock = SP_MUTEX_INIT(SP_LOCK_OPTIONS)}; /* process-wide: see sp__option_reset */

/* ---- reading ---- */

/* An empty variable counts as unset, since shells make it easy to set one by accident. getenv is
 * safe beside other readers; a program that calls setenv beside getenv of any library has a race
 * already. Hence the exceptions. */
static const char *environment_text(size_t i)
{
    const char *text = getenv(rows[i].variable); /* NOLINT(concurrency-mt-unsafe) */
    return text != NULL && text[0] != '\0' ? text : NULL;
}

static void option_load_one(size_t i, const char *text, sp_option_origin origin)
{
    int64_t value = rows[i].fallback;
    const bool is_good = text != NULL && sp_option_parse(&rows[i], text, &value);
    if (text == NULL) origin = SP_OPTION_DEFAULT;
    if (text != NULL && !is_good) origin = SP_OPTION_REFUSED;
    const bool is_text = rows[i].type == SP_OPTION_TYPE_TEXT;
    snprintf(texts[i], sizeof texts[i], "%s", is_text && is_good ? text : "");
    sp_store_relaxed(&values[i], value);
    sp_store_relaxed(&origins[i], (uint32_t)origin);
}

static sp_status options_load_all(void *is_first)
{
    sp_mutex_lock(&given.lock);
    given.is_read = true;
    for (size_t i = 0; i < SP_OPTION_COUNT; ++i) {
        if (given.is_given[i]) {
            option_load_one(i, given.texts[i], SP_OPTION_BY_PROGRAM);
        } else {
            option_load_one(i, environment_text(i), SP_OPTION_BY_ENVIRONMENT);
        }
    }
    sp_mutex_unlock(&given.lock);
    *(bool *)is_first = true;
    return SP_OK;
}

static void option_log_refused(size_t i)
{
    char used[SP_OPTION_TEXT_BYTES], allowed[128];
    sp_option_format((sp_option)i, used, sizeof used);
    sp_option_format_allowed(&rows[i], allowed, sizeof allowed);
    const char *text = environment_text(i);
    SP_LOG(SP_LOG_WARN, "%s=" SHOWN " is not allowed: %s; using '%s' (%s)", rows[i].variable,
           text != NULL ? text : "", allowed, used, rows[i].meaning);
}

/* STREAMPOOL_TEST_... are reserved for tests. */
static bool variable_is_known(const char *variable)
{
    if (strncmp(variable, PREFIX, strlen(PREFIX)) != 0) return true;
    if (strncmp(variable, PREFIX "TEST_", strlen(PREFIX "TEST_")) == 0) return true;
    const size_t length = strcspn(variable, "=");
    for (size_t i = 0; i < SP_OPTION_COUNT; ++i) {
        const char *own = rows[i].variable;
        if (strlen(own) == length && memcmp(own, variable, length) == 0) return true;
    }
    return false;
}

static void variables_log_unknown(void)
{
    for (char *const *variable = environ; variable != NULL && *variable != NULL; ++variable) {
        if (variable_is_known(*variable)) continue;
        SP_LOG(SP_LOG_WARN, "%.*s is no option of streampool: `streampool info` lists all options",
               (int)strcspn(*variable, "="), *variable);
    }
}

void sp_option_load(void)
{
    bool is_first = false;
    (void)sp_once_run(&loaded, options_load_all, &is_first); /* load_all cannot fail */
    if (SP_LIKELY(!is_first)) return;
    /* After the once, since the log queries an option. */
    for (size_t i = 0; i < SP_OPTION_COUNT; ++i) {
        if (sp_load_relaxed(&origins[i]) == SP_OPTION_REFUSED) option_log_refused(i);
    }
    variables_log_unknown();
}

/* ---- setting ---- */

/* Index of the option "STREAMS", with or without the prefix; SP_OPTION_COUNT: unknown. */
static size_t option_find(const char *name)
{
    const size_t skip = strncmp(name, PREFIX, strlen(PREFIX)) == 0 ? strlen(PREFIX) : 0;
    size_t i = 0;
    while (i < SP_OPTION_COUNT && strcmp(rows[i].variable + strlen(PREFIX), name + skip) != 0) ++i;
    return i;
}

static bool option_give(size_t i, const char *value)
{
    sp_mutex_lock(&given.lock);
    const bool is_in_time = !given.is_read;
    if (is_in_time) {
        given.is_given[i] = value != NULL;
        snprintf(given.texts[i], sizeof given.texts[i], "%s", value != NULL ? value : "");
    }
    sp_mutex_unlock(&given.lock);
    return is_in_time;
}

sp_status sp_set_option(const char *name, const char *value)
{
    if (sp_fork_is_child()) {
        return sp__fail(SP_FORKED, "sp_set_option: forked child; set options before the fork");
    }
    if (name == NULL) return sp__fail(SP_INVALID, "sp_set_option: name is NULL");
    const size_t i = option_find(name);
    if (i == SP_OPTION_COUNT) {
        return sp__fail(SP_NOT_FOUND,
                        "sp_set_option: no option '" SHOWN "'; sp_option_get_info lists all", name);
    }
    int64_t parsed;
    if (value != NULL && !sp_option_parse(&rows[i], value, &parsed)) {
        char allowed[128];
        sp_option_format_allowed(&rows[i], allowed, sizeof allowed);
        return sp__fail(SP_INVALID, "the option %s cannot be '" SHOWN "': %s", name, value,
                        allowed);
    }
    if (option_give(i, value)) return SP_OK;
    return sp__fail(SP_BUSY,
                    "the options are in use: set %s before the first call that uses the library",
                    name);
}

/* ---- queries ---- */

static int64_t option_value(sp_option option)
{
    sp_option_load();
    return sp_load_relaxed(&values[option]);
}

int64_t sp_option_int(sp_option option)
{
    SP_ASSERT(rows[option].type == SP_OPTION_TYPE_INT);
    return option_value(option);
}

bool sp_option_bool(sp_option option)
{
    SP_ASSERT(rows[option].type == SP_OPTION_TYPE_BOOL);
    return option_value(option) != 0;
}

uint32_t sp_option_enum(sp_option option)
{
    SP_ASSERT(rows[option].type == SP_OPTION_TYPE_ENUM);
    return (uint32_t)option_value(option);
}

uint64_t sp_option_bytes(sp_option option)
{
    SP_ASSERT(rows[option].type == SP_OPTION_TYPE_BYTES);
    return (uint64_t)option_value(option);
}

const char *sp_option_text(sp_option option)
{
    SP_ASSERT(rows[option].type == SP_OPTION_TYPE_TEXT);
    (void)option_value(option);
    return texts[option];
}

const sp_option_row *sp_option_describe(sp_option option)
{
    return &rows[option];
}

void sp_option_format(sp_option option, char *out, size_t out_bytes)
{
    const int64_t value = option_value(option);
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

sp_option_origin sp_option_origin_of(sp_option option)
{
    (void)option_value(option);
    return (sp_option_origin)sp_load_relaxed(&origins[option]);
}

uint32_t sp_option_count(void)
{
    return SP_OPTION_COUNT;
}

_Static_assert(SP_OPTION_VALUE_BYTES >= SP_OPTION_TEXT_BYTES, "every value has room");

sp_status sp_option_get_info(uint32_t index, sp_option_info *out)
{
    if (out == NULL) return sp__fail(SP_INVALID, "sp_option_get_info: out is NULL");
    if (index >= SP_OPTION_COUNT) {
        return sp__fail(SP_NOT_FOUND, "there are %d options, none with index %u", SP_OPTION_COUNT,
                        index);
    }
    const sp_option option = (sp_option)index;
    *out = (sp_option_info){.variable = rows[index].variable,
                            .meaning = rows[index].meaning,
                            .choices = rows[index].choices,
                            .origin = sp_option_origin_of(option)};
    sp_option_format(option, out->value, sizeof out->value);
    sp_option_format_allowed(&rows[index], out->allowed, sizeof out->allowed);
    return SP_OK;
}

void sp__option_reset(void)
{
    loaded = (sp_once){0};
    sp_mutex_lock(&given.lock);
    given.is_read = false;
    memset(given.is_given, 0, sizeof given.is_given);
    sp_mutex_unlock(&given.lock);
}
