// SPDX-License-Identifier: GPL-2.0
/*
 * Watches the wake-ups of the measured threads from inside the kernel, and what else happens on
 * each CPU.
 *
 * Interrupts nest, so that a program may run in the midst of another on its CPU: what they share
 * is either written by one kind of program only, or taken with one atomic addition.
 */
#include "bpf.h"
#include "types.h"
#include "recorder.h"
#include "events.h"

char LICENSE[] SEC("license") = "GPL";

/* A task that was switched in so long ago may be in a long path of the kernel. */
#define SUSPECT_NS 100000
/*
 * A walk delays the very wake-up it is about. So stacks are walked on mere suspicion once in this
 * time at the most, and after each suspicion that was wrong half as often, down to the latter.
 */
#define GAP_NS 1000000
#define GAP_MOST_NS 1000000000
/* A timer whose callback began so long ago is not what wakes a thread now. */
#define CALLBACK_NS 1000000

/* The record of a thread; null where it is not measured. */
INLINE struct tardy_thread *measured(struct task_struct *task)
{
    u32 pid = task->pid;
    u32 place = pid * memory.settings.factor >> (memory.settings.shift & 31);
    u32 number = memory.places[place & (TARDY_PLACES - 1)];

    if (task->prio > memory.settings.least_prio || number == 0)
        return 0;
    u32 at = number - 1;
    HOLD(at);
    struct tardy_thread *thread = &memory.threads[at & (TARDY_THREADS - 1)];
    HOLD(thread);
    return thread->tid == pid ? thread : 0;
}

/* What is interrupted: its address, and TARDY_IN_USER and TARDY_NO_PREEMPT. */
INLINE void interrupted(struct tardy_cpu *cpu)
{
    /* The address and the segment lie side by side: so the processor stores them. */
    u64 frame[2] = {};
    u32 count = preempt_count(cpu), flags = 0;
    struct pt_regs *regs = (void *)own_variable(cpu, choices.irq_regs, 8);

    if (regs)
        bpf_probe_read_kernel(frame, sizeof(frame), &regs->ip);
    /* The least count seen is that of this interrupt alone. */
    if (count && count < memory.settings.least_count)
        memory.settings.least_count = count;
    if (count > memory.settings.least_count)
        flags |= TARDY_NO_PREEMPT;
    /* The segment's last two bits are the processor's privilege level. */
    if (frame[1] & 3)
        flags |= TARDY_IN_USER;
    cpu->address = frame[0];
    cpu->entry_flags = flags;
}

SEC("tp_btf/local_timer_entry")
int on_local_timer_entry(u64 *ctx)
{
    struct spot spot;

    if (!here(&spot))
        return 0;
    spot.cpu->entry_ns = spot.now;
    if (choices.record) {
        interrupted(spot.cpu);
        spot.cpu->entry_event = record(&spot, TARDY_VECTOR_ENTRY, spot.cpu->entry_flags, 0, 0,
                                       TARDY_LOCAL_TIMER, spot.cpu->address);
    }
    return 0;
}

/*
 * A timer that expires in a softirq may do so long after its interrupt, and after others: the one
 * that raised the softirq is kept. The kernel raises it once until it has run.
 */
SEC("tp_btf/softirq_raise")
int on_softirq_raise(u64 *ctx)
{
    struct spot spot;

    if ((u32)ctx[0] == SOFTIRQ_HRTIMER && here(&spot))
        spot.cpu->soft.entry_ns = spot.cpu->entry_ns;
    return 0;
}

SEC("tp_btf/hrtimer_expire_entry")
int on_timer(u64 *ctx)
{
    struct hrtimer *timer = (void *)ctx[0];
    u64 expires_ns = timer->_softexpires;
    struct spot spot;

    if (!here(&spot))
        return 0;
    int soft = choices.soft_timers && timer->is_soft;
    struct tardy_expired *expired = soft ? &spot.cpu->soft : &spot.cpu->hard;
    expired->expires_ns = expires_ns;
    if (!soft)
        expired->entry_ns = spot.cpu->entry_ns;
    expired->callback_ns = spot.now;
    if (choices.record && !spot.cpu->bases)
        spot.cpu->bases = (u64)timer->base->cpu_base;
    if (choices.record)
        record(&spot, TARDY_TIMER, 0, 0, 0, expires_ns, (u64)timer->function);
    return 0;
}

/* Whose callback woke the thread: the last one that began on this CPU, of either kind. */
INLINE void copy_timer(struct tardy_thread *thread, struct tardy_cpu *cpu)
{
    int soft = choices.soft_timers && cpu->soft.callback_ns > cpu->hard.callback_ns;
    struct tardy_expired *expired = soft ? &cpu->soft : &cpu->hard;

    thread->expires_ns = expired->expires_ns;
    thread->entry_ns = expired->entry_ns;
    thread->callback_ns = expired->callback_ns;
    thread->in_softirq = soft;
}

INLINE void waking(struct tardy_thread *thread, struct task_struct *task,
                   struct task_struct *current, const struct spot *spot)
{
    copy_timer(thread, spot->cpu);
    thread->waking_ns = spot->now;
    thread->cpu = spot->number;
    if (state_of(task) & STATE_STOPPED)
        thread->stopped_until_ns = spot->now;
    /* Woken on its way to sleep: it keeps the CPU, and no switch follows. */
    if (current == task) {
        thread->switch_cpu = spot->number;
        thread->switch_ns = spot->now;
        thread->pending = 0;
    } else {
        thread->pending = 1;
    }
}

/* Whether this moment is over the limit after the expiry, and `took_ns` is over half of it. */
INLINE int late(const struct tardy_thread *thread, u64 now, u64 took_ns)
{
    u64 late_ns = memory.settings.late_ns;

    return now > thread->expires_ns && now - thread->expires_ns > late_ns && took_ns > late_ns / 2;
}

/* Whether the task that this wake-up interrupted may go on in the kernel for long. */
INLINE int suspect(struct task_struct *task, struct task_struct *current, const struct spot *spot)
{
    /* Who did it once is suspected at once. */
    if (spot->now - spot->cpu->switched_ns < SUSPECT_NS
        && spot->cpu->culprit != (u16)current->pid)
        return 0;
    if (choices.preemptible && !(spot->cpu->entry_flags & TARDY_NO_PREEMPT))
        return 0;
    return current->prio >= task->prio && cpu_of(task) == spot->number;
}

/* Why the stack of the task that this wake-up interrupted is worth walking; 0: it is not. */
INLINE u32 why_walk(struct tardy_thread *thread, struct task_struct *task,
                    struct task_struct *current, const struct spot *spot)
{
    struct tardy_cpu *cpu = spot->cpu;
    u64 now = spot->now;

    /* Not by a timer; or what was interrupted is idle, the thread itself or in user mode. */
    if (now - thread->callback_ns > CALLBACK_NS || !current->pid || current == task
        || cpu->entry_flags & TARDY_IN_USER)
        return 0;
    thread->suspect = suspect(task, current, spot);
    if (!thread->in_softirq && thread->entry_ns > thread->expires_ns
        && late(thread, now, thread->entry_ns - thread->expires_ns))
        return TARDY_LATE_INTERRUPT;
    if (choices.stacks == TARDY_STACKS_ALWAYS)
        return TARDY_SUSPECT;
    return thread->suspect && now - cpu->walked_ns >= cpu->gap_ns ? TARDY_SUSPECT : 0;
}

INLINE void look(void *ctx, struct tardy_thread *thread, struct task_struct *task,
                 struct task_struct *current, const struct spot *spot)
{
    thread->suspect = 0;
    thread->walk_ns = 0;
    u32 why = why_walk(thread, task, current, spot);
    if (!why)
        return;
    if (why == TARDY_SUSPECT)
        spot->cpu->walked_ns = spot->now;
    else
        tell_enabled(spot);
    if (choices.stacks != TARDY_STACKS_OFF)
        thread->walk_ns = walk(ctx, why, current->pid);
}

/* Learns from whether a suspicion came true, and whom to suspect. */
INLINE void judge(const struct tardy_thread *thread, struct task_struct *prev,
                  const struct spot *spot)
{
    struct tardy_cpu *cpu = spot->cpu;
    u64 took_ns = spot->now - thread->waking_ns - thread->walk_ns;

    if (late(thread, spot->now, took_ns) && worth(took_ns)) {
        cpu->culprit = prev->pid;
        cpu->gap_ns = GAP_NS;
        return;
    }
    if (!thread->suspect)
        return;
    cpu->culprit = 0;
    if (thread->walk_ns && cpu->gap_ns < GAP_MOST_NS)
        cpu->gap_ns = cpu->gap_ns < GAP_NS ? GAP_NS : cpu->gap_ns * 2;
}

SEC("tp_btf/sched_waking")
int on_waking(u64 *ctx)
{
    struct task_struct *task = (void *)ctx[0];
    struct tardy_thread *thread = measured(task);
    int prio = task->prio;
    struct spot spot;

    if (!thread && !(choices.record && prio < FIRST_FAIR))
        return 0;
    if (!here(&spot))
        return 0;
    struct task_struct *current = bpf_get_current_task_btf();
    if (thread)
        waking(thread, task, current, &spot);
    if (choices.record) {
        record(&spot, TARDY_WAKING, 0, prio, task->pid, current->pid, cpu_of(task));
        if (thread)
            look(ctx, thread, task, current, &spot);
    }
    return 0;
}

/*
 * Whether the stack of `prev`, which kept the measured thread off the CPU, tells anything: not
 * where it had the right to, and not where it was interrupted in user mode and made way at once.
 */
INLINE int kept_off(const struct tardy_thread *thread, struct task_struct *prev,
                    struct task_struct *next, const struct spot *spot)
{
    struct tardy_cpu *cpu = spot->cpu;

    u64 took_ns = spot->now - thread->waking_ns;

    if (!late(thread, spot->now, took_ns))
        return 0;
    if (!worth(took_ns) && choices.stacks != TARDY_STACKS_ALWAYS)
        return 0;
    if (!prev->pid || prev->prio < next->prio)
        return 0;
    return !(cpu->entry_flags & TARDY_IN_USER && cpu->entry_ns == thread->entry_ns);
}

/* The measured thread `next` is switched in. */
INLINE void switched_in(void *ctx, struct tardy_thread *thread, struct task_struct *prev,
                        struct task_struct *next, const struct spot *spot)
{
    if (!thread->pending)
        return;
    thread->switch_cpu = spot->number;
    thread->pending = 0;
    thread->switch_ns = spot->now;
    if (!choices.record || !choices.stacks)
        return;
    judge(thread, prev, spot);
    if (kept_off(thread, prev, next, spot))
        walk(ctx, TARDY_LATE_DISPATCH, prev->pid);
}

SEC("tp_btf/sched_switch")
int on_switch(u64 *ctx)
{
    struct task_struct *prev = (void *)ctx[1];
    struct task_struct *next = (void *)ctx[2];
    u64 state = ctx[0] ? 0 : state_of(prev);
    struct tardy_thread *to = measured(next);
    struct tardy_thread *from = state & STATE_STOPPED ? measured(prev) : 0;
    struct spot spot;

    if (!choices.record && !to && !from)
        return 0;
    if (!here(&spot))
        return 0;
    if (from)
        from->stopped_from_ns = spot.now;
    if (choices.record)
        record_switch(&spot, next, state);
    if (to)
        switched_in(ctx, to, prev, next, &spot);
    return 0;
}

#include "context.h"
