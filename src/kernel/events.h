/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* How programs write events and stacks; included by recorder.bpf.c alone. */
#ifndef TARDY_EVENTS_H
#define TARDY_EVENTS_H

#include "bpf.h"
#include "recorder.h"
#include "holds.h"

/* Bytes that are read before an interrupted instruction: a longest one, and the one before. */
#define CODE_BYTES 16
/* Expected cost of the first stack walk. */
#define WALK_COST_NS 10000
#define WALK_COST_MAX_NS 30000
/* Functions of the tracing itself, on top of each stack. */
#define TRACING_FRAMES 3

const volatile struct tardy_config config SEC(".rodata.config");
struct tardy_memory memory;

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, u32);
    __type(value, struct tardy_event);
} events SEC(".maps");

/* The CPU that a program runs on, and the time at which it began. */
struct trace_context {
    struct tardy_cpu *cpu;
    u32 cpu_id;
    u64 now_ns;
};

/* All but the time, for that CPU; false for one for which there is no room. */
static __always_inline int get_cpu_of(struct trace_context *tc, u32 cpu_id)
{
    tc->cpu_id = cpu_id;
    if (cpu_id >= TARDY_CPUS)
        return 0;
    /* The verifier follows bounds along the code: the compiler must not drop or repeat them. */
    barrier_var(cpu_id);
    struct tardy_cpu *cpu = &memory.cpus[cpu_id & (TARDY_CPUS - 1)];
    barrier_var(cpu);
    tc->cpu = cpu;
    return 1;
}

static __always_inline int get_cpu(struct trace_context *tc)
{
    return get_cpu_of(tc, bpf_get_smp_processor_id());
}

static __always_inline int get_trace_context(struct trace_context *tc)
{
    if (!get_cpu(tc))
        return 0;
    tc->now_ns = bpf_ktime_get_ns();
    return 1;
}

/* Reads a per-CPU variable of the kernel; 0 where its address is not known. */
static __always_inline u64 read_percpu(const struct tardy_cpu *cpu, int offset, u32 bytes)
{
    u64 value = 0;

    if (offset != TARDY_NO_OFFSET && cpu->hrtimer_bases)
        bpf_probe_read_kernel(&value, bytes, (void *)(cpu->hrtimer_bases + offset));
    return value;
}

/* The preempt count of this CPU, without its highest bit (PREEMPT_NEED_RESCHED). */
static __always_inline u32 preempt_count(const struct tardy_cpu *cpu)
{
    int offset = config.preempt_count;

    if (offset == TARDY_NO_OFFSET && config.pcpu_hot != TARDY_NO_OFFSET)
        offset = config.pcpu_hot + bpf_core_field_offset(struct pcpu_hot, preempt_count);
    return read_percpu(cpu, offset, 4) & 0x7fffffff;
}

static __always_inline struct tardy_event *get_event(const struct trace_context *tc, u64 index)
{
    u32 slots = config.slots;
    u32 key = tc->cpu_id * slots + (index & (slots - 1));

    return bpf_map_lookup_elem(&events, &key);
}

static __always_inline struct tardy_event *reserve_event(const struct trace_context *tc, u64 *index)
{
    *index = __sync_fetch_and_add(&tc->cpu->head, 1);
    struct tardy_event *event = get_event(tc, *index);

    if (event) {
        WRITE_ONCE(*(u64 *)&event->kind, 0);
        event->at_ns = tc->now_ns;
    }
    return event;
}

/* All but `a` and `b`, as one word: written last, so that a reader sees it whole or not. */
static __always_inline void
commit_event(struct tardy_event *event, u32 kind, u32 flags, int prio, u32 pid)
{
    u64 word = kind | (flags & 0xff) << 8 | (u64)(u16)prio << 16 | (u64)pid << 32;

    barrier();
    WRITE_ONCE(*(u64 *)&event->kind, word);
}

static __always_inline u64 write_event(const struct trace_context *tc, u32 kind, u32 flags,
                                       int prio, u32 pid, u64 a, u64 b)
{
    u64 index;
    struct tardy_event *event = reserve_event(tc, &index);

    if (event) {
        event->a = a;
        event->b = b;
        commit_event(event, kind, flags, prio, pid);
    }
    return index;
}

/*
 * The hypervisor counts the time it takes from this CPU; each increase is an event. A counter that
 * went back, as in a guest that was moved to another host, is only the base of what follows. It is
 * read at the entry of each interrupt and at each switch: which of the events in between it came
 * before shows in the gaps.
 */
static __always_inline void trace_steal(const struct trace_context *tc)
{
    struct tardy_cpu *cpu = tc->cpu;

    if (config.steal_time == TARDY_NO_OFFSET)
        return;
    /* `steal` is the first field of `struct kvm_steal_time`. */
    u64 steal_ns = read_percpu(cpu, config.steal_time, 8);
    u64 before_ns = cpu->steal_ns;
    cpu->steal_ns = steal_ns;
    if (steal_ns > before_ns && cpu->steal_read_ns)
        write_event(tc, TARDY_STEAL, 0, 0, 0, steal_ns - before_ns, cpu->steal_read_ns);
    cpu->steal_read_ns = tc->now_ns;
}

/* Returns the number of the event. */
static __always_inline u64 trace_event(const struct trace_context *tc, u32 kind, u32 flags,
                                       int prio, u32 pid, u64 a, u64 b)
{
    trace_steal(tc);
    return write_event(tc, kind, flags, prio, pid, a, b);
}

/*
 * What a task sleeps for, as far as the kernel says it. A task that waits for a completion of
 * io_uring counts as one that waits for a device, whatever completes: but it takes signals.
 */
static __always_inline u32 sleep_reason(struct task_struct *task, u64 state)
{
    if (state & TASK_RTLOCK_WAIT)
        return TARDY_OUT_LOCK;
    if (state & TASK_UNINTERRUPTIBLE)
        return BPF_CORE_READ_BITFIELD(task, in_iowait) ? TARDY_OUT_IO : TARDY_OUT_WAITING;
    if (!config.futexes || !(state & TASK_INTERRUPTIBLE) || !is_in_futex(task))
        return TARDY_OUT_SLEEPING;
    if (bpf_core_field_exists(task->pi_blocked_on) && task->pi_blocked_on)
        return TARDY_OUT_PI_FUTEX;
    return TARDY_OUT_FUTEX;
}

/* Of a task that is ready. */
static __always_inline u32 ready_reason(struct task_struct *prev)
{
    u32 pid = prev->pid;

    /* Nothing holds the idle task. */
    if (!pid)
        return TARDY_OUT_PREEMPTED;
    switch (hold_of(prev, pid, prev->prio)) {
    case TARDY_HELD_BY_QUOTA:
        return TARDY_OUT_THROTTLED;
    case TARDY_HELD_BY_BUDGET:
        return TARDY_OUT_BUDGET;
    case TARDY_HELD_BY_THROTTLING:
        return TARDY_OUT_THROTTLING;
    case TARDY_HELD_BY_ITSELF:
        return TARDY_OUT_SLEEPING;
    }
    return TARDY_OUT_PREEMPTED;
}

/*
 * Whether a task that leaves its CPU in this state does so for a signal, a debugger, or the freezer
 * of its cgroup. That of version 2 lets it sleep as for an event (do_freezer_trap in
 * kernel/signal.c), and only `frozen` tells it.
 */
static __always_inline int is_stopped(struct task_struct *prev, u64 prev_state)
{
    if (prev_state & (__TASK_STOPPED | __TASK_TRACED | TASK_FROZEN))
        return 1;
    return (prev_state & TASK_INTERRUPTIBLE) && bpf_core_field_exists(prev->frozen)
           && BPF_CORE_READ_BITFIELD(prev, frozen);
}

static __always_inline u32 switch_out_reason(struct task_struct *prev, u64 prev_state)
{
    if (!prev_state)
        return ready_reason(prev);
    if (prev_state & TASK_DEAD)
        return TARDY_OUT_DEAD;
    if (is_stopped(prev, prev_state))
        return TARDY_OUT_STOPPED;
    return sleep_reason(prev, prev_state);
}

/* Of the measured thread that leaves its CPU: for which lock, where it waits for one. */
static __always_inline void trace_futex(const struct trace_context *tc, struct task_struct *task,
                                       u32 reason)
{
    struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
    u32 command = regs->si & FUTEX_COMMAND, expected = regs->dx, kind;

    if (regs->orig_ax != NR_FUTEX)
        return;
    if (reason == TARDY_OUT_PI_FUTEX)
        kind = TARDY_FUTEX_INHERITS;
    else if (command == FUTEX_WAIT && expected == LOCK_WITH_WAITERS)
        kind = TARDY_FUTEX_PLAIN;
    else if (command == FUTEX_WAIT && expected & FUTEX_WAITERS)
        kind = TARDY_FUTEX_OWNED;
    else if (command == FUTEX_WAIT_BITSET && expected == LOCK_WITH_WAITERS)
        kind = TARDY_FUTEX_OTHER;
    else
        return;
    write_event(tc, TARDY_FUTEX_WAIT, kind, task->prio, task->pid, regs->di, lock_owner(regs));
}

/* An event that has the name of a task, whose number and priority these are. */
static __always_inline void
trace_task(const struct trace_context *tc, u32 kind, u32 flags, struct task_struct *task, u32 pid,
           int prio)
{
    u64 index;

    trace_steal(tc);
    struct tardy_event *event = reserve_event(tc, &index);
    if (event) {
        event->a = *(u64 *)&task->comm[0];
        event->b = *(u64 *)&task->comm[8];
        commit_event(event, kind, flags, prio, pid);
    }
}

/* For programs that do nothing else. */
static __noinline int record_simple_event(u32 kind, u32 pid, u64 a, u64 b)
{
    struct trace_context tc;

    if (get_trace_context(&tc))
        trace_event(&tc, kind, 0, 0, pid, a, b);
    return 0;
}

static __always_inline u64 walk_cost_ns(void)
{
    return memory.settings.walk_cost_ns ? memory.settings.walk_cost_ns : WALK_COST_NS;
}

/* A moving average. A walk with cold caches may take fifty times as long: it is capped. */
static __always_inline void update_walk_cost(u64 walk_ns)
{
    u64 capped_ns = walk_ns < WALK_COST_MAX_NS ? walk_ns : WALK_COST_MAX_NS;

    memory.settings.walk_cost_ns = (7 * walk_cost_ns() + capped_ns) / 8;
}

/* A walk delays the wake-up that it is about: it must add at most a quarter to the delay. */
static __always_inline int can_afford_walk(u64 delay_ns)
{
    return delay_ns > 4 * walk_cost_ns();
}

/* Walks the kernel's stack from here outwards; how long that took, ns, at least 1. */
static __noinline u64 walk_stack(void *ctx, u32 reason, u32 pid)
{
    struct trace_context tc;

    if (!get_trace_context(&tc))
        return 1;
    u64 number = __sync_fetch_and_add(&memory.settings.stacks, 1) + 1;
    struct tardy_stack *stack = &memory.stacks[number & (TARDY_STACKS - 1)];
    barrier_var(stack);
    WRITE_ONCE(stack->number, 0);
    long bytes = bpf_get_stack(ctx, stack->frame, sizeof(stack->frame), TRACING_FRAMES);
    if (bytes <= 0) {
        __sync_fetch_and_add(&memory.settings.stacks_lost, 1);
        return 1;
    }
    stack->frames = bytes / sizeof(stack->frame[0]);
    stack->pid = pid;
    barrier();
    WRITE_ONCE(stack->number, number);
    u64 walk_ns = bpf_ktime_get_ns() - tc.now_ns;
    update_walk_cost(walk_ns);
    trace_event(&tc, TARDY_STACK, reason, 0, pid, number, walk_ns);
    return walk_ns;
}

/* Whether any byte of the word is `byte`: one that is leaves a zero, which borrows. */
static __always_inline int has_byte(u64 word, u8 byte)
{
    u64 rest = word ^ byte * 0x0101010101010101ull;

    return ((rest - 0x0101010101010101ull) & ~rest & 0x8080808080808080ull) != 0;
}

/*
 * Marks the present timer interrupt where the interrupted code had only just enabled interrupts.
 * `sti` takes effect after one more instruction, so that up to 11 bytes may lie
 * between; `popf` at once. Other instructions may contain such bytes. Whole words are compared:
 * of a branch for each byte the verifier would follow every combination.
 */
static __always_inline void flag_irqs_just_enabled(const struct trace_context *tc)
{
    u64 code[CODE_BYTES / 8] = {};
    void *from = (void *)(tc->cpu->entry_ip - CODE_BYTES);

    if (bpf_probe_read_kernel(code, sizeof(code), from))
        return;
    /* The last 12 of 16 bytes; the first 4, the low half of the first word, become something else. */
    int sti = has_byte(code[0] | 0xffffffff, 0xfb) || has_byte(code[1], 0xfb);
    int popf = code[1] >> 56 == 0x9d;
    if (sti || popf)
        tc->cpu->entry_flags |= TARDY_JUST_ENABLED;
}

#endif
