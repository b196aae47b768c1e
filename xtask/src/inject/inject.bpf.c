// SPDX-License-Identifier: GPL-2.0
/*
 * Makes measured threads late, for a time that is known to the ns, in a context that is known; and
 * writes down when. Each program belongs to one context: it waits in there until the time is over.
 *
 * The waits are aimed by user space: an order says from when on the next passage through the
 * context is to be held up. The measured threads' own timers are looked at when they are armed, so
 * that the log names the expiry that a delay was meant for.
 */
#include "inject.h"

typedef unsigned char bool_t;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long s64;

#define SEC(name) __attribute__((section(name), used))
#define KERNEL __attribute__((preserve_access_index))
#define __uint(name, value) int(*name)[value]
#define __type(name, value) value *name

#define BPF_MAP_TYPE_HASH 1
#define BPF_MAP_TYPE_ARRAY 2
#define BPF_MAP_TYPE_RINGBUF 27
/* The reader polls; an interrupt to wake it up would be a delay of its own. */
#define BPF_RB_NO_WAKEUP 1

static void *(*map_lookup)(void *map, const void *key) = (void *)1;
static u64 (*now_ns)(void) = (void *)5;
static u32 (*this_cpu)(void) = (void *)8;
static u64 (*pid_tgid)(void) = (void *)14;
static u64 (*current_task)(void) = (void *)35;
static long (*probe_read_kernel)(void *into, u32 size, const void *from) = (void *)113;
static long (*ringbuf_output)(void *ring, void *data, u64 size, u64 flags) = (void *)130;
static long (*loop)(u32 turns, void *step, void *context, u64 flags) = (void *)181;

struct task_struct {
    int pid;
} KERNEL;

struct hrtimer {
    s64 _softexpires;
} KERNEL;

struct hrtimer_sleeper {
    struct task_struct *task;
} KERNEL;

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, INJECT_CPUS);
    __type(key, u32);
    __type(value, struct inject_order);
} orders SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, INJECT_CPUS);
    __type(key, u32);
    __type(value, struct inject_seen);
} seen SEC(".maps");

/* Measured threads: number of the thread to its CPU. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, INJECT_TARGETS);
    __type(key, u32);
    __type(value, u32);
} targets SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 256 * 1024);
} logs SEC(".maps");

/* Delays that found no place in the log. */
u64 lost;

static long is_over(u32 turn, void *context)
{
    return now_ns() >= *(u64 *)context;
}

static __attribute__((always_inline)) void
write_down(u32 kind, u32 cpu, u64 at_ns, u64 end_ns, u64 expires_ns, u32 pid)
{
    struct inject_log log = {
        .kind = kind,
        .cpu = cpu,
        .at_ns = at_ns,
        .ns = end_ns - at_ns,
        .expires_ns = expires_ns,
        .pid = pid,
    };

    if (ringbuf_output(&logs, &log, sizeof(log), BPF_RB_NO_WAKEUP))
        __sync_fetch_and_add(&lost, 1);
}

/* The order of this CPU, where it is of this kind and its time has come. */
static __attribute__((always_inline)) struct inject_order *ordered(u32 cpu, u32 kind, u64 now)
{
    struct inject_order *order = map_lookup(&orders, &cpu);

    if (!order || order->kind != kind || now < order->from_ns || now >= order->until_ns)
        return 0;
    return order;
}

/*
 * Holds up this CPU, once, where that is ordered. A wait within an interrupt or a softirq is logged
 * at its end, as a whole: its own work and the wait are not distinguished.
 */
static __attribute__((always_inline)) void hold_up(u32 kind)
{
    u32 cpu = this_cpu();
    u64 at = now_ns();
    struct inject_order *order = ordered(cpu, kind, at);
    struct inject_seen *known = map_lookup(&seen, &cpu);
    u64 end, expires;

    if (!order || !known || known->done == order->from_ns)
        return;
    known->done = order->from_ns;
    expires = known->expires_ns;
    end = at + (order->ns < INJECT_LONGEST_NS ? order->ns : INJECT_LONGEST_NS);
    loop(1 << 23, is_over, &end, 0);
    if (kind == INJECT_HARDIRQ || kind == INJECT_SOFTIRQ)
        known->held = kind;
    else
        write_down(kind, cpu, at, now_ns(), expires, pid_tgid());
}

/* An interrupt or a softirq has ended: a delay, or what came within another one. */
static __attribute__((always_inline)) void
ended(struct inject_seen *known, u32 cpu, u32 delay, u32 meanwhile, u64 since)
{
    u64 now = now_ns();
    struct inject_order *order = map_lookup(&orders, &cpu);

    if (known->held == delay) {
        known->held = 0;
        write_down(delay, cpu, since, now, known->expires_ns, 0);
    } else if (order && since && now >= order->from_ns && now < order->until_ns) {
        u32 storm = order->kind == INJECT_STORM && meanwhile == INJECT_INTERRUPT;
        write_down(storm ? INJECT_STORM : meanwhile, cpu, since, now, known->expires_ns, 0);
    }
}

static __attribute__((always_inline)) int interrupt_begins(void)
{
    u32 cpu = this_cpu();
    struct inject_seen *known = map_lookup(&seen, &cpu);

    if (known)
        known->entry_ns = now_ns();
    return 0;
}

static __attribute__((always_inline)) int interrupt_ends(void)
{
    u32 cpu = this_cpu();
    struct inject_seen *known = map_lookup(&seen, &cpu);

    if (known)
        ended(known, cpu, INJECT_HARDIRQ, INJECT_INTERRUPT, known->entry_ns);
    return 0;
}

static __attribute__((always_inline)) u32 *target_cpu(u32 tid)
{
    return map_lookup(&targets, &tid);
}

/* A measured thread goes to sleep: the expiry that the next delay may be aimed at. */
SEC("tp_btf/hrtimer_start")
int on_timer_start(u64 *args)
{
    struct hrtimer *timer = (void *)args[0];
    struct hrtimer_sleeper *sleeper = (void *)timer;
    struct task_struct *sleeps = 0;
    u32 *cpu = target_cpu(pid_tgid());
    struct inject_seen *known;

    if (!cpu)
        return 0;
    /* Interrupts arm timers too while the thread runs; its own wakes it up. */
    probe_read_kernel(&sleeps, sizeof(sleeps), &sleeper->task);
    known = map_lookup(&seen, cpu);
    if (known && (u64)sleeps == current_task())
        probe_read_kernel(&known->expires_ns, sizeof(u64), &timer->_softexpires);
    return 0;
}

SEC("tp_btf/local_timer_entry")
int on_timer_interrupt(u64 *args)
{
    interrupt_begins();
    hold_up(INJECT_HARDIRQ);
    return 0;
}

#define LOOK_AT(name)                                     \
    SEC("tp_btf/" #name "_entry") int on_##name(u64 *args) \
    {                                                     \
        return interrupt_begins();                        \
    }                                                     \
    SEC("tp_btf/" #name "_exit") int on_##name##_end(u64 *args) \
    {                                                     \
        return interrupt_ends();                          \
    }

LOOK_AT(irq_handler)
LOOK_AT(reschedule)
LOOK_AT(call_function)
LOOK_AT(call_function_single)
LOOK_AT(irq_work)

SEC("tp_btf/local_timer_exit")
int on_timer_interrupt_end(u64 *args)
{
    return interrupt_ends();
}

SEC("tp_btf/softirq_entry")
int on_softirq(u64 *args)
{
    u32 cpu = this_cpu();
    struct inject_seen *known = map_lookup(&seen, &cpu);

    if (known)
        known->softirq_ns = now_ns();
    hold_up(INJECT_SOFTIRQ);
    return 0;
}

SEC("tp_btf/softirq_exit")
int on_softirq_end(u64 *args)
{
    u32 cpu = this_cpu();
    struct inject_seen *known = map_lookup(&seen, &cpu);

    if (known)
        ended(known, cpu, INJECT_SOFTIRQ, INJECT_SOFTIRQ_RUN, known->softirq_ns);
    return 0;
}

/* How long a hog, or a process at its end, held the CPU. */
static __attribute__((always_inline)) void look_at_task(u32 cpu, u32 prev, u32 next)
{
    u64 now = now_ns();
    struct inject_order *order = map_lookup(&orders, &cpu);
    struct inject_seen *known = map_lookup(&seen, &cpu);

    if (!order || !known || (order->kind != INJECT_HOG && order->kind != INJECT_EXIT))
        return;
    if (prev == order->tid && known->since_ns && ordered(cpu, order->kind, now)) {
        write_down(order->kind, cpu, known->since_ns, now, known->expires_ns, prev);
    }
    known->since_ns = next == order->tid ? now : 0;
}

/* A measured thread is stopped, as its state says (__TASK_STOPPED). */
static __attribute__((always_inline)) void look_at_stop(u32 tid, u64 state)
{
    u32 *cpu = target_cpu(tid);
    struct inject_seen *known = cpu ? map_lookup(&seen, cpu) : 0;

    if (known && (u32)state & 4)
        known->stopped_ns = now_ns();
}

/* And goes on. */
SEC("tp_btf/sched_waking")
int on_waking(u64 *args)
{
    struct task_struct *task = (void *)args[0];
    u32 tid = 0;
    u32 *cpu;
    struct inject_seen *known;

    probe_read_kernel(&tid, sizeof(tid), &task->pid);
    cpu = target_cpu(tid);
    known = cpu ? map_lookup(&seen, cpu) : 0;
    if (known && known->stopped_ns) {
        write_down(INJECT_STOP, *cpu, known->stopped_ns, now_ns(), known->expires_ns, tid);
        known->stopped_ns = 0;
    }
    return 0;
}

SEC("tp_btf/sched_switch")
int on_switch(u64 *args)
{
    struct task_struct *prev = (void *)args[1], *next = (void *)args[2];
    u32 from = 0, to = 0;

    probe_read_kernel(&from, sizeof(from), &prev->pid);
    probe_read_kernel(&to, sizeof(to), &next->pid);
    look_at_task(this_cpu(), from, to);
    look_at_stop(from, args[3]);
    if (!target_cpu(from) && !target_cpu(to))
        hold_up(INJECT_SWITCH);
    return 0;
}

/*
 * In the kernel, on behalf of a task, interrupts on: the program itself cannot be preempted, nor
 * can the rest of the call where the kernel's preemption is none or voluntary.
 */
SEC("tp_btf/sys_enter")
int on_system_call(u64 *args)
{
    u32 cpu = this_cpu();
    struct inject_order *order = map_lookup(&orders, &cpu);

    if (order && order->tid == (u32)pid_tgid())
        hold_up(INJECT_SYSCALL);
    return 0;
}

SEC("tp_btf/page_fault_user")
int on_page_fault(u64 *args)
{
    if (target_cpu(pid_tgid()))
        hold_up(INJECT_PAGE_FAULT);
    return 0;
}

char _license[] SEC("license") = "GPL";
