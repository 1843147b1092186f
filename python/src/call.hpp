/* SPDX-License-Identifier: Apache-2.0 */
/* One run: the caller's arrays, held until it is done, as the library's tensors; and its outputs as
 * arrays. */
#ifndef SP_PYTHON_CALL_HPP
#define SP_PYTHON_CALL_HPP

#include <nanobind/nanobind.h>

#include <memory>
#include <utility>
#include <vector>

#include "model.hpp"

namespace py
{

/* Objects of which there are few: the first ones without an allocation. Never moved. */
template <class T, uint32_t inline_count = 6> class Few
{
  public:
    T *make(uint32_t count)
    {
        if (count > inline_count) heap.reset(new T[count]());
        return data();
    }
    T *data()
    {
        return heap ? heap.get() : own;
    }
    T &operator[](uint32_t i)
    {
        return data()[i];
    }

  private:
    T own[inline_count] = {};
    std::unique_ptr<T[]> heap;
};

class Call
{
  public:
    /* `keeper` keeps the model, where the caller does not. */
    explicit Call(Model &of, nanobind::object keeper = {}) : model(&of), owner(std::move(keeper)) {}
    ~Call();
    Call(const Call &) = delete;
    Call &operator=(const Call &) = delete;

    /* False: an input is no contiguous buffer of the model's dtype, and must be converted first.
     * Raises TypeError for a wrong count or name. `is_raw`: bf16 inputs are given as uint16. */
    bool take_inputs(const nanobind::tuple &values, const nanobind::dict &named, bool is_raw);
    /* The outputs to request: None is all, a tuple one for each (None: a new array), a dict some by
     * name. The results are a tuple, for a dict in its order. */
    void take_outputs(nanobind::handle given);

    /* Waits for the run. */
    void run();
    /* The arrays of a run that has succeeded: one if `is_single` and the model has one output. */
    nanobind::object results(bool is_single);
    /* For results of a run that was submitted: what the future tells of each output. */
    sp_status take_from(sp_future future);
    void free_allocated();
    /* Gives the caller's memory back before the end of the object. */
    void release_views();

    Model *model;
    nanobind::object owner;
    uint32_t input_count = 0, output_count = 0;
    Few<sp_host_tensor> inputs, outputs;

  private:
    void take_input(uint32_t index, nanobind::handle value, bool is_raw, const char **refused);
    void take_named(const nanobind::dict &named, bool is_raw, const char **refused);
    void take_new_output(uint32_t place, const OutputShapes *known, uint32_t index);
    void take_given_output(uint32_t place, const OutputShapes *known, uint32_t index,
                           nanobind::handle array);
    void take_output(uint32_t place, uint32_t index, nanobind::handle array);
    void hold(uint32_t place, nanobind::handle array);
    sp_status run_once();
    bool has_other_sizes(sp_status status);
    bool let_library_allocate();
    void check_given_shapes();
    void learn_shapes();

    Few<Py_buffer, 8> views; /* inputs, then outputs; `obj` is NULL if there is none */
    uint32_t view_count = 0;
    Few<nanobind::object> arrays; /* of each output; null: in memory of the library */
    /* Of an array of the caller: its shape, which the run writes over in `outputs`. */
    struct Given {
        bool is_given;
        uint32_t rank;
        int64_t shape[SP_MAX_RANK];
    };
    Few<Given> given;
    Few<uint32_t> output_index; /* in the model */
    std::vector<int64_t> key;
    const OutputShapes *known = nullptr;
    bool has_key = false;
};

void bind_call(nanobind::module_ &m);

} // namespace py

#endif
