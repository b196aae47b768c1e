/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * For what an attached thread sleeps: a lock, a device, or the next of what it works for, by its own
 * timer or by others; and in which of its waits an event loop waits for both.
 */
#ifndef TARDY_ATTACH_SLEEPS_H
#define TARDY_ATTACH_SLEEPS_H

#include "attach_memory.h"
#include "attach_period.h"

/*
 * The wait of a task as its registers say it: the system call, and the futex or the descriptor; 0
 * where it waits for a lock, a device or a time, and where that is not known. The two futexes of a
 * condition variable lie together.
 */
static __always_inline u64 wait_key(struct task_struct *task, u64 state)
{
    if (!(state & TASK_INTERRUPTIBLE) || !can_tell_futex())
        return 0;
    struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
    u64 number = regs->orig_ax, what = regs->di;
    if (number > 0xffff || number == NR_NANOSLEEP || number == NR_CLOCK_NANOSLEEP)
        return 0;
    if (number == NR_FUTEX) {
        if ((u32)regs->dx == LOCK_WITH_WAITERS || (u32)regs->dx & FUTEX_WAITERS)
            return 0;
        what >>= 3;
    } else if (number == NR_POLL || number == NR_PPOLL || number == NR_SELECT
               || number == NR_PSELECT6) {
        what = 0;
    }
    return (number + 1) << 48 | (what & 0xffffffffffffull);
}

/* Votes of one wait, before expiries in others begin no cycle. */
#define WAIT_VOTES 2

/* The first expiry that finds it in a wait says already where the work for it ends. */
static __always_inline int is_at_loop(const struct tardy_attach_thread *thread)
{
    return thread->wait_key && thread->wait_votes && thread->sleep_key == thread->wait_key;
}

/* Its own timer found the thread in this wait. */
static __always_inline void learn_wait(struct tardy_attach_thread *thread)
{
    if (thread->sleep_key == thread->wait_key) {
        if (thread->wait_votes < MOST_VOTES)
            thread->wait_votes++;
    } else if (thread->wait_votes) {
        thread->wait_votes--;
    } else {
        thread->wait_key = thread->sleep_key;
        thread->wait_votes = 1;
    }
}

/* Whether an expiry in this wait begins a cycle; in others a loop waits in the midst of its work. */
static __always_inline int is_tick(const struct tardy_attach_thread *thread)
{
    return !thread->wait_key || thread->wait_votes < WAIT_VOTES || is_at_loop(thread);
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

/* A thread with a period whose own timer wakes it that often works by it, whoever else does. */
#define MOST_WAITS_PER_PERIOD 8

/*
 * Whether the thread works by its own timers, and not whenever somebody wakes it. What it does before
 * it first waits for either, such as for a lock or for pages of its program, says nothing of that.
 */
static __always_inline int works_by_timer(const struct tardy_attach_thread *thread)
{
    u64 own = thread->own_wakes, all = own + thread->other_wakes;

    return own * 2 >= all || (thread->votes > FULL_VOTE && own * MOST_WAITS_PER_PERIOD >= all);
}

/*
 * By whom it is woken, up to the present wake-up. A sleep for a time weighs half: it may be in the
 * midst of what others want.
 */
static __always_inline void count_wake(struct tardy_attach_thread *thread)
{
    if (thread->hard_ns)
        thread->own_wakes += thread->relative & TARDY_ATTACH_SLEPT_FOR ? 1 : 2;
    else if (thread->waits_for_next)
        thread->other_wakes += 2;
    thread->waits_for_next = 0;
}

/*
 * Whether a thread that others wake waits for the next of them in this sleep. Where the kernel does
 * not tell for what it sleeps, every sleep that a signal may end is taken for that.
 */
static __always_inline int is_next_wait(struct tardy_attach_thread *thread,
                                        struct task_struct *task, u64 state, u32 kind)
{
    if (!(state & TASK_INTERRUPTIBLE) || kind == TARDY_ATTACH_WAIT_PI_FUTEX)
        return 0;
    if (!can_tell_futex())
        return 1;
    struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
    u64 number = regs->orig_ax;
    if (kind == TARDY_ATTACH_WAIT_FUTEX)
        return !is_lock_call(regs, &thread->perhaps_lock);
    return number != NR_NANOSLEEP && number != NR_CLOCK_NANOSLEEP;
}

#endif
