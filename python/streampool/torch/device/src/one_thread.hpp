// SPDX-License-Identifier: Apache-2.0
// A scope in which PyTorch's kernels for the host compute on the calling thread only. Their default
// is a team of threads for each caller: the bits of some kernels depend on its size, and eight
// callers would have eight teams.
#ifndef STREAMPOOL_TORCH_ONE_THREAD_HPP
#define STREAMPOOL_TORCH_ONE_THREAD_HPP

namespace streampool_torch
{
class OneThread
{
  public:
    OneThread();
    ~OneThread();
    OneThread(const OneThread &) = delete;
    OneThread &operator=(const OneThread &) = delete;

  private:
    int former_;
    int former_mkl_;
};
} // namespace streampool_torch

#endif
