/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a batch: gathered along any axis, and scattered back. */
#include "batch/batch_ports.h"

#include <string.h>

#include "support/test.h"

enum { ROWS = 3, OUTER = 2, CHUNK = 5 };

/* Byte k of row r; no two are equal. */
static unsigned char byte_of(uint32_t row, uint32_t k)
{
    return (unsigned char)(row * OUTER * CHUNK + k + 1);
}

static void check_batch(const sp_batch_port *port, const unsigned char *expected)
{
    unsigned char batch[ROWS * OUTER * CHUNK + 1] = {0};
    for (uint32_t row = 0; row < ROWS; row++) {
        unsigned char one[OUTER * CHUNK];
        for (uint32_t k = 0; k < sizeof one; k++) one[k] = byte_of(row, k);
        sp__batch_port_gather(port, ROWS, row, one, batch);
    }
    CHECK(memcmp(batch, expected, ROWS * OUTER * CHUNK) == 0);
    CHECK_EQ_U64(batch[ROWS * OUTER * CHUNK], 0);
    for (uint32_t row = 0; row < ROWS; row++) {
        unsigned char one[OUTER * CHUNK + 1] = {0};
        sp__batch_port_scatter(port, ROWS, row, batch, one);
        for (uint32_t k = 0; k < OUTER * CHUNK; k++) CHECK_EQ_U64(one[k], byte_of(row, k));
        CHECK_EQ_U64(one[OUTER * CHUNK], 0);
    }
}

TEST(rows_along_the_first_axis_follow_each_other)
{
    const sp_batch_port port = {.is_batched = true, .outer = 1, .chunk = OUTER * CHUNK};
    unsigned char expected[ROWS * OUTER * CHUNK];
    for (uint32_t i = 0; i < sizeof expected; i++) {
        expected[i] = byte_of(i / (OUTER * CHUNK), i % (OUTER * CHUNK));
    }
    check_batch(&port, expected);
}

TEST(rows_along_an_inner_axis_alternate)
{
    const sp_batch_port port = {.is_batched = true, .outer = OUTER, .chunk = CHUNK};
    unsigned char expected[ROWS * OUTER * CHUNK];
    uint32_t at = 0;
    for (uint32_t o = 0; o < OUTER; o++) {
        for (uint32_t row = 0; row < ROWS; row++) {
            for (uint32_t k = 0; k < CHUNK; k++) expected[at++] = byte_of(row, o * CHUNK + k);
        }
    }
    check_batch(&port, expected);
}

TEST_MAIN
