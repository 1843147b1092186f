/* SPDX-License-Identifier: Apache-2.0 */
/* On a GPU: products of two computed values in f16 and bf16, alone and in attention. Skipped
 * without one. */
#include <streampool/device.h>

#include "base/macros.h"
#include "rounding_fixture.h"
#include "support/test.h"

TEST(attention_has_the_bits_of_its_steps_and_of_an_image_alone)
{
    static const int64_t lengths[] = {8, 17, 33, 64, 77, 128, 256, 257, 512, 896};
    static const int64_t depths[] = {5, 20, 32, 64, 100, 256};
    sp_device device;
    if (sp_device_open("cuda:0", &device) != SP_OK) SKIP("no GPU");
    for (size_t i = 0; i < SP_COUNT_OF(lengths); i++) {
        for (size_t k = 0; k < SP_COUNT_OF(depths); k++) {
            rounding_check_attention(device, &(rounding_sizes){lengths[i], depths[k]});
        }
    }
    CHECK_OK(sp_device_close(device));
}

TEST(products_of_integers_are_exact)
{
    static const int64_t sizes[][3] = {{1, 1, 1},      {16, 16, 8},    {17, 63, 9},
                                       {64, 64, 64},   {65, 257, 130}, {300, 1000, 77},
                                       {512, 512, 512}};
    sp_device device;
    if (sp_device_open("cuda:0", &device) != SP_OK) SKIP("no GPU");
    for (size_t i = 0; i < SP_COUNT_OF(sizes); i++) {
        rounding_check_product(device, sizes[i][0], sizes[i][1], sizes[i][2]);
    }
    CHECK_OK(sp_device_close(device));
}

TEST_MAIN
