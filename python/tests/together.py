# SPDX-License-Identifier: Apache-2.0
"""Work that threads do at the same time."""
import concurrent.futures
import threading

THREADS = 8


def together(work, threads=THREADS):
    """Calls work(index) on so many threads, which begin at the same moment; the results. What one of
    them raises is raised when all have ended."""
    barrier = threading.Barrier(threads)

    def run(index):
        barrier.wait()
        return work(index)

    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        return list(pool.map(run, range(threads)))
