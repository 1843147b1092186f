/* SPDX-License-Identifier: Apache-2.0 */
#include "speech_segments.h"

#include <stdbool.h>

/* In windows of 32 ms: the least that is 100 ms and 250 ms. */
#define MIN_PAUSE 4
#define MIN_SPEECH 8

/* The window after the last one of the speech that begins at `first`: that of the first pause of
 * MIN_PAUSE windows. A pause begins below SPEECH_ENDS and lasts until SPEECH_BEGINS. */
static size_t speech_end(const float *probabilities, size_t count, size_t first)
{
    bool is_pause = false;
    size_t pause = 0;
    for (size_t i = first; i < count; i++) {
        if (probabilities[i] >= SPEECH_BEGINS) is_pause = false;
        if (!is_pause && probabilities[i] < SPEECH_ENDS) {
            is_pause = true;
            pause = i;
        }
        if (is_pause && i + 1 - pause >= MIN_PAUSE) return pause;
    }
    return is_pause ? pause : count;
}

size_t speech_segments_find(const float *probabilities, size_t count, speech_segment *segments,
                            size_t max)
{
    size_t found = 0;
    for (size_t i = 0; i < count && found < max; i++) {
        if (!(probabilities[i] >= SPEECH_BEGINS)) continue;
        const size_t end = speech_end(probabilities, count, i);
        if (end - i >= MIN_SPEECH) segments[found++] = (speech_segment){i, end};
        i = end;
    }
    return found;
}
