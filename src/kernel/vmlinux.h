/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The kernel's types, cut down to the fields that the programs read. The loader relocates each
 * field by its name (CO-RE), so neither order nor missing fields matter.
 */
#ifndef __VMLINUX_H__
#define __VMLINUX_H__

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef signed short __s16;
typedef signed int __s32;
typedef signed long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;
typedef _Bool bool;

/* <linux/bpf.h> */
#define BPF_MAP_TYPE_HASH 1
#define BPF_MAP_TYPE_ARRAY 2
#define BPF_MAP_TYPE_PERCPU_ARRAY 6
#define BPF_MAP_TYPE_LRU_HASH 9
#define BPF_MAP_TYPE_RINGBUF 27
#define BPF_F_MMAPABLE 1024
#define BPF_RB_NO_WAKEUP 1
#define BPF_F_USER_STACK 256

/* <linux/sched.h>: the state of a task that does not run. */
#define TASK_INTERRUPTIBLE 0x01
#define TASK_UNINTERRUPTIBLE 0x02
#define __TASK_STOPPED 0x04
#define __TASK_TRACED 0x08
#define TASK_DEAD 0x80
#define TASK_WAKEKILL 0x100
/* Since 6.1. */
#define TASK_FROZEN 0x8000
/* Since 5.15, with PREEMPT_RT: asleep for a spinlock or an rwlock, in the midst of anything. */
#define TASK_RTLOCK_WAIT 0x1000

/* <linux/sched/prio.h>: real-time tasks have a smaller one. */
#define MAX_RT_PRIO 100

/* <linux/hrtimer.h>: a timer that expires after a time, and not at one. */
#define HRTIMER_MODE_REL 1

/* <linux/interrupt.h>: the softirqs in which packets are received and timers expire. */
#define NET_RX_SOFTIRQ 3
#define HRTIMER_SOFTIRQ 8

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct thread_info {
    u32 cpu;
};

struct cfs_rq {
    int throttle_count;
    /* Only with control groups of the scheduler. */
    struct rq *rq;
};

struct rt_rq {
    /* Before 6.12; later only with control groups of real-time tasks. */
    unsigned int rt_throttled;
};

struct sched_rt_entity {
    /* Only with control groups of real-time tasks. */
    struct rt_rq *rt_rq;
};

struct sched_dl_entity {
    unsigned int dl_throttled : 1;
    unsigned int dl_yielded : 1;
};

struct rq {
    struct cfs_rq cfs;
    struct rt_rq rt;
    /* Since 6.12; that of sched_ext is in later kernels alone. */
    struct sched_dl_entity fair_server;
    struct sched_dl_entity ext_server;
};

struct sched_entity {
    struct cfs_rq *cfs_rq;
    /* Since 6.12: it is asleep, and still on its run queue. */
    unsigned char sched_delayed;
};

struct task_struct {
    struct thread_info thread_info;
    int pid;
    int tgid;
    int prio;
    int normal_prio;
    /* `int`, and `u8` in 7.2: the loader adapts what has no sign. */
    unsigned int on_rq;
    unsigned long nvcsw;
    unsigned long nivcsw;
    unsigned long min_flt;
    unsigned long maj_flt;
    u64 start_time;
    u32 __state;
    struct sched_entity se;
    struct sched_rt_entity rt;
    struct sched_dl_entity dl;
    struct sched_dl_entity *dl_server;
    bool throttled;
    void *pi_blocked_on;
    /* Who waits for one of its locks, with the highest priority of all that do. */
    struct task_struct *pi_top_task;
    /* With PREEMPT_RT a task counts its softirqs itself. */
    int softirq_disable_cnt;
    unsigned int in_iowait : 1;
    unsigned int frozen : 1;
    /* As it is there: otherwise the compiler would read it byte by byte. */
    char comm[16] __attribute__((aligned(8)));
};

/* `state` before 5.14, `cpu` before 5.16. */
struct task_struct___old {
    long state;
    u32 cpu;
};

struct hrtimer_clock_base {
    void *cpu_base;
    /* Of the clock to CLOCK_MONOTONIC. */
    s64 offset;
    /* The timer whose callback runs. */
    void *running;
};

struct timerqueue_node {
    s64 expires;
};

struct hrtimer {
    struct timerqueue_node node;
    s64 _softexpires;
    void *function;
    struct hrtimer_clock_base *base;
    u8 is_soft;
};

struct hrtimer_sleeper {
    struct hrtimer timer;
    struct task_struct *task;
};

/* <linux/bpf.h>: since 5.15. */
enum bpf_func_id {
    BPF_FUNC_task_pt_regs = 175,
    BPF_FUNC_loop = 181,
};

struct pt_regs {
    unsigned long ip;
    unsigned long di;
    unsigned long si;
    unsigned long dx;
    unsigned long r10;
    unsigned long orig_ax;
};

struct cpumask {
    unsigned long bits[1];
};

struct timer_list {
    void *function;
};

struct work_struct {
    void *func;
};

/* <linux/interrupt.h>: a handler of a line; others may share it. */
struct irqaction {
    const char *name;
};

struct net_device {
    char name[16];
};

struct napi_struct {
    void *poll;
    struct net_device *dev;
};

/* Holds the preempt count from 6.2 to 6.14. */
struct pcpu_hot {
    int preempt_count;
};

#pragma clang attribute pop

#endif
