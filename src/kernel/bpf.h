/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What every program includes: the kernel's types, libbpf's headers, and what both lack. */
#ifndef TARDY_BPF_H
#define TARDY_BPF_H

#include "vmlinux.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#define WRITE_ONCE(x, value) (*(volatile typeof(x) *)&(x) = (value))

static __always_inline u64 task_state(struct task_struct *task)
{
    if (bpf_core_field_exists(task->__state))
        return task->__state;
    return ((struct task_struct___old *)task)->state;
}

/* The CPU on which the task runs, or ran last. */
static __always_inline u32 task_cpu(struct task_struct *task)
{
    if (bpf_core_field_exists(task->thread_info.cpu))
        return task->thread_info.cpu;
    return ((struct task_struct___old *)task)->cpu;
}

/*
 * The state in which the scheduler leaves a task: an argument of `sched_switch` since 5.18, the last
 * one (9c2136be0878). What the task itself has may be changed meanwhile by who wakes it. Without
 * 8feb053d5319 the argument is stale where a signal was pending, so that the task did not go to
 * sleep: then it still is on its run queue. Since 6.12 one that sleeps may be there, too. With
 * proxy execution so is one that waits for a mutex; which states a signal ends,
 * signal_pending_state says (include/linux/sched/signal.h).
 */
static __always_inline u64 left_state(unsigned long long *ctx, struct task_struct *prev,
                                      u32 has_state)
{
    if (!has_state)
        return task_state(prev);
    u64 state = *(volatile u32 *)&ctx[3];
    if (!(state & (TASK_INTERRUPTIBLE | TASK_WAKEKILL)) || !prev->on_rq)
        return state;
    if (bpf_core_field_exists(prev->se.sched_delayed) && prev->se.sched_delayed)
        return state;
    return 0;
}

/* Numbers of system calls on x86-64. */
#define NR_NANOSLEEP 35
#define NR_CLOCK_NANOSLEEP 230
#define NR_POLL 7
#define NR_SELECT 23
#define NR_PSELECT6 270
#define NR_PPOLL 271
#define NR_FUTEX 202
#define NR_EPOLL_WAIT 232
#define NR_EPOLL_PWAIT 281
#define NR_SETITIMER 38
#define NR_TIMER_SETTIME 223
#define NR_TIMERFD_SETTIME 286
#define NR_FUTEX_WAITV 449
#define NR_FUTEX_WAIT 455

/* Whether that can be told of this kernel. */
static __always_inline int can_tell_futex(void)
{
    return bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs)
           && bpf_core_field_exists(((struct pt_regs *)0)->orig_ax);
}

/* <linux/futex.h>: what is asked of a futex, and how its word says that somebody waits for it. */
#define FUTEX_WAIT 0
#define FUTEX_WAIT_BITSET 9
#define FUTEX_COMMAND 0x7f
#define FUTEX_WAITERS 0x80000000u
/* The word of a lock of the C library, and of Rust's, for which somebody waits. */
#define LOCK_WITH_WAITERS 2

/*
 * Whether the call waits for a lock, and not for a condition or a count. One by FUTEX_WAIT_BITSET
 * may be either, and a count is 2 only once: `last` is the futex of the last of these.
 */
static __always_inline int is_lock_call(struct pt_regs *regs, u64 *last)
{
    u32 command = regs->si & FUTEX_COMMAND, word = regs->dx;

    if (regs->orig_ax != NR_FUTEX)
        return 0;
    if (command == FUTEX_WAIT)
        return word == LOCK_WITH_WAITERS || word & FUTEX_WAITERS;
    if (command != FUTEX_WAIT_BITSET || word != LOCK_WITH_WAITERS)
        return 0;
    int is_again = *last == regs->di;
    *last = regs->di;
    return is_again;
}

#define FUTEX_LOCK_PI 6
#define FUTEX_LOCK_PI2 13
#define FUTEX_TID_MASK 0x3fffffff
/* In a lock of the C library: from its word to its owner. */
#define OWNER_BESIDE 8

/*
 * The thread that has the lock for which the current task waits in the system call futex: in the
 * word of one with priority inheritance or a robust one, beside that of others of the C library. It
 * is no such thread where another library has something else there. 0: not known.
 */
static __always_inline u32 lock_owner(struct pt_regs *regs)
{
    u32 command = regs->si & FUTEX_COMMAND, expected = regs->dx, owner = 0;
    u64 address = regs->di;

    if (command == FUTEX_LOCK_PI || command == FUTEX_LOCK_PI2 || expected & FUTEX_WAITERS) {
        bpf_probe_read_user(&owner, sizeof(owner), (void *)address);
        return owner & FUTEX_TID_MASK;
    }
    if (command == FUTEX_WAIT && expected == LOCK_WITH_WAITERS)
        bpf_probe_read_user(&owner, sizeof(owner), (void *)(address + OWNER_BESIDE));
    return owner;
}

/*
 * Whether a task sleeps in a system call futex. Of an exception or an interrupt the kernel sets
 * `orig_ax` to -1.
 */
static __always_inline int is_in_futex(struct task_struct *task)
{
    if (!can_tell_futex())
        return 0;
    struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
    u64 number = regs->orig_ax;
    return number == NR_FUTEX || number == NR_FUTEX_WAITV || number == NR_FUTEX_WAIT;
}

#endif
