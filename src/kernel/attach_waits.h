/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Where an event loop enters the call in which it waits, whether it sleeps there or not: with another
 * source ready it does not. Each of these programs runs at that call of every process, so that it is
 * loaded only once a loop is seen that waits by it.
 */
#ifndef TARDY_ATTACH_WAITS_H
#define TARDY_ATTACH_WAITS_H

#include "attach_arrivals.h"
#include "attach_memory.h"
#include "attach_period.h"
#include "attach_response.h"

/*
 * Whether the call returns only when there is something to do: its time-out is none of 0. Where that
 * is in memory it is not looked at.
 */
static __always_inline int returns_for_work(struct task_struct *task)
{
    struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
    u64 number = regs->orig_ax;

    if (number == NR_EPOLL_WAIT || number == NR_EPOLL_PWAIT)
        return (u32)regs->r10 != 0;
    return number == NR_POLL && (u32)regs->dx != 0;
}

static __noinline int enter_wait(struct task_struct *task)
{
    struct tardy_attach_thread *thread = get_attached(task);

    if (!thread || !thread->wait_votes)
        return 0;
    if (thread->arrived)
        count_arrival(thread, task_cpu(task));
    if (!works_by_timer(thread) || wait_key(task, TASK_INTERRUPTIBLE) != thread->wait_key)
        return 0;
    u64 now_ns = bpf_ktime_get_ns();
    note_faults(thread, task);
    thread->sleep_key = thread->wait_key;
    if (thread->cycle_ns) {
        thread->cycle_run_ns += after(now_ns, thread->cycle_since_ns);
        thread->cycle_since_ns = now_ns;
        thread->cycle_done_ns = now_ns;
        if (thread->cycle_begin == TARDY_ATTACH_BEGIN_OTHER) {
            /* Its timer expired meanwhile: that is read next. */
            if (thread->tick_ns && thread->tick_ns < now_ns)
                thread->was_kept = 1;
            close_other(thread, now_ns);
        } else if (thread->cycle_begin == TARDY_ATTACH_BEGIN_TIMER) {
            close_cycle(thread);
            thread->cycle_ns = 0;
        }
    }
    if (thread->cycle_ns || !returns_for_work(task))
        return 0;
    u64 tick_ns = thread->tick_ns;
    begin_cycle(thread, task_cpu(task), TARDY_ATTACH_BEGIN_OTHER, now_ns, now_ns, now_ns);
    thread->tick_ns = tick_ns;
    thread->in_call = 1;
    thread->cycle_since_ns = now_ns;
    return 0;
}

#define WAIT_PROGRAM(call)                                                                         \
    SEC("fentry/__x64_sys_" #call)                                                                 \
    int BPF_PROG(on_##call)                                                                        \
    {                                                                                              \
        return enter_wait(bpf_get_current_task_btf());                                             \
    }

WAIT_PROGRAM(epoll_wait)
WAIT_PROGRAM(epoll_pwait)
WAIT_PROGRAM(epoll_pwait2)
WAIT_PROGRAM(poll)
WAIT_PROGRAM(ppoll)
WAIT_PROGRAM(select)
WAIT_PROGRAM(pselect6)
WAIT_PROGRAM(io_uring_enter)

#endif
