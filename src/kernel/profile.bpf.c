// SPDX-License-Identifier: GPL-2.0
/*
 * Samples what a CPU does: runs at each overflow of a perf event of that CPU, and hands over the
 * task, the context that was interrupted, and its kernel and user stacks.
 */
#include "bpf.h"
#include "preempt.h"
#include "profile.h"

char LICENSE[] SEC("license") = "GPL";

/* The context of x86-64: 21 registers, then the period (<linux/bpf_perf_event.h>). */
struct sample_event {
    u64 regs[21];
    u64 period;
};

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    /* Set before it is loaded, as the rate and the CPUs ask for. */
    __uint(max_entries, 1 << 20);
} samples SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, u32);
    __type(value, struct tardy_sample);
} scratch SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, u32);
    __type(value, struct tardy_sample_cost);
} costs SEC(".maps");

const volatile struct tardy_sample_config sample_config SEC(".rodata.config") = {};

/*
 * The interrupt, or NMI, of the sample itself is one hard interrupt of the count. Without the
 * count, interrupts cannot be told from the task that they interrupted.
 */
static __always_inline u32 context_of(u32 tid, int in_kernel)
{
    struct task_struct *current = (void *)bpf_get_current_task();
    u32 count = count_at(current, sample_config.preempt_count, sample_config.pcpu_hot);
    u32 softirqs = softirq_count_of(current, count);
    u32 none = count ? 0 : SAMPLE_NO_COUNT;

    if (!in_kernel)
        return SAMPLE_USER | none;
    if (((count >> HARDIRQ_SHIFT) & HARDIRQ_MASK) > 1)
        return SAMPLE_HARDIRQ;
    if (softirqs & SOFTIRQ_SERVED)
        return SAMPLE_SOFTIRQ | none;
    return (tid ? SAMPLE_KERNEL : SAMPLE_IDLE) | none;
}

SEC("perf_event")
int on_sample(struct sample_event *event)
{
    u64 began_ns = bpf_ktime_get_ns();
    u32 first = 0;
    struct tardy_sample *sample = bpf_map_lookup_elem(&scratch, &first);
    struct tardy_sample_cost *cost = bpf_map_lookup_elem(&costs, &first);

    if (!sample || !cost)
        return 0;
    u64 both = bpf_get_current_pid_tgid();
    sample->at_ns = began_ns;
    sample->period = event->period;
    sample->cpu = bpf_get_smp_processor_id();
    sample->tid = both;
    sample->pid = both >> 32;
    bpf_get_current_comm(sample->comm, sizeof(sample->comm));
    sample->kernel_bytes = bpf_get_stack(event, sample->kernel, sizeof(sample->kernel), 0);
    sample->user_bytes = -1;
    /* A CPU that was in user mode has no kernel stack. */
    sample->context = context_of(sample->tid, sample->kernel_bytes > 0);
    u32 context = sample->context & ~SAMPLE_NO_COUNT;
    /* What an interrupt does is not the work of the task that it interrupted. */
    if (sample->tid && (context == SAMPLE_USER || context == SAMPLE_KERNEL))
        sample->user_bytes = bpf_get_stack(event, sample->user, sizeof(sample->user),
                           BPF_F_USER_STACK);
    cost->samples++;
    if (bpf_ringbuf_output(&samples, sample, sizeof(*sample), BPF_RB_NO_WAKEUP))
        cost->lost++;
    cost->ns += bpf_ktime_get_ns() - began_ns;
    return 0;
}
