/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/macros.h"
#include "exec/partial/partial_run_build.h"

sp_status sp__partial_body_check_trips(const sp_partial_run *run, uint64_t count)
{
    const sp_run_limits *limits = &run->model->limits;
    if (count <= limits->trips - run->trip_count) return SP_OK;
    return sp__fail(SP_EXHAUSTED,
                    "the run has computed %" PRIu64
                    " iterations of Loop and Scan and needs %" PRIu64 " more; %s allows %" PRIu64,
                    run->trip_count, count, limits->trips_name, limits->trips);
}

sp_status sp__partial_body_begin(sp_partial_run *run, const sp_graph_body *body)
{
    SP_TRY(sp__partial_run_check(run));
    SP_TRY(sp__partial_body_check_trips(run, 1));
    run->trip_count++;
    sp__run_values_clear(&run->values, body);
    return SP_OK;
}

sp_status sp__partial_body_set_input(sp_partial_run *run, const sp_graph_slot *slot,
                                     sp_run_value *value)
{
    if (slot->dtype != SP_DTYPE_NONE && slot->dtype != value->dtype) {
        const sp_dtype dtype = value->dtype;
        sp__run_value_release(&run->values, value);
        return sp__fail(SP_MISMATCH, "input '%s' of the body is of type %s, the file declares %s",
                        run->graph->values[slot->value].name, sp_dtype_name(dtype),
                        sp_dtype_name(slot->dtype));
    }
    sp__run_values_set(&run->values, slot->value, value);
    *value = (sp_run_value){0};
    return SP_OK;
}

sp_status sp__partial_body_set_scalar(sp_partial_run *run, const sp_graph_slot *slot,
                                      sp_dtype dtype, const void *element)
{
    const sp_shape shape = {.rank = slot->shape.rank == 1 ? 1 : 0, .dims = {1}};
    sp_run_value value;
    void *data;
    SP_TRY(sp__run_value_create(&run->values, dtype, &shape, &value, &data));
    memcpy(data, element, sp_dtype_bytes(dtype));
    return sp__partial_body_set_input(run, slot, &value);
}

sp_status sp__partial_body_output(const sp_partial_run *run, uint32_t index, sp_run_value *out)
{
    sp_run_value value;
    SP_TRY(sp__partial_run_value(run, index, &value));
    *out = sp__run_value_retain(&value);
    out->is_known = false;
    return SP_OK;
}

static sp_status check_rank(const sp_shape *shape)
{
    if (shape->rank < SP_MAX_RANK) return SP_OK;
    return sp__fail(SP_UNSUPPORTED,
                    "outputs of rank %d cannot be stacked: that is the highest rank", SP_MAX_RANK);
}

sp_status sp__partial_body_widened_axis(const sp_shape *shape, int64_t axis, uint32_t *out)
{
    SP_TRY(check_rank(shape));
    const sp_shape widened = {.rank = shape->rank + 1};
    return sp__shape_axis(&widened, axis, out);
}

sp_status sp__partial_body_widen(const sp_shape *shape, uint32_t axis, int64_t count, sp_shape *out)
{
    SP_TRY(check_rank(shape));
    *out = (sp_shape){.rank = shape->rank + 1};
    for (uint32_t i = 0; i < shape->rank; i++) out->dims[i < axis ? i : i + 1] = shape->dims[i];
    out->dims[axis] = count;
    return SP_OK;
}

sp_status sp__partial_body_empty_output(sp_partial_run *run, const sp_graph_slot *slot,
                                        int64_t count, uint32_t axis, sp_run_value *out)
{
    const char *name = run->graph->values[slot->value].name;
    sp_shape shape;
    void *data;
    *out = (sp_run_value){0};
    if (slot->dtype == SP_DTYPE_NONE) {
        return sp__fail(
            SP_UNSUPPORTED,
            "the body is not executed, and the file does not declare the type of its output '%s'",
            name);
    }
    SP_TRY(sp__partial_body_widen(&slot->shape, axis <= slot->shape.rank ? axis : slot->shape.rank,
                                  count, &shape));
    SP_TRY(sp__run_value_create(&run->values, slot->dtype, &shape, out, &data));
    memset(data, 0, (size_t)out->bytes);
    return SP_OK;
}
