/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Which threads are attached: as they come, change their names and go. */
#ifndef TARDY_ATTACH_THREADS_H
#define TARDY_ATTACH_THREADS_H

#include "attach_memory.h"
#include "attach_response.h"

/* Places are taken by programs on several CPUs and by user space. */
static __always_inline u32 take_place(void)
{
    struct tardy_attach_settings *settings = &attach_memory.settings;

    for (int attempt = 0; attempt < 8; attempt++) {
        u64 head = *(volatile u64 *)&settings->head;
        if (head >= *(volatile u64 *)&settings->tail)
            break;
        if (__sync_val_compare_and_swap(&settings->head, head, head + 1) != head)
            continue;
        return settings->free[head & (TARDY_ATTACH_PLACES - 1)];
    }
    __sync_fetch_and_add(&settings->refused, 1);
    return 0;
}

static __always_inline void begin_thread(struct task_struct *task, u64 comm0, u64 comm1)
{
    u32 pid = task->pid;
    u16 *entry = place_of(pid);

    if (!attach_memory.settings.on || !entry || get_attached(task))
        return;
    u32 place = take_place();
    struct tardy_attach_thread *thread = thread_at(place & (TARDY_ATTACH_PLACES - 1));
    if (!thread)
        return;
    thread->tid = pid;
    thread->pid = task->tgid;
    thread->prio = task->prio;
    thread->start_ns = task->start_time;
    thread->deadline_ns = attach_config.deadline_ns;
    *(u64 *)&thread->comm[0] = comm0;
    *(u64 *)&thread->comm[8] = comm1;
    barrier();
    WRITE_ONCE(thread->state, TARDY_ATTACH_LIVE);
    *entry = place;
    __sync_fetch_and_add(&attach_memory.settings.started, 1);
}

/* Periods differ by less than this part, or a microsecond: programs round. */
#define SAME_PERIOD_SHIFT 10
#define SAME_PERIOD_NS 1000
/* A thread that pauses for longer has no missed periods. */
#define MOST_MISSED 1000
#define MOST_VOTES 64
/* What an expiry a period after the one before weighs; or one that fits no period. */
#define FULL_VOTE 8
/* A candidate may be so many periods. */
#define MOST_PARTS 16

static __always_inline u64 slip_of(u64 period_ns)
{
    return (period_ns >> SAME_PERIOD_SHIFT) + SAME_PERIOD_NS;
}

/* Whether `times` of one are the other, and a time that is no multiple would have been told. */
static __always_inline int is_multiple(u64 whole_ns, u64 part_ns, u64 times)
{
    s64 off_ns = whole_ns - times * part_ns;
    u64 slip_ns = times * slip_of(part_ns);

    return (u64)(off_ns < 0 ? -off_ns : off_ns) <= slip_ns && slip_ns < part_ns / 8;
}

/*
 * A candidate that is a few times this gap is no period, but the gap is: expiries before were missed,
 * as those of a thread are that is often late.
 */
static __noinline int divide_period(struct tardy_attach_thread *thread, u64 gap_ns)
{
    if (!thread || !gap_ns)
        return 0;
    u64 parts = (thread->period_ns + gap_ns / 2) / gap_ns;
    if (parts < 2 || parts > MOST_PARTS || !is_multiple(thread->period_ns, gap_ns, parts))
        return 0;
    thread->missed = parts * (thread->hits + thread->missed) - thread->hits;
    thread->hits++;
    thread->period_ns = gap_ns;
    thread->votes = FULL_VOTE;
    return 1;
}

/*
 * The majority among the times from one programmed expiry to the next, as they come. A multiple of
 * the candidate speaks little against it: a thread that is late passes expiries over.
 */
static __always_inline void follow_period(struct tardy_attach_thread *thread)
{
    u64 gap_ns = thread->due_soft_ns - thread->last_ns, period_ns = thread->period_ns;
    u64 last_ns = thread->last_ns;
    u32 weight = FULL_VOTE;

    if (thread->due_soft_ns <= last_ns)
        return;
    thread->last_ns = thread->due_soft_ns;
    if (!last_ns)
        return;
    if (period_ns) {
        u64 times = (gap_ns + period_ns / 2) / period_ns;
        s64 off_ns = gap_ns - times * period_ns;
        if (off_ns < 0)
            off_ns = -off_ns;
        if (times && times <= MOST_MISSED && off_ns <= times * slip_of(period_ns)) {
            thread->hits++;
            thread->missed += times - 1;
            if (times == 1) {
                thread->votes += FULL_VOTE;
                if (thread->votes > MOST_VOTES)
                    thread->votes = MOST_VOTES;
                return;
            }
            if (is_multiple(gap_ns, period_ns, times))
                weight = 1;
        } else if (divide_period(thread, gap_ns)) {
            return;
        } else {
            thread->misses++;
        }
        if (thread->votes >= weight) {
            thread->votes -= weight;
            return;
        }
    }
    thread->period_ns = gap_ns;
    thread->first_ns = last_ns;
    thread->hits = 1;
    thread->misses = 0;
    thread->missed = 0;
    thread->votes = FULL_VOTE;
}

/* Counts the last wake-up. */
static __noinline int settle(struct tardy_attach_thread *thread)
{
    if (!thread || !thread->woken_ns)
        return 0;
    u64 switched_ns = thread->switched_ns, due_ns = thread->due_ns;
    thread->woken[thread->woken_by & (TARDY_ATTACH_WAKERS - 1)]++;
    count_in(&thread->hists[TARDY_ATTACH_DISPATCH], switched_ns - thread->woken_ns);
    if (thread->blocked_ns)
        count_in(&thread->hists[TARDY_ATTACH_BLOCKED], thread->blocked_ns);
    if (due_ns) {
        u64 late_ns = switched_ns > due_ns ? switched_ns - due_ns : 0;
        if (!late_ns)
            thread->in_slack++;
        if (due_ns > thread->due_soft_ns)
            thread->slack_ns += due_ns - thread->due_soft_ns;
        count_in(&thread->hists[TARDY_ATTACH_LATENESS], late_ns);
        /* Who sleeps for a time drifts by what it does in between, however little that is. */
        if (!(thread->relative & TARDY_ATTACH_SLEPT_FOR))
            follow_period(thread);
    }
    thread->woken_ns = 0;
    thread->blocked_ns = 0;
    return 0;
}

static __always_inline void end_thread(struct task_struct *task, u32 pid)
{
    u16 *entry = place_of(pid);

    if (!entry || !*entry)
        return;
    struct tardy_attach_thread *thread = thread_at(*entry);
    if (thread && thread->tid == pid) {
        settle(thread);
        if (attach_config.response)
            count_closed(thread);
        WRITE_ONCE(thread->state, TARDY_ATTACH_ENDED);
    }
    *entry = 0;
}

/* By what it is itself; not by who started it. */
static __always_inline int is_wanted(struct task_struct *task, u64 comm0, u64 comm1)
{
    switch (attach_config.mode) {
    case TARDY_ATTACH_PROCESS:
        return task->tgid == attach_config.target;
    case TARDY_ATTACH_THREAD:
        return task->pid == attach_config.target;
    case TARDY_ATTACH_NAME:
        return comm0 == attach_memory.settings.name[0] && comm1 == attach_memory.settings.name[1];
    }
    return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_sched_process_fork, struct task_struct *parent, struct task_struct *child)
{
    u64 comm0 = *(u64 *)&child->comm[0], comm1 = *(u64 *)&child->comm[8];

    if (attach_config.mode == TARDY_ATTACH_CHILDREN) {
        u32 own = attach_memory.settings.own_pid;
        if (!(own && parent->tgid == own && child->tgid != own) && !get_attached(parent))
            return 0;
    } else if (!is_wanted(child, comm0, comm1)) {
        return 0;
    }
    begin_thread(child, comm0, comm1);
    return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_sched_process_exit, struct task_struct *task)
{
    end_thread(task, task->pid);
    return 0;
}

/* An exec by another thread than the first gives it the number of the first, which is gone. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_sched_process_exec, struct task_struct *task, int old_pid)
{
    u64 comm0 = *(u64 *)&task->comm[0], comm1 = *(u64 *)&task->comm[8];
    u16 *entry = place_of(old_pid);

    if (old_pid == task->pid || !entry)
        return 0;
    u32 was = *entry;
    end_thread(task, old_pid);
    if (attach_config.mode == TARDY_ATTACH_CHILDREN ? was : is_wanted(task, comm0, comm1))
        begin_thread(task, comm0, comm1);
    return 0;
}

/* A thread under another name is another one: its series is. `comm` is the name to come. */
SEC("tp_btf/task_rename")
int BPF_PROG(on_task_rename, struct task_struct *task, const char *comm)
{
    u64 name[2] = {};
    struct tardy_attach_thread *thread = get_attached(task);

    if (!thread && attach_config.mode != TARDY_ATTACH_NAME)
        return 0;
    bpf_probe_read_kernel_str(name, sizeof(name), comm);
    if (thread) {
        if (*(u64 *)&thread->comm[0] == name[0] && *(u64 *)&thread->comm[8] == name[1])
            return 0;
        end_thread(task, task->pid);
    }
    if (attach_config.mode != TARDY_ATTACH_NAME || is_wanted(task, name[0], name[1]))
        begin_thread(task, name[0], name[1]);
    return 0;
}

#endif
