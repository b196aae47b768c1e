/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the injector's kernel side and its user side tell each other: inject.bpf.c and kernel.rs.
 * All times are CLOCK_MONOTONIC ns.
 */
#ifndef TARDY_INJECT_H
#define TARDY_INJECT_H

#define INJECT_CPUS 256
#define INJECT_TARGETS 256
/* No delay is longer, whatever is ordered. */
#define INJECT_LONGEST_NS 5000000ULL

enum inject_kind {
    INJECT_NOTHING = 0,
    /* Busy waits in a program on the tracepoint of that context. */
    INJECT_HARDIRQ = 1,
    INJECT_SOFTIRQ = 2,
    INJECT_SWITCH = 3,
    INJECT_SYSCALL = 4,
    INJECT_PAGE_FAULT = 5,
    /* Only looked at: how long a task held the CPU, or an interrupt lasted. */
    INJECT_HOG = 6,
    INJECT_EXIT = 7,
    INJECT_STORM = 8,
    INJECT_STOP = 9,
    /* What came meanwhile: a hard interrupt of any kind, a softirq that was not held up. */
    INJECT_INTERRUPT = 10,
    INJECT_SOFTIRQ_RUN = 11,
};

/* What is to happen on one CPU; written by user space. */
struct inject_order {
    unsigned int kind;
    unsigned int tid; /* of the task that is looked at */
    unsigned long long ns;
    unsigned long long from_ns; /* not before; also the number of the order */
    unsigned long long until_ns;
};

/* What is known of one CPU; written here. */
struct inject_seen {
    unsigned long long expires_ns; /* of the measured thread's timer, last armed */
    unsigned long long done;       /* the order that was carried out last */
    unsigned long long since_ns;   /* the task that is looked at was switched in, or 0 */
    unsigned long long entry_ns;   /* entry of the interrupt */
    unsigned long long softirq_ns; /* and of the softirq */
    unsigned long long stopped_ns; /* the measured thread was stopped, or 0 */
    unsigned int held;             /* the kind that holds up the interrupt or softirq, or 0 */
    unsigned int reserved;
};

/* One delay. */
struct inject_log {
    unsigned int kind;
    unsigned int cpu;
    unsigned long long at_ns;
    unsigned long long ns;
    unsigned long long expires_ns; /* as in inject_seen, at that time */
    unsigned int pid;
    unsigned int reserved;
};

#endif
