/* SPDX-License-Identifier: Apache-2.0 */
#include "interrupt.h"

#include <signal.h>
#include <stdio.h>

static volatile sig_atomic_t has_interrupt; /* process-wide: written by the signal's handler */

static void interrupt_note(int signal)
{
    (void)signal;
    has_interrupt = 1;
}

void interrupt_catch(void)
{
    struct sigaction before;
    struct sigaction action = {.sa_handler = interrupt_note, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGINT, NULL, &before) != 0 || before.sa_handler == SIG_IGN) return;
    sigaction(SIGINT, &action, NULL);
}

bool is_interrupted(void)
{
    return has_interrupt != 0;
}

void interrupt_exit(void)
{
    fflush(NULL);
    signal(SIGINT, SIG_DFL);
    raise(SIGINT);
}
