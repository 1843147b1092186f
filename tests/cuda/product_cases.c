/* SPDX-License-Identifier: Apache-2.0 */
/* Random calls of Einsum. */
#include <string.h>

#include "cuda/kernel_case_parts.h"

/* Each letter is an index of a random size. */
static void make_einsum(data_random *random, kernel_case *c)
{
    static const struct {
        const char *equation, *terms[2];
    } all[] = {{"bij,bjk->bik", {"bij", "bjk"}},
               {"bqhd,bkhd->bhqk", {"bqhd", "bkhd"}},
               {"ij,jk->ki", {"ij", "jk"}},
               {"i,jk->kij", {"i", "jk"}},
               {"ij,kl->jl", {"ij", "kl"}},
               {"iij,jk", {"iij", "jk"}},
               {"ij->ji", {"ij"}},
               {"ijk->j", {"ijk"}}};
    static const sp_dtype types[] = {SP_F32, SP_F32, SP_F64, SP_F16, SP_BF16, SP_I32, SP_I64};
    const int64_t which = pick(random, 0, SP_COUNT_OF(all) - 1);
    const sp_dtype dtype = types[pick(random, 0, SP_COUNT_OF(types) - 1)];
    int64_t sizes[26];
    for (int i = 0; i < 26; i++) sizes[i] = pick_size(random, 12);
    c->op = "Einsum";
    c->version = 12;
    c->text = sp__text(all[which].equation);
    c->attributes[c->attribute_count++] = data_attribute_text("equation", &c->text);
    for (int i = 0; i < 2 && all[which].terms[i] != NULL; i++) {
        const char *term = all[which].terms[i];
        sp_shape shape = {.rank = (uint32_t)strlen(term)};
        for (uint32_t k = 0; k < shape.rank; k++) shape.dims[k] = sizes[term[k] - 'a'];
        add_random(c, random, dtype, &shape);
    }
}

const kernel_case_kind product_case_kinds[] = {
    {"einsum", make_einsum, NULL},
    {0},
};
