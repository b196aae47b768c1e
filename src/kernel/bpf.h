/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What every program includes: the kernel's types, libbpf's headers, and what both lack. */
#ifndef TARDY_BPF_H
#define TARDY_BPF_H

#include "vmlinux.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#define WRITE_ONCE(x, value) (*(volatile typeof(x) *)&(x) = (value))

static __always_inline u64 task_state(struct task_struct *task)
{
    if (bpf_core_field_exists(task->__state))
        return task->__state;
    return ((struct task_struct___old *)task)->state;
}

/* The CPU on which the task runs, or ran last. */
static __always_inline u32 task_cpu(struct task_struct *task)
{
    if (bpf_core_field_exists(task->thread_info.cpu))
        return task->thread_info.cpu;
    return ((struct task_struct___old *)task)->cpu;
}

#endif
