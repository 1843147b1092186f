/* SPDX-License-Identifier: Apache-2.0 */
#include "support/rows_model.h"

#include <stdlib.h>
#include <string.h>

#include "support/rows_case.h"
#include "support/test.h"

void rows_model_init(const sp_graph *graph, const sp_array *inputs, rows_model *out)
{
    *out = (rows_model){.graph = graph};
    for (uint32_t i = 0; i < graph->input_count; i++) {
        const sp_array *input = &inputs[i];
        const bool is_known = graph->inputs[i].determines_shapes && input->bytes <= 512;
        out->inputs[i] = *input;
        out->single[i] = (sp_plan_input){
            .dtype = input->dtype, .shape = input->shape, .data = is_known ? input->data : NULL};
    }
}

void rows_model_deinit(rows_model *model)
{
    data_free(model->inputs, ROWS_PORTS);
    sp__graph_destroy(model->graph);
}

void rows_model_prove(rows_model *model, uint64_t rows)
{
    const sp_plan_request single = {.inputs = model->single,
                                    .input_count = model->graph->input_count};
    const sp_rows_search search = {.inputs = model->many, .rows = model->input_rows};
    CHECK_OK(sp__plan_find_rows(model->graph, &single, rows, &search, model->output_rows,
                                &model->proof));
}

/* `is_for_cpu`: with the layouts and strides of plans for the CPU. */
static const sp_graph_plan *compile(const rows_model *model, bool is_many, bool is_for_cpu)
{
    const sp_rows_proof *proof = &model->proof;
    const sp_plan_request request = {.inputs = is_many ? model->many : model->single,
                                     .input_count = model->graph->input_count,
                                     .is_any_size = true,
                                     .reshapes = proof->reshapes,
                                     .repeats = proof->repeats,
                                     .reshape_count = is_many ? proof->reshape_count : 0,
                                     .repeat_count = is_many ? proof->repeat_count : 0,
                                     .is_blocked = is_for_cpu,
                                     .is_strided = is_for_cpu};
    const sp_graph_plan *plan = NULL;
    CHECK_OK(sp__plan_compile(model->graph, &request, &plan));
    if (plan != NULL) CHECK_OK(sp__plan_check(plan));
    return plan;
}

/* Values near the input's, other in each row; integers stay valid. */
static void row_draw(data_random *random, const sp_array *from, sp_array *row)
{
    memcpy(row->data, from->data, (size_t)from->bytes);
    if (from->dtype != SP_F32) return;
    float *values = row->data;
    for (uint64_t i = 0; i < from->bytes / sizeof *values; i++) {
        values[i] += 0.01f * data_next_float(random);
    }
}

/* One row's outputs against the batch's. */
static bool row_agrees(const rows_model *model, const sp_array *many, const sp_array *single,
                       uint64_t rows, uint64_t row)
{
    bool is_same = true;
    for (uint32_t i = 0; i < model->graph->output_count; i++) {
        sp_array wanted = {0};
        CHECK_OK(sp__array_init(&wanted, single[i].dtype, &single[i].shape));
        rows_copy(&model->output_rows[i], &many[i], rows, row, &wanted, 1, 0, 1);
        CHECK_EQ_MEM(wanted.data, single[i].data, (size_t)wanted.bytes);
        is_same = is_same && memcmp(wanted.data, single[i].data, (size_t)wanted.bytes) == 0;
        sp__array_deinit(&wanted);
    }
    return is_same;
}

/* The inputs of a batch, and of its rows: `rows` times ROWS_PORTS arrays. */
static void inputs_draw(const rows_model *model, uint64_t rows, sp_array *many, sp_array *single)
{
    data_random random = {rows};
    for (uint32_t i = 0; i < model->graph->input_count; i++) {
        CHECK_OK(sp__array_init(&many[i], model->many[i].dtype, &model->many[i].shape));
        for (uint64_t row = 0; row < rows; row++) {
            const bool is_batched = model->input_rows[i].kind == SP_ROWS_BATCHED;
            sp_array *alone = &single[row * ROWS_PORTS + i];
            CHECK_OK(sp__array_init(alone, model->single[i].dtype, &model->single[i].shape));
            if (is_batched) row_draw(&random, &model->inputs[i], alone);
            else memcpy(alone->data, model->inputs[i].data, (size_t)alone->bytes);
            rows_copy(&model->input_rows[i], alone, 1, 0, &many[i], rows, row, 1);
        }
    }
}

static bool plans_agree(const rows_model *model, const sp_graph_plan *many_plan,
                        const sp_graph_plan *single_plan, uint64_t rows, sp_array *single)
{
    sp_array many[ROWS_PORTS] = {0}, many_out[ROWS_OUTPUTS] = {0};
    bool is_same;
    inputs_draw(model, rows, many, single);
    const sp_status status = data_run_plan(many_plan, many, many_out);
    CHECK_OK(status);
    is_same = status == SP_OK;
    for (uint64_t row = 0; row < rows && is_same; row++) {
        sp_array out[ROWS_OUTPUTS] = {0};
        const sp_status ran = data_run_plan(single_plan, &single[row * ROWS_PORTS], out);
        CHECK_OK(ran);
        is_same = ran == SP_OK && row_agrees(model, many_out, out, rows, row);
        data_free(out, ROWS_OUTPUTS);
    }
    data_free(many, ROWS_PORTS);
    data_free(many_out, ROWS_OUTPUTS);
    return is_same;
}

/* The batch's plan, for the CPU or not, against the plan of one row without layouts. */
static bool check_plan(const rows_model *model, uint64_t rows, bool is_for_cpu)
{
    const sp_graph_plan *many = compile(model, true, is_for_cpu);
    const sp_graph_plan *single = compile(model, false, false);
    sp_array *inputs = calloc((size_t)rows * ROWS_PORTS, sizeof *inputs);
    bool is_same = many != NULL && single != NULL && inputs != NULL;
    if (is_same) is_same = plans_agree(model, many, single, rows, inputs);
    if (inputs != NULL) data_free(inputs, (uint32_t)rows * ROWS_PORTS);
    free(inputs);
    sp__plan_destroy(many);
    sp__plan_destroy(single);
    return is_same;
}

bool rows_model_check(const rows_model *model, uint64_t rows)
{
    return check_plan(model, rows, false) && check_plan(model, rows, true);
}

/* ---- small models ---- */

void rows_add_floats(writer *graph, const char *name, const sp_shape *shape)
{
    data_random random = {.state = strlen(name) + sp__shape_count(shape)};
    sp_array array = data_floats(&random, shape);
    writer tensor = make_tensor(name, ONNX_F32, shape->dims, shape->rank, array.data, array.bytes);
    write_message(graph, GRAPH_INITIALIZER_FIELD, &tensor);
    sp__array_deinit(&array);
}

void rows_add_ints(writer *graph, const char *name, const int64_t *values, int64_t count)
{
    writer tensor = make_tensor(name, ONNX_I64, &count, 1, values, (size_t)count * sizeof *values);
    write_message(graph, GRAPH_INITIALIZER_FIELD, &tensor);
}

void rows_add_input(writer *graph, const char *name, int64_t dtype, const sp_shape *shape)
{
    add_input(graph, name, dtype, shape->dims, (int)shape->rank);
}

void rows_model_make(writer *graph, int64_t opset, rows_model *out)
{
    const sp_graph *loaded = NULL;
    sp_array inputs[ROWS_PORTS] = {0};
    data_random random = {.state = 3};
    writer file = make_model(graph, opset);
    *out = (rows_model){0};
    CHECK_OK(sp__graph_load(file.bytes, file.len, &loaded));
    writer_free(&file);
    if (loaded == NULL) return;
    for (uint32_t i = 0; i < loaded->input_count; i++) {
        const sp_graph_port *port = &loaded->inputs[i];
        sp_shape shape = {.rank = port->rank};
        for (uint32_t k = 0; k < port->rank; k++) {
            shape.dims[k] = port->dims[k] < 0 ? 1 : port->dims[k];
        }
        if (port->dtype == SP_F32) inputs[i] = data_floats(&random, &shape);
        else CHECK_OK(sp__array_init(&inputs[i], port->dtype, &shape));
    }
    rows_model_init(loaded, inputs, out);
}
