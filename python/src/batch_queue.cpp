/* SPDX-License-Identifier: Apache-2.0 */
#include "batch_queue.hpp"

#include <new>

#include "errors.hpp"
#include "gil.hpp"
#include "model.hpp"

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
    queue.check_call(sp_batch_queue_get_statistics(queue.open_handle(), &info));
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

sp_batch_queue created(const Model &model, const sp_batch_queue_options &options)
{
    sp_batch_queue queue;
    model.check_call(sp_batch_queue_create(model.open_handle(), &options, &queue));
    return queue;
}

} // namespace

BatchQueue::BatchQueue(const Model &model, const sp_batch_queue_options &options)
    : Owned(created(model, options), "the batch queue was closed")
{
}

void bind_batch_queue(nb::module_ &m)
{
    nb::class_<BatchQueue>(m, "BatchQueue", "Runs of one model that are computed as batches.")
        .def("__init__",
             [](BatchQueue *self, const Model &model, uint32_t max_batch, int64_t max_delay_ns,
                uint32_t workers, uint32_t max_waiting, bool refuse_when_full) {
                 const auto options =
                     options_of(max_batch, max_delay_ns, workers, max_waiting, refuse_when_full);
                 new (self) BatchQueue(model, options);
             })
        .def("configure",
             [](BatchQueue &queue, uint32_t max_batch, int64_t max_delay_ns, uint32_t workers,
                uint32_t max_waiting, bool refuse_when_full) {
                 const auto options =
                     options_of(max_batch, max_delay_ns, workers, max_waiting, refuse_when_full);
                 const sp_batch_queue handle = queue.open_handle();
                 queue.check_call(
                     unlocked([&] { return sp_batch_queue_configure(handle, &options); }));
             })
        .def("flush",
             [](BatchQueue &queue) {
                 const sp_batch_queue handle = queue.open_handle();
                 queue.check_call(unlocked([&] { return sp_batch_queue_flush(handle); }));
             })
        .def("close", &BatchQueue::close)
        .def("statistics", statistics_of);
}

} // namespace py
