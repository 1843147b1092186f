/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/plan_key.h"

#include <string.h>

#include "base/error.h"
#include "base/heap.h"
#include "base/macros.h"

static void key_word(sp_plan_key *key, uint64_t word)
{
    if (key->count < key->capacity) key->words[key->count] = word;
    key->count++;
}

static void key_tensor(sp_plan_key *key, uint64_t port, const sp_plan_input *input)
{
    const uint64_t has_data = input->data != NULL;
    key_word(key, port << 32 | (uint64_t)input->dtype << 16 | has_data << 15 | input->shape.rank);
    for (uint32_t i = 0; i < input->shape.rank; i++) {
        key_word(key, (uint64_t)input->shape.dims[i]);
    }
    if (input->data == NULL) return;
    /* The plan depends on the values, too. */
    const uint64_t bytes = sp__shape_count(&input->shape) * sp_dtype_bytes(input->dtype);
    key_word(key, bytes);
    for (uint64_t at = 0; at < bytes; at += sizeof(uint64_t)) {
        uint64_t word = 0;
        const uint64_t left = bytes - at;
        memcpy(&word, (const char *)input->data + at, left < sizeof word ? left : sizeof word);
        key_word(key, word);
    }
}

/* The subgraph; a flag before it distinguishes such keys from those of the whole model. */
static void key_subgraph(sp_plan_key *key, const sp_plan_subgraph *subgraph)
{
    if (subgraph == NULL) return;
    key_word(key, subgraph->body->first_node);
    key_word(key, subgraph->body->end_value);
    key_word(key, (uint64_t)subgraph->given_count << 32 | subgraph->wanted_count);
    for (uint32_t i = 0; i < subgraph->given_count; i++) key_word(key, subgraph->given[i]);
    for (uint32_t i = 0; i < subgraph->wanted_count; i++) key_word(key, subgraph->wanted[i]);
}

static void key_write(sp_plan_key *key, const sp_plan_request *request)
{
    key->count = 0;
    key_word(key, (uint64_t)(uintptr_t)request->kernels);
    key_word(key, (uint64_t)(request->subgraph != NULL) << 1 | request->is_unfused);
    key_subgraph(key, request->subgraph);
    for (uint32_t i = 0; i < request->input_count; i++) key_tensor(key, i, &request->inputs[i]);
    for (uint32_t i = 0; i < request->override_count; i++) {
        const sp_plan_override *override = &request->overrides[i];
        key_tensor(key, (uint64_t)1 << 31 | override->index, &override->input);
    }
}

static uint64_t key_hash(const sp_plan_key *key)
{
    uint64_t hash = 0x9e3779b97f4a7c15u;
    for (uint32_t i = 0; i < key->count; i++) {
        hash = (hash ^ key->words[i]) * 0xff51afd7ed558ccdu;
        hash ^= hash >> 32;
    }
    return hash != 0 ? hash : 1;
}

sp_status sp__plan_key_init(sp_plan_key *key, const sp_plan_request *request)
{
    key->words = key->inline_words;
    key->capacity = SP_PLAN_KEY_INLINE_WORDS;
    key_write(key, request);
    if (SP_UNLIKELY(key->count > key->capacity)) {
        key->words = sp_malloc(key->count * sizeof *key->words);
        if (key->words == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a plan's key");
        key->capacity = key->count;
        key_write(key, request);
    }
    key->hash = key_hash(key);
    return SP_OK;
}

void sp__plan_key_deinit(sp_plan_key *key)
{
    if (key->words != key->inline_words) sp_free(key->words);
}

/* The tensor at *at, which moves behind it. The values stay in the key. */
static uint64_t key_read_tensor(const uint64_t *words, uint32_t *at, sp_plan_input *input)
{
    const uint64_t head = words[(*at)++];
    input->dtype = (sp_dtype)(head >> 16 & 0xffff);
    input->shape.rank = (uint32_t)(head & 0x7fff);
    for (uint32_t i = 0; i < input->shape.rank; i++) {
        input->shape.dims[i] = (int64_t)words[(*at)++];
    }
    input->data = NULL;
    if ((head >> 15 & 1) == 0) return head >> 32;
    const uint64_t bytes = words[(*at)++];
    input->data = &words[*at];
    *at += (uint32_t)((bytes + sizeof *words - 1) / sizeof *words);
    return head >> 32;
}

bool sp__plan_key_decode(const uint64_t *words, uint32_t count, sp_plan_input *inputs,
                         uint32_t input_count, sp_plan_request *request)
{
    uint32_t at = 2;
    *request = (sp_plan_request){.kernels = (const sp_kernel *)(uintptr_t)words[0],
                                 .is_unfused = (words[1] & 1) != 0,
                                 .inputs = inputs,
                                 .input_count = input_count};
    if (words[1] >> 1 != 0) return false;
    for (uint32_t i = 0; i < input_count; i++) {
        if (at >= count || key_read_tensor(words, &at, &inputs[i]) != i) return false;
    }
    return at == count;
}

void sp__plan_key_borrow(sp_plan_key *key, uint64_t *words, uint32_t count)
{
    key->words = words;
    key->count = key->capacity = count;
    key->hash = key_hash(key);
}

bool sp__plan_key_is(const sp_plan_key *key, const uint64_t *words, uint32_t count)
{
    return key->count == count && memcmp(key->words, words, count * sizeof *words) == 0;
}
