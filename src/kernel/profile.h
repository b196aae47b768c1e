/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the sampling program hands over: one `struct tardy_sample` a sample. */
#ifndef TARDY_PROFILE_H
#define TARDY_PROFILE_H

#define SAMPLE_KERNEL_FRAMES 64
#define SAMPLE_USER_FRAMES 127

/* In what a CPU was interrupted. */
enum sample_context {
    SAMPLE_IDLE,
    SAMPLE_USER,
    SAMPLE_KERNEL,
    SAMPLE_SOFTIRQ,
    SAMPLE_HARDIRQ,
    SAMPLE_CONTEXTS,
    /* Added where this kernel does not tell interrupts from the rest. */
    SAMPLE_NO_COUNT = 16,
};

struct tardy_sample {
    u64 at_ns;
    /* Of the event: ns, or cycles. */
    u64 period;
    u32 cpu;
    u32 tid;
    u32 pid;
    u32 context;
    /* Bytes of each stack, innermost first; less than 0 where there is none. */
    s32 kernel_bytes;
    s32 user_bytes;
    char comm[16];
    u64 kernel[SAMPLE_KERNEL_FRAMES];
    u64 user[SAMPLE_USER_FRAMES];
};

/* Offsets of per-CPU variables from `runqueues`, in bytes. */
struct tardy_sample_config {
    s32 preempt_count;
    s32 pcpu_hot;
};

/* What sampling itself took of one CPU. */
struct tardy_sample_cost {
    u64 samples;
    u64 ns;
    /* Of them, those for which the ring had no room. */
    u64 lost;
};

#endif
