/* SPDX-License-Identifier: Apache-2.0 */
/* The names of inputs and outputs: sorted once, then found by bisection. */
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "graph/graph_build.h"

/* Outputs may share a name; the first of them is found. */
static int by_name(const void *a, const void *b)
{
    const sp_graph_name *x = a;
    const sp_graph_name *y = b;
    const int order = strcmp(x->name, y->name);
    return order != 0 ? order : (x->index > y->index) - (x->index < y->index);
}

static sp_status sort_names(sp_bump *bump, const sp_graph_port *ports, uint32_t count,
                            const sp_graph_name **out)
{
    sp_graph_name *names;
    SP_TRY(sp__bump_array(bump, count, sizeof *names, &names));
    for (uint32_t i = 0; i < count; i++) names[i] = (sp_graph_name){ports[i].name, i};
    if (count > 0) qsort(names, count, sizeof *names, by_name);
    *out = names;
    return SP_OK;
}

sp_status sp__graph_sort_names(sp_graph_builder *builder)
{
    sp_graph *graph = builder->graph;
    sp_bump *bump = &graph->bump;
    SP_TRY(sort_names(bump, graph->inputs, graph->input_count, &graph->input_names));
    SP_TRY(sort_names(bump, graph->defaults, graph->default_count, &graph->default_names));
    return sort_names(bump, graph->outputs, graph->output_count, &graph->output_names);
}

uint32_t sp__graph_name_find(const sp_graph_name *names, uint32_t count, const char *name)
{
    uint32_t low = 0;
    uint32_t high = count; /* names before low are less than `name`, those from high on are not */
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (strcmp(names[middle].name, name) < 0) low = middle + 1;
        else high = middle;
    }
    const bool is_found = low < count && strcmp(names[low].name, name) == 0;
    return is_found ? names[low].index : SP_NO_VALUE;
}
