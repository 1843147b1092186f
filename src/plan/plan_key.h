/* SPDX-License-Identifier: Apache-2.0 */
/* The key of a plan: everything in a request that the plan depends on, encoded as words. Keys are
 * compared as a whole; the hash is for look-ups. */
#ifndef SP_PLAN_PLAN_KEY_H
#define SP_PLAN_PLAN_KEY_H

#include <stdbool.h>
#include <stdint.h>

#include "plan/plan.h"

/* Words per tensor: dtype and rank in one, then the dimensions. */
#define SP_PLAN_KEY_TENSOR_WORDS (1 + SP_MAX_RANK)
/* Enough for 128 inputs and overrides of the highest rank. A look-up allocates only for more, or
 * for the values of shape-determining inputs. */
#define SP_PLAN_KEY_INLINE_WORDS (2 + 128 * SP_PLAN_KEY_TENSOR_WORDS)

typedef struct sp_plan_key {
    uint64_t *words; /* inline_words, or owned memory */
    uint32_t count;
    uint32_t capacity;
    uint64_t hash; /* never 0 */
    uint64_t inline_words[SP_PLAN_KEY_INLINE_WORDS];
} sp_plan_key;

/* Writes the key of a request. Errors: SP_OUT_OF_MEMORY. */
sp_status sp__plan_key_init(sp_plan_key *key, const sp_plan_request *request);
void sp__plan_key_deinit(sp_plan_key *key);

/* The key of `words`, which must outlive it; not to be passed to deinit. */
void sp__plan_key_borrow(sp_plan_key *key, uint64_t *words, uint32_t count);

/* The request of a key: its `inputs`, of which there are `input_count`, are filled in and may point
 * into the words. A model has one precision, so the key has none, nor has the request. False for
 * one with a subgraph or with overrides. */
bool sp__plan_key_decode(const uint64_t *words, uint32_t count, sp_plan_input *inputs,
                         uint32_t input_count, sp_plan_request *request);

/* Do the words equal the key's? */
bool sp__plan_key_is(const sp_plan_key *key, const uint64_t *words, uint32_t count);

#endif
