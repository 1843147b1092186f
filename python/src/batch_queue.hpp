/* SPDX-License-Identifier: Apache-2.0 */
/* Batch queues. */
#ifndef SP_PYTHON_BATCH_QUEUE_HPP
#define SP_PYTHON_BATCH_QUEUE_HPP

#include <nanobind/nanobind.h>

#include <streampool/batch.h>

#include "model.hpp"
#include "owned.hpp"

namespace py
{

class BatchQueue : public Owned<sp_batch_queue, sp_batch_queue_release>
{
  public:
    BatchQueue(const Model &model, const sp_batch_queue_options &options);
};

void bind_batch_queue(nanobind::module_ &m);

} // namespace py

#endif
