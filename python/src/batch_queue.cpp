/* SPDX-License-Identifier: Apache-2.0 */
#include "batch_queue.hpp"

#include <memory>
#include <new>
#include <vector>

#include "call.hpp"
#include "errors.hpp"
#include "gil.hpp"

namespace nb = nanobind;

namespace py
{

namespace
{

sp_batch_queue_options options_of(uint32_t max_batch, int64_t max_delay_ns, uint32_t workers,
                                  uint32_t max_waiting, bool refuse_when_full)
{
    return {.max_batch = max_batch,
            .max_delay_ns = max_delay_ns,
            .workers = workers,
            .max_waiting = max_waiting,
            .refuse_when_full = refuse_when_full};
}

nb::dict statistics_of(const BatchQueue &queue)
{
    sp_batch_queue_statistics info;
    nb::dict all, by_rows;
    queue.check_open();
    check(sp_batch_queue_get_statistics(queue.handle, &info));
#define SP_PY_FIELD(name) all[#name] = info.name
    SP_PY_FIELD(submitted);
    SP_PY_FIELD(done);
    SP_PY_FIELD(failed);
    SP_PY_FIELD(cancelled);
    SP_PY_FIELD(expired);
    SP_PY_FIELD(refused);
    SP_PY_FIELD(batches);
    SP_PY_FIELD(rows);
    SP_PY_FIELD(waiting);
    SP_PY_FIELD(in_flight);
    SP_PY_FIELD(total_wait_ns);
    SP_PY_FIELD(longest_wait_ns);
#undef SP_PY_FIELD
    for (const auto &size : info.by_rows) {
        if (size.batches != 0) by_rows[nb::int_(size.rows)] = size.batches;
    }
    all["by_rows"] = by_rows;
    return all;
}

/* Requests are tuples and dicts, converted already where the model needs it: (values, named). */
nb::list batch_inference(Model &model, const nb::list &requests)
{
    std::vector<std::unique_ptr<Call>> calls;
    std::vector<sp_inference> inferences;
    for (const nb::handle request : requests) {
        const auto pair = nb::borrow<nb::tuple>(request);
        auto call = std::make_unique<Call>(model);
        if (!call->take_inputs(nb::cast<nb::tuple>(pair[0]), nb::cast<nb::dict>(pair[1]), true)) {
            raise_type("an input is not of the model's dtype, or not contiguous");
        }
        call->take_outputs(nb::none());
        inferences.push_back({.inputs = call->inputs.data(),
                              .outputs = call->outputs.data(),
                              .input_count = call->input_count,
                              .output_count = call->output_count,
                              .status = SP_OK});
        calls.push_back(std::move(call));
    }
    const sp_model handle = model.open_handle();
    const auto count = static_cast<uint32_t>(inferences.size());
    check(unlocked([&] { return sp_batch_inference(handle, inferences.data(), count); }));
    nb::list results;
    for (const auto &call : calls) results.append(call->results(true));
    return results;
}

} // namespace

BatchQueue::BatchQueue(sp_model model, const sp_batch_queue_options &options)
{
    check(sp_batch_queue_create(model, &options, &handle));
}

void BatchQueue::check_open() const
{
    if (handle.bits == 0) raise(SP_CLOSED, "the batch queue was closed");
}

void BatchQueue::close()
{
    const sp_batch_queue closed = handle;
    handle = {};
    check(sp_batch_queue_release(closed));
}

void bind_batch_queue(nb::module_ &m)
{
    nb::class_<BatchQueue>(m, "BatchQueue", "Runs of one model that are computed as batches.")
        .def("__init__",
             [](BatchQueue *self, const Model &model, uint32_t max_batch, int64_t max_delay_ns,
                uint32_t workers, uint32_t max_waiting, bool refuse_when_full) {
                 const auto options =
                     options_of(max_batch, max_delay_ns, workers, max_waiting, refuse_when_full);
                 new (self) BatchQueue(model.open_handle(), options);
             })
        .def("configure",
             [](BatchQueue &queue, uint32_t max_batch, int64_t max_delay_ns, uint32_t workers,
                uint32_t max_waiting, bool refuse_when_full) {
                 const auto options =
                     options_of(max_batch, max_delay_ns, workers, max_waiting, refuse_when_full);
                 queue.check_open();
                 check(unlocked([&] { return sp_batch_queue_configure(queue.handle, &options); }));
             })
        .def("flush",
             [](BatchQueue &queue) {
                 queue.check_open();
                 check(unlocked([&] { return sp_batch_queue_flush(queue.handle); }));
             })
        .def("close", &BatchQueue::close)
        .def("statistics", statistics_of);
    m.def("batch_inference", batch_inference);
}

} // namespace py
