/* SPDX-License-Identifier: Apache-2.0 */
/* Searches the axes of a model's inputs that have the rows of a batch: tries proofs, each up to its
 * first node that is not separable. */
#include <string.h>

#include "base/fpenv.h"
#include "base/macros.h"
#include "plan/plan_rows.h"
#include "plan/rows_single.h"

/* One assignment of axes. In an input that has a dimension of size 1 with the name, that one; else
 * axis number `choice` of those of size 1, the last one if there are fewer. */
typedef struct rows_choice {
    const char *name; /* NULL: none */
    uint32_t first;   /* of the first input */
    uint32_t others;  /* of the others; SP_MAX_RANK: none */
} rows_choice;

/* All proofs of a search. */
typedef struct rows_finder {
    const sp_graph *graph;
    const sp_rows_search *search;
    sp_rows_request request;
    sp_rows_single single;
    uint32_t attempts, most;
    sp_rows_value *outputs;
    sp_rows_proof *proof;
    sp_rows_proof best; /* the one that came farthest */
    uint64_t best_end;
} rows_finder;

static const char *dim_name(const rows_finder *finder, uint32_t input, uint32_t axis)
{
    const sp_graph_port *port = &finder->graph->inputs[input];
    const bool is_free = axis < port->rank && port->dims[axis] < 0;
    return is_free && port->dim_names[axis] != NULL ? port->dim_names[axis] : "";
}

/* SP_MAX_RANK: the input is shared. */
static uint32_t choose_axis(const rows_finder *finder, const rows_choice *choice, uint32_t input)
{
    const sp_plan_input *given = &finder->request.single->inputs[input];
    uint32_t found = SP_MAX_RANK, number = input == 0 ? choice->first : choice->others;
    if (given->data != NULL) return SP_MAX_RANK;
    for (uint32_t i = 0; choice->name != NULL && i < given->shape.rank; i++) {
        if (given->shape.dims[i] != 1) continue;
        if (strcmp(dim_name(finder, input, i), choice->name) == 0) return i;
    }
    if (number == SP_MAX_RANK) return SP_MAX_RANK;
    for (uint32_t i = 0; i < given->shape.rank; i++) {
        if (given->shape.dims[i] != 1) continue;
        found = i;
        if (number-- == 0) break;
    }
    return found;
}

static void input_grow(const sp_plan_input *single, uint32_t axis, uint64_t rows,
                       sp_plan_input *input, sp_rows_value *value)
{
    const sp_shape *shape = &single->shape;
    *input = *single;
    *value = (sp_rows_value){.kind = SP_ROWS_SHARED};
    if (axis == SP_MAX_RANK) return;
    input->shape.dims[axis] = (int64_t)rows;
    value->kind = SP_ROWS_BATCHED;
    value->axis = (int32_t)axis;
    value->inner = sp__shape_range_count(shape, axis + 1, shape->rank);
}

/* How far a proof came: past all nodes, or to a node, or to none. */
static uint64_t proof_end(const rows_finder *finder, const sp_rows_proof *proof)
{
    if (proof->node != SP_NO_NODE) return (uint64_t)proof->node + 1;
    return proof->output != SP_NO_OUTPUT ? (uint64_t)finder->graph->node_count + 1 : 0;
}

static sp_status choice_try(rows_finder *finder, const rows_choice *choice)
{
    const sp_rows_request *request = &finder->request;
    const sp_plan_request *single = request->single;
    bool has_rows = false;
    for (uint32_t i = 0; i < single->override_count; i++) {
        finder->search->rows[single->input_count + i] = (sp_rows_value){.kind = SP_ROWS_SHARED};
    }
    for (uint32_t i = 0; i < single->input_count; i++) {
        const uint32_t axis = choose_axis(finder, choice, i);
        input_grow(&single->inputs[i], axis, request->rows, &finder->search->inputs[i],
                   &finder->search->rows[i]);
        has_rows |= axis != SP_MAX_RANK;
    }
    if (!has_rows) return SP_OK;
    const bool is_first = finder->attempts++ == 0;
    SP_TRY(sp__rows_single_prove(&finder->single, request, finder->outputs, finder->proof));
    const uint64_t end = proof_end(finder, finder->proof);
    if (finder->proof->is_separable || (!is_first && end <= finder->best_end)) return SP_OK;
    finder->best = *finder->proof;
    finder->best_end = end;
    return SP_OK;
}

static uint32_t count_ones(const sp_plan_input *input)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < input->shape.rank; i++) count += input->shape.dims[i] == 1;
    return input->data == NULL ? count : 0;
}

/* Most choices that any input from `first` on has, of those without a dimension called `name`. */
static uint32_t count_choices(const rows_finder *finder, const char *name, uint32_t first,
                              uint32_t end)
{
    const rows_choice choice = {.name = name, .first = SP_MAX_RANK, .others = SP_MAX_RANK};
    uint32_t most = 0;
    for (uint32_t i = first; i < end; i++) {
        if (name != NULL && choose_axis(finder, &choice, i) != SP_MAX_RANK) continue;
        const uint32_t count = count_ones(&finder->request.single->inputs[i]);
        if (count > most) most = count;
    }
    return most;
}

/* Has a proof succeeded, or have all been tried that may be? */
static bool is_done(const rows_finder *finder)
{
    return finder->proof->is_separable || finder->attempts == finder->most;
}

/* The dimensions of one name; inputs without it have their rows along an axis that is searched, or
 * are shared. */
static sp_status name_try(rows_finder *finder, const char *name)
{
    const uint32_t count = count_choices(finder, name, 0, finder->request.single->input_count);
    for (uint32_t i = 0; i < count && !is_done(finder); i++) {
        SP_TRY(choice_try(finder, &(rows_choice){.name = name, .first = i, .others = i}));
    }
    if (is_done(finder)) return SP_OK;
    const rows_choice only = {.name = name, .first = SP_MAX_RANK, .others = SP_MAX_RANK};
    return choice_try(finder, &only);
}

/* Has an earlier dimension of size 1 the same name? */
static bool is_repeated(const rows_finder *finder, uint32_t input, uint32_t axis)
{
    const char *name = dim_name(finder, input, axis);
    for (uint32_t i = 0; i <= input; i++) {
        const sp_shape *shape = &finder->request.single->inputs[i].shape;
        for (uint32_t k = 0; k < (i < input ? shape->rank : axis); k++) {
            if (shape->dims[k] == 1 && strcmp(dim_name(finder, i, k), name) == 0) return true;
        }
    }
    return false;
}

static sp_status names_try(rows_finder *finder)
{
    const sp_plan_request *single = finder->request.single;
    for (uint32_t i = 0; i < single->input_count; i++) {
        const sp_shape *shape = &single->inputs[i].shape;
        for (uint32_t k = 0; k < shape->rank && !is_done(finder); k++) {
            const char *name = dim_name(finder, i, k);
            if (shape->dims[k] != 1 || name[0] == '\0' || is_repeated(finder, i, k)) continue;
            SP_TRY(name_try(finder, name));
        }
    }
    return SP_OK;
}

/* States of recurrent models have the batch behind other dimensions of size 1, so the other inputs
 * are tried with each of their axes. */
static sp_status axes_try(rows_finder *finder)
{
    const uint32_t inputs = finder->request.single->input_count;
    const uint32_t first = count_choices(finder, NULL, 0, inputs > 0 ? 1 : 0);
    const uint32_t others = count_choices(finder, NULL, 1, inputs);
    rows_choice choice = {0};
    for (choice.first = 0; choice.first < first || choice.first == 0; choice.first++) {
        for (choice.others = 0; choice.others < others || choice.others == 0; choice.others++) {
            if (is_done(finder)) return SP_OK;
            SP_TRY(choice_try(finder, &choice));
        }
    }
    choice.others = SP_MAX_RANK;
    for (choice.first = 0; choice.first < first && others > 0; choice.first++) {
        if (is_done(finder)) return SP_OK;
        SP_TRY(choice_try(finder, &choice));
    }
    return SP_OK;
}

/* Reshapes to constant sizes first as they are, then as if they were for one row. */
static sp_status rows_search(rows_finder *finder)
{
    for (int grows_all = 0; grows_all < 2; grows_all++) {
        finder->request.grows_all = grows_all != 0;
        finder->most = finder->attempts + SP_ROWS_ATTEMPTS / 2;
        SP_TRY(names_try(finder));
        if (!is_done(finder)) SP_TRY(axes_try(finder));
        if (finder->proof->is_separable || !finder->single.has_sizes) break;
    }
    if (!finder->proof->is_separable && finder->attempts > 0) *finder->proof = finder->best;
    return SP_OK;
}

sp_status sp__plan_find_rows(const sp_graph *graph, const sp_plan_request *single, uint64_t rows,
                             const sp_rows_search *search, sp_rows_value *outputs,
                             sp_rows_proof *proof)
{
    sp_plan_request many = *single;
    many.inputs = search->inputs;
    many.is_any_size = true;
    rows_finder finder = {
        .graph = graph,
        .search = search,
        .request = {.single = single, .many = &many, .rows = rows, .inputs = search->rows},
        .outputs = outputs,
        .proof = proof};
    *proof = (sp_rows_proof){.node = SP_NO_NODE,
                             .output = SP_NO_OUTPUT,
                             .reason = "no input has a dimension of 1 that can have the rows"};
    SP_TRY(sp__rows_check(rows));
    SP_TRY(sp__rows_single_init(graph, single, &finder.single));
    const sp_fpenv before = sp_fpenv_enter();
    const sp_status status = rows_search(&finder);
    sp_fpenv_leave(before);
    sp__rows_single_deinit(&finder.single);
    return status;
}
