/* SPDX-License-Identifier: Apache-2.0 */
/* A reference to an object of the library that close() gives back, while other threads may use it.
 */
#ifndef SP_PYTHON_OWNED_HPP
#define SP_PYTHON_OWNED_HPP

#include <atomic>

#include "errors.hpp"

namespace py
{

template <class Handle, sp_status (*release)(Handle)> class Owned
{
  public:
    /* `closed`: the text of the exception after close(). */
    Owned(Handle own, const char *closed) : handle(own), closed_text(closed) {}
    ~Owned()
    {
        release(handle.load());
    }
    Owned(const Owned &) = delete;
    Owned &operator=(const Owned &) = delete;

    /* Zero after close(). */
    Handle handle_or_zero() const
    {
        return handle;
    }
    bool is_closed() const
    {
        return handle_or_zero().bits == 0;
    }
    /* SP_CLOSED as an exception after close(). */
    Handle open_handle() const
    {
        const Handle open = handle_or_zero();
        if (open.bits == 0) raise(SP_CLOSED, closed_text);
        return open;
    }
    /* The status of a call on open_handle(). A close during the call makes the handle one that
     * names nothing: SP_CLOSED too. */
    void check_call(sp_status status) const
    {
        if (status == SP_INVALID && is_closed()) raise(SP_CLOSED, closed_text);
        check(status);
    }
    void close()
    {
        check(release(handle.exchange({})));
    }

  private:
    std::atomic<Handle> handle;
    const char *const closed_text;
};

} // namespace py

#endif
