/* SPDX-License-Identifier: Apache-2.0 */
#include "support/random_weight.h"

#include <stdlib.h>

#include "support/model_data.h"

void add_random_weight(writer *graph, const char *name, const int64_t *dims, uint32_t rank,
                       uint64_t seed)
{
    data_random random = {seed};
    size_t count = 1;
    for (uint32_t i = 0; i < rank; i++) count *= (size_t)dims[i];
    float *elements = malloc(count * sizeof *elements);
    if (elements == NULL) abort();
    data_fill(&random, elements, count);
    writer tensor = make_tensor(name, 1, dims, rank, elements, count * sizeof *elements);
    write_message(graph, GRAPH_INITIALIZER_FIELD, &tensor);
    free(elements);
}
