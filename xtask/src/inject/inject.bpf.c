// SPDX-License-Identifier: GPL-2.0
/*
 * Delays measured threads, for a time that is known to the ns, in a context that is known, and logs
 * when. Each program belongs to one context, in which it busy-waits until the time is over.
 *
 * User space times the delays: a command says from when on the next passage through the context is
 * to be delayed. The expiry of the measured thread's timer is read when the timer is armed, so that
 * the log names the expiry that a delay was meant for.
 */
#include "../../../src/kernel/bpf.h"
#include "inject.h"

/* <asm/unistd_64.h> */
#define NR_READ 0
#define NR_FUTEX 202

/* <linux/futex.h> */
#define FUTEX_LOCK_PI 6

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, INJECT_CPUS);
    __type(key, u32);
    __type(value, struct inject_command);
} commands SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, INJECT_CPUS);
    __type(key, u32);
    __type(value, struct inject_cpu);
} cpus SEC(".maps");

/* Measured threads: number of the thread to its CPU. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, INJECT_TARGETS);
    __type(key, u32);
    __type(value, u32);
} targets SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 256 * 1024);
} logs SEC(".maps");

/* Delays for which the log had no room. */
u64 lost;

#ifdef INJECT_OLD
/* Twice the longest delay in counted time, where such a copy takes 20 us or more. */
#define COPIES 500

struct inject_copy {
    char to[16384];
    char from[16384];
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, u32);
    __type(value, struct inject_copy);
} copies SEC(".maps");

/*
 * Without bpf_loop. The kernel follows each turn when it loads the program, so that there are few,
 * of long copies; in a global function it does so once, and not once for each program.
 */
__attribute__((noinline)) int wait_until(u64 end)
{
    u32 key = 0;
    struct inject_copy *copy = bpf_map_lookup_elem(&copies, &key);

    if (!copy)
        return 0;
    for (u32 turn = 0; turn < COPIES; turn++) {
        bpf_probe_read_kernel(copy->to, sizeof(copy->to), copy->from);
        if (bpf_ktime_get_ns() >= end)
            return 1;
    }
    return 0;
}
#else
static long is_over(u64 turn, void *context)
{
    return bpf_ktime_get_ns() >= *(u64 *)context;
}

static __always_inline void wait_until(u64 end)
{
    bpf_loop(1 << 23, is_over, &end, 0);
}

extern void bpf_preempt_disable(void) __weak __ksym;
extern void bpf_preempt_enable(void) __weak __ksym;
#endif

/* Until now, where `end_ns` is 0: the line takes its time, too, which is part of the delay. */
static __always_inline void
log_delay(u32 kind, u32 cpu, u64 at_ns, u64 end_ns, u64 expires_ns, u32 pid)
{
    struct inject_log *log = bpf_ringbuf_reserve(&logs, sizeof(*log), 0);

    if (!log) {
        __sync_fetch_and_add(&lost, 1);
        return;
    }
    log->kind = kind;
    log->cpu = cpu;
    log->at_ns = at_ns;
    log->expires_ns = expires_ns;
    log->pid = pid;
    log->reserved = 0;
    log->ns = (end_ns ? end_ns : bpf_ktime_get_ns()) - at_ns;
    /* The reader polls: waking it up would be a delay of its own. */
    bpf_ringbuf_submit(log, BPF_RB_NO_WAKEUP);
}

/* The command of a CPU, where it or its second delay is of this kind, and it is due. */
static __always_inline struct inject_command *due_command(u32 cpu, u32 kind, u64 now)
{
    struct inject_command *command = bpf_map_lookup_elem(&commands, &cpu);

    if (!command || now < command->from_ns || now >= command->until_ns)
        return NULL;
    return command->kind == kind || command->within == kind ? command : NULL;
}

/* How long a delay of this kind is to last now; 0 for none. Each is carried out once. */
static __always_inline u64
take_delay(const struct inject_command *command, struct inject_cpu *state, u32 kind)
{
    if (command->kind == kind) {
        if (state->done_ns == command->from_ns)
            return 0;
        state->done_ns = command->from_ns;
        return command->ns;
    }
    /* The second delay comes while the first lasts, or the hog has the CPU. */
    if (state->within_ns == command->from_ns)
        return 0;
    if (state->done_ns != command->from_ns && !state->since_ns)
        return 0;
    state->within_ns = command->from_ns;
    return command->within_ns;
}

/* Whether all that the task of the command does is the delay. */
static __always_inline int is_task_delay(u32 kind)
{
    return kind == INJECT_HOG || kind == INJECT_EXIT || kind == INJECT_IRQ_THREAD;
}

/*
 * Delays this CPU, once, where that is commanded. A delay within an interrupt or a softirq is
 * logged at its end, as a whole: its own work and the delay are not distinguished.
 */
static __always_inline void delay(u32 kind)
{
    u32 cpu = bpf_get_smp_processor_id();
    u64 at = bpf_ktime_get_ns();
    struct inject_command *command = due_command(cpu, kind, at);
    struct inject_cpu *state = bpf_map_lookup_elem(&cpus, &cpu);
    u64 end, expires, ns;

    if (!command || !state)
        return;
    ns = take_delay(command, state, kind);
    if (!ns)
        return;
    expires = state->expires_ns;
    end = at + (ns < INJECT_LONGEST_NS ? ns : INJECT_LONGEST_NS);
    /* What interrupts it is logged until it is over. */
    if (kind == INJECT_ARMING)
        state->arming_at_ns = at;
    wait_until(end);
    if (kind == INJECT_HARDIRQ || kind == INJECT_DEVICE) {
        state->delaying_irq = kind;
    } else if (kind == INJECT_SOFTIRQ || kind == INJECT_SOFTIRQ_THREAD) {
        state->delaying_softirq = kind;
    } else if (kind == INJECT_ARMING) {
        state->arming_ns = bpf_ktime_get_ns() - at;
    } else if (is_task_delay(kind)) {
        state->delaying_thread = 1;
    } else {
        log_delay(kind, cpu, at, 0, expires, bpf_get_current_pid_tgid());
    }
}

/*
 * An interrupt or a softirq has ended: it was the delay itself, or it came during another one, such
 * as a wait for a lock, which lasts until its owner lets go of it.
 */
static __always_inline void
log_end(struct inject_cpu *state, u32 *delaying, u32 meanwhile, u64 since)
{
    u32 cpu = bpf_get_smp_processor_id();
    u64 now = bpf_ktime_get_ns();
    struct inject_command *command = bpf_map_lookup_elem(&commands, &cpu);
    u32 delayed = *delaying;

    if (delayed) {
        *delaying = 0;
        log_delay(delayed, cpu, since, now, state->expires_ns, 0);
    } else if (command && since && now >= command->from_ns &&
               (now < command->until_ns || state->locks || state->arming_at_ns)) {
        u32 storm = command->kind == INJECT_STORM && meanwhile == INJECT_INTERRUPT;
        log_delay(storm ? INJECT_STORM : meanwhile, cpu, since, now, state->expires_ns, 0);
    }
}

static __always_inline struct inject_cpu *this_cpu(void)
{
    u32 cpu = bpf_get_smp_processor_id();

    return bpf_map_lookup_elem(&cpus, &cpu);
}

static __always_inline int in_interrupt(void)
{
    struct inject_cpu *state = this_cpu();

    return state && state->in_interrupt;
}

static __always_inline int interrupt_entry(void)
{
    struct inject_cpu *state = this_cpu();

    if (state) {
        state->entry_ns = bpf_ktime_get_ns();
        state->in_interrupt = 1;
    }
    return 0;
}

static __always_inline int interrupt_exit(void)
{
    struct inject_cpu *state = this_cpu();

    if (state) {
        state->in_interrupt = 0;
        log_end(state, &state->delaying_irq, INJECT_INTERRUPT, state->entry_ns);
    }
    return 0;
}

static __always_inline u32 *target_cpu(u32 tid)
{
    return bpf_map_lookup_elem(&targets, &tid);
}

/*
 * Whether a measured thread arms, in its own time, what it sleeps by: the timer of a sleep, which
 * names it, or in a read() that of a timerfd. Interrupts arm timers too while the thread runs.
 */
static __always_inline int
arms_own_timer(const struct inject_cpu *state, struct hrtimer *timer)
{
    struct hrtimer_sleeper *sleeper = container_of(timer, struct hrtimer_sleeper, timer);

    if (state->in_interrupt)
        return 0;
    return state->reads || (u64)BPF_CORE_READ(sleeper, task) == bpf_get_current_task();
}

/* A measured thread goes to sleep: the expiry that the next delay may be meant for. */
static __always_inline void trace_arming(u32 cpu, struct hrtimer *timer)
{
    struct inject_cpu *state = bpf_map_lookup_elem(&cpus, &cpu);

    if (!state || !arms_own_timer(state, timer))
        return;
    state->expires_ns = timer->_softexpires;
    if (!state->arming_at_ns)
        return;
    u64 at = state->arming_at_ns;
    state->arming_at_ns = 0;
    log_delay(INJECT_ARMING, cpu, at, at + state->arming_ns, state->expires_ns, 0);
}

static __always_inline int is_commanded(u32 cpu, u32 tid)
{
    struct inject_command *command = bpf_map_lookup_elem(&commands, &cpu);

    return command && command->tid == tid;
}

/* The kernel has interrupts off here. */
SEC("tp_btf/hrtimer_start")
int BPF_PROG(on_hrtimer_start, struct hrtimer *timer)
{
    u32 tid = bpf_get_current_pid_tgid();
    u32 *cpu = target_cpu(tid);

    if (cpu)
        trace_arming(*cpu, timer);
    else if (is_commanded(bpf_get_smp_processor_id(), tid) && !in_interrupt())
        delay(INJECT_MASKED);
    return 0;
}

/* And here, on the way into an idle state; on the way out, the state is -1. */
SEC("tp_btf/cpu_idle")
int BPF_PROG(on_cpu_idle, u32 idle_state)
{
    if (idle_state != (u32)-1)
        delay(INJECT_MASKED_IDLE);
    return 0;
}

SEC("tp_btf/local_timer_entry")
int BPF_PROG(on_local_timer_entry)
{
    interrupt_entry();
    delay(INJECT_HARDIRQ);
    return 0;
}

#define TRACE_EXIT(name) \
    SEC("tp_btf/" #name "_exit") int BPF_PROG(on_##name##_exit) \
    { \
        return interrupt_exit(); \
    }

#define TRACE_INTERRUPT(name) \
    SEC("tp_btf/" #name "_entry") int BPF_PROG(on_##name##_entry) \
    { \
        return interrupt_entry(); \
    } \
    TRACE_EXIT(name)

SEC("tp_btf/irq_handler_entry")
int BPF_PROG(on_irq_handler_entry)
{
    interrupt_entry();
    delay(INJECT_DEVICE);
    return 0;
}

TRACE_EXIT(local_timer)
TRACE_EXIT(irq_handler)
TRACE_INTERRUPT(reschedule)
TRACE_INTERRUPT(call_function)
TRACE_INTERRUPT(call_function_single)
TRACE_INTERRUPT(irq_work)

/* `ksoftirqd/0`, or `ktimers/0` of a real-time kernel. */
static __always_inline int is_softirq_thread(void)
{
    char name[16] = {};

    if (bpf_get_current_comm(name, sizeof(name)))
        return 0;
    return name[0] == 'k' && ((name[1] == 's' && name[2] == 'o' && name[3] == 'f')
                              || (name[1] == 't' && name[2] == 'i' && name[3] == 'm'));
}

SEC("tp_btf/softirq_entry")
int BPF_PROG(on_softirq_entry)
{
    struct inject_cpu *state = this_cpu();

    if (state)
        state->softirq_ns = bpf_ktime_get_ns();
    delay(INJECT_SOFTIRQ);
    if (is_softirq_thread())
        delay(INJECT_SOFTIRQ_THREAD);
    return 0;
}

SEC("tp_btf/softirq_exit")
int BPF_PROG(on_softirq_exit)
{
    struct inject_cpu *state = this_cpu();

    if (state)
        log_end(state, &state->delaying_softirq, INJECT_SOFTIRQ_RUN, state->softirq_ns);
    return 0;
}

/* How long a hog, a process at its end, or the thread of an interrupt held the CPU. */
static __always_inline void trace_switch(u32 cpu, u32 prev, u32 next)
{
    u64 now = bpf_ktime_get_ns();
    struct inject_command *command = bpf_map_lookup_elem(&commands, &cpu);
    struct inject_cpu *state = bpf_map_lookup_elem(&cpus, &cpu);

    if (!command || !state || !is_task_delay(command->kind))
        return;
    if (prev == command->tid && state->since_ns && due_command(cpu, command->kind, now)) {
        u32 besides = command->kind == INJECT_IRQ_THREAD && !state->delaying_thread;
        log_delay(besides ? INJECT_IRQ_THREAD_RUN : command->kind, cpu, state->since_ns, now,
                  state->expires_ns, prev);
    }
    state->since_ns = next == command->tid ? now : 0;
    state->delaying_thread = 0;
}

/*
 * The handler of a serial line: in a thread of its own where the kernel forces that, which the
 * command names. Loaded only where this is to be delayed. It is called by address, so that no
 * compiler inlines it, as that of 7.2 does with serial8250_handle_irq.
 */
SEC("fentry/serial8250_interrupt")
int BPF_PROG(on_serial8250_interrupt)
{
    if (is_commanded(bpf_get_smp_processor_id(), bpf_get_current_pid_tgid()))
        delay(INJECT_IRQ_THREAD);
    return 0;
}

/* A measured thread is stopped. */
static __always_inline void trace_stop(u32 tid, u32 prev_state)
{
    u32 *cpu = target_cpu(tid);
    struct inject_cpu *state = cpu ? bpf_map_lookup_elem(&cpus, cpu) : NULL;

    if (state && prev_state & __TASK_STOPPED)
        state->stopped_ns = bpf_ktime_get_ns();
}

/* And continues. */
SEC("tp_btf/sched_waking")
int BPF_PROG(on_sched_waking, struct task_struct *task)
{
    u32 tid = task->pid;
    u32 *cpu = target_cpu(tid);
    struct inject_cpu *state = cpu ? bpf_map_lookup_elem(&cpus, cpu) : NULL;

    if (state && state->stopped_ns) {
        log_delay(INJECT_STOP, *cpu, state->stopped_ns, bpf_ktime_get_ns(), state->expires_ns, tid);
        state->stopped_ns = 0;
    }
    return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_sched_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
#ifdef INJECT_OLD
    u32 prev_state = task_state(prev);
#else
    u32 prev_state = ctx[3];
#endif
    u32 from = prev->pid, to = next->pid;
    struct inject_cpu *state = this_cpu();

    /* Where softirqs can be preempted, they are once the delay is over. */
    if (state && state->delaying_softirq)
        log_end(state, &state->delaying_softirq, INJECT_SOFTIRQ_RUN, state->softirq_ns);
    trace_switch(bpf_get_smp_processor_id(), from, to);
    trace_stop(from, prev_state);
    if (!target_cpu(from) && !target_cpu(to))
        delay(INJECT_SWITCH);
    if (!from && !target_cpu(to))
        delay(INJECT_FROM_IDLE);
    if (!to)
        delay(INJECT_TO_IDLE);
    return 0;
}

/*
 * Where the task cannot be preempted. Programs of system calls can be in 7.2, so that they turn it
 * off themselves, as they can since 6.10.
 */
static __always_inline void delay_syscall(void)
{
#ifndef INJECT_OLD
    if (bpf_ksym_exists(bpf_preempt_disable)) {
        bpf_preempt_disable();
        delay(INJECT_SYSCALL);
        bpf_preempt_enable();
        return;
    }
#endif
    delay(INJECT_SYSCALL);
}

/*
 * In the kernel, on behalf of a task, interrupts on: the program itself cannot be preempted, nor
 * can the rest of the call where the kernel's preemption is none or voluntary.
 */
SEC("tp_btf/sys_enter")
int BPF_PROG(on_sys_enter, struct pt_regs *regs, long number)
{
    u32 tid = bpf_get_current_pid_tgid();
    u32 *cpu = target_cpu(tid);
    struct inject_cpu *state = cpu ? bpf_map_lookup_elem(&cpus, cpu) : NULL;

    if (state) {
        state->reads = number == NR_READ;
        if (number == NR_FUTEX && regs->si == FUTEX_LOCK_PI)
            state->mutex_ns = bpf_ktime_get_ns();
        delay(INJECT_ARMING);
    } else if (is_commanded(bpf_get_smp_processor_id(), tid)) {
        delay_syscall();
    }
    return 0;
}

static __always_inline struct inject_cpu *target_state(void)
{
    u32 *cpu = target_cpu(bpf_get_current_pid_tgid());

    return cpu ? bpf_map_lookup_elem(&cpus, cpu) : NULL;
}

/* Whose the mutex was is the task of the command. */
SEC("tp_btf/sys_exit")
int BPF_PROG(on_sys_exit, struct pt_regs *regs, long result)
{
    struct inject_cpu *state = target_state();
    u32 cpu = bpf_get_smp_processor_id();
    struct inject_command *command = bpf_map_lookup_elem(&commands, &cpu);
    u64 since;

    if (!state || !state->mutex_ns)
        return 0;
    since = state->mutex_ns;
    state->mutex_ns = 0;
    if (command && !result)
        log_delay(INJECT_PI_MUTEX, cpu, since, bpf_ktime_get_ns(), state->expires_ns,
                  command->tid);
    return 0;
}

SEC("tp_btf/page_fault_user")
int BPF_PROG(on_page_fault_user)
{
    if (target_cpu(bpf_get_current_pid_tgid()))
        delay(INJECT_PAGE_FAULT);
    return 0;
}

SEC("tp_btf/contention_begin")
int BPF_PROG(on_contention_begin)
{
    struct inject_cpu *state = target_state();

    if (state && state->locks++ == 0)
        state->lock_ns = bpf_ktime_get_ns();
    return 0;
}

/* One lock may be made of two: the wait ends with the last. */
SEC("tp_btf/contention_end")
int BPF_PROG(on_contention_end)
{
    struct inject_cpu *state = target_state();
    u64 since;

    if (!state || !state->locks || --state->locks)
        return 0;
    since = state->lock_ns;
    log_delay(INJECT_LOCK, bpf_get_smp_processor_id(), since, bpf_ktime_get_ns(), state->expires_ns,
              bpf_get_current_pid_tgid());
    return 0;
}

char _license[] SEC("license") = "GPL";
