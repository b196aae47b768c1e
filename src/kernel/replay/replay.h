/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A machine of text: the events of a kernel, one a line, drive programs that were written for BPF
 * and are compiled for the host. `attach_replay.c` and `recorder_replay.c` include their program
 * and this file; the same text drives both. Their maps are memory that is shared with the test.
 *
 * A line that begins with `#` is a comment. `task TID PRIO NAME` says which task there is; its process is TID, or the
 * fourth word. `sync` has the program answer with the records of its ring (a count, and 64 bytes
 * each). `kernel expire_has_time` is one that passes the time to hrtimer_expire_entry by value,
 * `kernel rt` one with PREEMPT_RT; with `kernel stages` the recorder traces stages alone. All else is an event: a time in ns, a CPU, a word and its arguments. Tasks and timers are
 * those of the CPU's current task where no other is named; the first current task is the idle one,
 * which is called 0. With `!` before the word the kernel does that, and no program sees it.
 *
 *   switch STATE TID           sched_switch: the current task leaves in STATE (R, R+ preempted, S, D,
 *                              IO for D in a wait for a device, L in one for a spinlock, T stopped,
 *                              X dead, S~ with a signal pending, so that it stays, D~ in a wait for
 *                              a mutex, where proxy execution keeps it on its run queue, S- asleep
 *                              there, SF frozen by its cgroup), TID comes
 *   waking TID                 sched_waking, by what runs here
 *   fork TID, exit             sched_process_fork and _exit, of the current task
 *   rename TID NAME            task_rename
 *   faults N M                 the current task had page faults, without and with a read
 *   prio TID PRIO              another priority, which no tracepoint tells
 *   serve TID N                the fair server of the CPU runs that task (1), that of sched_ext does
 *                              (2), or none (0)
 *   budget TID N M             whether the deadline task has used up its runtime, and has yielded
 *   throttle N                 whether the real-time tasks of the CPU have used up their time
 *   migrate TID CPU            sched_migrate_task
 *   start EXPIRY SOFT MODE     hrtimer_start of the timer of the current task's sleep: hard and soft
 *                              expiry, `abs` or `rel`
 *   start_expired              hrtimer_start_expired: it was over, and never expires (7.2)
 *   arm ID EXPIRY SOFT MODE    hrtimer_start of another timer, number 1 to 63
 *   expire TID, expire #ID     hrtimer_expire_entry
 *   expired                    hrtimer_expire_exit
 *   cancel TID                 hrtimer_cancel of the timer of its sleep; no program listens
 *   timer_irq, timer_irq_end   local_timer_entry and _exit
 *   irq LINE NAME              irq_handler_entry, of a handler of that name
 *   irq_end LINE               irq_handler_exit
 *   softirq N, softirq_end N   softirq_entry and _exit
 *   raise N                    softirq_raise
 *   call, call_end             csd_function_entry and _exit
 *   word ADDRESS VALUE         the 32 bits of the memory of programs at that address
 *   syscall N [A B C], sysret  the current task is in that system call, with these arguments (0
 *                              where they are left out), until sysret
 *   enter                      it enters that call, of which a program may tell
 *   pi_wait TID                sched_pi_setprio: the current task waits for a lock that TID has, which
 *                              gets its priority
 *   pi_done TID                sched_pi_setprio: nobody waits for it any more
 */
#ifndef TARDY_REPLAY_H
#define TARDY_REPLAY_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define HOST_TASKS 4096
#define HOST_CPUS 8
#define HOST_TIMERS 64
#define HOST_WORDS 64
#define HARDIRQ (1 << 16)
#define SOFTIRQ 0x100

struct host_task {
    struct task_struct task; /* First: a task is this by its address. */
    struct hrtimer_sleeper sleep;
    struct pt_regs regs;
};

struct host_cpu {
    struct rq rq;
    u32 preempt_count;
    struct hrtimer_clock_base base;
    s64 interrupt_ns; /* when the present interrupt began; 0 outside of one */
    s64 now_ns;       /* what its timers are told */
    struct host_task idle;
    struct host_task *current;
};

static struct host_task host_tasks[HOST_TASKS];
static u32 host_task_count;
static struct host_cpu host_cpus[HOST_CPUS];
static struct hrtimer_sleeper host_timers[HOST_TIMERS];
static u64 host_now;
static u32 host_cpu_id;
static int host_failed;
/* 1: hrtimer_expire_entry has the time itself, as in 7.2. */
static int host_expire_has_time;
/* 1: PREEMPT_RT, where timers expire in a softirq but for those of sleeps of real-time tasks. */
int host_is_rt;

struct host_word {
    u64 address;
    u32 value;
};

static struct host_word host_words[HOST_WORDS];
static u32 host_word_count;

static u32 bpf_get_smp_processor_id(void)
{
    return host_cpu_id;
}

static struct host_cpu *here(void)
{
    return &host_cpus[host_cpu_id];
}

static struct task_struct *bpf_get_current_task_btf(void)
{
    return &here()->current->task;
}

static u64 bpf_get_current_pid_tgid(void)
{
    struct task_struct *task = bpf_get_current_task_btf();

    return (u64)task->tgid << 32 | (u32)task->pid;
}

static u64 bpf_ktime_get_ns(void)
{
    return host_now;
}

static void *bpf_task_pt_regs(struct task_struct *task)
{
    return &((struct host_task *)task)->regs;
}

/* What the program of this executable does at each event. */
static void see_switch(int preempt, struct task_struct *prev, struct task_struct *next, u64 state);
static void see_waking(struct task_struct *task);
static void see_fork(struct task_struct *parent, struct task_struct *child);
static void see_exit(struct task_struct *task);
static void see_rename(struct task_struct *task, char *name);
static void see_migrate(struct task_struct *task, u32 cpu);
static void see_start(struct hrtimer *timer, u32 mode);
static void see_start_expired(struct hrtimer *timer);
static void see_expire(struct hrtimer *timer, u64 now);
static int use_kernel(char *feature);
static void see_timer_irq(int is_entry);
static void see_irq(int is_entry, u32 line, struct irqaction *action);
static void see_softirq(int is_entry, u32 number);
static void see_raise(u32 vector);
static void see_call(int is_entry);
static void see_pi_wait(struct task_struct *owner, struct task_struct *waiter);
static void see_enter(void);
static void answer(void);

/* Of memory that no event has written nothing can be read. */
static long bpf_probe_read_user(void *to, u32 size, void *from)
{
    for (u32 at = 0; at < host_word_count; at++) {
        if (host_words[at].address == (u64)from && size == sizeof(u32)) {
            *(u32 *)to = host_words[at].value;
            return 0;
        }
    }
    memset(to, 0, size);
    return -1;
}

static int fail(char *what, char *word)
{
    fprintf(stderr, "%llu %u: %s %s\n", host_now, host_cpu_id, what, word ? word : "");
    host_failed = 1;
    return 0;
}

/* Never NULL: one that is not there fails the replay. */
static struct host_task *find(char *word)
{
    int tid = word ? atoi(word) : -1;

    if (tid == 0)
        return &here()->idle;
    for (u32 at = 0; at < host_task_count; at++)
        if (host_tasks[at].task.pid == tid)
            return &host_tasks[at];
    fail("no such task:", word);
    return &here()->idle;
}

static u64 number(char *word)
{
    if (!word)
        fail("a number is missing", NULL);
    return word ? strtoull(word, NULL, 10) : 0;
}

static void set_name(struct task_struct *task, char *name)
{
    memset(task->comm, 0, sizeof(task->comm));
    strncpy(task->comm, name ? name : "", sizeof(task->comm) - 1);
}

static void add_task(char **args)
{
    if (host_task_count == HOST_TASKS) {
        fail("too many tasks", args[0]);
        return;
    }
    struct host_task *it = &host_tasks[host_task_count++];
    it->task.pid = number(args[0]);
    it->task.prio = it->task.normal_prio = atoi(args[1]);
    it->task.tgid = args[3] ? number(args[3]) : it->task.pid;
    it->task.start_time = 1;
    it->sleep.task = &it->task;
    it->regs.orig_ax = -1;
    set_name(&it->task, args[2]);
}

static void do_switch(char **args, int is_seen)
{
    struct host_cpu *cpu = here();
    struct host_task *prev = cpu->current, *next = find(args[1]);
    char *name = args[0] ? args[0] : "";
    int preempt = !strcmp(name, "R+"), is_io = !strcmp(name, "IO");
    int is_stale = !strcmp(name, "S~"), is_delayed = !strcmp(name, "S-");
    int is_donor = !strcmp(name, "D~");
    u64 state = *name == 'R' ? 0 : *name == 'L' ? TASK_RTLOCK_WAIT : *name == 'S' ? TASK_INTERRUPTIBLE
              : *name == 'D' || is_io ? TASK_UNINTERRUPTIBLE : *name == 'T' ? __TASK_STOPPED
              : *name == 'X' ? TASK_DEAD : ~0ull;

    if (state == ~0ull)
        fail("no such state:", name);
    if (prev == next)
        fail("a switch to the current task", args[1]);
    state && !is_stale ? prev->task.nvcsw++ : prev->task.nivcsw++;
    prev->task.in_iowait = is_io;
    prev->task.frozen = !strcmp(name, "SF");
    prev->task.__state = state;
    prev->task.on_rq = !state || is_stale || is_delayed || is_donor;
    prev->task.se.sched_delayed = is_delayed;
    next->task.se.cfs_rq = &cpu->rq.cfs;
    next->task.rt.rt_rq = &cpu->rq.rt;
    if (is_seen)
        see_switch(preempt, &prev->task, &next->task, state);
    next->task.__state = 0;
    next->task.thread_info.cpu = host_cpu_id;
    cpu->current = next;
}

static void do_start(struct hrtimer_sleeper *of, char **args, int is_seen)
{
    u32 mode = args[2] && !strcmp(args[2], "rel") ? HRTIMER_MODE_REL : 0;

    of->timer.node.expires = number(args[0]);
    of->timer._softexpires = number(args[1]);
    of->timer.base = &here()->base;
    of->timer.is_soft = host_is_rt
                        && (of->task == NULL || here()->current->task.prio >= MAX_RT_PRIO);
    if (is_seen)
        see_start(&of->timer, mode);
}

static void set_word(u64 address, u32 value)
{
    u32 at = 0;

    while (at < host_word_count && host_words[at].address != address)
        at++;
    if (at == HOST_WORDS) {
        fail("too many words", NULL);
        return;
    }
    host_word_count += at == host_word_count;
    host_words[at] = (struct host_word){address, value};
}

static struct hrtimer_sleeper *other_timer(char *word)
{
    u64 id = number(word);

    if (!id || id >= HOST_TIMERS)
        fail("no such timer:", word);
    return &host_timers[id % HOST_TIMERS];
}

static void do_expire(char **args, int is_seen)
{
    struct host_cpu *cpu = here();
    int is_other = args[0] && *args[0] == '#';
    struct hrtimer_sleeper *of = is_other ? other_timer(args[0] + 1) : &find(args[0])->sleep;

    /* One that was armed elsewhere moves to where its task is. */
    of->timer.base = &cpu->base;
    cpu->base.running = &of->timer;
    cpu->now_ns = cpu->interrupt_ns ? cpu->interrupt_ns : host_now;
    if (is_seen)
        see_expire(&of->timer, host_expire_has_time ? cpu->now_ns : (u64)&cpu->now_ns);
}

/* An interrupt of either kind begins or ends. */
static void nest(u32 by, int is_entry)
{
    struct host_cpu *cpu = here();

    if (by == SOFTIRQ && host_is_rt)
        cpu->current->task.softirq_disable_cnt += is_entry ? by : -by;
    else
        cpu->preempt_count += is_entry ? by : -by;
    if (by == HARDIRQ)
        cpu->interrupt_ns = is_entry ? host_now : 0;
}

static void of_interrupts(char *word, char **args, int is_seen)
{
    int is_entry = !strstr(word, "_end");

    if (!strncmp(word, "timer_irq", 9)) {
        nest(HARDIRQ, is_entry);
        is_seen ? see_timer_irq(is_entry) : (void)0;
    } else if (!strncmp(word, "irq", 3)) {
        nest(HARDIRQ, is_entry);
        struct irqaction action = {args[1] ? args[1] : ""};
        is_seen ? see_irq(is_entry, number(args[0]), &action) : (void)0;
    } else if (!strncmp(word, "softirq", 7)) {
        nest(SOFTIRQ, is_entry);
        is_seen ? see_softirq(is_entry, number(args[0])) : (void)0;
    } else if (!strcmp(word, "raise")) {
        is_seen ? see_raise(number(args[0])) : (void)0;
    } else if (!strncmp(word, "call", 4)) {
        is_seen ? see_call(is_entry) : (void)0;
    } else {
        fail("no such event:", word);
    }
}

/* The tracepoint comes before the change. */
static void set_priority(struct task_struct *owner, struct task_struct *waiter, int is_seen)
{
    owner->pi_top_task = waiter;
    is_seen ? see_pi_wait(owner, waiter) : (void)0;
    owner->prio = waiter && waiter->prio < owner->normal_prio ? waiter->prio : owner->normal_prio;
}

static void of_current(char *word, char **args, int is_seen)
{
    struct host_task *current = here()->current;

    if (!strcmp(word, "start")) {
        do_start(&current->sleep, args, is_seen);
    } else if (!strcmp(word, "start_expired")) {
        is_seen ? see_start_expired(&current->sleep.timer) : (void)0;
    } else if (!strcmp(word, "arm")) {
        do_start(other_timer(args[0]), args + 1, is_seen);
    } else if (!strcmp(word, "exit")) {
        is_seen ? see_exit(&current->task) : (void)0;
    } else if (!strcmp(word, "syscall")) {
        current->regs.orig_ax = number(args[0]);
        current->regs.di = args[1] ? number(args[1]) : 0;
        current->regs.si = args[1] && args[2] ? number(args[2]) : 0;
        current->regs.dx = args[1] && args[2] && args[3] ? number(args[3]) : 0;
        current->regs.r10 = -1;
    } else if (!strcmp(word, "enter")) {
        is_seen ? see_enter() : (void)0;
    } else if (!strcmp(word, "faults")) {
        current->task.min_flt += number(args[0]);
        current->task.maj_flt += number(args[1]);
    } else if (!strcmp(word, "word")) {
        set_word(number(args[0]), number(args[1]));
    } else if (!strcmp(word, "sysret")) {
        current->regs.orig_ax = -1;
        current->task.pi_blocked_on = NULL;
    } else if (!strcmp(word, "pi_wait")) {
        current->task.pi_blocked_on = current;
        set_priority(&find(args[0])->task, &current->task, is_seen);
    } else if (!strcmp(word, "pi_done")) {
        set_priority(&find(args[0])->task, NULL, is_seen);
    } else {
        of_interrupts(word, args, is_seen);
    }
}

static void happen(char *word, char **args)
{
    int is_seen = *word != '!';

    word += !is_seen;
    if (!strcmp(word, "switch")) {
        do_switch(args, is_seen);
    } else if (!strcmp(word, "waking")) {
        struct task_struct *task = &find(args[0])->task;
        is_seen ? see_waking(task) : (void)0;
    } else if (!strcmp(word, "fork")) {
        is_seen ? see_fork(&here()->current->task, &find(args[0])->task) : (void)0;
    } else if (!strcmp(word, "rename")) {
        struct host_task *task = find(args[0]);
        is_seen ? see_rename(&task->task, args[1]) : (void)0;
        set_name(&task->task, args[1]);
    } else if (!strcmp(word, "prio")) {
        struct task_struct *task = &find(args[0])->task;
        task->prio = task->normal_prio = args[1] ? atoi(args[1]) : 0;
    } else if (!strcmp(word, "serve")) {
        struct rq *rq = &here()->rq;
        u64 by = number(args[1]);
        find(args[0])->task.dl_server = !by ? NULL : by == 1 ? &rq->fair_server : &rq->ext_server;
    } else if (!strcmp(word, "budget")) {
        struct task_struct *task = &find(args[0])->task;
        task->dl.dl_throttled = number(args[1]);
        task->dl.dl_yielded = number(args[2]);
    } else if (!strcmp(word, "throttle")) {
        here()->rq.rt.rt_throttled = number(args[0]);
    } else if (!strcmp(word, "migrate")) {
        struct host_task *task = find(args[0]);
        is_seen ? see_migrate(&task->task, number(args[1])) : (void)0;
        task->task.thread_info.cpu = number(args[1]);
    } else if (!strcmp(word, "expire")) {
        do_expire(args, is_seen);
    } else if (!strcmp(word, "expired")) {
        here()->base.running = NULL;
    } else if (!strcmp(word, "cancel")) {
        find(args[0]);
    } else {
        of_current(word, args, is_seen);
    }
}

static void take_line(char *line)
{
    char *words[9] = {}, *rest = NULL;
    int count = 0;

    line[strcspn(line, "\n")] = 0;
    if (*line == '#')
        return;
    for (char *word = strtok_r(line, " ", &rest); word && count < 8; count++) {
        words[count] = word;
        word = strtok_r(NULL, " ", &rest);
    }
    if (!count)
        return;
    if (!strcmp(words[0], "sync")) {
        answer();
        fflush(stdout);
    } else if (!strcmp(words[0], "kernel")) {
        host_expire_has_time |= !strcmp(words[1] ? words[1] : "", "expire_has_time");
        host_is_rt |= !strcmp(words[1] ? words[1] : "", "rt");
        use_kernel(words[1] ? words[1] : "") || fail("no such kernel:", words[1]);
    } else if (!strcmp(words[0], "task")) {
        add_task(words + 1);
    } else if (count < 3 || number(words[1]) >= HOST_CPUS) {
        fail("no event:", words[0]);
    } else {
        host_now = number(words[0]);
        host_cpu_id = number(words[1]);
        happen(words[2], words + 3);
    }
}

static void *share(char *path)
{
    int file = open(path, O_RDWR);
    long size = file < 0 ? -1 : lseek(file, 0, SEEK_END);
    void *at = size < 0 ? MAP_FAILED : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

    if (at == MAP_FAILED) {
        perror(path);
        exit(1);
    }
    return at;
}

/* From here to the preempt count, as the programs find it. */
#define HOST_COUNT_OFFSET __builtin_offsetof(struct host_cpu, preempt_count)

static int replay(void)
{
    char line[256];

    for (u32 id = 0; id < HOST_CPUS; id++) {
        struct host_cpu *cpu = &host_cpus[id];
        cpu->rq.cfs.rq = &cpu->rq;
        cpu->current = &cpu->idle;
        cpu->idle.task.prio = 120;
        cpu->idle.task.se.cfs_rq = &cpu->rq.cfs;
        cpu->idle.task.thread_info.cpu = id;
        cpu->idle.regs.orig_ax = -1;
        snprintf(cpu->idle.task.comm, sizeof(cpu->idle.task.comm), "swapper/%u", id);
    }
    while (!host_failed && fgets(line, sizeof(line), stdin))
        take_line(line);
    return host_failed;
}

#endif
