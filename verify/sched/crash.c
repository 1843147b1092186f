/* SPDX-License-Identifier: Apache-2.0 */
/* A signal in the code under test is a verdict with a schedule and does not end the process. The
 * handler does not return: it leaves the run, whose stacks are abandoned. */
#include <signal.h>
#include <stdlib.h>

#include "shadow.h"

static void on_signal(int number)
{
    if (sp__engine.self == NULL) {
        signal(number, SIG_DFL);
        raise(number);
        return;
    }
    sp__engine_fail(SP_SCHED_CRASH, "signal %d in thread %u, after its step at pc %#x", number,
                    sp__engine.self->id, sp__pc_offset(sp__engine.self->op.pc));
}

void sp__crash_catch(void)
{
    static char stack[64 * 1024]; /* the fiber's own stack may have overflowed */
    const stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&alternate, NULL);
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK | SA_NODEFER};
    sigemptyset(&action.sa_mask);
    const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    for (size_t i = 0; i < SP_COUNT_OF(signals); i++) sigaction(signals[i], &action, NULL);
}
