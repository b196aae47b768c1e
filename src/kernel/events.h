/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* How programs write events and stacks; included by recorder.bpf.c alone. */
#ifndef TARDY_EVENTS_H
#define TARDY_EVENTS_H

#include "bpf.h"
#include "recorder.h"
#include "types.h"

/* Tasks with a smaller number are real-time. */
#define FIRST_FAIR 100
/* Bytes before an interrupted instruction that are looked at: a longest one, and the one before. */
#define BYTES_BEFORE 16
/* What the first walk is expected to take. */
#define WALK_NS 10000
#define MOST_WALK_NS 30000
/* Functions of the tracing itself, on top of each stack. */
#define OWN_FRAMES 3

const volatile struct tardy_choices choices SEC(".rodata.choices");
struct tardy_memory memory;

struct {
    MAP_NUMBER(type, MAP_ARRAY);
    MAP_NUMBER(map_flags, MAP_MAPPED);
    MAP_NUMBER(max_entries, 1);
    MAP_TYPE(key, u32);
    MAP_TYPE(value, struct tardy_event);
} events SEC(".maps");

/* Where and when a program runs. */
struct spot {
    struct tardy_cpu *cpu;
    u32 number;
    u64 now;
};

INLINE int here(struct spot *spot)
{
    u32 number = bpf_get_smp_processor_id();

    spot->number = number;
    if (number >= TARDY_CPUS)
        return 0;
    HOLD(number);
    struct tardy_cpu *cpu = &memory.cpus[number & (TARDY_CPUS - 1)];
    HOLD(cpu);
    spot->cpu = cpu;
    spot->now = bpf_ktime_get_ns();
    return 1;
}

/* Reads a variable of which each CPU has its own; 0 where it is not known. */
INLINE u64 own_variable(const struct tardy_cpu *cpu, int distance, u32 bytes)
{
    u64 value = 0;

    if (distance != TARDY_UNKNOWN && cpu->bases)
        bpf_probe_read_kernel(&value, bytes, (void *)(cpu->bases + distance));
    return value;
}

/* How deep preemption is disabled; the highest bit of the kernel's count means something else. */
INLINE u32 preempt_count(const struct tardy_cpu *cpu)
{
    int distance = choices.preempt_count;

    if (distance == TARDY_UNKNOWN && choices.pcpu_hot != TARDY_UNKNOWN)
        distance = choices.pcpu_hot + OFFSET(((struct pcpu_hot *)0)->preempt_count);
    return own_variable(cpu, distance, 4) & 0x7fffffff;
}

INLINE struct tardy_event *event_at(const struct spot *spot, u64 index)
{
    u32 key = spot->number * choices.slots + (index & (choices.slots - 1));

    return bpf_map_lookup_elem(&events, &key);
}

/* All but `a` and `b`, as one word: written last, so that a reader sees it whole or not. */
INLINE void finish(struct tardy_event *event, u32 kind, u32 flags, int prio, u32 pid)
{
    u64 word = kind | (flags & 0xff) << 8 | (u64)(u16)prio << 16 | (u64)pid << 32;

    __asm__ volatile("" ::: "memory");
    *(volatile u64 *)&event->kind = word;
}

INLINE struct tardy_event *begin(const struct spot *spot, u64 *index)
{
    *index = __sync_fetch_and_add(&spot->cpu->head, 1);
    struct tardy_event *event = event_at(spot, *index);

    if (event) {
        *(volatile u64 *)&event->kind = 0;
        event->at_ns = spot->now;
    }
    return event;
}

INLINE u64 write(const struct spot *spot, u32 kind, u32 flags, int prio, u32 pid, u64 a, u64 b)
{
    u64 index;
    struct tardy_event *event = begin(spot, &index);

    if (event) {
        event->a = a;
        event->b = b;
        finish(event, kind, flags, prio, pid);
    }
    return index;
}

/* The hypervisor counts what it takes from this CPU; what came since the last look is an event. */
INLINE void note_steal(const struct spot *spot)
{
    struct tardy_cpu *cpu = spot->cpu;

    if (choices.steal_time == TARDY_UNKNOWN)
        return;
    /* Its first word is the sum. */
    u64 steal_ns = own_variable(cpu, choices.steal_time, 8);
    if (steal_ns != cpu->steal_ns) {
        u64 took_ns = steal_ns - cpu->steal_ns;
        cpu->steal_ns = steal_ns;
        if (cpu->steal_at_ns)
            write(spot, TARDY_STEAL, 0, 0, 0, took_ns, cpu->steal_at_ns);
    }
    cpu->steal_at_ns = spot->now;
}

/* Number of the event that was written. */
INLINE u64 record(const struct spot *spot, u32 kind, u32 flags, int prio, u32 pid, u64 a, u64 b)
{
    note_steal(spot);
    return write(spot, kind, flags, prio, pid, a, b);
}

INLINE u32 went(u64 state)
{
    if (!state)
        return TARDY_OUT_PREEMPTED;
    if (state & STATE_DEAD)
        return TARDY_OUT_DEAD;
    if (state & STATE_STOPPED)
        return TARDY_OUT_STOPPED;
    return state & STATE_WAITING ? TARDY_OUT_WAITING : TARDY_OUT_SLEEPING;
}

/* `state` is that of the task which is switched out. */
INLINE void record_switch(const struct spot *spot, struct task_struct *next, u64 state)
{
    u64 index;

    note_steal(spot);
    spot->cpu->switched_ns = spot->now;
    struct tardy_event *event = begin(spot, &index);
    if (event) {
        event->a = *(u64 *)&next->comm[0];
        event->b = *(u64 *)&next->comm[8];
        finish(event, TARDY_SWITCH, went(state), next->prio, next->pid);
    }
}

/* For programs that do nothing else. */
static __attribute__((noinline)) int note(u32 kind, u32 pid, u64 a, u64 b)
{
    struct spot spot;

    if (here(&spot))
        record(&spot, kind, 0, 0, pid, a, b);
    return 0;
}

/* A cold walk may take fifty times as long as others: it counts no more than this. */
INLINE void learn(u64 took_ns)
{
    u64 usual_ns = memory.settings.walk_ns ? memory.settings.walk_ns : WALK_NS;
    u64 counted_ns = took_ns < MOST_WALK_NS ? took_ns : MOST_WALK_NS;

    memory.settings.walk_ns = (7 * usual_ns + counted_ns) / 8;
}

/* A walk delays the wake-up that it is about: it must add at most a quarter to a delay. */
INLINE int worth(u64 delay_ns)
{
    return delay_ns > 4 * (memory.settings.walk_ns ? memory.settings.walk_ns : WALK_NS);
}

/* Walks the kernel's stack from here outwards; how long that took, ns, at least 1. */
static __attribute__((noinline)) u64 walk(void *ctx, u32 why, u32 pid)
{
    struct spot spot;

    if (!here(&spot))
        return 1;
    u64 number = __sync_fetch_and_add(&memory.settings.stacks, 1) + 1;
    struct tardy_stack *stack = &memory.stacks[number & (TARDY_STACKS - 1)];
    HOLD(stack);
    *(volatile u64 *)&stack->number = 0;
    long bytes = bpf_get_stack(ctx, stack->frame, sizeof(stack->frame), OWN_FRAMES);
    if (bytes <= 0) {
        __sync_fetch_and_add(&memory.settings.stacks_lost, 1);
        return 1;
    }
    stack->frames = bytes / sizeof(stack->frame[0]);
    stack->pid = pid;
    __asm__ volatile("" ::: "memory");
    *(volatile u64 *)&stack->number = number;
    u64 took_ns = bpf_ktime_get_ns() - spot.now;
    learn(took_ns);
    record(&spot, TARDY_STACK, why, 0, pid, number, took_ns);
    return took_ns;
}

/*
 * Looks whether the interrupted code had only just enabled interrupts, and adds that to the event
 * of the interrupt. Enabling by `sti` takes effect after one more instruction, so that up to 11
 * bytes may lie between; by `popf` at once. Other instructions may contain such bytes.
 */
INLINE void tell_enabled(const struct spot *spot)
{
    u8 before[BYTES_BEFORE] = {};
    void *from = (void *)(spot->cpu->address - BYTES_BEFORE);

    if (bpf_probe_read_kernel(before, sizeof(before), from))
        return;
    int enabled = before[BYTES_BEFORE - 1] == 0x9d;
    for (int at = BYTES_BEFORE - 12; at < BYTES_BEFORE; at++)
        enabled |= before[at] == 0xfb;
    struct tardy_event *event = event_at(spot, spot->cpu->entry_event);
    if (enabled && event && event->kind == TARDY_VECTOR_ENTRY)
        event->flags |= TARDY_JUST_ENABLED;
}

#endif
