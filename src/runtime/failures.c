/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/failures.h"

#include "base/assert.h"
#include "device/device.h"
#include "device/thread_record.h"

sp_status sp__failures_report(sp_point point)
{
    const sp_thread_record *record = sp__thread_record();
    if (record == NULL) return SP_OUT_OF_MEMORY;
    const sp_fault fault = sp__timeline_take_failures(point.timeline, point.value, record->number);
    if (SP_LIKELY(fault == SP_NO_FAULT)) {
        return sp__fault_report(sp__timeline_loss(point.timeline, point.value));
    }
    /* All of them count as reported. */
    sp__lease_faults_told(&point.timeline->owner->lease_faults, record->number, point.value);
    return sp__fault_report(fault);
}

void sp__failures_returned(sp_point point, uint64_t after)
{
    const sp_thread_record *record = sp__thread_record();
    bool is_first;
    SP_ASSERT(record != NULL); /* it has submitted */
    if (!sp__timeline_take_failures_between(point.timeline, after, point.value, record->number,
                                            &is_first)) {
        return;
    }
    /* A lease's entry of a thread is told up to a value. */
    if (is_first || SP_PLANTED(earlier_told)) {
        sp__lease_faults_told(&point.timeline->owner->lease_faults, record->number, point.value);
    }
}
