/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * That an attached thread was switched in. Until it runs only the time is noted, as it waits for
 * that; all that follows is counted at the next event of the thread, mostly when it leaves its CPU.
 */
#ifndef TARDY_ATTACH_ARRIVALS_H
#define TARDY_ATTACH_ARRIVALS_H

#include "attach_memory.h"
#include "attach_period.h"
#include "attach_response.h"

/* It was woken before. */
static __always_inline void end_wakeup(struct tardy_attach_thread *thread, u64 now_ns)
{
    u64 out_ns = thread->out_ns;

    thread->woken_by = thread->waker;
    thread->woken_ns = thread->waking_ns;
    thread->switched_ns = now_ns;
    thread->due_ns = thread->hard_ns;
    thread->due_soft_ns = thread->soft_ns;
    thread->due_armed_ns = thread->armed_ns;
    thread->blocked_ns = out_ns ? thread->waking_ns - out_ns : 0;
    thread->relative = (thread->relative & ~TARDY_ATTACH_DUE_FOR)
                       | (thread->relative & TARDY_ATTACH_SLEPT_FOR ? TARDY_ATTACH_DUE_FOR : 0);
    thread->run_ns = 0;
    thread->wait_ns = 0;
    thread->whole = 1;
}

/* Two CPUs may see its next event: one of them counts. Not static, to be verified only once. */
__noinline int count_arrival(struct tardy_attach_thread *thread, u32 cpu)
{
    if (!thread || !__sync_lock_test_and_set(&thread->arrived, 0))
        return 0;
    u64 now_ns = thread->in_ns;
    if (attach_config.response)
        cycle_in(thread, cpu, thread->waking_ns, now_ns);
    if (thread->waking_ns) {
        end_wakeup(thread, now_ns);
    } else if (thread->ready_ns) {
        thread->wait_ns += now_ns - thread->ready_ns;
    } else {
        thread->whole = 0;
        if (thread->out_ns)
            lose_sight(thread);
    }
    thread->waking_ns = 0;
    thread->early_ns = 0;
    thread->ready_ns = 0;
    thread->relative &= ~TARDY_ATTACH_IN_LOCK;
    thread->out_ns = 0;
    thread->hard_ns = 0;
    return 0;
}

#endif
