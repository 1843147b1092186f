/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/future_model.h"

#include "exec/model_object.h"

static void holds_drop_last(sp_host_job *job)
{
    sp_rt_future *run = SP_CONTAINER_OF(job, sp_rt_future, job);
    sp__model_drop(run->model);
    sp__future_drop(run);
}

void sp__future_drop_with_model(sp_rt_future *run)
{
    if (sp__model_drop_unless_last(run->model)) {
        sp__future_drop(run);
        return;
    }
    run->job = (sp_host_job){.run = holds_drop_last};
    if (!sp__host_executor_post(&run->job)) holds_drop_last(&run->job);
}
