/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * How long the work takes that a thread does from one expiry of its own timer to the next: from the
 * hard expiry to the last time that it went to sleep before the next one. It may sleep in between,
 * for a mutex or a device: whether a sleep was the last is known when its timer wakes it again.
 *
 * All of it is behind a constant, so that the verifier takes it out where nobody asks for it.
 */
#ifndef TARDY_ATTACH_RESPONSE_H
#define TARDY_ATTACH_RESPONSE_H

#include "attach_memory.h"

static __always_inline u64 after(u64 ns, u64 from_ns)
{
    return ns > from_ns ? ns - from_ns : 0;
}

/* Counts a cycle that is over: when the thread has nothing to do. */
static __noinline int count_closed(struct tardy_attach_thread *thread)
{
    if (!thread || !thread->closed)
        return 0;
    thread->closed = 0;
    count_in(&thread->hists[TARDY_ATTACH_RESPONSE], thread->closed_ns);
    return 0;
}

/* The parts of a cycle that took too long; they sum to it. */
static __noinline int add_over(struct tardy_attach_thread *thread, u64 took_ns)
{
    if (!thread)
        return 0;
    u64 late_ns = after(thread->cycle_in_ns, thread->cycle_ns);
    /* What it did before the hard expiry, within the slack, was not late. */
    u64 run_ns = after(thread->cycle_run_ns, after(thread->cycle_ns, thread->cycle_in_ns));
    u64 ready_ns = thread->cycle_ready_ns, wait_ns = thread->cycle_wait_ns;
    thread->over++;
    thread->over_late_ns += late_ns;
    thread->over_run_ns += run_ns;
    thread->over_ready_ns += ready_ns;
    thread->over_wait_ns += wait_ns;
    for (int kind = 0; kind < TARDY_ATTACH_WAITS; kind++)
        thread->over_waits_ns[kind] += thread->cycle_waits_ns[kind];
    if (can_tell_futex())
        thread->over_told++;
    thread->over_unseen_ns += after(took_ns, late_ns + run_ns + ready_ns + wait_ns);
    return 0;
}

/* Hands a cycle over, so that its causes can be looked for. */
static __noinline int hand_cycle_over(struct tardy_attach_thread *thread)
{
    struct tardy_attach_late late = {};

    if (!thread)
        return 0;
    u16 *place = place_of(thread->tid);
    late.hard_ns = thread->cycle_ns;
    late.entry_ns = thread->cycle_entry_ns;
    late.waking_ns = thread->cycle_waking_ns;
    late.switch_ns = thread->cycle_in_ns;
    late.tid = thread->tid;
    late.place = place ? *place : 0;
    late.woken_on = thread->cycle_woken_on;
    late.switched_on = thread->cycle_switched_on;
    late.prio = thread->prio;
    late.done_ns = thread->cycle_done_ns;
    if (bpf_ringbuf_output(&attach_late, &late, sizeof(late), BPF_RB_NO_WAKEUP))
        __sync_fetch_and_add(&attach_memory.settings.dropped, 1);
    return 0;
}

/* The timer of the thread expired again, so that its last sleep was the end of the cycle. */
static __noinline int close_cycle(struct tardy_attach_thread *thread)
{
    if (!thread || !thread->cycle_ns || !thread->cycle_done_ns)
        return 0;
    u64 took_ns = after(thread->cycle_done_ns, thread->cycle_ns);
    /* Two ended since it slept last. */
    count_closed(thread);
    thread->closed_ns = took_ns;
    thread->closed = 1;
    if (thread->deadline_ns && took_ns > thread->deadline_ns) {
        add_over(thread, took_ns);
        hand_cycle_over(thread);
    }
    return 0;
}

static __always_inline void begin_cycle(struct tardy_attach_thread *thread, u64 waking_ns,
                                        u64 now_ns)
{
    thread->cycle_ns = thread->hard_ns;
    thread->cycle_entry_ns = thread->entry_ns;
    thread->cycle_waking_ns = waking_ns;
    thread->cycle_woken_on = thread->woken_on;
    thread->cycle_switched_on = bpf_get_smp_processor_id();
    thread->cycle_in_ns = now_ns;
    thread->cycle_done_ns = 0;
    thread->cycle_run_ns = 0;
    thread->cycle_ready_ns = 0;
    thread->cycle_wait_ns = 0;
    for (int kind = 0; kind < TARDY_ATTACH_WAITS; kind++)
        thread->cycle_waits_ns[kind] = 0;
}

/* For what a task sleeps; of a completion of io_uring and the like it is not told. */
static __always_inline u32 wait_of(struct task_struct *task, u64 state)
{
    if (state & TASK_UNINTERRUPTIBLE)
        return BPF_CORE_READ_BITFIELD(task, in_iowait) ? TARDY_ATTACH_WAIT_IO
                                                       : TARDY_ATTACH_WAIT_OTHER;
    if (!(state & TASK_INTERRUPTIBLE) || !is_in_futex(task))
        return TARDY_ATTACH_WAIT_OTHER;
    if (bpf_core_field_exists(task->pi_blocked_on) && task->pi_blocked_on)
        return TARDY_ATTACH_WAIT_PI_FUTEX;
    return TARDY_ATTACH_WAIT_FUTEX;
}

static __always_inline void add_wait(struct tardy_attach_thread *thread, u64 ns)
{
    u32 kind = thread->cycle_sleep;

    barrier_var(kind);
    thread->cycle_wait_ns += ns;
    if (kind < TARDY_ATTACH_WAITS)
        thread->cycle_waits_ns[kind] += ns;
}

/* The thread is switched in; `waking_ns` is that of the wake-up, 0 where there was none. */
static __always_inline void cycle_in(struct tardy_attach_thread *thread, u64 waking_ns, u64 now_ns)
{
    if (waking_ns && thread->hard_ns && thread->hard_ns != thread->cycle_ns) {
        close_cycle(thread);
        begin_cycle(thread, waking_ns, now_ns);
    } else if (thread->cycle_ns && waking_ns) {
        add_wait(thread, thread->out_ns ? after(waking_ns, thread->out_ns) : 0);
        thread->cycle_ready_ns += after(now_ns, waking_ns);
    } else if (thread->cycle_ns && thread->ready_ns) {
        thread->cycle_ready_ns += now_ns - thread->ready_ns;
    }
    thread->cycle_since_ns = now_ns;
}

static __always_inline void cycle_out(struct tardy_attach_thread *thread,
                                      struct task_struct *task, u64 state, u64 now_ns)
{
    if (!thread->cycle_ns)
        return;
    if (thread->in_ns)
        thread->cycle_run_ns += after(now_ns, thread->cycle_since_ns);
    if (state) {
        thread->cycle_done_ns = now_ns;
        thread->cycle_sleep = wait_of(task, state);
    }
}

/*
 * The timer that the thread has just armed had expired before it could sleep: it works for longer
 * than its period, and its next cycle begins without a sleep.
 */
static __noinline int cycle_overrun(struct tardy_attach_thread *thread, u64 now_ns)
{
    if (!thread || !thread->hard_ns)
        return 0;
    u64 done_ns = thread->armed_ns;
    if (done_ns < thread->cycle_since_ns || done_ns > now_ns)
        done_ns = now_ns;
    thread->cycle_run_ns += after(done_ns, thread->cycle_since_ns);
    thread->cycle_done_ns = done_ns;
    close_cycle(thread);
    begin_cycle(thread, done_ns, done_ns);
    thread->cycle_since_ns = done_ns;
    return 0;
}

#endif
