/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/report.h"

#include <inttypes.h>

#include "base/error.h"

sp_status sp__report_fail(sp_kernel_id kernel, const sp_gpu_report *report)
{
    const int64_t limit = report->most - 1;
    if (kernel == SP_KERNEL_ID_lstm_f32 || kernel == SP_KERNEL_ID_gru_f32 ||
        kernel == SP_KERNEL_ID_rnn_f32) {
        return sp__fail(SP_INVALID, "a sequence of length %" PRId64 "; the longest has %" PRId64,
                        report->number, limit - 1);
    }
    return sp__fail(SP_INVALID, "index %" PRId64 " is out of range for a dimension of %" PRId64,
                    report->number, limit);
}
