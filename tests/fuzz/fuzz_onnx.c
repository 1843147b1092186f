/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a model file: an error, or a summary of it; an error, or a graph; and if its inputs
 * are small, a plan that satisfies its invariants and runs; and if its rows are separable, a batch
 * that has the bits of its rows. */
#include <stdlib.h>
#include <string.h>

#include <streampool/model_file.h>

#include "fuzz.h"
#include "plan/plan_rows.h"

enum { MAX_PORTS = 8, MAX_DIM = 16, ROWS = 3 };

/* Chooses small inputs that fit the ports, with a size for free dimensions; false if there are too
 * many or they are too large. */
static bool choose_inputs(const sp_graph *graph, int64_t size, sp_plan_input *inputs)
{
    if (graph->input_count > MAX_PORTS || graph->output_count > MAX_PORTS) return false;
    for (uint32_t i = 0; i < graph->input_count; i++) {
        const sp_graph_port *port = &graph->inputs[i];
        inputs[i] = (sp_plan_input){.dtype = port->dtype == SP_DTYPE_NONE ? SP_F32 : port->dtype};
        inputs[i].shape.rank = port->has_shape ? port->rank : 2;
        for (uint32_t d = 0; d < inputs[i].shape.rank; d++) {
            const int64_t dim = port->has_shape ? port->dims[d] : 2;
            if (dim > MAX_DIM) return false;
            inputs[i].shape.dims[d] = dim < 0 ? size : dim;
        }
    }
    return true;
}

/* Limits plans to a few megabytes and a few thousand tiles, since fuzzing needs many short runs. */
static bool is_small(const sp_graph_plan *plan)
{
    uint64_t bytes = plan->arena_bytes, tiles = 0;
    /* The first partial plan outputs all values that the rest needs, of any number. */
    if (plan->output_count > MAX_PORTS) return false;
    for (uint32_t i = 0; i < plan->input_count; i++) bytes += plan->inputs[i].bytes;
    for (uint32_t i = 0; i < plan->output_count; i++) bytes += plan->outputs[i].bytes;
    for (uint32_t i = 0; i < plan->step_count; i++) {
        const sp_plan_step *step = &plan->steps[i];
        sp_tiling tiling;
        plan->kernels[step->kernel].tiling(step->constants, &tiling);
        tiles += (uint64_t)tiling.grid[0] * tiling.grid[1] * tiling.grid[2];
    }
    return bytes < 4u << 20 && tiles < 4096;
}

static void run(const sp_graph_plan *plan)
{
    void *inputs[MAX_PORTS] = {0}, *outputs[MAX_PORTS] = {0};
    /* Of exactly the plan's sizes, so that AddressSanitizer reports accesses beyond. */
    void *arena = aligned_alloc(64, (size_t)plan->arena_bytes + 64 - plan->arena_bytes % 64);
    for (uint32_t i = 0; i < plan->input_count; i++) {
        inputs[i] = calloc(1, (size_t)plan->inputs[i].bytes + (plan->inputs[i].bytes == 0));
    }
    for (uint32_t i = 0; i < plan->output_count; i++) {
        outputs[i] = malloc((size_t)plan->outputs[i].bytes + (plan->outputs[i].bytes == 0));
    }
    (void)sp__plan_run_reference(plan, (const void *const *)inputs, outputs, arena);
    for (int i = 0; i < MAX_PORTS; i++) {
        free(inputs[i]);
        free(outputs[i]);
    }
    free(arena);
}

/* ---- rows ---- */

/* Memory of one run, of exactly the plan's sizes. */
typedef struct ports {
    void *inputs[MAX_PORTS], *outputs[MAX_PORTS];
} ports;

static void *allocate(uint64_t bytes)
{
    void *memory = calloc(1, (size_t)bytes + (bytes == 0));
    if (memory == NULL) abort();
    return memory;
}

static void ports_init(const sp_graph_plan *plan, ports *out)
{
    *out = (ports){0};
    for (uint32_t i = 0; i < plan->input_count; i++) {
        out->inputs[i] = allocate(plan->inputs[i].bytes);
    }
    for (uint32_t i = 0; i < plan->output_count; i++) {
        out->outputs[i] = allocate(plan->outputs[i].bytes);
    }
}

static void ports_deinit(ports *all)
{
    for (int i = 0; i < MAX_PORTS; i++) {
        free(all->inputs[i]);
        free(all->outputs[i]);
    }
}

/* Copies a row of a batch, [outer, ROWS, inner], from or to a tensor of one row. */
static void copy_row(const sp_rows_value *value, const sp_plan_tensor *tensor, char *many,
                     char *single, uint64_t row, bool to_many)
{
    const uint64_t own = value->inner * sp_dtype_bytes(tensor->dtype);
    const uint64_t piece = value->kind == SP_ROWS_BATCHED ? own : tensor->bytes;
    const uint64_t rows = value->kind == SP_ROWS_BATCHED ? ROWS : 1;
    for (uint64_t at = 0; at < tensor->bytes; at += piece) {
        char *in_many = many + at * rows + (rows > 1 ? row * piece : 0);
        memcpy(to_many ? in_many : single + at, to_many ? single + at : in_many, (size_t)piece);
    }
}

/* Small numbers, which are other in each row of a batch. */
static void fill_input(const sp_plan_tensor *tensor, uint64_t row, void *out)
{
    const uint64_t size = sp_dtype_bytes(tensor->dtype);
    for (uint64_t i = 0; i < tensor->bytes / size; i++) {
        const float number = (float)((i * 7 + row * 5) % 17) / 4 - 2;
        const uint64_t bits = (i + row) % 2;
        memcpy((char *)out + i * size, tensor->dtype == SP_F32 ? (const void *)&number : &bits,
               (size_t)size);
    }
}

static sp_status run_ports(const sp_graph_plan *plan, ports *all)
{
    void *arena = aligned_alloc(64, (size_t)plan->arena_bytes + 64 - plan->arena_bytes % 64);
    const sp_status status =
        sp__plan_run_reference(plan, (const void *const *)all->inputs, all->outputs, arena);
    free(arena);
    return status;
}

/* A batch fails if one of its rows fails; else it has their bits. */
static void compare_rows(const sp_graph_plan *many, const sp_graph_plan *single,
                         const sp_rows_value *inputs, const sp_rows_value *outputs)
{
    ports batch, rows[ROWS];
    bool has_failed = false;
    ports_init(many, &batch);
    for (uint64_t row = 0; row < ROWS; row++) {
        ports_init(single, &rows[row]);
        for (uint32_t i = 0; i < single->input_count; i++) {
            const bool is_batched = inputs[i].kind == SP_ROWS_BATCHED;
            fill_input(&single->inputs[i], is_batched ? row : 0, rows[row].inputs[i]);
            copy_row(&inputs[i], &single->inputs[i], batch.inputs[i], rows[row].inputs[i], row,
                     true);
        }
        has_failed |= run_ports(single, &rows[row]) != SP_OK;
    }
    if ((run_ports(many, &batch) != SP_OK) != has_failed) abort();
    for (uint64_t row = 0; row < ROWS; row++) {
        for (uint32_t i = 0; i < single->output_count && !has_failed; i++) {
            const sp_plan_tensor *tensor = &single->outputs[i];
            char *found = allocate(tensor->bytes);
            copy_row(&outputs[i], tensor, batch.outputs[i], found, row, false);
            if (memcmp(found, rows[row].outputs[i], (size_t)tensor->bytes) != 0) abort();
            free(found);
        }
        ports_deinit(&rows[row]);
    }
    ports_deinit(&batch);
}

static void prove_rows(const sp_graph *graph)
{
    sp_plan_input inputs[MAX_PORTS], many_inputs[MAX_PORTS];
    sp_rows_value rows[MAX_PORTS], outputs[MAX_PORTS];
    sp_rows_proof proof;
    const sp_plan_request request = {.inputs = inputs, .input_count = graph->input_count};
    const sp_rows_search search = {.inputs = many_inputs, .rows = rows};
    const sp_graph_plan *single = NULL, *many = NULL;
    if (!choose_inputs(graph, 1, inputs)) return;
    if (sp__plan_find_rows(graph, &request, ROWS, &search, outputs, &proof) != SP_OK) return;
    if (!proof.is_separable) return;
    const sp_plan_request many_request = {.inputs = many_inputs,
                                          .input_count = graph->input_count,
                                          .is_any_size = true,
                                          .reshapes = proof.reshapes,
                                          .repeats = proof.repeats,
                                          .reshape_count = proof.reshape_count,
                                          .repeat_count = proof.repeat_count};
    const bool has_plans = sp__plan_compile(graph, &request, &single) == SP_OK &&
                           sp__plan_compile(graph, &many_request, &many) == SP_OK;
    if (has_plans && sp__plan_check(many) != SP_OK) abort();
    if (has_plans && is_small(many)) compare_rows(many, single, rows, outputs);
    sp__plan_destroy(single);
    sp__plan_destroy(many);
}

/* ---- the target ---- */

/* Checks that every operator has a name and a count. */
static void summarize(const uint8_t *data, size_t size)
{
    sp_model_file file;
    sp_model_file_op op;
    sp_model_file_port port;
    if (sp_model_file_open_memory(data, size, &file) != SP_OK) return;
    for (uint32_t i = 0; sp_model_file_get_op(file, i, &op) == SP_OK; i++) {
        if (op.count == 0 || strlen(op.name) + strlen(op.domain) > size) abort();
    }
    for (uint32_t i = 0; sp_model_file_get_input(file, i, &port) == SP_OK; i++) {
        if (port.rank > SP_MAX_RANK || strlen(port.name) > size) abort();
    }
    if (sp_model_file_release(file) != SP_OK) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const sp_graph *graph;
    summarize(data, size);
    if (sp__graph_load(data, size, &graph) != SP_OK) return 0;
    sp_plan_input inputs[MAX_PORTS];
    const sp_plan_request request = {.inputs = inputs, .input_count = graph->input_count};
    const sp_graph_plan *plan = NULL;
    if (choose_inputs(graph, 2, inputs) && sp__plan_compile(graph, &request, &plan) == SP_OK) {
        if (sp__plan_check(plan) != SP_OK) abort();
        if (is_small(plan)) run(plan);
    }
    sp__plan_destroy(plan);
    prove_rows(graph);
    sp__graph_destroy(graph);
    return 0;
}
