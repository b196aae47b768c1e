// SPDX-License-Identifier: GPL-2.0
/*
 * Watches the wake-ups of the measured threads from inside the kernel.
 *
 * Interrupts nest, so that a program may run in the midst of another on its CPU: what they share
 * is either written by one kind of program only, or taken with one atomic addition.
 */
#include "bpf.h"
#include "recorder.h"

char LICENSE[] SEC("license") = "GPL";

/* The fields that are used, of the types they are in. */
struct task_struct {
    int pid;
    int prio;
    u32 __state;
    char comm[16];
} KERNEL_TYPE;

/* Before 5.14. */
struct task_struct___old {
    long state;
} KERNEL_TYPE;

struct hrtimer {
    s64 _softexpires;
    u8 is_soft;
} KERNEL_TYPE;

const volatile struct tardy_choices choices SEC(".rodata.choices");
struct tardy_memory memory;

/* Tasks in a debugger or stopped by a signal: as the kernel has numbered these states for ever. */
#define STATE_STOPPED (4 | 8)
/* The softirq in which timers expire, as in /proc/softirqs. */
#define SOFTIRQ_HRTIMER 8

INLINE struct tardy_cpu *this_cpu(void)
{
    u32 number = bpf_get_smp_processor_id();

    return number < TARDY_CPUS ? &memory.cpus[number] : 0;
}

/* The record of a thread; null where it is not measured. */
INLINE struct tardy_thread *measured(struct task_struct *task)
{
    u32 pid = task->pid;
    u32 place = pid * memory.settings.factor >> (memory.settings.shift & 31);
    u32 number = memory.places[place & (TARDY_PLACES - 1)];

    if (number == 0 || number > TARDY_THREADS)
        return 0;
    struct tardy_thread *thread = &memory.threads[number - 1];
    return thread->tid == pid ? thread : 0;
}

INLINE u64 state_of(struct task_struct *task)
{
    if (HAS_FIELD(task->__state))
        return task->__state;
    return ((struct task_struct___old *)task)->state;
}

SEC("tp_btf/local_timer_entry")
int on_local_timer_entry(u64 *ctx)
{
    struct tardy_cpu *cpu = this_cpu();

    if (cpu)
        cpu->entry_ns = bpf_ktime_get_ns();
    return 0;
}

/*
 * A timer that expires in a softirq may do so long after its interrupt, and after others: the one
 * that raised the softirq is kept. The kernel raises it once until it has run.
 */
SEC("tp_btf/softirq_raise")
int on_softirq_raise(u64 *ctx)
{
    if ((u32)ctx[0] != SOFTIRQ_HRTIMER)
        return 0;
    struct tardy_cpu *cpu = this_cpu();
    if (cpu)
        cpu->raised_ns = cpu->entry_ns;
    return 0;
}

SEC("tp_btf/hrtimer_expire_entry")
int on_timer(u64 *ctx)
{
    struct hrtimer *timer = (void *)ctx[0];
    struct tardy_cpu *cpu = this_cpu();

    if (!cpu)
        return 0;
    if (choices.soft_timers && timer->is_soft) {
        cpu->soft.expires_ns = timer->_softexpires;
        cpu->soft.entry_ns = cpu->raised_ns;
        cpu->soft.callback_ns = bpf_ktime_get_ns();
    } else {
        cpu->hard.expires_ns = timer->_softexpires;
        cpu->hard.entry_ns = cpu->entry_ns;
        cpu->hard.callback_ns = bpf_ktime_get_ns();
    }
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

INLINE void waking(struct tardy_thread *thread, struct task_struct *task, struct tardy_cpu *cpu, u64 now)
{
    u32 number = bpf_get_smp_processor_id();

    copy_timer(thread, cpu);
    thread->waking_ns = now;
    thread->cpu = number;
    if (state_of(task) & STATE_STOPPED)
        thread->stopped_until_ns = now;
    /* Woken on its way to sleep: it keeps the CPU, and no switch follows. */
    if (bpf_get_current_task() == (u64)task) {
        thread->switch_cpu = number;
        thread->switch_ns = now;
        thread->pending = 0;
    } else {
        thread->pending = 1;
    }
}

SEC("tp_btf/sched_waking")
int on_waking(u64 *ctx)
{
    struct task_struct *task = (void *)ctx[0];

    if (task->prio > memory.settings.least_prio)
        return 0;
    struct tardy_thread *thread = measured(task);
    struct tardy_cpu *cpu = this_cpu();
    if (thread && cpu)
        waking(thread, task, cpu, bpf_ktime_get_ns());
    return 0;
}

SEC("tp_btf/sched_switch")
int on_switch(u64 *ctx)
{
    struct task_struct *prev = (void *)ctx[1];
    struct task_struct *next = (void *)ctx[2];
    struct tardy_thread *thread;

    if (!ctx[0] && state_of(prev) & STATE_STOPPED) {
        thread = measured(prev);
        if (thread)
            thread->stopped_from_ns = bpf_ktime_get_ns();
    }
    if (next->prio > memory.settings.least_prio)
        return 0;
    thread = measured(next);
    if (thread && thread->pending) {
        thread->switch_cpu = bpf_get_smp_processor_id();
        thread->pending = 0;
        thread->switch_ns = bpf_ktime_get_ns();
    }
    return 0;
}
