/* SPDX-License-Identifier: Apache-2.0 */
/* The table of options: defaults, parsing, bad values, concurrent first use. */
#include "base/option.h"

#include <streampool/option.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/log.h"
#include "base/macros.h"
#include "support/test.h"

static void unset_all(void)
{
    for (int i = 0; i < SP_OPTION_COUNT; ++i) {
        unsetenv(sp_option_describe((sp_option)i)->variable);
    }
    sp__option_reset();
    sp__log_reset();
}

TEST(the_defaults_hold_when_nothing_is_set)
{
    unset_all();
    CHECK_EQ_INT(sp_option_int(SP_OPTION_CPU_WORKERS), 0);
    CHECK_EQ_INT(sp_option_int(SP_OPTION_STREAMS), 32);
    CHECK_EQ_U64(sp_option_enum(SP_OPTION_STREAM_POLICY), SP_OPTION_POLICY_SHARE);
    CHECK_EQ_INT(sp_option_int(SP_OPTION_STREAM_WAIT_MS), -1);
    CHECK(!sp_option_bool(SP_OPTION_FORCE_SAFE_PATHS));
    CHECK(!sp_option_bool(SP_OPTION_CHECK));
    CHECK_EQ_U64(sp_option_enum(SP_OPTION_ISA), SP_OPTION_ISA_AUTO);
    CHECK_EQ_U64(sp_option_enum(SP_OPTION_LOG), SP_LOG_WARN);
    CHECK_EQ_INT(sp_option_origin_of(SP_OPTION_STREAMS), SP_OPTION_DEFAULT);
}

TEST(the_environment_is_read_once)
{
    unset_all();
    setenv("STREAMPOOL_STREAMS", "8", 1);
    setenv("STREAMPOOL_STREAM_POLICY", "fail", 1);
    setenv("STREAMPOOL_CHECK", "on", 1);
    CHECK_EQ_INT(sp_option_int(SP_OPTION_STREAMS), 8);
    CHECK_EQ_INT(sp_option_origin_of(SP_OPTION_STREAMS), SP_OPTION_BY_ENVIRONMENT);
    CHECK_EQ_U64(sp_option_enum(SP_OPTION_STREAM_POLICY), SP_OPTION_POLICY_FAIL);
    CHECK(sp_option_bool(SP_OPTION_CHECK));
    setenv("STREAMPOOL_STREAMS", "9", 1);
    CHECK_EQ_INT(sp_option_int(SP_OPTION_STREAMS), 8);
    sp__option_reset();
    CHECK_EQ_INT(sp_option_int(SP_OPTION_STREAMS), 9);
    unset_all();
}

TEST(an_empty_variable_counts_as_unset)
{
    unset_all();
    setenv("STREAMPOOL_STREAMS", "", 1);
    CHECK_EQ_INT(sp_option_int(SP_OPTION_STREAMS), 32);
    CHECK_EQ_INT(sp_option_origin_of(SP_OPTION_STREAMS), SP_OPTION_DEFAULT);
    unset_all();
}

typedef struct warnings {
    int count;
    char last[SP_LOG_MESSAGE_BYTES];
} warnings;

static void keep_warning(void *ctx, sp_log_level level, const char *message)
{
    warnings *self = ctx;
    CHECK_EQ_INT(level, SP_LOG_WARN);
    ++self->count;
    snprintf(self->last, sizeof self->last, "%s", message);
}

TEST(a_bad_value_is_logged_once_and_the_default_used)
{
    unset_all();
    warnings seen = {0};
    setenv("STREAMPOOL_LOG", "warn", 1);
    setenv("STREAMPOOL_STREAMS", "65", 1);
    sp_log_set_callback(keep_warning, &seen);
    CHECK_EQ_INT(sp_option_int(SP_OPTION_STREAMS), 32);
    CHECK_EQ_INT(sp_option_int(SP_OPTION_STREAMS), 32);
    CHECK_EQ_INT(sp_option_origin_of(SP_OPTION_STREAMS), SP_OPTION_REFUSED);
    CHECK_EQ_INT(seen.count, 1);
    CHECK(strstr(seen.last, "STREAMPOOL_STREAMS=65 is not allowed: 1 to 64; using '32'") != NULL);
    unset_all();
}

TEST(a_variable_that_is_no_option_is_warned_about)
{
    unset_all();
    warnings seen = {0};
    setenv("STREAMPOOL_STREMS", "8", 1);
    setenv("STREAMPOOLS", "is somebody else's", 1);
    sp_log_set_callback(keep_warning, &seen);
    CHECK_EQ_INT(sp_option_int(SP_OPTION_STREAMS), 32);
    CHECK_EQ_INT(seen.count, 1);
    CHECK(strstr(seen.last, "STREAMPOOL_STREMS is no option") != NULL);
    unsetenv("STREAMPOOL_STREMS");
    unsetenv("STREAMPOOLS");
    unset_all();
}

TEST(a_program_sets_options_until_they_are_in_use)
{
    unset_all();
    setenv("STREAMPOOL_STREAMS", "8", 1);
    CHECK_OK(sp_set_option("STREAMS", "9"));
    CHECK_OK(sp_set_option("STREAMPOOL_STREAM_POLICY", "wait"));
    CHECK_OK(sp_set_option("PLANS", "7"));
    CHECK_OK(sp_set_option("PLANS", NULL));
    CHECK_EQ_INT(sp_option_int(SP_OPTION_STREAMS), 9);
    CHECK_EQ_INT(sp_option_origin_of(SP_OPTION_STREAMS), SP_OPTION_BY_PROGRAM);
    CHECK_EQ_U64(sp_option_enum(SP_OPTION_STREAM_POLICY), SP_OPTION_POLICY_WAIT);
    CHECK_EQ_INT(sp_option_int(SP_OPTION_PLANS), 32);
    CHECK_STATUS(sp_set_option("STREAMS", "10"), SP_BUSY);
    CHECK_MESSAGE("before the first call");
    CHECK_EQ_INT(sp_option_int(SP_OPTION_STREAMS), 9);
    unset_all();
    CHECK_EQ_INT(sp_option_int(SP_OPTION_STREAMS), 32);
}

TEST(options_that_there_are_not_and_values_that_are_not_allowed_cannot_be_set)
{
    unset_all();
    CHECK_STATUS(sp_set_option(NULL, "1"), SP_INVALID);
    CHECK_STATUS(sp_set_option("STREMS", "1"), SP_NOT_FOUND);
    CHECK_MESSAGE("no option 'STREMS'");
    CHECK_STATUS(sp_set_option("STREAMPOOL_", "1"), SP_NOT_FOUND);
    CHECK_STATUS(sp_set_option("STREAMS", "0"), SP_INVALID);
    CHECK_MESSAGE("cannot be '0': 1 to 64");
    CHECK_STATUS(sp_set_option("STREAM_POLICY", "never"), SP_INVALID);
    CHECK_MESSAGE("share, wait or fail");
    CHECK_STATUS(sp_set_option("CHECK", ""), SP_INVALID);
    CHECK_MESSAGE("0 or 1");
    CHECK_STATUS(sp_set_option("CACHE", "much"), SP_INVALID);
    CHECK_MESSAGE("0 or more, as in 64M");
    CHECK_EQ_INT(sp_option_int(SP_OPTION_STREAMS), 32);
    unset_all();
}

TEST(a_long_name_or_value_leaves_room_for_what_is_allowed)
{
    unset_all();
    warnings seen = {0};
    char text[2 * SP_LOG_MESSAGE_BYTES];
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    CHECK_STATUS(sp_set_option(text, "1"), SP_NOT_FOUND);
    CHECK_MESSAGE("sp_option_get_info lists all");
    CHECK_STATUS(sp_set_option("NVRTC", text), SP_INVALID);
    CHECK_MESSAGE("a text shorter than 512 bytes");
    setenv("STREAMPOOL_STREAMS", text, 1);
    sp_log_set_callback(keep_warning, &seen);
    CHECK_EQ_INT(sp_option_int(SP_OPTION_STREAMS), 32);
    CHECK_EQ_INT(seen.count, 1);
    CHECK(strstr(seen.last, "is not allowed: 1 to 64; using '32'") != NULL);
    unset_all();
}

TEST(the_log_is_set_up_before_options)
{
    unset_all();
    warnings seen = {0};
    sp_log_set_callback(keep_warning, &seen);
    sp_log_set_level(SP_LOG_WARN);
    CHECK_OK(sp_set_option("STREAMS", "9"));
    CHECK_EQ_INT(sp_option_int(SP_OPTION_STREAMS), 9);
    CHECK_STATUS(sp_set_option("STREAMS", "10"), SP_BUSY);
    unset_all();
}

static void set_streams(void *arg, uint32_t index)
{
    (void)arg;
    if (index == 0) {
        const sp_status status = sp_set_option("STREAMS", "5");
        CHECK(status == SP_OK || status == SP_BUSY);
        CHECK_EQ_INT(sp_option_int(SP_OPTION_STREAMS), status == SP_OK ? 5 : 32);
    } else {
        const int64_t streams = sp_option_int(SP_OPTION_STREAMS);
        CHECK(streams == 5 || streams == 32);
        CHECK_EQ_INT(sp_option_int(SP_OPTION_STREAMS), streams);
    }
}

TEST(setting_beside_the_first_use_comes_before_it_or_is_refused)
{
    const uint64_t rounds = test_count(2000, 100);
    for (uint64_t i = 0; i < rounds; ++i) {
        unset_all();
        test_threads(3, set_streams, NULL);
    }
    unset_all();
}

static const sp_option_row int_row = {"X", SP_OPTION_TYPE_INT, 0, -5, 50, "", ""};
static const sp_option_row bool_row = {"X", SP_OPTION_TYPE_BOOL, 0, 0, 1, "", ""};
static const sp_option_row enum_row = {"X", SP_OPTION_TYPE_ENUM, 0, 0, 2, "one|two|twos", ""};
static const sp_option_row bytes_row = {"X", SP_OPTION_TYPE_BYTES, 0, 0, INT64_MAX, "", ""};

TEST(good_values_parse)
{
    static const struct {
        const sp_option_row *row;
        const char *text;
        int64_t value;
    } cases[] = {
        {&int_row, "0", 0},
        {&int_row, "-5", -5},
        {&int_row, "50", 50},
        {&bool_row, "1", 1},
        {&bool_row, "off", 0},
        {&bool_row, "yes", 1},
        {&bool_row, "false", 0},
        {&enum_row, "one", 0},
        {&enum_row, "two", 1},
        {&enum_row, "twos", 2},
        {&bytes_row, "4096", 4096},
        {&bytes_row, "3K", 3072},
        {&bytes_row, "2M", 2097152},
        {&bytes_row, "8589934591G", INT64_C(8589934591) << 30},
        {&bytes_row, "9223372036854775807", INT64_MAX},
    };
    for (size_t i = 0; i < SP_COUNT_OF(cases); ++i) {
        int64_t value = -99;
        CHECK(sp_option_parse(cases[i].row, cases[i].text, &value));
        CHECK_EQ_INT(value, cases[i].value);
    }
}

TEST(bad_values_do_not_parse_and_leave_the_output)
{
    static const struct {
        const sp_option_row *row;
        const char *text;
    } cases[] = {
        {&int_row, "51"},       {&int_row, "-6"},
        {&int_row, "1x"},       {&int_row, " 1"},
        {&int_row, "+1"},       {&int_row, "1 "},
        {&int_row, "-"},        {&int_row, "1K"},
        {&int_row, "0x10"},     {&int_row, "99999999999999999999"},
        {&bool_row, "2"},       {&bool_row, "ON"},
        {&bool_row, "tru"},     {&enum_row, "tw"},
        {&enum_row, "one|two"}, {&enum_row, "|"},
        {&enum_row, "three"},   {&bytes_row, "1KB"},
        {&bytes_row, "K"},      {&bytes_row, "-1"},
        {&bytes_row, "1T"},     {&bytes_row, "8589934592G"},
    };
    for (size_t i = 0; i < SP_COUNT_OF(cases); ++i) {
        int64_t value = -99;
        if (sp_option_parse(cases[i].row, cases[i].text, &value)) test_note("%s", cases[i].text);
        CHECK_EQ_INT(value, -99);
    }
}

TEST(every_row_is_consistent_and_formats)
{
    unset_all();
    for (int i = 0; i < SP_OPTION_COUNT; ++i) {
        const sp_option option = (sp_option)i;
        const sp_option_row *info = sp_option_describe(option);
        CHECK(strncmp(info->variable, "STREAMPOOL_", 11) == 0);
        CHECK(info->min <= info->fallback && info->fallback <= info->max);
        CHECK(info->meaning[0] != '\0');
        char text[32];
        sp_option_format(option, text, sizeof text);
        int64_t value = 0;
        CHECK(sp_option_parse(info, text, &value));
        CHECK_EQ_INT(value, info->fallback);
    }
}

TEST(values_format_as_they_are_written)
{
    unset_all();
    setenv("STREAMPOOL_STREAM_POLICY", "wait", 1);
    setenv("STREAMPOOL_ISA", "avx2", 1);
    char text[32];
    sp_option_format(SP_OPTION_STREAM_POLICY, text, sizeof text);
    CHECK_EQ_STR(text, "wait");
    sp_option_format(SP_OPTION_ISA, text, sizeof text);
    CHECK_EQ_STR(text, "avx2");
    unset_all();
}

TEST(a_text_is_empty_by_default_and_else_what_the_variable_says)
{
    unset_all();
    CHECK_EQ_STR(sp_option_text(SP_OPTION_CACHE_DIR), "");
    CHECK_EQ_INT(sp_option_origin_of(SP_OPTION_CACHE_DIR), SP_OPTION_DEFAULT);
    setenv("STREAMPOOL_CACHE_DIR", "/a folder|x", 1);
    sp__option_reset();
    CHECK_EQ_STR(sp_option_text(SP_OPTION_CACHE_DIR), "/a folder|x");
    CHECK_EQ_INT(sp_option_origin_of(SP_OPTION_CACHE_DIR), SP_OPTION_BY_ENVIRONMENT);
    CHECK_EQ_STR(sp_option_text(SP_OPTION_NVRTC), "");
    char text[32];
    sp_option_format(SP_OPTION_CACHE_DIR, text, sizeof text);
    CHECK_EQ_STR(text, "/a folder|x");
    sp_option_format(SP_OPTION_NVRTC, text, sizeof text);
    CHECK_EQ_STR(text, "");
    const sp_option_row *info = sp_option_describe(SP_OPTION_CACHE_DIR);
    CHECK_EQ_STR(info->variable, "STREAMPOOL_CACHE_DIR");
    CHECK_EQ_INT(info->type, SP_OPTION_TYPE_TEXT);
    unset_all();
    CHECK_EQ_STR(sp_option_text(SP_OPTION_CACHE_DIR), "");
}

TEST(a_text_that_is_too_long_is_refused_and_one_that_just_fits_is_not)
{
    unset_all();
    char text[SP_OPTION_TEXT_BYTES + 1];
    memset(text, 'x', sizeof text);
    text[SP_OPTION_TEXT_BYTES - 1] = '\0';
    int64_t length = -1;
    CHECK(sp_option_parse(sp_option_describe(SP_OPTION_NVRTC), text, &length));
    CHECK_EQ_INT(length, SP_OPTION_TEXT_BYTES - 1);
    setenv("STREAMPOOL_NVRTC", text, 1);
    CHECK_EQ_STR(sp_option_text(SP_OPTION_NVRTC), text);

    unset_all();
    warnings seen = {0};
    text[SP_OPTION_TEXT_BYTES - 1] = 'x';
    text[SP_OPTION_TEXT_BYTES] = '\0';
    CHECK(!sp_option_parse(sp_option_describe(SP_OPTION_NVRTC), text, &length));
    setenv("STREAMPOOL_LOG", "warn", 1);
    setenv("STREAMPOOL_NVRTC", text, 1);
    sp_log_set_callback(keep_warning, &seen);
    CHECK_EQ_STR(sp_option_text(SP_OPTION_NVRTC), "");
    CHECK_EQ_INT(sp_option_origin_of(SP_OPTION_NVRTC), SP_OPTION_REFUSED);
    CHECK_EQ_INT(seen.count, 1);
    CHECK(strstr(seen.last, "STREAMPOOL_NVRTC=xxx") != NULL);
    unset_all();
}

typedef struct first_use {
    sp_atomic_u64 warning_count;
} first_use;

static void count_warning(void *ctx, sp_log_level level, const char *message)
{
    (void)level, (void)message;
    sp_fetch_add_relaxed(&((first_use *)ctx)->warning_count, 1);
}

static void read_first(void *arg, uint32_t index)
{
    (void)arg, (void)index;
    CHECK_EQ_INT(sp_option_int(SP_OPTION_CPU_WORKERS), 7);
    CHECK_EQ_INT(sp_option_int(SP_OPTION_STREAM_WAIT_MS), -1);
}

TEST(threads_that_ask_first_together_get_the_same_answers)
{
    const uint64_t rounds = test_count(2000, 100);
    first_use seen = {0};
    unset_all();
    setenv("STREAMPOOL_LOG", "warn", 1);
    setenv("STREAMPOOL_CPU_WORKERS", "7", 1);
    setenv("STREAMPOOL_STREAM_WAIT_MS", "soon", 1);
    for (uint64_t i = 0; i < rounds; ++i) {
        sp__option_reset();
        sp__log_reset();
        sp_log_set_callback(count_warning, &seen);
        test_threads(4, read_first, NULL);
    }
    CHECK_EQ_U64(sp_load_relaxed(&seen.warning_count), rounds);
    unset_all();
}

TEST(options_are_listed_with_the_values_in_use)
{
    unset_all();
    setenv("STREAMPOOL_STREAMS", "8", 1);
    setenv("STREAMPOOL_STREAM_POLICY", "fail", 1);
    setenv("STREAMPOOL_PLANS", "no number", 1);
    sp_option_info info;
    CHECK_EQ_U64(sp_option_count(), SP_OPTION_COUNT);
    for (uint32_t i = 0; i < SP_OPTION_COUNT; i++) {
        REQUIRE_OK(sp_option_get_info(i, &info));
        CHECK_EQ_STR(info.variable, sp_option_describe((sp_option)i)->variable);
        CHECK(info.meaning[0] != '\0' && info.choices != NULL);
    }
    CHECK_OK(sp_option_get_info(SP_OPTION_STREAMS, &info));
    CHECK_EQ_STR(info.value, "8");
    CHECK_EQ_INT(info.origin, SP_OPTION_BY_ENVIRONMENT);
    CHECK_EQ_STR(info.allowed, "1 to 64");
    CHECK_OK(sp_option_get_info(SP_OPTION_STREAM_POLICY, &info));
    CHECK_EQ_STR(info.value, "fail");
    CHECK_EQ_STR(info.choices, "share|wait|fail");
    CHECK_OK(sp_option_get_info(SP_OPTION_PLANS, &info));
    CHECK_EQ_STR(info.value, "32"); /* the default: the value is not allowed */
    CHECK_EQ_INT(info.origin, SP_OPTION_REFUSED);
    unset_all();
}

TEST(a_listing_ends_behind_the_last_option)
{
    sp_option_info info;
    CHECK_STATUS(sp_option_get_info(SP_OPTION_COUNT, &info), SP_NOT_FOUND);
    CHECK_MESSAGE("none with index");
    CHECK_STATUS(sp_option_get_info(UINT32_MAX, &info), SP_NOT_FOUND);
    CHECK_STATUS(sp_option_get_info(0, NULL), SP_INVALID);
}

TEST_MAIN
