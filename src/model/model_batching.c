/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a model's rows are separable, for callers: the search of the plan layer on the caller's
 * inputs. */
#include <streampool/model.h>

#include <string.h>

#include "base/error.h"
#include "base/heap.h"
#include "exec/model_object.h"
#include "exec/run_ports.h"
#include "plan/plan_rows.h"

/* Room of one call. */
typedef struct batching_search {
    sp_rows_search search;
    sp_rows_value *outputs;
    sp_rows_proof proof;
} batching_search;

static sp_status search_init(const sp_graph *graph, const sp_run_ports *ports,
                             batching_search *search)
{
    const size_t inputs = (size_t)graph->input_count + ports->override_count;
    search->search.inputs = sp_calloc(inputs, sizeof *search->search.inputs);
    search->search.rows = sp_calloc(inputs, sizeof *search->search.rows);
    search->outputs = sp_calloc(graph->output_count, sizeof *search->outputs);
    const bool has_all =
        search->search.inputs != NULL && search->search.rows != NULL && search->outputs != NULL;
    return has_all ? SP_OK : sp__fail(SP_OUT_OF_MEMORY, "no memory to prove rows separable");
}

static void search_deinit(batching_search *search)
{
    sp_free(search->search.inputs);
    sp_free(search->search.rows);
    sp_free(search->outputs);
}

static void axes_write(const sp_rows_value *rows, uint32_t count, sp_batch_axis *out)
{
    for (uint32_t i = 0; i < count && out != NULL; i++) {
        const bool has_rows = rows[i].kind == SP_ROWS_BATCHED;
        out[i] = (sp_batch_axis){.has_rows = has_rows,
                                 .axis = has_rows ? rows[i].axis : -1,
                                 .inner = has_rows ? rows[i].inner : 0};
    }
}

static void verdict_write(const sp_graph *graph, const sp_rows_proof *proof, sp_model_batching *out)
{
    const bool has_node = !proof->is_separable && proof->node != SP_NO_NODE;
    out->is_separable = proof->is_separable;
    out->reason = proof->is_separable ? "" : proof->reason;
    out->node = has_node ? graph->nodes[proof->node].name : "";
    out->op = has_node ? graph->nodes[proof->node].op->name : "";
    _Static_assert(sizeof out->message == sizeof proof->message, "one message");
    memcpy(out->message, proof->message, sizeof proof->message);
}

static sp_status rows_find(const sp_rt_model *model, const sp_run_ports *ports, uint32_t rows,
                           batching_search *search)
{
    const sp_graph *graph = model->graph;
    const sp_plan_request request = {.inputs = ports->inputs,
                                     .input_count = graph->input_count,
                                     .overrides = ports->overrides,
                                     .override_count = ports->override_count,
                                     .precision = model->plans.precision};
    SP_TRY(search_init(graph, ports, search));
    return sp__plan_find_rows(graph, &request, rows, &search->search, search->outputs,
                              &search->proof);
}

static sp_status batching_find(const sp_rt_model *model, const sp_host_tensor *inputs,
                               uint32_t input_count, uint32_t rows, batching_search *search)
{
    sp_run_ports ports;
    SP_TRY(sp__run_ports_init(&ports, model->graph, input_count));
    sp_status status = sp__run_ports_take_inputs(model->graph, inputs, input_count, false, &ports);
    if (status == SP_OK) status = rows_find(model, &ports, rows, search);
    sp__run_ports_deinit(&ports);
    return status;
}

sp_status sp_model_get_batching(sp_model handle, const sp_host_tensor *inputs, uint32_t input_count,
                                uint32_t rows, sp_model_batching *out, sp_batch_axis *input_axes,
                                sp_batch_axis *output_axes)
{
    if (out == NULL) return sp__fail(SP_INVALID, "sp_model_get_batching: out is NULL");
    SP_TRY(sp__runtime_enter());
    sp_rt_model *model = sp__model_hold(handle);
    if (model == NULL) return SP_INVALID;
    const sp_graph *graph = model->graph;
    batching_search search = {0};
    const sp_status status = batching_find(model, inputs, input_count, rows, &search);
    if (status == SP_OK) verdict_write(graph, &search.proof, out);
    if (status == SP_OK && search.proof.is_separable) {
        axes_write(search.search.rows, graph->input_count, input_axes);
        axes_write(search.outputs, graph->output_count, output_axes);
    }
    search_deinit(&search);
    sp__model_drop(model);
    return status;
}
