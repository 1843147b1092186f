/* SPDX-License-Identifier: Apache-2.0 */
/* Submitted runs, and the lists on which they come back to Python. */
#ifndef SP_PYTHON_FUTURE_HPP
#define SP_PYTHON_FUTURE_HPP

#include <nanobind/nanobind.h>

#include <streampool/future.h>

#include "completion_list.h"

namespace py
{

class Run;

/* What a library's thread pushes. A thread with the interpreter's lock drains it, which ends it
 * unless it throws: a run's future is completed, with its callbacks. */
struct Completed {
    sp_py_completion link; /* first */
    void (*drain)(Completed *self);
};

class CompletionList
{
  public:
    CompletionList();
    ~CompletionList()
    {
        sp_py_completion_list_release(list);
    }
    CompletionList(const CompletionList &) = delete;
    CompletionList &operator=(const CompletionList &) = delete;

    /* Drains all that was pushed. What an exception ends before its end, as that of a signal
     * handler may anywhere, is pushed again; the first exception is thrown behind the others. */
    void drain();
    sp_py_completion_list *const list;
};

/* The list that the drainer thread waits for; for what belongs to no event loop. NULL before the
 * first import has made it. */
CompletionList *default_list();
/* Where memory of other libraries that is not used any more waits for the drainer. */
CompletionList *memory_list();

void bind_future(nanobind::module_ &m);

} // namespace py

#endif
