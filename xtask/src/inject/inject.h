/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The maps that the injector's BPF side and user space share: inject.bpf.c and kernel.rs. All
 * times are CLOCK_MONOTONIC ns.
 */
#ifndef TARDY_INJECT_H
#define TARDY_INJECT_H

#define INJECT_CPUS 256
#define INJECT_TARGETS 256
/* No delay is longer, whatever is commanded. */
#define INJECT_LONGEST_NS 5000000ULL

enum inject_kind {
    INJECT_NOTHING = 0,
    /* Busy waits in a program on the tracepoint of that context. */
    INJECT_HARDIRQ = 1,
    INJECT_SOFTIRQ = 2,
    INJECT_SWITCH = 3,
    INJECT_SYSCALL = 4,
    INJECT_PAGE_FAULT = 5,
    /* Only logged: how long a task held the CPU, or an interrupt lasted. */
    INJECT_HOG = 6,
    INJECT_EXIT = 7,
    INJECT_STORM = 8,
    INJECT_STOP = 9,
    /* What came during a delay: a hard interrupt of any kind, a softirq that was not delayed. */
    INJECT_INTERRUPT = 10,
    INJECT_SOFTIRQ_RUN = 11,
    /* Busy waits again, with interrupts off: in the middle of a switch from and to the idle task; */
    INJECT_FROM_IDLE = 12,
    INJECT_TO_IDLE = 13,
    /* where the injector's own task arms a timer, and on the way into an idle state: no event there
     * shows that interrupts are off; */
    INJECT_MASKED = 14,
    INJECT_MASKED_IDLE = 15,
    /* in the handler of an interrupt line. */
    INJECT_DEVICE = 16,
    /* And with interrupts on: in a softirq that a thread of its own runs, and in the measured thread
     * on its way to sleep, before it arms its timer. */
    INJECT_SOFTIRQ_THREAD = 17,
    INJECT_ARMING = 18,
    /* Only logged: how long the measured thread waited for a lock. */
    INJECT_LOCK = 19,
    /* A busy wait in the thread of an interrupt line, logged as all that the thread does at once. */
    INJECT_IRQ_THREAD = 20,
    /* What that thread did besides. */
    INJECT_IRQ_THREAD_RUN = 21,
    /* Only logged: how long the measured thread was in the system call that waits for a mutex with
     * priority inheritance. */
    INJECT_PI_MUTEX = 22,
};

/* What is to happen on one CPU; written by user space. */
struct inject_command {
    unsigned int kind;
    unsigned int tid; /* of the task whose time is logged */
    unsigned long long ns;
    unsigned long long from_ns; /* not before; also identifies the command */
    unsigned long long until_ns;
    unsigned long long within_ns; /* of a second delay within the first, or 0 */
    unsigned int within;          /* its kind */
    unsigned int reserved;
};

/* The state of one CPU; written by the programs. */
struct inject_cpu {
    unsigned long long expires_ns; /* of the measured thread's timer, last armed */
    unsigned long long done_ns;    /* `from_ns` of the command that was carried out last */
    unsigned long long since_ns;   /* the task of the command was switched in, or 0 */
    unsigned long long entry_ns;   /* entry of the interrupt */
    unsigned long long softirq_ns; /* and of the softirq */
    unsigned long long stopped_ns; /* the measured thread was stopped, or 0 */
    unsigned long long within_ns;  /* `from_ns` of the command whose second delay was, last */
    unsigned long long arming_at_ns; /* the measured thread was delayed before it armed its timer */
    unsigned long long arming_ns;    /* for so long */
    unsigned int delaying_irq;     /* the kind that delays the interrupt, or 0 */
    unsigned int delaying_softirq; /* and the softirq */
    unsigned int in_interrupt;     /* 1 from its entry to its exit */
    unsigned int reads;            /* 1: the measured thread is in a read() */
    unsigned long long lock_ns;    /* the measured thread waits for a lock since then */
    unsigned int locks;            /* for so many at once */
    unsigned int delaying_thread;  /* 1: the task of the command is delayed since its switch-in */
    unsigned long long mutex_ns;   /* the measured thread waits for the mutex since then, or 0 */
};

/* One delay. */
struct inject_log {
    unsigned int kind;
    unsigned int cpu;
    unsigned long long at_ns;
    unsigned long long ns;
    unsigned long long expires_ns; /* as in inject_cpu, at that time */
    unsigned int pid;
    unsigned int reserved;
};

#endif
