/* SPDX-License-Identifier: Apache-2.0 */
/* Batch queues. */
#ifndef SP_PYTHON_BATCH_QUEUE_HPP
#define SP_PYTHON_BATCH_QUEUE_HPP

#include <nanobind/nanobind.h>

#include <streampool/batch.h>

namespace py
{

class BatchQueue
{
  public:
    BatchQueue(sp_model model, const sp_batch_queue_options &options);
    ~BatchQueue()
    {
        sp_batch_queue_release(handle);
    }
    BatchQueue(const BatchQueue &) = delete;
    BatchQueue &operator=(const BatchQueue &) = delete;

    void check_open() const;
    void close();

    sp_batch_queue handle = {};
};

void bind_batch_queue(nanobind::module_ &m);

} // namespace py

#endif
