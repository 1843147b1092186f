/* SPDX-License-Identifier: Apache-2.0 */
/* Many runs as batches: sp_batch_inference, but for its waits, which KeyboardInterrupt ends. */
#include "batch_inference.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <streampool/batch.h>
#include <streampool/future.h>

#include "call.hpp"
#include "errors.hpp"
#include "gil.hpp"

namespace nb = nanobind;

namespace py
{

namespace
{

/* Requests in flight: enough for the largest batches of all workers of a queue. */
constexpr size_t window = 1024;

/* What is in flight uses the requests' arrays, so the destructor waits for it. */
class Inferences
{
  public:
    Inferences(const Model &model, const std::vector<std::unique_ptr<Call>> &of)
        : calls(of), futures(of.size())
    {
        model.check_call(sp_batch_queue_create(model.open_handle(), nullptr, &queue));
    }
    ~Inferences();
    Inferences(const Inferences &) = delete;
    Inferences &operator=(const Inferences &) = delete;

    void run()
    {
        (void)wait_unlocked(-1, [&](int64_t ns) { return run_for(ns); });
        if (first_status != SP_OK) raise(first_status, message.c_str());
    }

  private:
    sp_status run_for(int64_t ns);
    void submit_until(size_t end);
    void end_oldest();
    void fail(size_t index, sp_status status);

    const std::vector<std::unique_ptr<Call>> &calls;
    std::vector<sp_future> futures; /* zero where the submit has failed */
    size_t ended = 0, submitted = 0;
    sp_batch_queue queue = {};
    /* The first request, by index, that has failed. */
    size_t first_failed = 0;
    sp_status first_status = SP_OK;
    std::string message;
};

Inferences::~Inferences()
{
    const Unlocked scope;
    for (size_t i = ended; i < submitted; i++) (void)sp_future_cancel(futures[i]);
    for (size_t i = ended; i < submitted; i++) {
        (void)sp_future_wait(futures[i]);
        (void)sp_future_release(futures[i]);
    }
    (void)sp_batch_queue_release(queue);
}

/* Without the lock. SP_TIMEOUT: requests are left. */
sp_status Inferences::run_for(int64_t ns)
{
    using clock = std::chrono::steady_clock;
    const auto begin = clock::now();
    while (ended < calls.size()) {
        submit_until(std::min(ended + window, calls.size()));
        const auto spent = std::chrono::nanoseconds(clock::now() - begin).count();
        const int64_t rest_ns = ns < 0 ? -1 : std::max<int64_t>(ns - spent, 0);
        const sp_future oldest = futures[ended];
        const bool is_late = oldest.bits != 0 &&
                             sp_future_wait_for(oldest, rest_ns) == SP_TIMEOUT &&
                             sp_future_query(oldest) == SP_NOT_READY;
        if (is_late) return SP_TIMEOUT;
        end_oldest();
    }
    return SP_OK;
}

void Inferences::submit_until(size_t end)
{
    for (; submitted < end; submitted++) {
        Call &call = *calls[submitted];
        const sp_status status =
            sp_batch_queue_submit(queue, nullptr, call.inputs.data(), call.input_count,
                                  call.outputs.data(), call.output_count, &futures[submitted]);
        if (status != SP_OK) fail(submitted, status);
    }
}

void Inferences::end_oldest()
{
    const sp_future future = futures[ended];
    if (future.bits != 0) {
        sp_status status = sp_future_wait(future);
        if (status == SP_OK) status = calls[ended]->take_from(future);
        if (status != SP_OK) fail(ended, status);
        (void)sp_future_release(future);
    }
    ended++;
}

void Inferences::fail(size_t index, sp_status status)
{
    if (first_status != SP_OK && first_failed < index) return;
    first_failed = index;
    first_status = status;
    message = "requests[" + std::to_string(index) + "]: " + sp_last_error();
}

/* A request is a tuple and a dict, converted already where the model needs it. */
std::unique_ptr<Call> call_of(Model &model, nb::handle request)
{
    const auto pair = nb::borrow<nb::tuple>(request);
    auto call = std::make_unique<Call>(model);
    if (!call->take_inputs(nb::cast<nb::tuple>(pair[0]), nb::cast<nb::dict>(pair[1]), true)) {
        raise_type("an input is not of the model's dtype, or not contiguous");
    }
    call->take_outputs(nb::none());
    return call;
}

nb::list batch_inference(Model &model, const nb::iterable &requests)
{
    std::vector<std::unique_ptr<Call>> calls;
    try {
        for (const nb::handle request : requests) calls.push_back(call_of(model, request));
    } catch (nb::python_error &error) {
        error.value().attr("add_note")(nb::str("of requests[{}]").format(calls.size()));
        throw;
    }
    Inferences(model, calls).run();
    nb::list results;
    for (const auto &call : calls) results.append(call->results(true));
    return results;
}

} // namespace

void bind_batch_inference(nb::module_ &m)
{
    m.def("batch_inference", batch_inference);
}

} // namespace py
