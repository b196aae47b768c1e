/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the programs that follow somebody else's threads write into memory that user space maps: the
 * contract between attach.bpf.c and attach.rs. All times are CLOCK_MONOTONIC ns.
 */
#ifndef TARDY_ATTACH_H
#define TARDY_ATTACH_H

/* Most threads at one time; place 0 is nobody's. A power of two. */
#define TARDY_ATTACH_PLACES 512
/* Of so many numbers of threads the places lie together. */
#define TARDY_ATTACH_BLOCK 1024
#define TARDY_ATTACH_CPUS 1024
/* Buckets of a histogram: each doubling is cut into 64, so that one is 1.6 % wide at most. */
#define TARDY_ATTACH_SUB_BITS 6
#define TARDY_ATTACH_BUCKETS 2432

/* The histograms of a thread. */
enum tardy_attach_hist {
    TARDY_ATTACH_DISPATCH = 0, /* wake-up to running */
    TARDY_ATTACH_LATENESS = 1, /* hard expiry of its own timer to running; 0 where before it */
    TARDY_ATTACH_RUN = 2,      /* of a wake-up: time on a CPU */
    TARDY_ATTACH_READY = 3,    /* of a wake-up that was preempted: ready, but not running */
    TARDY_ATTACH_BLOCKED = 4,  /* asleep, up to the wake-up */
    TARDY_ATTACH_RESPONSE = 5, /* hard expiry of its own timer to the end of its work */
    TARDY_ATTACH_STAGE = 6,    /* wake-up by others to the next wait */
    TARDY_ATTACH_OTHER = 7,    /* of an event loop: the same of what is not its timer's */
    TARDY_ATTACH_KEPT = 8,     /* hard expiry to where such work ended that went on by then */
};
#define TARDY_ATTACH_HISTS 9

/* What begins the cycles of a thread. */
enum tardy_attach_begin {
    TARDY_ATTACH_BEGIN_TIMER = 0,  /* its own timer */
    TARDY_ATTACH_BEGIN_WAKEUP = 1, /* a wake-up by others */
    TARDY_ATTACH_BEGIN_OTHER = 2,  /* the same, of an event loop whose timer begins its cycles */
};
/* Those that are judged. */
#define TARDY_ATTACH_BEGINS 2

/* Who woke a thread. */
enum tardy_attach_waker {
    TARDY_ATTACH_BY_TIMER = 0,
    TARDY_ATTACH_BY_INTERRUPT = 1, /* hard interrupt or softirq */
    TARDY_ATTACH_BY_IPI = 2,
    TARDY_ATTACH_BY_TASK = 3,
};
#define TARDY_ATTACH_WAKERS 4

/* For what a thread sleeps within a cycle, where the kernel says it. */
enum tardy_attach_wait {
    TARDY_ATTACH_WAIT_FUTEX = 0,    /* in the system call futex */
    TARDY_ATTACH_WAIT_PI_FUTEX = 1, /* the same, for one that has an owner, who inherits priority */
    TARDY_ATTACH_WAIT_IO = 2,       /* for a device or a page */
    TARDY_ATTACH_WAIT_OTHER = 3,
};
#define TARDY_ATTACH_WAITS 4

/*
 * The timer of its last sleep is for a time, and not until one; that by which it was woken last was;
 * and that of the wake-up that is to be counted. Who is woken before it has left its CPU has been
 * woken since.
 */
#define TARDY_ATTACH_SLEEPS_FOR 1
#define TARDY_ATTACH_SLEPT_FOR 2
#define TARDY_ATTACH_DUE_FOR 4
/* It had another period before, for so long that the counts of that stay. */
#define TARDY_ATTACH_CHANGED 8
/* It sleeps for a lock of the kernel, in the midst of what it does. */
#define TARDY_ATTACH_IN_LOCK 16

/* Which threads are attached. */
enum tardy_attach_mode {
    TARDY_ATTACH_PROCESS = 0,
    TARDY_ATTACH_THREAD = 1,
    TARDY_ATTACH_NAME = 2,
    TARDY_ATTACH_CHILDREN = 3, /* what an attached thread starts, also as a process */
};

/* Of a place. */
enum tardy_attach_state {
    TARDY_ATTACH_FREE = 0,
    TARDY_ATTACH_LIVE = 1,
    TARDY_ATTACH_ENDED = 2, /* user space has still to read it */
};

struct tardy_attach_hist_data {
    unsigned long long count;
    unsigned long long sum_ns;
    unsigned long long min_ns;
    unsigned long long max_ns;
    unsigned long long above; /* longer than an hour: in no bucket */
    unsigned int lowest;      /* no lower bucket was counted */
    unsigned int highest;
    unsigned int buckets[TARDY_ATTACH_BUCKETS];
};

/* Of all cycles that took longer than the deadline: how many, and the sums of their parts. */
struct tardy_attach_over {
    unsigned long long cycles;
    unsigned long long late_ns;
    unsigned long long run_ns;
    unsigned long long ready_ns;
    unsigned long long wait_ns;
    unsigned long long unseen_ns;
    unsigned long long waits_ns[TARDY_ATTACH_WAITS];
    unsigned long long told;    /* cycles whose sleeps for a futex are told */
    unsigned long long faulted; /* cycles with page faults */
    unsigned long long faults[2]; /* without and with a read of the page */
};

/* One thread at one place. */
struct tardy_attach_thread {
    unsigned int tid; /* 0 while nobody's */
    unsigned int pid;
    unsigned int state;
    unsigned int prio;     /* the kernel's, as it last went to sleep */
    unsigned long long start_ns; /* with `tid` the thread for good; 0 until it is first seen */
    char comm[16];
    /* The present wake-up. */
    unsigned long long waking_ns; /* 0 where none is in progress */
    unsigned long long early_ns;  /* woken while it had not gone to sleep yet */
    unsigned long long out_ns;    /* when it went to sleep; 0 while it has not */
    unsigned long long ready_ns;  /* since when it is preempted; 0 while it is not */
    unsigned long long in_ns;     /* when it was switched in */
    unsigned long long run_ns;    /* what it had of a CPU since the wake-up */
    unsigned long long wait_ns;   /* ready, but not running since then */
    unsigned int whole;           /* 1: its wake-up was seen */
    unsigned int waker;
    unsigned long long hard_ns;   /* of the own timer that woke it; 0 for none */
    unsigned long long soft_ns;
    /* Counts. */
    unsigned long long woken[TARDY_ATTACH_WAKERS];
    unsigned long long preempted;
    unsigned long long unmatched; /* wake-ups or switches that were not seen */
    unsigned long long in_slack;  /* ran before the hard expiry */
    unsigned long long slack_ns;  /* hard less soft expiry, summed over own timers */
    /* The period of its timers: from one programmed expiry to the next. */
    unsigned long long last_ns;   /* the last programmed expiry */
    unsigned long long period_ns; /* the candidate */
    unsigned long long first_ns;  /* the expiry from which on it is one */
    unsigned long long hits;      /* expiries a period, or a few, after the one before */
    unsigned long long misses;    /* others */
    unsigned long long missed;    /* periods without an expiry */
    unsigned int votes;
    unsigned int relative;        /* TARDY_ATTACH_SLEEPS_FOR and the two after it */
    unsigned long long sleep_timer; /* address of the timer of its last sleep */
    unsigned long long entry_ns;  /* the interrupt in which its own timer expired */
    unsigned int woken_on;        /* the CPU */
    unsigned int wants_lateness;  /* 1: what is late is the lateness, else the dispatch */
    unsigned long long late_ns;   /* later ones are handed over; 0 for none. Set by user space */
    /* The last wake-up, which is counted when its work is over: then nobody waits for that. */
    unsigned long long woken_ns;  /* 0 once it is counted */
    unsigned long long switched_ns;
    unsigned long long due_ns;    /* hard expiry of its own timer; 0 for none */
    unsigned long long due_soft_ns;
    unsigned long long blocked_ns;
    unsigned long long woken_by;
    /* The present cycle, with `response` alone: attach_response.h. */
    unsigned long long cycle_ns;       /* hard expiry of its own timer, or wake-up; 0 for none */
    unsigned long long cycle_in_ns;    /* when it had the CPU for it */
    unsigned long long cycle_done_ns;  /* its last sleep so far; 0 for none */
    unsigned long long cycle_since_ns; /* since when it runs */
    unsigned long long cycle_run_ns;
    unsigned long long cycle_ready_ns;
    unsigned long long cycle_wait_ns;
    unsigned long long cycle_entry_ns; /* the interrupt in which that expired */
    unsigned long long cycle_waking_ns;
    unsigned int cycle_woken_on;       /* the CPU, and the one that it got */
    unsigned int cycle_switched_on;
    unsigned long long armed_ns;       /* when it armed the timer of its last sleep */
    unsigned long long arrived;        /* 1: it was switched in, which is still to be counted */
    unsigned long long sleep_hard_ns;  /* hard expiry, as `sleep_until_ns` is the soft one */
    unsigned long long deadline_ns;    /* cycles are not to be longer; 0 for none */
    /* Of the period: periods of which it is not known whether the thread had or wanted an expiry. */
    unsigned long long unsure;
    unsigned long long unsure_hits; /* hits whose shorter periods would be unsure too */
    unsigned long long switches; /* how often it had been switched out, as it last was; 0 at first */
    unsigned int sight_lost;     /* 1: something since the last expiry was not seen */
    unsigned int cycle_sleep;    /* for what it sleeps: enum tardy_attach_wait */
    unsigned long long cycle_waits_ns[TARDY_ATTACH_WAITS]; /* sleeps of the present cycle */
    unsigned long long asides;    /* wake-ups from sleeps for a time within a cycle */
    unsigned long long asides_now; /* of them those since the last programmed expiry */
    unsigned long long overdue_ns; /* the last expiry that was over when it slept until that */
    unsigned long long sleep_until_ns; /* soft expiry of the timer of its last sleep, in its clock */
    unsigned long long due_armed_ns; /* when the timer of the last wake-up was armed; 0: not known */
    /* Of the candidate: its hits, and the sum of the times from an expiry to the next arming. */
    unsigned long long era_hits;
    unsigned long long era_armed_ns;
    unsigned long long era_times; /* of the last gap: how many periods */
    unsigned long long cycle_begin;     /* enum tardy_attach_begin */
    unsigned long long cycle_faults[2]; /* its page faults before the cycle, as in `over` */
    unsigned long long perhaps_lock;    /* the futex of its last wait that may be for a lock */
    unsigned long long sleep_key;  /* the wait that it is in, or was last: attach_response.h */
    unsigned long long wait_key;   /* the one in which its own timer finds it */
    unsigned long long wait_votes;
    /* The timer, not one of a sleep, that woke it last; and when it expires, as it is armed. */
    unsigned long long tick_timer;
    unsigned long long tick_ns; /* 0 once its work has begun */
    /* Later expiries of it that were read with the one of the present cycle. */
    unsigned long long read_with;
    unsigned long long read_with_now; /* of them those since the last programmed expiry */
    /* Twice the wake-ups by its own timers, and by others from waits for the next of them. */
    unsigned long long own_wakes;
    unsigned long long other_wakes;
    unsigned long long waits_for_next; /* 1: its present sleep, or last one, is such a wait */
    unsigned int in_call;  /* 1: its work for others began as it entered the wait of its loop */
    unsigned int was_kept; /* 1: such work went on when the next cycle was due */
    unsigned int softirq_ns;       /* from `entry_ns` to the softirq of its timer; 0 without one */
    unsigned int cycle_softirq_ns; /* of the cycle's */
    /* Of the candidate: how far ahead a timer was armed at the most, ns. */
    unsigned long long era_ahead_ns;
    unsigned long long sleeps;    /* of `switches` those that it wanted, which all sleeps are */
    unsigned long long faults[2]; /* its page faults up to the last event of it, as in `over` */
    struct tardy_attach_over over[TARDY_ATTACH_BEGINS];
    struct tardy_attach_hist_data hists[TARDY_ATTACH_HISTS];
};

/* The timer whose callback began last. Times are those of its clock. */
struct tardy_attach_timer {
    unsigned long long timer; /* its address; 0 once its callback is known to be over */
    unsigned long long hard_ns;
    unsigned long long running; /* address of a word that has that of the timer, while it runs */
    unsigned long long pid;   /* of one in a softirq: the task that it interrupted, or that runs it */
    unsigned long long now;   /* the time at which the interrupt began, or its address */
    unsigned long long base_ns; /* of its clock to CLOCK_MONOTONIC */
};

/* A wake-up that was late, or a cycle that was too long; 64 bytes. */
struct tardy_attach_late {
    unsigned long long hard_ns;   /* of the own timer that woke the thread; 0 for none */
    unsigned long long entry_ns;  /* the interrupt in which that expired */
    unsigned long long waking_ns;
    unsigned long long switch_ns;
    unsigned int tid;
    unsigned int place;
    unsigned int woken_on;
    unsigned int switched_on;
    unsigned int prio;
    unsigned int softirq_ns;      /* from `entry_ns` to the softirq in which the timer expired */
    unsigned long long done_ns;   /* of a cycle: when its work ended; 0 for a wake-up */
};

/* 128 bytes, so that no two CPUs write into one line. */
struct tardy_attach_cpu {
    struct tardy_attach_timer hard;
    struct tardy_attach_timer soft;
    unsigned long long in_call; /* 1 in a function that another CPU called */
    unsigned long long raised_ns; /* when the softirq of timers was raised last */
    unsigned long long spare[2];
};

struct tardy_attach_settings {
    /* Free places, handed out from `head` to `tail`; both only grow. */
    unsigned long long head;
    unsigned long long tail;
    unsigned long long refused;   /* threads for which there was no place */
    unsigned long long started;   /* threads that were given one by a program */
    unsigned long long dropped;   /* late ones for which the ring had no room */
    unsigned int own_pid;         /* what this process starts is attached; 0 for nothing */
    unsigned int reserved;
    unsigned long long name[2];   /* of TARDY_ATTACH_NAME */
    unsigned long long on;        /* 0: nothing is given a place */
    unsigned int free[TARDY_ATTACH_PLACES];
};

/* All that is shared but threads and places. */
struct tardy_attach_memory {
    struct tardy_attach_settings settings;
    struct tardy_attach_cpu cpus[TARDY_ATTACH_CPUS];
};

/* Constant once the programs are loaded. */
struct tardy_attach_config {
    unsigned int mode;   /* enum tardy_attach_mode */
    unsigned int target; /* the process, or the thread */
    unsigned int switch_has_state;
    /* Offsets from `runqueues`; of a kernel without, -2^31. */
    int preempt_count;
    int pcpu_hot;
    unsigned int response;          /* 1: cycles are measured */
    unsigned int expire_has_time;   /* 1: hrtimer_expire_entry has the time, and not its address */
    unsigned int soft_timers;       /* 1: timers may expire in a softirq (PREEMPT_RT) */
    unsigned long long deadline_ns; /* of threads that begin; 0 for none */
};

#endif
