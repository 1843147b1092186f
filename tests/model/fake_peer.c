/* SPDX-License-Identifier: Apache-2.0 */
/* primitive: the sleep of a slow run. */
#include "fake_peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool fake_peer_is(const char *fault)
{
    const char *named = getenv("FAKE_PEER");
    return named != NULL && strcmp(named, fault) == 0;
}

int fake_peer_run_threads(void)
{
    const char *number = getenv("FAKE_PEER_THREADS");
    return number != NULL ? (int)strtol(number, NULL, 10) : 1;
}

void fake_peer_begin(void)
{
    static int runs; /* of one thread if they are counted */
    if (fake_peer_is("dies") && ++runs == 3) _exit(1);
    if (!fake_peer_is("slow")) return;
    fprintf(stderr, "a slow run\n");
    sleep(600);
}

void fake_peer_compute(const float *x, float *y, size_t count)
{
    const float error = fake_peer_is("wrong") ? 0.5f : 0;
    for (size_t i = 0; i < count; i++) y[i] = (x[i] > 0 ? x[i] : 0) + error;
}
