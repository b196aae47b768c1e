// SPDX-License-Identifier: GPL-2.0
/*
 * Traces the wake-ups of the measured threads, and what else happens on each CPU.
 *
 * Interrupts nest, so that a program may interrupt another one on its CPU: what they share is
 * either written by one kind of program only, or taken with one atomic addition.
 */
#include "bpf.h"
#include "recorder.h"
#include "events.h"
#include "functions.h"

char LICENSE[] SEC("license") = "GPL";

/* A task that was switched in so long ago may be in a long path of the kernel. */
#define LONG_RUN_NS 100000
/*
 * A walk delays the very wake-up it is about. So stacks are walked on mere suspicion once in this
 * time at most, and after each wrong suspicion half as often, down to once in the maximum.
 */
#define WALK_INTERVAL_NS 1000000
#define WALK_INTERVAL_MAX_NS 1000000000
/* A timer whose callback began so long ago is not what wakes a thread now. */
#define CALLBACK_MAX_NS 1000000
/* An interrupt of an idle CPU that comes so late has been kept by somebody. */
#define LATE_ENTRY_NS 5000
/* In `in_timer`: where the interrupt came has not been read. */
#define ENTRY_UNREAD 2

/*
 * The record of the thread with that number; NULL where it is not measured. Each read of a task is
 * checked by kernels before 6.2, and costs ten instructions: what is read once is passed on.
 */
static __always_inline struct tardy_thread *find_thread(u32 pid)
{
    u32 entry = memory.thread_hash[pid * memory.settings.hash_factor >> TARDY_HASH_SHIFT];

    if (entry == 0)
        return NULL;
    u32 at = entry - 1;
    barrier_var(at);
    struct tardy_thread *thread = &memory.threads[at & (TARDY_THREADS - 1)];
    barrier_var(thread);
    return thread->tid == pid ? thread : NULL;
}

/* The same where the priority is known, which few tasks share with a measured thread. */
static __always_inline struct tardy_thread *get_thread(u32 pid, int prio)
{
    return prio > memory.settings.max_prio ? NULL : find_thread(pid);
}

/* Where the timer interrupt came: address, TARDY_IN_USER and TARDY_NO_PREEMPT. */
static __always_inline void save_irq_regs(struct tardy_cpu *cpu)
{
    /* `ip` and `cs` are adjacent: the processor stores them so. */
    u64 frame[2] = {};
    u32 count = preempt_count(cpu), flags = 0;
    struct pt_regs *regs = (void *)read_percpu(cpu, config.irq_regs, 8);

    if (regs)
        bpf_probe_read_kernel(frame, sizeof(frame), &regs->ip);
    /* The smallest count seen is that of this interrupt alone. */
    if (count && count < memory.settings.min_preempt_count)
        memory.settings.min_preempt_count = count;
    if (count > memory.settings.min_preempt_count)
        flags |= TARDY_NO_PREEMPT;
    /* The last two bits of `cs` are the privilege level. */
    if (frame[1] & 3)
        flags |= TARDY_IN_USER;
    cpu->entry_ip = frame[0];
    cpu->entry_flags = flags;
}

/* Reads what was left out at the entry of the present interrupt. */
static __always_inline void read_entry(struct tardy_cpu *cpu)
{
    if (cpu->in_timer == ENTRY_UNREAD) {
        cpu->in_timer = 1;
        save_irq_regs(cpu);
    }
}

SEC("tp_btf/local_timer_entry")
int BPF_PROG(on_local_timer_entry)
{
    struct trace_context tc;

    if (!get_trace_context(&tc))
        return 0;
    tc.cpu->entry_ns = tc.now_ns;
    trace_steal(&tc);
    tc.cpu->in_timer = 1;
    /* An idle CPU is in the kernel, and can be preempted: where, matters only if it is late. */
    if (bpf_get_current_task_btf()->pid) {
        save_irq_regs(tc.cpu);
    } else {
        tc.cpu->entry_ip = 0;
        tc.cpu->entry_flags = 0;
        tc.cpu->in_timer = ENTRY_UNREAD;
    }
    return 0;
}

/* One event for all of it: it is on the way of each wake-up. */
SEC("tp_btf/local_timer_exit")
int BPF_PROG(on_local_timer_exit)
{
    struct trace_context tc;

    if (!get_trace_context(&tc) || !tc.cpu->in_timer)
        return 0;
    tc.cpu->in_timer = 0;
    write_event(&tc, TARDY_TIMER_INTERRUPT, tc.cpu->entry_flags, 0, 0,
                tc.now_ns - tc.cpu->entry_ns, tc.cpu->entry_ip);
    return 0;
}

/*
 * A timer that expires in a softirq may do so long after its interrupt, and after others: the one
 * that raised the softirq is kept. The kernel raises it once until it has run.
 */
SEC("tp_btf/softirq_raise")
int BPF_PROG(on_softirq_raise, u32 vec_nr)
{
    struct trace_context tc;

    if (vec_nr != HRTIMER_SOFTIRQ || !get_trace_context(&tc))
        return 0;
    tc.cpu->soft.entry_ns = tc.cpu->entry_ns;
    tc.cpu->raised_ns = tc.now_ns;
    /* How late it is shows only in the softirq. */
    if (config.record)
        read_entry(tc.cpu);
    return 0;
}

/*
 * Whether an interrupt came too early for this timer: then it was not in that one that the timer
 * expired. Timers of clocks that are set are due by an offset later than by CLOCK_MONOTONIC.
 */
static __always_inline int is_before_due(u64 entry_ns, struct hrtimer *timer)
{
    s64 due_ns = timer->_softexpires;

    if (entry_ns && (s64)entry_ns >= due_ns)
        return 0;
    return !entry_ns || (s64)entry_ns < due_ns - timer->base->offset;
}

/* The time that a timer is told, of its own clock. */
static __always_inline s64 told_ns_of(u64 now)
{
    s64 told_ns = now;

    if (!config.expire_has_time)
        bpf_probe_read_kernel(&told_ns, sizeof(told_ns), (void *)now);
    return told_ns;
}

/*
 * When the interrupt began in which this timer expires. Those of timers that are not the CPU's own
 * have no local_timer_entry: Hyper-V's (sysvec_hyperv_stimer0 in arch/x86/kernel/cpu/mshyperv.c),
 * Xen's (xen_timer_interrupt in arch/x86/xen/time.c), the HPET's, and that of a broadcast, all 6.1.
 * There the time counts that the timer is told: hrtimer_interrupt (kernel/time/hrtimer.c) reads the
 * clock first, and again for what has become due meanwhile.
 */
static __always_inline u64 interrupt_ns(struct tardy_cpu *cpu, struct hrtimer *timer, u64 now)
{
    if (!is_before_due(cpu->entry_ns, timer))
        return cpu->entry_ns;
    s64 told_ns = told_ns_of(now) - timer->base->offset;
    /* What was read of an earlier interrupt says nothing of this one. */
    if (!cpu->in_timer) {
        cpu->entry_ns = told_ns;
        cpu->entry_ip = 0;
        cpu->entry_flags = 0;
    }
    return told_ns;
}

/* The same of a timer that expires in a softirq: the interrupt raised it as soon as it began. */
static __always_inline u64 softirq_interrupt_ns(struct tardy_cpu *cpu, struct hrtimer *timer)
{
    if (!is_before_due(cpu->soft.entry_ns, timer))
        return cpu->soft.entry_ns;
    if (!is_before_due(cpu->raised_ns, timer))
        return cpu->raised_ns;
    /* It became due while the softirq waited, so that no interrupt had to come for it. */
    return timer->_softexpires - timer->base->offset;
}

SEC("tp_btf/hrtimer_expire_entry")
int BPF_PROG(on_hrtimer_expire_entry, struct hrtimer *timer, u64 now)
{
    u64 expires_ns = timer->_softexpires;
    struct trace_context tc;

    if (!get_cpu(&tc))
        return 0;
    int soft = config.soft_timers && timer->is_soft;
    struct tardy_expired *expired = soft ? &tc.cpu->soft : &tc.cpu->hard;
    if (!config.record && !soft) {
        /* A stage ends with the interrupt's begin. Its clock is that of all measured threads. */
        u64 told_ns = told_ns_of(now);
        expired->expires_ns = expires_ns;
        expired->entry_ns = told_ns;
        expired->callback_ns = told_ns;
        return 0;
    }
    u64 entry_ns = soft ? softirq_interrupt_ns(tc.cpu, timer) : interrupt_ns(tc.cpu, timer, now);
    tc.now_ns = bpf_ktime_get_ns();
    expired->expires_ns = expires_ns;
    expired->entry_ns = entry_ns;
    expired->callback_ns = tc.now_ns;
    if (!config.record)
        return 0;
    if (!soft && entry_ns - expires_ns > LATE_ENTRY_NS)
        read_entry(tc.cpu);
    if (!tc.cpu->hrtimer_bases)
        tc.cpu->hrtimer_bases = (u64)timer->base->cpu_base;
    write_event(&tc, TARDY_TIMER, 0, 0, 0, expires_ns, (u64)timer->function);
    return 0;
}

/*
 * The timer that woke the thread: the last one of either kind whose callback began on this CPU. One
 * callback wakes one measured thread: false where that timer has woken one already, so that it is
 * somebody else, such as the owner of a lock, who wakes this one.
 */
static __always_inline int take_timer(struct tardy_thread *thread, struct tardy_cpu *cpu)
{
    int soft = config.soft_timers && cpu->soft.callback_ns > cpu->hard.callback_ns;
    struct tardy_expired *expired = soft ? &cpu->soft : &cpu->hard;

    if (!expired->callback_ns)
        return 0;
    thread->expires_ns = expired->expires_ns;
    thread->entry_ns = expired->entry_ns;
    thread->callback_ns = expired->callback_ns;
    thread->in_softirq = soft;
    expired->callback_ns = 0;
    return 1;
}

static __always_inline void trace_wakeup(struct tardy_thread *thread, struct task_struct *task,
                                         struct task_struct *current,
                                         const struct trace_context *tc)
{
    /* Nothing else wakes a stopped thread than that it may go on. */
    if (thread->stopped_from_ns > thread->stopped_until_ns)
        thread->stopped_until_ns = tc->now_ns;
    /* The record stays that of the timer: what follows is the thread's way to user space. */
    if (config.woken_by != TARDY_BY_MESSAGES && !take_timer(thread, tc->cpu)
        && config.woken_by == TARDY_BY_TIMERS)
        return;
    thread->waking_ns = tc->now_ns;
    thread->cpu = tc->cpu_id;
    /* Woken on its way to sleep: it keeps the CPU, and no switch follows. */
    if (current == task) {
        thread->switch_cpu = tc->cpu_id;
        thread->switch_ns = tc->now_ns;
        thread->pending = 0;
    } else {
        thread->pending = 1;
    }
}

/*
 * Whether this moment is over the limit after the expiry, and `delay_ns` is over half of it; of a
 * message, when it was sent is not known here.
 */
static __always_inline int is_late(const struct tardy_thread *thread, u64 now_ns, u64 delay_ns)
{
    u64 late_ns = memory.settings.late_ns;

    if (config.woken_by != TARDY_BY_TIMERS)
        return delay_ns > late_ns / 2;
    return now_ns > thread->expires_ns && now_ns - thread->expires_ns > late_ns
        && delay_ns > late_ns / 2;
}

/* Whether the task that this wake-up interrupted may stay in the kernel for long. */
static __always_inline int may_delay_preemption(struct task_struct *task, struct task_struct *current,
                                        const struct trace_context *tc)
{
    /* The task that did so last is suspected at once. */
    if (tc->now_ns - tc->cpu->switch_ns < LONG_RUN_NS
        && tc->cpu->blocker_pid != (u16)current->pid)
        return 0;
    if (config.preemptible && !(tc->cpu->entry_flags & TARDY_NO_PREEMPT))
        return 0;
    return current->prio >= task->prio && task_cpu(task) == tc->cpu_id;
}

/* Why to walk the stack of the task that this wake-up interrupted (enum tardy_stack_reason); 0: do not. */
static __always_inline u32 wakeup_stack_reason(struct tardy_thread *thread,
                                              struct task_struct *task,
                                              struct task_struct *current,
                                              const struct trace_context *tc)
{
    struct tardy_cpu *cpu = tc->cpu;
    u64 now_ns = tc->now_ns;

    /* A message: since the timer interrupt there was a switch. */
    if (config.woken_by == TARDY_BY_BOTH && cpu->switch_ns > cpu->entry_ns)
        return 0;
    /* Not by a timer; or what was interrupted is the thread itself, or was in user mode. */
    if (now_ns - thread->callback_ns > CALLBACK_MAX_NS || current == task
        || cpu->entry_flags & TARDY_IN_USER)
        return 0;
    thread->suspect = may_delay_preemption(task, current, tc);
    if (!thread->in_softirq && thread->entry_ns > thread->expires_ns
        && is_late(thread, now_ns, thread->entry_ns - thread->expires_ns))
        return TARDY_LATE_INTERRUPT;
    if (config.stacks == TARDY_STACKS_ALWAYS)
        return TARDY_SUSPECT;
    return thread->suspect && now_ns - cpu->walk_ns >= cpu->walk_interval_ns ? TARDY_SUSPECT : 0;
}

static __always_inline void trace_wakeup_stack(void *ctx, struct tardy_thread *thread,
                                               struct task_struct *task,
                                               struct task_struct *current,
                                               const struct trace_context *tc)
{
    u32 reason = wakeup_stack_reason(thread, task, current, tc);
    if (!reason)
        return;
    if (reason == TARDY_SUSPECT)
        tc->cpu->walk_ns = tc->now_ns;
    else
        flag_irqs_just_enabled(tc);
    if (config.stacks != TARDY_STACKS_OFF)
        thread->walk_ns = walk_stack(ctx, reason, current->pid);
}

/* Walks on suspicion less often where suspicions are wrong, and remembers who kept the CPU. */
static __always_inline void adapt_walk_interval(const struct tardy_thread *thread,
                                                struct task_struct *prev,
                                                const struct trace_context *tc)
{
    struct tardy_cpu *cpu = tc->cpu;
    u64 delay_ns = tc->now_ns - thread->waking_ns - thread->walk_ns;

    if (is_late(thread, tc->now_ns, delay_ns) && can_afford_walk(delay_ns)) {
        cpu->blocker_pid = prev->pid;
        cpu->walk_interval_ns = WALK_INTERVAL_NS;
        return;
    }
    if (!thread->suspect)
        return;
    cpu->blocker_pid = 0;
    if (!thread->walk_ns || cpu->walk_interval_ns >= WALK_INTERVAL_MAX_NS)
        return;
    if (cpu->walk_interval_ns < WALK_INTERVAL_NS)
        cpu->walk_interval_ns = WALK_INTERVAL_NS;
    else
        cpu->walk_interval_ns *= 2;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(on_sched_waking, struct task_struct *task)
{
    u32 pid = task->pid;
    struct task_struct *current;
    struct trace_context tc;

    if (!config.record) {
        struct tardy_thread *woken = find_thread(pid);
        if (woken && get_trace_context(&tc))
            trace_wakeup(woken, task, bpf_get_current_task_btf(), &tc);
        return 0;
    }
    int prio = task->prio;
    struct tardy_thread *thread = get_thread(pid, prio);
    if (!thread && prio >= MAX_RT_PRIO)
        return 0;
    if (!get_trace_context(&tc))
        return 0;
    current = bpf_get_current_task_btf();
    if (thread)
        trace_wakeup(thread, task, current, &tc);
    u32 flags = thread ? hold_of(task, pid, prio) : 0;
    u32 by = current->pid;
    if (is_served(current))
        flags |= TARDY_SERVED;
    write_event(&tc, TARDY_WAKING, flags, prio, pid, by, task_cpu(task));
    if (thread) {
        thread->suspect = 0;
        thread->walk_ns = 0;
    }
    /* An idle CPU kept nobody, and who sends a message is not in the way of who receives it. */
    if (thread && by && config.woken_by != TARDY_BY_MESSAGES)
        trace_wakeup_stack(ctx, thread, task, current, &tc);
    return 0;
}

/*
 * Whether to walk the stack of `prev`, which kept the CPU from the measured thread: not where its
 * priority entitled it to, and not where it was interrupted in user mode and preempted at once.
 */
static __always_inline int should_walk_prev(const struct tardy_thread *thread,
                                            struct task_struct *prev, struct task_struct *next,
                                            const struct trace_context *tc)
{
    struct tardy_cpu *cpu = tc->cpu;
    u64 delay_ns = tc->now_ns - thread->waking_ns;

    if (!is_late(thread, tc->now_ns, delay_ns))
        return 0;
    if (!can_afford_walk(delay_ns) && config.stacks != TARDY_STACKS_ALWAYS)
        return 0;
    if (!prev->pid || prev->prio < next->prio)
        return 0;
    return !(cpu->entry_flags & TARDY_IN_USER && cpu->entry_ns == thread->entry_ns);
}

/* What a stage needs of a measured thread that is switched in; false where nothing had woken it. */
static __always_inline int end_wakeup(struct tardy_thread *thread, u32 cpu_id, u64 now_ns)
{
    if (!thread->pending)
        return 0;
    thread->switch_cpu = cpu_id;
    thread->pending = 0;
    thread->switch_ns = now_ns;
    return 1;
}

/* The measured thread `next` is switched in. */
static __always_inline void trace_switch_in(void *ctx, struct tardy_thread *thread,
                                            struct task_struct *prev, struct task_struct *next,
                                            const struct trace_context *tc)
{
    if (!end_wakeup(thread, tc->cpu_id, tc->now_ns) || !config.stacks)
        return;
    /* Where nobody is suspected, what is in time changes nothing in either. */
    if (!thread->suspect && !is_late(thread, tc->now_ns, tc->now_ns - thread->waking_ns))
        return;
    adapt_walk_interval(thread, prev, tc);
    if (should_walk_prev(thread, prev, next, tc)) {
        trace_unfinished_work(prev->pid);
        walk_stack(ctx, TARDY_LATE_DISPATCH, prev->pid);
    }
}

/* What a stage needs of a switch. */
static __always_inline void trace_stages(struct task_struct *prev, u64 prev_state,
                                         struct task_struct *next)
{
    struct tardy_thread *to = find_thread(next->pid);

    if (to)
        end_wakeup(to, bpf_get_smp_processor_id(), bpf_ktime_get_ns());
    if (prev_state & (__TASK_STOPPED | __TASK_TRACED)) {
        struct tardy_thread *from = find_thread(prev->pid);
        if (from)
            from->stopped_from_ns = bpf_ktime_get_ns();
    }
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_sched_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
    u64 prev_state = preempt ? 0 : left_state(ctx, prev, config.switch_has_state);
    struct trace_context tc;

    if (!config.record) {
        trace_stages(prev, prev_state, next);
        return 0;
    }
    u32 pid = next->pid;
    int prio = next->prio;
    if (!get_trace_context(&tc))
        return 0;
    u32 reason = switch_out_reason(prev, prev_state);
    if (reason == TARDY_OUT_STOPPED) {
        struct tardy_thread *from = get_thread(prev->pid, prev->prio);
        if (from)
            from->stopped_from_ns = tc.now_ns;
    }
    if (config.futexes && reason >= TARDY_OUT_FUTEX && can_tell_futex()
        && get_thread(prev->pid, prev->prio))
        trace_futex(&tc, prev, reason);
    trace_task(&tc, TARDY_SWITCH, reason | runs_ahead(next, prio), next, pid, prio);
    struct tardy_thread *to = get_thread(pid, prio);
    if (to)
        trace_switch_in(ctx, to, prev, next, &tc);
    /* Until here it is the switch to `prev`. */
    tc.cpu->switch_ns = tc.now_ns;
    return 0;
}

#include "context.h"
