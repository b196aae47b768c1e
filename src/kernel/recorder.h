/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the recorder writes into memory that user space maps: the contract between recorder.bpf.c
 * and recorder.rs. All times are CLOCK_MONOTONIC ns. User space only reads, except for `settings`.
 */
#ifndef TARDY_RECORDER_H
#define TARDY_RECORDER_H

/* Most CPUs, measured threads, stacks that are kept, and functions of one stack. */
#define TARDY_CPUS 1024
#define TARDY_THREADS 4096
#define TARDY_STACKS 1024
#define TARDY_FRAMES 32
/* Slots of the hash table from a thread's number to its record; what is left of 32 bits then. */
#define TARDY_HASH_SLOTS 65536
#define TARDY_HASH_SHIFT 16
/* Frequencies that CPUs were set to, of all of them together; a power of two. */
#define TARDY_FREQUENCIES 4096

/* What happened; beside each, what the union of `struct tardy_event` holds. */
enum tardy_kind {
    TARDY_NOTHING = 0,
    /* `pid`, `prio`, `comm`: the task switched in; `flags`: why the one before was switched out,
     * and what lets this one run before real-time tasks. */
    TARDY_SWITCH = 1,
    /* `pid`, `prio`: the task woken; a: pid of the task the CPU was in; b: the CPU that the woken
     * one ran on last. */
    TARDY_WAKING = 2,
    /* `pid`, `prio`; a: from CPU; b: to CPU. */
    TARDY_MIGRATE = 3,
    /* `pid`: number of the interrupt line; `comm`: the handler's name, as far as it fits. */
    TARDY_IRQ_ENTRY = 4,
    /* a: number of the interrupt line. */
    TARDY_IRQ_EXIT = 5,
    /* a: vector 0..9, as in /proc/softirqs. */
    TARDY_SOFTIRQ_ENTRY = 6,
    TARDY_SOFTIRQ_EXIT = 7,
    /* a: enum tardy_vector; those of the local timer are one TARDY_TIMER_INTERRUPT. */
    TARDY_VECTOR_ENTRY = 8,
    TARDY_VECTOR_EXIT = 9,
    /* a: programmed expiry; b: address of the callback. */
    TARDY_TIMER = 10,
    /* a: the idle state that the CPU enters. The next interrupt or switch ends it. */
    TARDY_IDLE = 11,
    /* `pid`: the sender; a: the CPU it is sent to; b: address of what is called there, 0 where it
     * only asks for a switch of tasks. */
    TARDY_IPI = 12,
    /* `pid`: a measured thread; a: the address; b: the instruction. */
    TARDY_PAGE_FAULT = 13,
    /* a: ns that the handler took; b: its address. */
    TARDY_NMI = 14,
    /* a: ns that the hypervisor took from this CPU; b: when that counter was read before. */
    TARDY_STEAL = 15,
    /* `pid`: a measured thread; a: the lock; b: flags as in <trace/events/lock.h>. */
    TARDY_LOCK_BEGIN = 16,
    TARDY_LOCK_END = 17,
    /* `at_ns`: the walk began; `pid`: whose; `flags`: enum tardy_stack_reason; a: number of the stack;
     * b: ns that the walk took. */
    TARDY_STACK = 18,
    /* A function ended that took TARDY_LONG_NS or more. `pid`: the task it ran in; `flags`: enum
     * tardy_function; a: ns that it took; b: its address. */
    TARDY_FUNCTION = 19,
    /* The same of the poll of a network device, whose name is in `comm`. `pid`: ns that it took;
     * `prio`: packets; `flags`: how many it may take at most, 255 for more. */
    TARDY_POLL = 20,
    /* An interrupt to several CPUs; an event for each 64 of them that have one. `pid`: the sender;
     * `flags`: n; a: those of the CPUs from 64 n on, a bit each; b: as of TARDY_IPI. */
    TARDY_IPI_MASK = 21,
    /* `pid`, `prio`, `comm`: the task that has the lock for which the measured thread on this CPU is
     * about to wait, and whose priority is raised for that. */
    TARDY_LOCK_OWNER = 22,
    /* The interrupt of the local timer ended. `flags`: of where it came; a: ns that it took; b: the
     * interrupted address, 0 where not known. */
    TARDY_TIMER_INTERRUPT = 23,
    /* `pid`, `prio`: a measured thread that leaves its CPU to wait for a lock of its program;
     * `flags`: enum tardy_futex; a: address of the lock; b: the thread that has it as the lock's
     * memory says, 0 where it does not. */
    TARDY_FUTEX_WAIT = 24,
    /* `pid`, `prio`: a task of this CPU that gets another priority, of who waits for its lock, or its
     * own again; a: the task that does so, which may be on another CPU. */
    TARDY_PRIORITY = 25,
};

/* Kinds of locks of programs. */
enum tardy_futex {
    TARDY_FUTEX_PLAIN = 1,    /* its owner is beside it */
    TARDY_FUTEX_OWNED = 2,    /* its owner is in it */
    TARDY_FUTEX_INHERITS = 3, /* the same, and the owner inherits the priority of who waits */
    TARDY_FUTEX_OTHER = 4,    /* one that has no owner */
};

/* `flags` of TARDY_SWITCH: why the task before was switched out. */
#define TARDY_OUT_PREEMPTED 0
#define TARDY_OUT_SLEEPING 1
#define TARDY_OUT_WAITING 2 /* uninterruptible */
#define TARDY_OUT_STOPPED 3 /* stopped, traced or frozen */
#define TARDY_OUT_DEAD 4
#define TARDY_OUT_THROTTLED 5 /* its group has used up its CPU quota */
#define TARDY_OUT_IO 6        /* uninterruptible, for a device */
#define TARDY_OUT_FUTEX 7     /* in the system call futex */
#define TARDY_OUT_PI_FUTEX 8  /* the same, for one that has an owner, who inherits priority */
#define TARDY_OUT_LOCK 9      /* for a spinlock of the kernel, with PREEMPT_RT */
#define TARDY_OUT_BUDGET 10   /* it has used up the runtime of its deadline policy */
#define TARDY_OUT_THROTTLING 11 /* its real-time tasks, or its group's, have used up their time */
#define TARDY_OUT_REASON 63
/* The real-time tasks of this CPU have used up their time. */
#define TARDY_THROTTLED 64
/* The fair server runs it; also of TARDY_WAKING, about the task that the CPU was in. */
#define TARDY_SERVED 128

/* Why a task does not run that is ready; `flags` of TARDY_WAKING of a measured thread. */
enum tardy_hold {
    TARDY_NOT_HELD = 0,
    TARDY_HELD_BY_QUOTA = 1,      /* its group has used up its CPU quota */
    TARDY_HELD_BY_BUDGET = 2,     /* as TARDY_OUT_BUDGET */
    TARDY_HELD_BY_THROTTLING = 3, /* as TARDY_OUT_THROTTLING */
    TARDY_HELD_BY_ITSELF = 4,     /* it has given up the rest of that runtime (sched_yield) */
};
#define TARDY_HOLD 7

/* `flags` of TARDY_TIMER_INTERRUPT, where the interrupted address is known. */
#define TARDY_IN_USER 1
/* The instructions before the interrupted one enabled interrupts (sti, popf). */
#define TARDY_JUST_ENABLED 2
/* Preemption was disabled there, apart from this interrupt itself. */
#define TARDY_NO_PREEMPT 4

enum tardy_vector {
    TARDY_LOCAL_TIMER = 1,
    TARDY_RESCHEDULE = 2,
    TARDY_CALL_FUNCTION = 3,
    TARDY_CALL_FUNCTION_SINGLE = 4,
    TARDY_IRQ_WORK = 5,
    TARDY_SPURIOUS = 6,
    TARDY_APIC_ERROR = 7,
    TARDY_PLATFORM_IPI = 8,
    TARDY_MCE_THRESHOLD = 9,
    TARDY_MCE_DEFERRED = 10,
    TARDY_THERMAL = 11,
};

/* Of shorter functions nothing is recorded: a CPU has at most 200,000 of one kind a second. */
#define TARDY_LONG_NS 5000

/* Which functions are recorded. */
enum tardy_function {
    TARDY_OF_TIMER = 1,   /* a timer of the timer wheel, in the softirq TIMER */
    TARDY_OF_TASKLET = 2, /* in the softirq HI or TASKLET */
    TARDY_OF_POLL = 3,    /* a poll without a device, in the softirq NET_RX */
    TARDY_OF_WORK = 4,    /* work of a kworker, or in the softirq HI or TASKLET */
    TARDY_OF_CALL = 5,    /* a call for another CPU */
};
#define TARDY_FUNCTIONS 6

/* What wakes the measured threads. */
enum tardy_woken_by {
    TARDY_BY_TIMERS = 0,
    TARDY_BY_MESSAGES = 1,
    TARDY_BY_BOTH = 2,
};

/* When stacks are walked. */
enum tardy_stacks {
    TARDY_STACKS_OFF = 0,
    TARDY_STACKS_LATE = 1,
    TARDY_STACKS_ALWAYS = 2,
};

/* Why a stack was walked. */
enum tardy_stack_reason {
    TARDY_LATE_INTERRUPT = 1, /* the timer interrupt itself came late */
    TARDY_LATE_DISPATCH = 2,  /* the task that is switched out kept the CPU after the wake-up */
    TARDY_SUSPECT = 3,      /* a wake-up found a task long in the kernel that cannot be preempted */
};

/*
 * One event; 32 bytes. `prio` is the kernel's: 0..98 real-time (98 = FIFO 1), 100..139 fair, -1
 * deadline.
 */
struct tardy_event {
    unsigned long long at_ns;
    unsigned char kind;
    unsigned char flags;
    short prio;
    unsigned int pid;
    union {
        char comm[16];
        struct {
            unsigned long long a;
            unsigned long long b;
        };
    };
};

/* The wake-up in progress or last completed of one measured thread; 128 bytes. */
struct tardy_thread {
    unsigned long long expires_ns;    /* programmed expiry of the timer whose handler woke it */
    unsigned long long entry_ns;    /* entry of the timer interrupt */
    unsigned long long callback_ns; /* the timer's callback began; or `entry_ns`, without softirq */
    unsigned long long waking_ns;    /* it was made runnable */
    unsigned long long switch_ns;    /* it was switched in; written last */
    unsigned int cpu;        /* where it was woken */
    unsigned int switch_cpu;    /* where it was switched in */
    unsigned int in_softirq;    /* 1: the callback ran in a softirq */
    unsigned int tid;
    unsigned long long stopped_from_ns; /* the last time it was stopped (SIGSTOP, ptrace) */
    unsigned long long stopped_until_ns;
    unsigned long long pending;    /* 1 between wake-up and switch */
    unsigned long long suspect;    /* 1: the wake-up interrupted a task that may keep the CPU */
    unsigned long long walk_ns;    /* what walking its stack took; 0: it was not walked */
    unsigned long long reserved[4];
};

/* One kernel stack; 272 bytes. */
struct tardy_stack {
    unsigned long long number; /* from 1; the slot is number % TARDY_STACKS; written last */
    unsigned int pid;
    unsigned int frames;
    unsigned long long frame[TARDY_FRAMES]; /* innermost first */
};

/* The kernel set a CPU to a frequency; 16 bytes. */
struct tardy_frequency {
    unsigned long long at_ns; /* 0 while the others are written */
    unsigned int cpu;
    unsigned int khz;
};

/* The offset of a variable that this kernel does not have. */
#define TARDY_NO_OFFSET (-2147483647 - 1)

/* Constant once the programs are loaded, so that what is off costs nothing. */
struct tardy_config {
    unsigned int record;    /* 1: events are recorded; 0: stages alone */
    unsigned int stacks;    /* enum tardy_stacks */
    unsigned int slots;     /* events kept for each CPU; a power of two */
    unsigned int soft_timers; /* 1: timers may expire in a softirq (PREEMPT_RT) */
    unsigned int preemptible; /* 1: the kernel can be preempted wherever that is not disabled */
    unsigned int woken_by;  /* enum tardy_woken_by */
    unsigned int switch_has_state; /* 1: sched_switch has the state of the task that is left */
    unsigned int futexes;   /* 1: whether a task sleeps for a futex is looked up */
    unsigned int cpu_bytes; /* of a mask of this machine's CPUs; a multiple of 8 */
    unsigned int expire_has_time; /* 1: hrtimer_expire_entry has the time, and not its address */
    /* Offsets of per-CPU variables from `hrtimer_bases`, bytes, or TARDY_NO_OFFSET. */
    int irq_regs;
    int preempt_count;
    int pcpu_hot;
    int steal_time;
};

/* Set while the programs run, and what they count. 128 bytes. */
struct tardy_settings {
    unsigned long long late_ns; /* stacks are walked for what is later than this */
    int max_prio;               /* the greatest number of a measured thread; -2: there is none */
    unsigned int hash_factor;   /* the slot of a thread: number x hash_factor >> TARDY_HASH_SHIFT */
    unsigned int min_preempt_count; /* in an interrupt of code that could be preempted */
    unsigned long long stacks;  /* how many were walked */
    unsigned long long stacks_lost; /* and how many could not be */
    unsigned long long walk_cost_ns; /* average of a walk; 0 before the first */
    unsigned long long frequencies; /* how often a CPU was set to a frequency */
    unsigned long long reserved[9];
};

/* A timer that expired: the last one whose callback began. */
struct tardy_expired {
    unsigned long long expires_ns;
    unsigned long long entry_ns; /* for a softirq's timers: the interrupt that raised it */
    unsigned long long callback_ns; /* 0 once it has woken a measured thread */
};

/* What is known about a CPU from one program to the next; 128 bytes. */
struct tardy_cpu {
    unsigned long long head;      /* events ever written */
    unsigned long long entry_ns;  /* the last interrupt of the timer */
    struct tardy_expired hard;
    struct tardy_expired soft;
    unsigned long long switch_ns;   /* the last switch of tasks */
    unsigned long long walk_ns;     /* when a stack was last walked on mere suspicion */
    unsigned long long raised_ns;   /* when the softirq of timers was raised last */
    unsigned long long steal_ns;    /* what the hypervisor has taken in all */
    unsigned long long steal_read_ns; /* when that was read */
    unsigned long long entry_ip;    /* the instruction that the last timer interrupt hit */
    unsigned int walk_interval_ns;  /* until the next walk on suspicion */
    unsigned char in_timer;         /* not 0 until that interrupt ends */
    unsigned char entry_flags;      /* its flags */
    unsigned short blocker_pid;     /* who last kept a thread off the CPU; its last 16 bits */
    unsigned long long hrtimer_bases; /* address of the CPU's variable; 0 until known */
};

/* All that is shared but the events, in one mapping. */
struct tardy_memory {
    struct tardy_settings settings;
    struct tardy_cpu cpus[TARDY_CPUS];
    struct tardy_thread threads[TARDY_THREADS];
    struct tardy_stack stacks[TARDY_STACKS];
    /* By slot: 0 for none, else 1 + the index of the thread's record. */
    unsigned short thread_hash[TARDY_HASH_SLOTS];
    struct tardy_frequency frequencies[TARDY_FREQUENCIES];
};

#endif
