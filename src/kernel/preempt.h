/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The preempt count, for programs that know it by its offset from the run queue of its CPU. */
#ifndef TARDY_PREEMPT_H
#define TARDY_PREEMPT_H

#include "bpf.h"

/* Bits of the preempt count, <linux/preempt.h>. */
#define SOFTIRQ_SERVED 0x100
#define HARDIRQ_SHIFT 16
#define HARDIRQ_MASK 0xf

/* The offset of a variable that this kernel does not have. */
#define NO_COUNT_OFFSET (-2147483647 - 1)

/*
 * The run queue of this CPU, a per-CPU variable: the running task knows it. Few kernels have the
 * addresses of variables in the symbol table.
 */
static __always_inline u64 runqueue(struct task_struct *task)
{
    struct cfs_rq *queue = BPF_CORE_READ(task, se.cfs_rq);

    if (!queue)
        return 0;
    if (bpf_core_field_exists(queue->rq))
        return (u64)BPF_CORE_READ(queue, rq);
    return (u64)queue - bpf_core_field_offset(struct rq, cfs);
}

/* The preempt count of this CPU; 0 where it is not known: in an interrupt it is more. */
static __always_inline u32 count_at(struct task_struct *task, s32 preempt_count, s32 pcpu_hot)
{
    s32 offset = preempt_count;
    u64 base = runqueue(task);
    u32 count = 0;

    if (offset == NO_COUNT_OFFSET && pcpu_hot != NO_COUNT_OFFSET)
        offset = pcpu_hot + bpf_core_field_offset(struct pcpu_hot, preempt_count);
    if (offset != NO_COUNT_OFFSET && base)
        bpf_probe_read_kernel(&count, sizeof(count), (void *)(base + offset));
    return count & 0x7fffffff;
}

/* That of softirqs. */
static __always_inline u32 softirq_count_of(struct task_struct *task, u32 count)
{
    if (bpf_core_field_exists(task->softirq_disable_cnt))
        return BPF_CORE_READ(task, softirq_disable_cnt);
    return count;
}

#endif
