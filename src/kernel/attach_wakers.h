/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Who wakes an attached thread: its own timer, another interrupt, another CPU, a task. */
#ifndef TARDY_ATTACH_WAKERS_H
#define TARDY_ATTACH_WAKERS_H

#include "attach_arrivals.h"
#include "attach_memory.h"
#include "attach_period.h"
#include "attach_response.h"
#include "preempt.h"

/*
 * What a timer's thread needs to know is read when it is woken: most wake somebody else. `now` is a
 * pointer in 6.1 to 6.18 and a value in 7.2 (include/trace/events/timer.h).
 */
SEC("tp_btf/hrtimer_expire_entry")
int BPF_PROG(on_hrtimer_expire_entry, struct hrtimer *timer, u64 now)
{
    struct tardy_attach_cpu *cpu = this_cpu();

    if (!cpu)
        return 0;
    struct tardy_attach_timer *running = &cpu->hard;
    if (timer->is_soft) {
        running = &cpu->soft;
        running->pid = (u32)bpf_get_current_pid_tgid();
    }
    struct hrtimer_clock_base *base = timer->base;
    running->hard_ns = timer->node.expires;
    running->now = now;
    running->base_ns = base->offset;
    running->running = (u64)base + bpf_core_field_offset(struct hrtimer_clock_base, running);
    running->timer = (u64)timer;
    return 0;
}

/*
 * With PREEMPT_RT most timers expire in a softirq, which the interrupt that comes for them raises as
 * soon as it has begun (hrtimer_interrupt in kernel/time/hrtimer.c, 6.1).
 */
SEC("tp_btf/softirq_raise")
int BPF_PROG(on_softirq_raise, u32 vec_nr)
{
    struct tardy_attach_cpu *cpu = this_cpu();

    if (cpu && vec_nr == HRTIMER_SOFTIRQ)
        cpu->raised_ns = bpf_ktime_get_ns();
    return 0;
}

/* The task that a timer of a sleep is to wake; of other timers something else. */
static __always_inline u64 sleeper_of(u64 timer)
{
    u64 task = 0;

    bpf_probe_read_kernel(&task, sizeof(task),
                          (void *)(timer + bpf_core_field_offset(struct hrtimer_sleeper, task)));
    return task;
}

/*
 * Who armed a timer is remembered: when it wakes somebody, that is no longer to be seen. That of a
 * sleep lies on the stack of its thread, so that its address means no other one.
 */
SEC("tp_btf/hrtimer_start")
int BPF_PROG(on_hrtimer_start, struct hrtimer *timer, u32 mode)
{
    struct task_struct *current = bpf_get_current_task_btf();
    u64 address = (u64)timer;

    struct tardy_attach_thread *thread = get_attached(current);
    if (!thread)
        return 0;
    if (sleeper_of(address) == (u64)current) {
        if (thread->arrived)
            count_arrival(thread, task_cpu(current));
        thread->sleep_timer = address;
        thread->sleep_hard_ns = timer->node.expires;
        /* Another sleep: one that was over before it had begun is none that it wakes up from. */
        thread->early_ns = 0;
        thread->relative = (thread->relative & ~TARDY_ATTACH_SLEEPS_FOR)
                           | (mode & HRTIMER_MODE_REL ? TARDY_ATTACH_SLEEPS_FOR : 0);
        u64 now_ns = bpf_ktime_get_ns();
        thread->armed_ns = now_ns;
        /* It is behind its period: of that expiry it is never woken. */
        thread->sleep_until_ns = timer->_softexpires;
        u64 until_ns = thread->sleep_until_ns - timer->base->offset;
        if (!(mode & HRTIMER_MODE_REL) && until_ns <= now_ns)
            thread->overdue_ns = until_ns;
        return 0;
    }
    u32 count = count_at(current, attach_config.preempt_count, attach_config.pcpu_hot);
    /* Timers that the kernel arms in an interrupt of this thread are none of its own. */
    if ((count >> HARDIRQ_SHIFT) & HARDIRQ_MASK
        || softirq_count_of(current, count) & SOFTIRQ_SERVED)
        return 0;
    if (thread->arrived)
        count_arrival(thread, task_cpu(current));
    u32 pid = current->pid;
    bpf_map_update_elem(&attach_timers, &address, &pid, 0);
    if (attach_config.response && thread->tick_timer == address) {
        u64 next_ns = timer->node.expires - timer->base->offset;
        take_tick(thread, current, next_ns, bpf_ktime_get_ns());
    }
    return 0;
}

/*
 * In 7.2 a timer of a program that is over when it is armed is taken off at once, so that it never
 * expires and wakes nobody (hrtimer_check_user_timer in kernel/time/hrtimer.c).
 */
SEC("tp_btf/hrtimer_start_expired")
int BPF_PROG(on_hrtimer_start_expired, struct hrtimer *timer)
{
    struct task_struct *current = bpf_get_current_task_btf();
    struct tardy_attach_thread *thread = get_attached(current);

    if (!thread || !attach_config.response || thread->sleep_timer != (u64)timer
        || thread->relative & TARDY_ATTACH_SLEEPS_FOR)
        return 0;
    if (thread->arrived)
        count_arrival(thread, task_cpu(current));
    s64 offset = timer->base->offset;
    thread->hard_ns = timer->node.expires - offset;
    thread->soft_ns = timer->_softexpires - offset;
    thread->waker = TARDY_ATTACH_BY_TIMER;
    cycle_overrun(thread, current, bpf_ktime_get_ns());
    return 0;
}

SEC("tp_btf/csd_function_entry")
int BPF_PROG(on_csd_function_entry)
{
    struct tardy_attach_cpu *cpu = this_cpu();

    if (cpu)
        cpu->in_call = 1;
    return 0;
}

SEC("tp_btf/csd_function_exit")
int BPF_PROG(on_csd_function_exit)
{
    struct tardy_attach_cpu *cpu = this_cpu();

    if (cpu)
        cpu->in_call = 0;
    return 0;
}

static __always_inline int is_running(struct tardy_attach_timer *timer)
{
    u64 running = 0;

    if (!timer->timer)
        return 0;
    bpf_probe_read_kernel(&running, sizeof(running), (void *)timer->running);
    if (running == timer->timer)
        return 1;
    timer->timer = 0;
    return 0;
}

/* The timer in whose callback this is; NULL where it is in none. */
static __always_inline struct tardy_attach_timer *
running_timer(struct tardy_attach_cpu *cpu, struct task_struct *current)
{
    if (is_running(&cpu->hard))
        return &cpu->hard;
    /* With PREEMPT_RT a task runs callbacks, and others may run meanwhile. */
    if (is_running(&cpu->soft) && (u32)cpu->soft.pid == current->pid)
        return &cpu->soft;
    return NULL;
}

/*
 * Whether the last timer of this CPU is the one of the thread's sleep, and has not woken it yet: it
 * expired as it is armed now. It is in its callback then, and nothing has to be asked.
 */
static __always_inline int is_of_sleep(const struct tardy_attach_thread *thread,
                                       struct tardy_attach_timer *timer)
{
    if (!timer->timer || timer->timer != thread->sleep_timer
        || timer->hard_ns != thread->sleep_hard_ns)
        return 0;
    timer->timer = 0;
    return 1;
}

/* The soft expiry of a timer that is in its callback, which may have set the next one already. */
static __always_inline s64 soft_of(const struct tardy_attach_timer *timer)
{
    s64 soft_ns = 0, hard_ns = timer->hard_ns;

    bpf_probe_read_kernel(&soft_ns, sizeof(soft_ns),
                          (void *)(timer->timer + bpf_core_field_offset(struct hrtimer, _softexpires)));
    return soft_ns < hard_ns ? soft_ns : hard_ns;
}

/* Of the timer's clock, as CLOCK_MONOTONIC. */
static __always_inline u64 monotonic(const struct tardy_attach_timer *timer, u64 expires_ns)
{
    s64 ns = expires_ns - timer->base_ns;

    return ns > 0 ? ns : 1;
}

/*
 * When the interrupt began that came for a timer, and, of one in a softirq, for how long that
 * softirq had to wait. What the timer is told is when either began.
 */
static __always_inline void set_entry(struct tardy_attach_thread *thread,
                                      const struct tardy_attach_cpu *cpu,
                                      const struct tardy_attach_timer *timer, s64 soft_ns)
{
    s64 now_ns;

    if (attach_config.expire_has_time)
        now_ns = timer->now;
    else
        bpf_probe_read_kernel(&now_ns, sizeof(now_ns), (void *)timer->now);
    now_ns -= timer->base_ns;
    thread->entry_ns = now_ns;
    thread->softirq_ns = 0;
    if (timer != &cpu->soft || !attach_config.soft_timers)
        return;
    /* It became due while the softirq waited: then no interrupt had to come for it. */
    s64 due_ns = monotonic(timer, soft_ns), entry_ns = cpu->raised_ns;
    if (entry_ns < due_ns)
        entry_ns = due_ns;
    if (entry_ns >= now_ns)
        return;
    u64 softirq_ns = now_ns - entry_ns;
    thread->entry_ns = entry_ns;
    thread->softirq_ns = softirq_ns > 0xffffffff ? 0xffffffff : softirq_ns;
}

/* The expiry of its own timer that wakes the thread, unless it is one within its cycle: then 1. */
static __always_inline int set_expiry(struct tardy_attach_thread *thread,
                                      const struct tardy_attach_cpu *cpu,
                                      const struct tardy_attach_timer *timer, s64 soft_ns,
                                      int slept_for)
{
    /* When the interrupt began is of interest only where late ones are explained. */
    if (thread->late_ns | thread->deadline_ns)
        set_entry(thread, cpu, timer, soft_ns);
    thread->relative = (thread->relative & ~TARDY_ATTACH_SLEPT_FOR)
                       | (slept_for ? TARDY_ATTACH_SLEPT_FOR : 0);
    if (slept_for && is_aside(thread))
        return 1;
    thread->hard_ns = monotonic(timer, timer->hard_ns);
    thread->soft_ns = monotonic(timer, soft_ns);
    return 0;
}

/* The same of a wake-up by anything but the timer of the thread's last sleep as it armed that. */
static __noinline int set_other_waker(struct tardy_attach_thread *thread,
                                      struct tardy_attach_cpu *cpu)
{
    struct task_struct *current = bpf_get_current_task_btf();
    struct tardy_attach_timer *timer = cpu ? running_timer(cpu, current) : NULL;

    if (!thread)
        return 0;
    if (timer) {
        u64 address = timer->timer;
        int is_sleep = thread->sleep_timer == address;
        thread->waker = TARDY_ATTACH_BY_TIMER;
        if (!is_sleep && !bpf_map_lookup_elem(&attach_timers, &address))
            return 0;
        s64 soft_ns = soft_of(timer);
        /* That it was armed so was not seen. */
        if (!is_sleep || soft_ns != thread->sleep_until_ns)
            thread->armed_ns = 0;
        if (!is_sleep)
            thread->tick_timer = address;
        return set_expiry(thread, cpu, timer, soft_ns,
                          is_sleep && thread->relative & TARDY_ATTACH_SLEEPS_FOR);
    }
    if (cpu && cpu->in_call) {
        thread->waker = TARDY_ATTACH_BY_IPI;
        return 0;
    }
    u32 count = count_at(current, attach_config.preempt_count, attach_config.pcpu_hot);
    int in_interrupt = ((count >> HARDIRQ_SHIFT) & HARDIRQ_MASK)
                       || softirq_count_of(current, count) & SOFTIRQ_SERVED;
    thread->waker = in_interrupt ? TARDY_ATTACH_BY_INTERRUPT : TARDY_ATTACH_BY_TASK;
    return 0;
}

/*
 * Who wakes the thread, and, where that is its own timer, the timer's expiry. Whether that is one
 * within its cycle, which counts as none.
 */
static __always_inline int set_waker(struct tardy_attach_thread *thread,
                                     struct tardy_attach_cpu *cpu)
{
    thread->hard_ns = 0;
    if (!cpu)
        return set_other_waker(thread, cpu);
    /* Else its address is made anew for each field. */
    barrier_var(cpu);
    if (!is_of_sleep(thread, &cpu->hard))
        return set_other_waker(thread, cpu);
    thread->waker = TARDY_ATTACH_BY_TIMER;
    return set_expiry(thread, cpu, &cpu->hard, thread->sleep_until_ns,
                      thread->relative & TARDY_ATTACH_SLEEPS_FOR);
}

#endif
