/* SPDX-License-Identifier: Apache-2.0 */
/* Status codes: names, texts, values that must not change. */
#include <streampool/status.h>

#include <string.h>

#include "support/test.h"

TEST(every_code_has_its_name_and_text){
#define CHECK_CODE(code, value, text)                                                              \
    CHECK_EQ_STR(sp_status_name(code), #code);                                                     \
    CHECK_EQ_STR(sp_status_text(code), text);                                                      \
    CHECK_EQ_INT(code, value);
    SP_STATUS_LIST(CHECK_CODE)
#undef CHECK_CODE
}

TEST(names_and_texts_differ_from_each_other)
{
    for (int a = SP_OK; a <= SP_INTERNAL; ++a) {
        for (int b = SP_OK; b < a; ++b) {
            CHECK(strcmp(sp_status_name((sp_status)a), sp_status_name((sp_status)b)) != 0);
            CHECK(strcmp(sp_status_text((sp_status)a), sp_status_text((sp_status)b)) != 0);
        }
    }
}

TEST(values_that_are_no_codes_are_unknown)
{
    CHECK_EQ_STR(sp_status_name((sp_status)(SP_INTERNAL + 1)), "SP_UNKNOWN");
    CHECK_EQ_STR(sp_status_name((sp_status)-1), "SP_UNKNOWN");
    CHECK_EQ_STR(sp_status_text((sp_status)12345), "unknown status");
}

TEST_MAIN
