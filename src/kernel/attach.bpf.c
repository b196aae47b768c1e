// SPDX-License-Identifier: GPL-2.0
/*
 * Follows threads of others: which threads these are, as they come, change their names and go; and
 * of each how long it takes from a wake-up to the CPU, and what it does then. Nothing is sent:
 * histograms of each thread grow in memory that user space maps.
 *
 * A program that runs for each switch of tasks must cost others little: whether a thread is
 * attached is one look into a flat array by its number.
 *
 * Here is what happens at its wake-ups and switches; attach_arrivals.h has what follows once it has
 * the CPU, attach_threads.h which threads these are, attach_wakers.h who wakes them,
 * attach_response.h how long their work takes, attach_sleeps.h for what they sleep, attach_waits.h
 * where an event loop enters its wait, attach_memory.h what is kept.
 */
#include "bpf.h"
#include "attach.h"
#include "attach_arrivals.h"
#include "attach_memory.h"
#include "attach_period.h"
#include "attach_response.h"
#include "attach_threads.h"
#include "attach_waits.h"
#include "attach_wakers.h"

char LICENSE[] SEC("license") = "GPL";

/* What it did since its last wake-up is over. */
static __noinline int count_work(struct tardy_attach_thread *thread)
{
    if (!thread)
        return 0;
    if (thread->whole) {
        count_in(&thread->hists[TARDY_ATTACH_RUN], thread->run_ns);
        if (thread->wait_ns)
            count_in(&thread->hists[TARDY_ATTACH_READY], thread->wait_ns);
    }
    thread->whole = 0;
    return 0;
}

/* It has the lock for which it slept, and is ready. */
static __noinline int leave_lock(struct tardy_attach_thread *thread, u64 now_ns)
{
    if (!thread)
        return 0;
    if (attach_config.response && thread->cycle_ns) {
        thread->cycle_sleep = TARDY_ATTACH_WAIT_OTHER;
        add_wait(thread, after(now_ns, thread->ready_ns));
    }
    thread->ready_ns = now_ns;
    thread->relative &= ~TARDY_ATTACH_IN_LOCK;
    return 0;
}

/*
 * The thread was preempted between arming the timer of its sleep and that sleep, and the timer has
 * expired: it is ready and has nothing to wait for, but try_to_wake_up tells of it all the same
 * (kernel/sched/core.c, 6.1). From here on it is late; what it did before ended when it armed that.
 */
static __noinline int wake_ready(struct tardy_attach_thread *thread, struct task_struct *task)
{
    if (!thread)
        return 0;
    u32 number = bpf_get_smp_processor_id();
    struct tardy_attach_cpu *cpu = cpu_at(number);
    if (!cpu || thread->waking_ns || !thread->sleep_timer
        || cpu->hard.timer != thread->sleep_timer)
        return 0;
    u64 now_ns = bpf_ktime_get_ns();
    if (set_waker(thread, cpu) || !thread->hard_ns)
        return 0;
    thread->wait_ns += after(now_ns, thread->ready_ns);
    count_work(thread);
    if (attach_config.response && thread->cycle_ns)
        thread->cycle_done_ns = thread->armed_ns ? thread->armed_ns : thread->ready_ns;
    thread->ready_ns = 0;
    thread->woken_on = number;
    thread->waking_ns = now_ns;
    thread->out_ns = 0;
    return 0;
}

/* It has not left its CPU yet, as far as was seen: whether it will, shows there. */
static __noinline int wake_running(struct tardy_attach_thread *thread, struct task_struct *task)
{
    if (!thread)
        return 0;
    u32 number = bpf_get_smp_processor_id();
    u64 now_ns = bpf_ktime_get_ns();
    if (thread->arrived)
        count_arrival(thread, task_cpu(task));
    set_waker(thread, cpu_at(number));
    thread->woken_on = number;
    thread->early_ns = now_ns;
    if (attach_config.response)
        cycle_overrun(thread, task, now_ns);
    return 0;
}

/*
 * It was not seen to go to the sleep from which it is woken. Nobody can be woken twice who has not
 * run in between, and who was seen to go to sleep has since been switched out by the kernel only if
 * that was not seen.
 */
static __noinline int wake_unseen(struct tardy_attach_thread *thread, struct task_struct *task)
{
    if (!thread)
        return 0;
    if (thread->waking_ns || thread->out_ns) {
        lose_sight(thread);
        note_switches(thread, task);
        thread->out_ns = 0;
    }
    if (attach_config.response)
        note_faults(thread, task);
    return 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(on_sched_waking, struct task_struct *task)
{
    struct tardy_attach_thread *thread = find_attached(task->pid);

    if (!thread)
        return 0;
    if (thread->in_ns) {
        wake_running(thread, task);
        return 0;
    }
    if (thread->ready_ns) {
        if (thread->relative & TARDY_ATTACH_IN_LOCK)
            leave_lock(thread, bpf_ktime_get_ns());
        else
            wake_ready(thread, task);
        return 0;
    }
    if (thread->waking_ns || !thread->out_ns || slept_elsewhere(thread, task))
        wake_unseen(thread, task);
    u64 now_ns = bpf_ktime_get_ns();
    u32 number = bpf_get_smp_processor_id();
    if (set_waker(thread, cpu_at(number))) {
        thread->asides++;
        thread->asides_now++;
        thread->own_wakes++;
        thread->waits_for_next = 0;
    }
    thread->woken_on = number;
    thread->waking_ns = now_ns;
    return 0;
}

/* Read by its places in attached_thread.rs. */
#define LATE_AT(field) __builtin_offsetof(struct tardy_attach_late, field)
_Static_assert(LATE_AT(entry_ns) == 8 && LATE_AT(waking_ns) == 16 && LATE_AT(switch_ns) == 24,
               "times");
_Static_assert(LATE_AT(done_ns) == 56, "the end");
_Static_assert(LATE_AT(tid) == 32 && LATE_AT(place) == 36 && LATE_AT(woken_on) == 40
                   && LATE_AT(switched_on) == 44,
               "numbers");

/* Hands a late wake-up over, so that its cause can be looked for. */
static __noinline int hand_over(struct tardy_attach_thread *thread, struct task_struct *task,
                                u64 now_ns)
{
    struct tardy_attach_late late = {};

    if (!thread)
        return 0;
    u16 *place = place_of(thread->tid);
    late.hard_ns = thread->wants_lateness ? thread->hard_ns : 0;
    late.entry_ns = thread->entry_ns;
    late.waking_ns = thread->waking_ns;
    late.switch_ns = now_ns;
    late.tid = thread->tid;
    late.place = place ? *place : 0;
    late.woken_on = thread->woken_on;
    late.switched_on = bpf_get_smp_processor_id();
    late.prio = task->prio;
    late.softirq_ns = thread->softirq_ns;
    if (bpf_ringbuf_output(&attach_late, &late, sizeof(late), BPF_RB_NO_WAKEUP))
        __sync_fetch_and_add(&attach_memory.settings.dropped, 1);
    return 0;
}

/* It was not seen to leave its CPU since, or never: what woke it may have been for that time. */
static __noinline int arrive_unseen(struct tardy_attach_thread *thread, struct task_struct *task)
{
    if (!thread)
        return 0;
    if (thread->arrived)
        count_arrival(thread, task_cpu(task));
    if (!thread->switches)
        return 0;
    lose_sight(thread);
    thread->waking_ns = 0;
    thread->ready_ns = 0;
    thread->out_ns = 0;
    return 0;
}

static __always_inline void switch_in(struct tardy_attach_thread *thread,
                                      struct task_struct *task, u64 now_ns)
{
    u64 least_ns = thread->late_ns;

    /* Woken on its way to sleep, and asleep for no time that anybody saw. */
    if (!thread->waking_ns && thread->out_ns && thread->early_ns)
        thread->waking_ns = thread->out_ns;
    if (thread->switches != switches_of(task))
        arrive_unseen(thread, task);
    if (least_ns && thread->waking_ns) {
        u64 from_ns = thread->wants_lateness ? thread->hard_ns : thread->waking_ns;
        if (from_ns && now_ns > from_ns && now_ns - from_ns > least_ns)
            hand_over(thread, task, now_ns);
    }
    thread->in_ns = now_ns;
    thread->arrived = 1;
}

static __always_inline void switch_out(struct tardy_attach_thread *thread,
                                       struct task_struct *task, u64 state, u64 now_ns)
{
    /*
     * With PREEMPT_RT it sleeps for a spinlock, and goes on with what it does, which may be to go to
     * sleep (rtlock_slowlock_locked in kernel/locking/rtmutex.c, 6.1).
     */
    int in_lock = (state & TASK_RTLOCK_WAIT) != 0;
    if (in_lock)
        state = 0;
    if (thread->arrived)
        count_arrival(thread, task_cpu(task));
    settle(thread);
    /* It was seen to go, or to be woken, and not to get the CPU. */
    if (!thread->in_ns && (thread->out_ns || thread->waking_ns || thread->ready_ns))
        lose_sight(thread);
    if (attach_config.response)
        cycle_out(thread, task, state, now_ns);
    if (thread->in_ns)
        thread->run_ns += now_ns - thread->in_ns;
    note_switches(thread, task);
    thread->in_ns = 0;
    thread->waking_ns = 0;
    thread->ready_ns = 0;
    if (!state) {
        if (in_lock)
            thread->relative |= TARDY_ATTACH_IN_LOCK;
        else
            thread->preempted++;
        thread->ready_ns = now_ns;
        return;
    }
    count_work(thread);
    thread->prio = task->prio;
    thread->out_ns = now_ns;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_sched_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
    struct tardy_attach_thread *from = get_attached(prev);
    u64 now_ns = 0;

    if (from) {
        now_ns = bpf_ktime_get_ns();
        u64 state = preempt ? 0 : left_state(ctx, prev, attach_config.switch_has_state);
        switch_out(from, prev, state, now_ns);
    }
    struct tardy_attach_thread *to = find_attached(next->pid);
    if (to)
        switch_in(to, next, now_ns ? now_ns : bpf_ktime_get_ns());
    return 0;
}
