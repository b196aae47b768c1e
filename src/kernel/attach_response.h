/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * How long the work takes that a thread does from one expiry of its own timer to the next: from the
 * hard expiry to the last time that it went to sleep before the next one. It may sleep in between,
 * for a mutex or a device: whether a sleep was the last is known when its timer wakes it again.
 *
 * An event loop waits in one place for its timer and for others. There its cycle ends at its first
 * return to that wait, and what it does for others then is counted by itself.
 *
 * The work of a thread that others wake lasts from the wake-up to its next wait: a sleep that is
 * neither for a lock or a device, nor for a time.
 *
 * All of it is behind a constant, so that the verifier takes it out where nobody asks for it.
 */
#ifndef TARDY_ATTACH_RESPONSE_H
#define TARDY_ATTACH_RESPONSE_H

#include "attach_memory.h"
#include "attach_period.h"
#include "attach_sleeps.h"

static __always_inline u64 after(u64 ns, u64 from_ns)
{
    return ns > from_ns ? ns - from_ns : 0;
}

/* The parts of a cycle that took too long; they sum to it. */
static __noinline int add_over(struct tardy_attach_thread *thread, u64 took_ns)
{
    if (!thread)
        return 0;
    u64 late_ns = after(thread->cycle_in_ns, thread->cycle_ns);
    /* What it did before the hard expiry, within the slack, was not late. */
    u64 early_ns = after(thread->cycle_ns, thread->cycle_in_ns);
    u64 run_ns = after(thread->cycle_run_ns, early_ns);
    u64 ready_ns = thread->cycle_ready_ns, wait_ns = thread->cycle_wait_ns;
    struct tardy_attach_over *over = &thread->over[thread->cycle_begin & 1];
    over->cycles++;
    /* It became due so late in the cycle that what came before is not told from the rest. */
    if (early_ns > thread->cycle_run_ns) {
        over->unseen_ns += took_ns;
        return 0;
    }
    over->late_ns += late_ns;
    over->run_ns += run_ns;
    over->ready_ns += ready_ns;
    over->wait_ns += wait_ns;
    for (int kind = 0; kind < TARDY_ATTACH_WAITS; kind++)
        over->waits_ns[kind] += thread->cycle_waits_ns[kind];
    if (can_tell_futex())
        over->told++;
    over->unseen_ns += after(took_ns, late_ns + run_ns + ready_ns + wait_ns);
    return 0;
}

/* A task that sleeps has none. */
static __always_inline void note_faults(struct tardy_attach_thread *thread,
                                        struct task_struct *task)
{
    thread->faults[0] = task->min_flt;
    thread->faults[1] = task->maj_flt;
}

/* The page faults of such a cycle. */
static __always_inline void add_faults(struct tardy_attach_thread *thread)
{
    struct tardy_attach_over *over = &thread->over[thread->cycle_begin & 1];
    u64 minor = thread->faults[0] - thread->cycle_faults[0];
    u64 major = thread->faults[1] - thread->cycle_faults[1];

    over->faults[0] += minor;
    over->faults[1] += major;
    if (minor + major)
        over->faulted++;
}

/* Hands a cycle over, so that its causes can be looked for. */
static __noinline int hand_cycle_over(struct tardy_attach_thread *thread)
{
    struct tardy_attach_late late = {};

    if (!thread)
        return 0;
    u16 *place = place_of(thread->tid);
    late.hard_ns = thread->cycle_begin == TARDY_ATTACH_BEGIN_TIMER ? thread->cycle_ns : 0;
    late.entry_ns = thread->cycle_entry_ns;
    late.waking_ns = thread->cycle_waking_ns;
    late.switch_ns = thread->cycle_in_ns;
    late.tid = thread->tid;
    late.place = place ? *place : 0;
    late.woken_on = thread->cycle_woken_on;
    late.switched_on = thread->cycle_switched_on;
    late.prio = thread->prio;
    late.softirq_ns = thread->cycle_softirq_ns;
    late.done_ns = thread->cycle_done_ns;
    if (bpf_ringbuf_output(&attach_late, &late, sizeof(late), BPF_RB_NO_WAKEUP))
        __sync_fetch_and_add(&attach_memory.settings.dropped, 1);
    return 0;
}

/* A cycle that is over, and took so long. */
static __always_inline void judge_cycle(struct tardy_attach_thread *thread, u64 took_ns)
{
    if (!thread->deadline_ns || took_ns <= thread->deadline_ns)
        return;
    add_over(thread, took_ns);
    add_faults(thread);
    hand_cycle_over(thread);
}

/* Most expiries read together that are judged; with more of them those after these are missed. */
#define MOST_READ_WITH 4096

/* The next expiry of those that were read together was done when the first was. */
static long close_next(u32 number, struct tardy_attach_thread **of)
{
    struct tardy_attach_thread *thread = *of;

    thread->cycle_ns += thread->period_ns;
    if (thread->cycle_entry_ns < thread->cycle_ns) {
        thread->cycle_entry_ns = thread->cycle_ns;
        thread->cycle_softirq_ns = 0;
    }
    if (thread->cycle_waking_ns < thread->cycle_ns)
        thread->cycle_waking_ns = thread->cycle_ns;
    u64 took_ns = after(thread->cycle_done_ns, thread->cycle_ns);
    count_in(&thread->hists[TARDY_ATTACH_RESPONSE], took_ns);
    judge_cycle(thread, took_ns);
    return 0;
}

static __always_inline int can_loop(void)
{
    return bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_loop);
}

static __noinline int close_read_with(struct tardy_attach_thread *thread)
{
    if (!thread || !can_loop())
        return 0;
    u64 times = thread->read_with;
    thread->read_with = 0;
    /* One fault made all of them late. */
    thread->cycle_faults[0] = thread->faults[0];
    thread->cycle_faults[1] = thread->faults[1];
    bpf_loop(times, close_next, &thread, 0);
    return 0;
}

/* The timer of the thread expired again, so that its last sleep was the end of the cycle. */
static __noinline int close_cycle(struct tardy_attach_thread *thread)
{
    if (!thread || !thread->cycle_ns || !thread->cycle_done_ns
        || thread->cycle_begin != TARDY_ATTACH_BEGIN_TIMER)
        return 0;
    u64 took_ns = after(thread->cycle_done_ns, thread->cycle_ns);
    count_in(&thread->hists[TARDY_ATTACH_RESPONSE], took_ns);
    judge_cycle(thread, took_ns);
    if (thread->read_with)
        close_read_with(thread);
    return 0;
}

/* A loop has worked for others since `cycle_ns`. */
static __noinline int close_other(struct tardy_attach_thread *thread, u64 now_ns)
{
    if (!thread)
        return 0;
    count_in(&thread->hists[TARDY_ATTACH_OTHER], after(now_ns, thread->cycle_ns));
    thread->cycle_ns = 0;
    return 0;
}

/* The thread was woken by others, and waits for the next of them. */
static __noinline int close_stage(struct tardy_attach_thread *thread)
{
    if (!thread)
        return 0;
    u64 took_ns = after(thread->cycle_done_ns, thread->cycle_ns);
    count_in(&thread->hists[TARDY_ATTACH_STAGE], took_ns);
    judge_cycle(thread, took_ns);
    thread->cycle_ns = 0;
    return 0;
}

/* It is due since `due_ns`. */
static __always_inline void begin_cycle(struct tardy_attach_thread *thread, u32 cpu, u32 begin,
                                        u64 due_ns, u64 waking_ns, u64 now_ns)
{
    thread->cycle_ns = due_ns;
    thread->cycle_begin = begin;
    thread->read_with = 0;
    thread->in_call = 0;
    if (begin == TARDY_ATTACH_BEGIN_TIMER)
        thread->was_kept = 0;
    if (thread->tick_ns <= due_ns)
        thread->tick_ns = 0;
    thread->cycle_faults[0] = thread->faults[0];
    thread->cycle_faults[1] = thread->faults[1];
    thread->cycle_entry_ns = thread->entry_ns;
    thread->cycle_softirq_ns = thread->softirq_ns;
    thread->cycle_waking_ns = waking_ns;
    thread->cycle_woken_on = thread->woken_on;
    thread->cycle_switched_on = cpu;
    thread->cycle_in_ns = now_ns;
    thread->cycle_done_ns = 0;
    thread->cycle_run_ns = 0;
    thread->cycle_ready_ns = 0;
    thread->cycle_wait_ns = 0;
    for (int kind = 0; kind < TARDY_ATTACH_WAITS; kind++)
        thread->cycle_waits_ns[kind] = 0;
}

static __always_inline void add_wait(struct tardy_attach_thread *thread, u64 ns)
{
    u32 kind = thread->cycle_sleep;

    barrier_var(kind);
    thread->cycle_wait_ns += ns;
    if (kind < TARDY_ATTACH_WAITS)
        thread->cycle_waits_ns[kind] += ns;
}

/* The thread was switched in; `waking_ns` is that of the wake-up, 0 where there was none. */
static __always_inline void cycle_in(struct tardy_attach_thread *thread, u32 cpu, u64 waking_ns,
                                     u64 now_ns)
{
    if (waking_ns)
        count_wake(thread);
    int by_timer = works_by_timer(thread);
    int is_open = thread->cycle_ns && thread->cycle_begin == TARDY_ATTACH_BEGIN_WAKEUP;

    if (waking_ns && by_timer && thread->hard_ns && thread->hard_ns != thread->cycle_ns
        && is_tick(thread)) {
        learn_wait(thread);
        close_cycle(thread);
        begin_cycle(thread, cpu, TARDY_ATTACH_BEGIN_TIMER, thread->hard_ns, waking_ns, now_ns);
    } else if (waking_ns && !by_timer && !is_open) {
        /* A time-out is no work that somebody wants. */
        thread->cycle_ns = 0;
        if (thread->waker != TARDY_ATTACH_BY_TIMER)
            begin_cycle(thread, cpu, TARDY_ATTACH_BEGIN_WAKEUP, waking_ns, waking_ns, now_ns);
    } else if (waking_ns && by_timer && !thread->cycle_ns && is_at_loop(thread)) {
        begin_cycle(thread, cpu, TARDY_ATTACH_BEGIN_OTHER, waking_ns, waking_ns, now_ns);
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
    note_faults(thread, task);
    if (state) {
        u32 kind = wait_of(task, state);
        thread->sleep_key = wait_key(task, state);
        thread->waits_for_next = is_next_wait(thread, task, state, kind);
        thread->cycle_sleep = kind;
    }
    if (!thread->cycle_ns)
        return;
    if (thread->in_ns)
        thread->cycle_run_ns += after(now_ns, thread->cycle_since_ns);
    if (!state)
        return;
    thread->cycle_done_ns = now_ns;
    if (thread->cycle_begin == TARDY_ATTACH_BEGIN_WAKEUP && thread->waits_for_next)
        close_stage(thread);
    else if (thread->cycle_begin == TARDY_ATTACH_BEGIN_OTHER && is_at_loop(thread)) {
        /* It sleeps in the call that it has entered, and did nothing since. */
        if (thread->in_call)
            thread->cycle_ns = 0;
        else
            close_other(thread, now_ns);
    } else if (thread->cycle_begin == TARDY_ATTACH_BEGIN_TIMER && is_at_loop(thread)) {
        close_cycle(thread);
        thread->cycle_ns = 0;
    }
}

/*
 * The timer that the thread has just armed had expired before it could sleep: it works for longer
 * than its period, and its next cycle begins without a sleep.
 */
static __noinline int cycle_overrun(struct tardy_attach_thread *thread, struct task_struct *task,
                                    u64 now_ns)
{
    if (!thread || !thread->hard_ns)
        return 0;
    count_wake(thread);
    if (!works_by_timer(thread))
        return 0;
    u64 done_ns = thread->armed_ns;
    if (done_ns < thread->cycle_since_ns || done_ns > now_ns)
        done_ns = now_ns;
    thread->cycle_run_ns += after(done_ns, thread->cycle_since_ns);
    thread->cycle_done_ns = done_ns;
    note_faults(thread, task);
    close_cycle(thread);
    begin_cycle(thread, task_cpu(task), TARDY_ATTACH_BEGIN_TIMER, thread->hard_ns, done_ns, done_ns);
    /* The thread was at work since it was due: the interrupt came only for the arming. */
    thread->cycle_entry_ns = thread->hard_ns;
    thread->cycle_softirq_ns = 0;
    thread->cycle_since_ns = done_ns;
    return 0;
}

/*
 * The kernel arms a timer again, up to which all expiries since `due_ns` are read: how many came
 * after that one, by the period of the thread. 0 where the thread arms it itself: it passes those
 * over.
 */
static __always_inline u64 count_read_with(struct tardy_attach_thread *thread,
                                           struct task_struct *task, u64 due_ns, u64 next_ns)
{
    u64 period_ns = thread->period_ns;

    if (!can_tell_futex() || !can_loop() || !period_ns || thread->votes <= FULL_VOTE
        || next_ns <= due_ns + period_ns + slip_of(period_ns))
        return 0;
    u64 number = ((struct pt_regs *)bpf_task_pt_regs(task))->orig_ax;
    if (number == NR_TIMERFD_SETTIME || number == NR_TIMER_SETTIME || number == NR_SETITIMER)
        return 0;
    u64 times = (next_ns - due_ns + period_ns / 2) / period_ns;
    s64 off_ns = next_ns - due_ns - times * period_ns;
    /* The kernel adds the same interval each time, so that many of them slip no further than one. */
    if (times > MOST_READ_WITH || (u64)(off_ns < 0 ? -off_ns : off_ns) > slip_of(period_ns))
        return 0;
    return times - 1;
}

/*
 * The thread arms the timer again that wakes it: a timer that counts expiries is armed when they
 * are read. Where it had expired while the thread worked, nothing woke the thread for it, and its
 * work begins here.
 */
static __noinline int take_tick(struct tardy_attach_thread *thread, struct task_struct *task,
                                u64 next_ns, u64 now_ns)
{
    if (!thread)
        return 0;
    u64 due_ns = thread->tick_ns;
    thread->tick_ns = next_ns;
    if (!due_ns && thread->cycle_ns && thread->cycle_begin == TARDY_ATTACH_BEGIN_TIMER) {
        u64 more = count_read_with(thread, task, thread->cycle_ns, next_ns);
        if (more) {
            settle(thread);
            thread->read_with = more;
            thread->read_with_now = more;
        }
    }
    if (!due_ns || due_ns >= now_ns || due_ns >= next_ns || !works_by_timer(thread))
        return 0;
    thread->cycle_done_ns = now_ns;
    note_faults(thread, task);
    if (thread->cycle_ns && thread->cycle_begin == TARDY_ATTACH_BEGIN_OTHER) {
        /* It was due when the wait was entered, which returned for it at once. */
        if (thread->in_call && due_ns <= thread->cycle_ns)
            thread->cycle_ns = 0;
        else {
            thread->was_kept = 1;
            close_other(thread, now_ns);
        }
    } else if (thread->cycle_ns) {
        thread->cycle_run_ns += after(now_ns, thread->cycle_since_ns);
        close_cycle(thread);
    }
    if (thread->was_kept)
        count_in(&thread->hists[TARDY_ATTACH_KEPT], now_ns - due_ns);
    thread->entry_ns = due_ns;
    thread->softirq_ns = 0;
    thread->woken_on = bpf_get_smp_processor_id();
    begin_cycle(thread, task_cpu(task), TARDY_ATTACH_BEGIN_TIMER, due_ns, now_ns, now_ns);
    thread->tick_ns = next_ns;
    thread->cycle_since_ns = now_ns;
    /* It was no wake-up, and the period had its expiry. */
    settle(thread);
    thread->due_soft_ns = due_ns;
    thread->due_armed_ns = 0;
    follow_period(thread);
    thread->read_with = count_read_with(thread, task, due_ns, next_ns);
    thread->read_with_now = thread->read_with;
    return 0;
}

#endif
