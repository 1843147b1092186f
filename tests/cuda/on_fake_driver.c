/* SPDX-License-Identifier: Apache-2.0 */
/* A program that links this uses the fake driver, unless the environment names a driver, also where
 * it is run by itself: on another driver, or without one, its tests would wait for what only the
 * fake one does. */
#include <stdlib.h>

__attribute__((constructor)) static void name_fake_driver(void)
{
    setenv("STREAMPOOL_CUDA_DRIVER", SP_FAKE_CUDA, 0);
}
