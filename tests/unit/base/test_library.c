/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries loaded at run time. */
#include "base/library.h"

#include <string.h>

#include "support/test.h"

TEST(the_first_library_that_there_is_is_opened)
{
    const char *const names[] = {"libno_such_library.so", "libc.so.6", "libneither.so", NULL};
    sp_library library = {NULL};
    REQUIRE_OK(sp_library_open(names, &library));
    CHECK(library.impl != NULL);
    const sp_library_function found = sp_library_find(library, "strlen");
    REQUIRE(found != NULL);
    size_t (*length)(const char *);
    memcpy(&length, &found, sizeof length);
    CHECK_EQ_U64(length("four"), 4);
}

TEST(a_missing_library_is_an_error_with_the_systems_reason_for_the_last_name)
{
    const char *const names[] = {"libno_such_library.so", "libneither.so", NULL};
    const char *const none[] = {NULL};
    sp_library library = {NULL};
    CHECK_STATUS(sp_library_open(names, &library), SP_NOT_FOUND);
    CHECK_MESSAGE("libneither.so");
    CHECK_MESSAGE("No such file");
    CHECK_STATUS(sp_library_open(none, &library), SP_NOT_FOUND);
    CHECK_MESSAGE("no name");
    CHECK(library.impl == NULL);
}

TEST(a_missing_symbol_is_null)
{
    const char *const names[] = {"libc.so.6", NULL};
    sp_library library = {NULL};
    REQUIRE_OK(sp_library_open(names, &library));
    CHECK(sp_library_find(library, "no_such_symbol") == NULL);
}

TEST_MAIN
