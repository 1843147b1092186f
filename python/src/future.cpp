/* SPDX-License-Identifier: Apache-2.0 */
#include "future.hpp"

#include <atomic>
#include <cerrno>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <thread>

#include <poll.h>

#include "batch_queue.hpp"
#include "call.hpp"
#include "errors.hpp"
#include "gil.hpp"

namespace nb = nanobind;

namespace py
{

struct RunLink;

/* A submitted run. It ends with the last of: its Python object; the library's callback and, until
 * the future has the outcome, what that has pushed. What needs the interpreter's lock is given back
 * by finish(), or by the destructor of the Python object. */
class Run
{
  public:
    explicit Run(nb::handle_t<Model> model)
        : call(std::make_unique<Call>(nb::cast<Model &>(model), nb::borrow(model)))
    {
    }
    ~Run();
    Run(const Run &) = delete;
    Run &operator=(const Run &) = delete;

    std::unique_ptr<Call> call;
    sp_future handle = {};
    sp_py_completion_list *list = nullptr;

    bool is_done() const;
    nb::object finish();
    void forget();
    sp_status wait(nb::handle timeout) const;
    void cancel() const;
    /* `start` submits the run to `on`, a model or a queue, and writes `handle`. */
    template <class On, class Start>
    void submit(const On &on, Start start, CompletionList &to, nb::handle python_future);

  private:
    nb::object end(Call &ending) const;
    void make_outcome();
    void watch(RunLink *link);
    static void on_complete(void *ctx, sp_status status);

    RunLink *link = nullptr; /* from the submit on */
    /* Writable by the library's thread until the link says that the run is done. */
    sp_status status = SP_OK;
    std::string message;
    nb::object outcome;       /* what end() has made, until the future has it */
    bool is_finished = false; /* by the thread that has set `finishing` */
    std::atomic_flag finishing = ATOMIC_FLAG_INIT;
    std::atomic<bool> is_made = false; /* of `outcome`: release; acquire by threads that wait */
    std::thread::id maker;             /* of `outcome`, for threads that have the object's lock */
};

/* The part of a run that is pushed: it keeps the Python object of the run, by its future, until it
 * is taken, or until the run needs it no more. Then results do not wait in a long list. Of a run it
 * has three references: of the run, of its callback, and of the list. */
struct RunLink : Completed {
    RunLink(PyObject *kept, sp_py_completion_list *to, uint32_t references)
        : future(nb::borrow(kept).release().ptr()), list(to), count(references)
    {
    }
    /* A reference, or NULL, to whoever asks first. */
    nb::object take()
    {
        return nb::steal(future.exchange(nullptr, std::memory_order_acq_rel));
    }
    void release_one()
    {
        if (count.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
    }

    Run *run = nullptr; /* until it is pushed */
    std::atomic<PyObject *> future;
    std::atomic<uint32_t> is_done = 0; /* release; acquire by readers */
    sp_py_completion_list *list;       /* a reference for the push */

  private:
    std::atomic<uint32_t> count;
};

namespace
{

CompletionList *the_default_list;
CompletionList *the_memory_list; /* process-wide: one interpreter */

/* Appends the future of a run to `into`, unless it is not needed, which ends the link. */
void take_run(Completed *completed, nb::handle into)
{
    auto *link = static_cast<RunLink *>(completed);
    const nb::object future = link->take();
    if (future.is_valid() && PyList_Append(into.ptr(), future.ptr()) != 0) {
        link->future.store(nb::object(future).release().ptr(), std::memory_order_release);
        throw nb::python_error();
    }
    link->release_one();
}

} // namespace

/* On a thread of the library, without the interpreter's lock. */
void Run::on_complete(void *ctx, sp_status status)
{
    auto *link = static_cast<RunLink *>(ctx);
    Run *run = link->run;
    sp_py_completion_list *list = link->list;
    run->status = status;
    if (status != SP_OK) {
        try {
            run->message = sp_last_error();
        } catch (const std::bad_alloc &) { /* the status says enough */
        }
    }
    link->is_done.store(1, std::memory_order_release); /* the run may have ended after this */
    sp_py_completion_list_push(list, &link->link);
    sp_py_completion_list_release(list);
    link->is_done.notify_all();
    link->release_one();
}

bool Run::is_done() const
{
    return link != nullptr && link->is_done.load(std::memory_order_acquire) != 0;
}

Run::~Run()
{
    if (!is_finished) sp_future_release(handle);
    if (link != nullptr) link->release_one();
}

/* Of a run that has started; nothing fails here, since the run uses the arrays. */
void Run::watch(RunLink *pushed)
{
    link = pushed;
    link->run = this;
    sp_py_completion_list_retain(list);
    if (sp_future_on_complete(handle, on_complete, link) == SP_OK) return;
    /* No memory for a callback: this thread waits in its place. */
    const sp_status waited = unlocked([&] { return sp_future_wait(handle); });
    on_complete(link, waited);
}

template <class On, class Start>
void Run::submit(const On &on, Start start, CompletionList &to, nb::handle python_future)
{
    list = to.list;
    auto pushed = std::make_unique<RunLink>(python_future.ptr(), list, 3);
    const sp_status submitted = unlocked_wait(start);
    /* From here on other threads may finish the run. One that has begun before a handler raised
     * uses the arrays. */
    if (handle.bits != 0) watch(pushed.release());
    else (void)pushed->take();
    on.check_call(submitted);
}

sp_status Run::wait(nb::handle timeout) const
{
    const sp_status waited = wait_unlocked(timeout_of(timeout), [&](int64_t ns) {
        const sp_status now = sp_future_wait_for(handle, ns);
        /* The library calls the callback about now: behind it the future can be let go of. */
        if (now == SP_OK) link->is_done.wait(0, std::memory_order_acquire);
        /* Of a run that ended with SP_TIMEOUT the wait is over. */
        return now == SP_TIMEOUT && sp_future_query(handle) != SP_NOT_READY ? SP_OK : now;
    });
    return waited == SP_TIMEOUT || waited == SP_FORKED || waited == SP_DEADLOCK ? waited : SP_OK;
}

/* Of a run that was finished since the caller has looked, nothing is left to cancel. */
void Run::cancel() const
{
    const sp_status cancelled = sp_future_cancel(handle);
    if (cancelled != SP_INVALID || !finishing.test()) check(cancelled);
}

/* What a run has ended with, where there is no memory to say so: made by the import, so it has the
 * class. An exception would keep the frames of all that it was raised in. */
static nb::object *out_of_memory;

/* An exception as what the run has ended with. */
static nb::object failed_outcome(const std::exception_ptr &error)
{
    try {
        try {
            std::rethrow_exception(error);
        } catch (nb::python_error &raised) {
            return nb::make_tuple(false, nb::borrow(raised.value()));
        } catch (const std::bad_alloc &) {
            return *out_of_memory;
        } catch (const std::exception &other) {
            return nb::make_tuple(false, nb::handle(PyExc_RuntimeError)(other.what()));
        }
    } catch (...) {
        return *out_of_memory;
    }
}

/* Takes the results. */
nb::object Run::end(Call &ending) const
{
    /* The wait may have seen the end before the callback has run. */
    const sp_status ended = is_done() ? status : sp_future_wait(handle);
    if (ended == SP_OK) {
        check(ending.take_from(handle));
        return nb::make_tuple(true, ending.results(true));
    }
    ending.free_allocated();
    const std::string text = is_done() ? message : std::string(sp_last_error());
    const char *shown = text.empty() ? sp_status_name(ended) : text.c_str();
    return nb::make_tuple(false, error_of(ended, shown));
}

/* The caller's arrays are given back behind it: the end of one may run any Python code, so other
 * threads. */
void Run::make_outcome()
{
    maker = std::this_thread::get_id();
    const std::unique_ptr<Call> ending = std::move(call);
    try {
        outcome = end(*ending);
    } catch (...) {
        outcome = failed_outcome(std::current_exception());
    }
    is_finished = true;
    sp_future_release(handle);
    is_made.store(true, std::memory_order_release);
    is_made.notify_all();
}

/* Of a run that is done: (True, results) or (False, exception, or its class); None once it is
 * forgotten. */
nb::object Run::finish()
{
    if (!finishing.test_and_set()) {
        make_outcome();
    } else if (!is_made.load(std::memory_order_acquire)) {
        if (maker == std::this_thread::get_id()) {
            raise_value("a finalizer asks for the result that its thread is making");
        }
        unlocked([&] {
            is_made.wait(false, std::memory_order_acquire);
            return true;
        });
    }
    return outcome.is_valid() ? outcome : nb::none();
}

/* The future has the outcome: what was pushed keeps it no more. Until the callback has run it uses
 * the run. */
void Run::forget()
{
    outcome.reset();
    if (link != nullptr && is_done()) (void)link->take();
}

/* ---- lists ---- */

CompletionList::CompletionList() : list(sp_py_completion_list_create())
{
    if (list == nullptr) {
        PyErr_SetFromErrno(PyExc_OSError);
        throw nb::python_error();
    }
}

void CompletionList::take(const nb::list &into)
{
    std::exception_ptr first;
    const auto try_to = [&](Completed *completed, auto step) {
        try {
            step(completed);
        } catch (...) {
            if (first == nullptr) first = std::current_exception();
            sp_py_completion_list_push(list, &completed->link);
        }
    };
    sp_py_completion *node = sp_py_completion_list_take(list), *runs = nullptr;
    while (node != nullptr) {
        auto *completed = reinterpret_cast<Completed *>(node);
        node = node->next;
        if (completed->release != nullptr) {
            try_to(completed, completed->release);
        } else {
            completed->link.next = runs;
            runs = &completed->link;
        }
    }
    while (runs != nullptr) {
        auto *completed = reinterpret_cast<Completed *>(runs);
        runs = runs->next;
        try_to(completed, [&](Completed *run) { take_run(run, into); });
    }
    if (first != nullptr) std::rethrow_exception(first);
}

/* Calls the first of a list, which is in it no more, with `argument`. Between the two steps no
 * signal handler runs, which Python code could not avoid. False: there is none. */
static bool call_next(nb::handle callbacks, nb::handle argument)
{
    PyObject *first = PyObject_CallMethod(callbacks.ptr(), "pop", "i", 0);
    if (first == nullptr) {
        if (!PyErr_ExceptionMatches(PyExc_IndexError)) throw nb::python_error();
        PyErr_Clear();
        return false;
    }
    nb::steal(first)(argument);
    return true;
}

void CompletionList::put_back(const nb::list &from)
{
    for (nb::handle future : from) {
        auto *link = new RunLink(future.ptr(), list, 1);
        sp_py_completion_list_push(list, &link->link);
    }
    from.attr("clear")();
}

CompletionList *default_list()
{
    return the_default_list;
}

CompletionList *memory_list()
{
    return the_memory_list;
}

/* Memory of other libraries is given back by many at a time: the lock would go to and fro for each
 * otherwise, which costs a busy thread more than the use of the memory. */
constexpr int memory_ms = 10;

void wait_for_drain(int most_ms)
{
    unlocked([&] {
        struct pollfd lists[2] = {
            {sp_py_completion_list_fd(the_default_list->list), POLLIN, 0},
            {sp_py_completion_list_fd(the_memory_list->list), POLLIN, 0},
        };
        poll(lists, 2, most_ms);
        return lists[0].revents != 0 ? 0 : poll(lists, 1, memory_ms);
    });
}

/* ---- bindings ---- */

namespace
{

/* False: inputs must be converted first. */
bool submit(Run &run, nb::handle queue, CompletionList &list, nb::handle future,
            const nb::tuple &values, const nb::dict &named, bool is_raw)
{
    Call &call = *run.call;
    if (!call.take_inputs(values, named, is_raw)) return false;
    call.take_outputs(nb::none());
    const Model &model = *call.model;
    const sp_model handle = model.open_handle();
    if (queue.is_none()) {
        const auto start = [&] {
            return sp_model_submit(handle, call.inputs.data(), call.input_count,
                                   call.outputs.data(), call.output_count, &run.handle);
        };
        run.submit(model, start, list, future);
    } else {
        const auto &batches = nb::cast<const BatchQueue &>(queue);
        const sp_batch_queue open = batches.open_handle();
        const auto start = [&] {
            return sp_batch_queue_submit(open, nullptr, call.inputs.data(), call.input_count,
                                         call.outputs.data(), call.output_count, &run.handle);
        };
        run.submit(batches, start, list, future);
    }
    return true;
}

} // namespace

void bind_future(nb::module_ &m)
{
    nb::class_<CompletionList>(m, "CompletionList", "Where submitted runs are found when done.")
        .def(nb::init<>())
        .def("fileno", [](const CompletionList &l) { return sp_py_completion_list_fd(l.list); })
        .def("take", &CompletionList::take, nb::arg("into"),
             "Appends the futures whose runs are done to a list, the first one last, and gives "
             "memory back.")
        .def("put_back", &CompletionList::put_back, nb::arg("futures"),
             "For the next take; the list is empty then.")
        .def("wake", [](CompletionList &l) { sp_py_completion_list_wake(l.list); })
        .def(
            "forward",
            [](CompletionList &l, CompletionList &to) {
                sp_py_completion_list_forward(l.list, to.list);
            },
            "What is in the list, and what comes later, goes to another one.")
        .def(
            "after_fork", [](CompletionList &l) { sp_py_completion_list_after_fork(l.list); },
            "In a forked child: shares nothing with the parent's list any more.");
    nb::class_<Run>(m, "Run", "A submitted run.")
        .def(nb::init<nb::handle_t<Model>>())
        .def("submit", submit, nb::arg("queue").none(), nb::arg("list"), nb::arg("future"),
             nb::arg("values"), nb::arg("named"), nb::arg("is_raw"))
        .def(
            "wait",
            [](const Run &run, nb::handle timeout) {
                const sp_status status = run.wait(timeout);
                if (status == SP_TIMEOUT) return false;
                check(status);
                return true;
            },
            nb::arg("timeout").none(), "False: it is not done in so many seconds.")
        .def("finish", &Run::finish, nb::lock_self(),
             "(is_ok, value) of a run that is done; None once it is forgotten.")
        .def("forget", &Run::forget, nb::lock_self(), "The future has the outcome.")
        .def("cancel", &Run::cancel);
    out_of_memory = new nb::object(nb::make_tuple(false, nb::handle(PyExc_MemoryError)));
    the_default_list = new CompletionList(); /* for ever: runs in flight at exit push to it */
    m.attr("default_list") = nb::cast(the_default_list, nb::rv_policy::reference);
    the_memory_list = new CompletionList(); /* as well: so does memory in use at exit */
    m.attr("memory_list") = nb::cast(the_memory_list, nb::rv_policy::reference);
    m.def("call_next", call_next, nb::arg("callbacks"), nb::arg("argument"),
          "Takes the first callback off a list and calls it; False: there is none.");
    m.def("wait_for_drain", wait_for_drain,
          "Until the default list may have something to take, or the memory list has had it for a "
          "while; at most so many milliseconds, -1: any number.");
}

} // namespace py
