/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The programs of attach.bpf.c as a program of the host, for the events that `replay.h` reads.
 *
 * Arguments: the files that stand for its memory, its threads and its places; the mode and the
 * target of `struct tardy_attach_config`; 1 where cycles are measured, and their deadline.
 */
#define attach_memory (*attach_memory_at)
#include "../attach.bpf.c"
#include "replay.h"

/* As many as the ring has room for. */
#define MOST_LATE (262144 / (8 + sizeof(struct tardy_attach_late)))
#define MOST_TIMERS 4096

static struct tardy_attach_thread *all_threads;
static struct attach_block *all_places;
static struct tardy_attach_late late[MOST_LATE];
static u64 late_count, timers[MOST_TIMERS], timer_count;
static unsigned long long ctx[4];

static void *look_up(void *map, u64 key)
{
    if (map == &attach_threads)
        return key < TARDY_ATTACH_PLACES ? &all_threads[key] : NULL;
    if (map == &attach_places)
        return &all_places[key];
    for (u64 at = 0; at < timer_count && at < MOST_TIMERS; at++)
        if (timers[at] == key)
            return &timers[at];
    return NULL;
}

static void insert(void *map, u64 key)
{
    if (!look_up(map, key))
        timers[timer_count++ % MOST_TIMERS] = key;
}

static int output(void *data, u64 size)
{
    if (late_count == MOST_LATE)
        return -1;
    memcpy(&late[late_count++], data, size);
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

static void see_fork(struct task_struct *parent, struct task_struct *child)
{
    on_sched_process_fork(ctx, parent, child);
}

static void see_exit(struct task_struct *task)
{
    on_sched_process_exit(ctx, task);
}

static void see_rename(struct task_struct *task, char *name)
{
    on_task_rename(ctx, task, name);
}

static void see_start(struct hrtimer *timer, u32 mode)
{
    on_hrtimer_start(ctx, timer, mode);
}

static void see_start_expired(struct hrtimer *timer)
{
    on_hrtimer_start_expired(ctx, timer);
}

static void see_expire(struct hrtimer *timer, u64 now)
{
    on_hrtimer_expire_entry(ctx, timer, now);
}

static void see_call(int is_entry)
{
    is_entry ? on_csd_function_entry(ctx) : on_csd_function_exit(ctx);
}

static void see_migrate(struct task_struct *task, u32 cpu)
{
}

static void see_timer_irq(int is_entry)
{
}

static void see_irq(int is_entry, u32 line, struct irqaction *action)
{
}

static void see_softirq(int is_entry, u32 number)
{
}

static void see_raise(u32 vector)
{
    on_softirq_raise(ctx, vector);
}

static void see_pi_wait(struct task_struct *owner, struct task_struct *waiter)
{
}

static void see_enter(void)
{
    on_epoll_wait(ctx);
}

static int use_kernel(char *feature)
{
    if (!strcmp(feature, "expire_has_time"))
        attach_config.expire_has_time = 1;
    else if (!strcmp(feature, "rt"))
        attach_config.soft_timers = 1;
    else
        return 0;
    return 1;
}

static void answer(void)
{
    fwrite(&late_count, sizeof(late_count), 1, stdout);
    fwrite(late, sizeof(late[0]), late_count, stdout);
    late_count = 0;
}

int main(int count, char **args)
{
    if (count != 8)
        return 2;
    attach_memory_at = share(args[1]);
    all_threads = share(args[2]);
    all_places = share(args[3]);
    attach_config.mode = atoi(args[4]);
    attach_config.target = atoi(args[5]);
    attach_config.switch_has_state = 1;
    attach_config.preempt_count = HOST_COUNT_OFFSET;
    attach_config.pcpu_hot = NO_COUNT_OFFSET;
    attach_config.response = atoi(args[6]);
    attach_config.deadline_ns = strtoull(args[7], NULL, 10);
    return replay();
}
