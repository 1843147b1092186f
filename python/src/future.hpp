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

/* What a library's thread pushes. A thread with the interpreter's lock takes it. */
struct Completed {
    sp_py_completion link; /* first */
    /* Of memory: gives it back and ends this, unless it throws. NULL: a run, whose future is
     * completed by Python: a thread in a callback may be ended with the interpreter, which no frame
     * of C++ below it survives. */
    void (*release)(Completed *self) = nullptr;
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

    /* Takes all that was pushed: appends the futures of runs, the newest first. What fails is
     * pushed again; the first exception is thrown behind the others. */
    void take(const nanobind::list &into);
    /* Pushes the futures again, and empties the list. */
    void put_back(const nanobind::list &from);
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
