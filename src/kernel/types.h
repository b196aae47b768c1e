/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The types and variables of the kernel that are looked at, with the fields that are: the loader
 * finds each by its name in the running kernel, wherever it lies there.
 */
#ifndef TARDY_TYPES_H
#define TARDY_TYPES_H

#include "bpf.h"

struct thread_info {
    u32 cpu;
} KERNEL_TYPE;

struct task_struct {
    struct thread_info thread_info;
    int pid;
    int prio;
    u32 __state;
    char comm[16];
} KERNEL_TYPE;

/* `state` before 5.14, `cpu` before 5.16. */
struct task_struct___old {
    long state;
    u32 cpu;
} KERNEL_TYPE;

struct hrtimer_clock_base {
    void *cpu_base;
} KERNEL_TYPE;

struct hrtimer {
    s64 _softexpires;
    void *function;
    struct hrtimer_clock_base *base;
    u8 is_soft;
} KERNEL_TYPE;

struct pt_regs {
    unsigned long ip;
} KERNEL_TYPE;

/* Holds the preempt count from 6.2 to 6.14. */
struct pcpu_hot {
    int preempt_count;
} KERNEL_TYPE;

/* A sleeping task's state: as the kernel has numbered them for ever. */
#define STATE_WAITING 2
#define STATE_STOPPED (4 | 8)
#define STATE_DEAD 128

/* The softirq in which timers expire, as in /proc/softirqs. */
#define SOFTIRQ_HRTIMER 8

INLINE u64 state_of(struct task_struct *task)
{
    if (HAS_FIELD(task->__state))
        return task->__state;
    return ((struct task_struct___old *)task)->state;
}

/* Where the task runs, or ran last. */
INLINE u32 cpu_of(struct task_struct *task)
{
    if (HAS_FIELD(task->thread_info.cpu))
        return task->thread_info.cpu;
    return ((struct task_struct___old *)task)->cpu;
}

#endif
