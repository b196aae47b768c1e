/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The programs of recorder.bpf.c as a program of the host, for the events that `replay.h` reads: it
 * records what happens on each CPU, and walks no stacks.
 *
 * Arguments: the files that stand for its memory and its events, and how many events there is room
 * for on each CPU.
 */
#define memory (*memory_at)
#include "../recorder.bpf.c"
#include "replay.h"

static struct tardy_event *all_events;
static struct tardy_begun all_begun[HOST_CPUS][TARDY_FUNCTIONS];
static unsigned long long ctx[4];

static void *look_up(void *map, u64 key)
{
    if (map == &events)
        return &all_events[key];
    return &all_begun[host_cpu_id][key];
}

static void insert(void *map, u64 key)
{
}

static int output(void *data, u64 size)
{
    return 0;
}

static void see_switch(int preempt, struct task_struct *prev, struct task_struct *next, u64 state)
{
    ctx[3] = state;
    on_sched_switch(ctx, preempt, prev, next);
}

static void see_waking(struct task_struct *task)
{
    on_sched_waking(ctx, task);
}

static void see_migrate(struct task_struct *task, u32 cpu)
{
    on_sched_migrate_task(ctx, task, cpu);
}

static void see_expire(struct hrtimer *timer, u64 now)
{
    on_hrtimer_expire_entry(ctx, timer, now);
}

static void see_timer_irq(int is_entry)
{
    is_entry ? on_local_timer_entry(ctx) : on_local_timer_exit(ctx);
}

static void see_irq(int is_entry, u32 line, struct irqaction *action)
{
    is_entry ? on_irq_handler_entry(ctx, line, action) : on_irq_handler_exit(ctx, line);
}

static void see_raise(u32 vector)
{
    on_softirq_raise(ctx, vector);
}

static void see_softirq(int is_entry, u32 vector)
{
    is_entry ? on_softirq_entry(ctx, vector) : on_softirq_exit(ctx, vector);
}

static void see_pi_wait(struct task_struct *owner, struct task_struct *waiter)
{
    on_sched_pi_setprio(ctx, owner, waiter);
}

static void see_call(int is_entry)
{
    is_entry ? on_call_function_single_entry(ctx) : on_call_function_single_exit(ctx);
}

static void see_start(struct hrtimer *timer, u32 mode)
{
}

static void see_start_expired(struct hrtimer *timer)
{
}

static void see_fork(struct task_struct *parent, struct task_struct *child)
{
}

static void see_exit(struct task_struct *task)
{
}

static void see_rename(struct task_struct *task, char *name)
{
}

static void see_enter(void)
{
}

static int use_kernel(char *feature)
{
    if (!strcmp(feature, "expire_has_time"))
        config.expire_has_time = 1;
    else if (!strcmp(feature, "rt"))
        config.soft_timers = 1;
    else if (!strcmp(feature, "stages"))
        config.record = 0;
    else
        return 0;
    return 1;
}

static void answer(void)
{
    u64 none = 0;

    fwrite(&none, sizeof(none), 1, stdout);
}

int main(int count, char **args)
{
    if (count != 4)
        return 2;
    memory_at = share(args[1]);
    all_events = share(args[2]);
    config.record = 1;
    config.slots = atoi(args[3]);
    config.preemptible = 1;
    config.woken_by = TARDY_BY_BOTH;
    config.switch_has_state = 1;
    config.futexes = 1;
    config.cpu_bytes = 8;
    config.irq_regs = TARDY_NO_OFFSET;
    config.preempt_count = TARDY_NO_OFFSET;
    config.pcpu_hot = TARDY_NO_OFFSET;
    config.steal_time = TARDY_NO_OFFSET;
    return replay();
}
