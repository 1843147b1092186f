/* SPDX-License-Identifier: Apache-2.0 */
/* Batch queues. */
#ifndef SP_PYTHON_BATCH_QUEUE_HPP
#define SP_PYTHON_BATCH_QUEUE_HPP

#include <nanobind/nanobind.h>

#include <atomic>

#include <streampool/batch.h>

namespace py
{

class BatchQueue
{
  public:
    BatchQueue(sp_model model, const sp_batch_queue_options &options);
    ~BatchQueue()
    {
        sp_batch_queue_release(handle.load());
    }
    BatchQueue(const BatchQueue &) = delete;
    BatchQueue &operator=(const BatchQueue &) = delete;

    /* SP_CLOSED as an exception after close(). */
    sp_batch_queue open_handle() const;
    void close();

  private:
    std::atomic<sp_batch_queue> handle; /* close() makes it zero, while other threads may use it */
};

void bind_batch_queue(nanobind::module_ &m);

} // namespace py

#endif
