/* SPDX-License-Identifier: Apache-2.0 */
/* Names to numbers: found, not found, added twice, and many of them. */
#include "base/name_map.h"

#include <stdio.h>

#include "support/test.h"

TEST(names_are_found_again_and_only_once_added)
{
    enum { COUNT = 5000 };
    static char names[COUNT][16];
    sp_name_map map;
    REQUIRE_OK(sp__name_map_init(&map, COUNT, sp__name_map_key("key", 3)));
    CHECK(sp__name_map_find(&map, (sp_text){0}) == SP_NO_VALUE);
    for (uint32_t i = 0; i < COUNT; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "value/%u", i);
        CHECK(sp__name_map_find(&map, sp__text(names[i])) == SP_NO_VALUE);
        CHECK(sp__name_map_add(&map, sp__text(names[i]), i));
        CHECK(!sp__name_map_add(&map, sp__text(names[i]), i + 1));
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        CHECK_EQ_INT(sp__name_map_find(&map, sp__text(names[i])), i);
    }
    sp__name_map_deinit(&map);
}

TEST(the_key_changes_with_the_bytes)
{
    CHECK(sp__name_map_key("abcdefgh", 8) != sp__name_map_key("abcdefgi", 8));
    CHECK(sp__name_map_key("a", 1) != sp__name_map_key("a\0", 2));
}

TEST(no_two_maps_have_the_key_of_a_file)
{
    sp_name_map a, b;
    REQUIRE_OK(sp__name_map_init(&a, 10, 3));
    REQUIRE_OK(sp__name_map_init(&b, 10, 3));
    CHECK(a.key != 3);
    CHECK(a.key != b.key);
    sp__name_map_deinit(&a);
    sp__name_map_deinit(&b);
}

TEST_MAIN
