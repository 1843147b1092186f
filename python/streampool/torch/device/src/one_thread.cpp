// SPDX-License-Identifier: Apache-2.0
#include "one_thread.hpp"

#include <dlfcn.h>

#include <ATen/Parallel.h>

namespace streampool_torch
{
namespace
{
// Of the libraries that PyTorch has loaded: another OpenMP library would have a number of its own.
// at::set_num_threads is not used, since it also sets what later threads begin with.
struct ThreadCounts {
    int (*get)();
    void (*set)(int);
    int (*set_mkl)(int); // returns the former number of the thread

    ThreadCounts()
        : get(reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_max_threads"))),
          set(reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"))),
          set_mkl(reinterpret_cast<int (*)(int)>(dlsym(RTLD_DEFAULT, "MKL_Set_Num_Threads_Local")))
    {
        TORCH_CHECK(get != nullptr && set != nullptr,
                    "streampool: PyTorch was built without OpenMP, which is not supported");
    }
};

const ThreadCounts &counts()
{
    static const ThreadCounts only;
    return only;
}
} // namespace

OneThread::OneThread() : former_(0), former_mkl_(0)
{
    (void)at::get_num_threads(); // PyTorch's own first-use setting of this thread comes before
    former_ = counts().get();
    if (former_ != 1) counts().set(1);
    if (counts().set_mkl != nullptr) former_mkl_ = counts().set_mkl(1);
}

OneThread::~OneThread()
{
    if (former_ != 1) counts().set(former_);
    if (counts().set_mkl != nullptr) (void)counts().set_mkl(former_mkl_);
}
} // namespace streampool_torch
