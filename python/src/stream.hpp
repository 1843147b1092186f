/* SPDX-License-Identifier: Apache-2.0 */
/* Streams and events. */
#ifndef SP_PYTHON_STREAM_HPP
#define SP_PYTHON_STREAM_HPP

#include <nanobind/nanobind.h>

#include <streampool/event.h>
#include <streampool/stream.h>

namespace py
{

/* A lease that the object owns, or a handle of a thread's current or default stream. */
class Stream
{
  public:
    Stream(sp_stream stream, bool owns) : handle(stream), is_owned(owns) {}
    ~Stream()
    {
        if (is_owned) sp_stream_release(handle);
    }
    Stream(const Stream &) = delete;
    Stream &operator=(const Stream &) = delete;

    const sp_stream handle;

  private:
    const bool is_owned;
};

class Event
{
  public:
    explicit Event(bool enable_timing);
    ~Event()
    {
        sp_event_release(handle);
    }
    Event(const Event &) = delete;
    Event &operator=(const Event &) = delete;

    sp_event handle = {};
};

void bind_stream(nanobind::module_ &m);

} // namespace py

#endif
