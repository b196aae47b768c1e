/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Why a task does not run that is ready; included by recorder.bpf.c alone. */
#ifndef TARDY_HOLDS_H
#define TARDY_HOLDS_H

#include "bpf.h"
#include "recorder.h"

/*
 * Whether a control group of this task has used up its CPU quota, so that the task does not run
 * (kernel/sched/fair.c). Since 6.18 the task itself is taken off its run queue on its way to user
 * mode; before, a whole run queue is.
 */
static __always_inline int is_throttled(struct task_struct *task, u32 pid, int prio)
{
    /* No quota is for real-time tasks; the idle task is of no group. */
    if (prio < MAX_RT_PRIO || !pid)
        return 0;
    if (bpf_core_field_exists(task->throttled))
        return task->throttled;
    if (!bpf_core_field_exists(task->se.cfs_rq)
        || !bpf_core_field_exists(struct cfs_rq, throttle_count))
        return 0;
    struct cfs_rq *queue = task->se.cfs_rq;
    return queue && queue->throttle_count > 0;
}

/* The run queue of the CPU where the task runs, or ran last; NULL where it is not known. */
static __always_inline struct rq *run_queue(struct task_struct *task)
{
    if (!bpf_core_field_exists(task->se.cfs_rq) || !bpf_core_field_exists(struct cfs_rq, rq))
        return NULL;
    struct cfs_rq *queue = task->se.cfs_rq;
    return queue ? queue->rq : NULL;
}

/*
 * Whether a deadline task has used up the runtime that its policy gives it in a period
 * (update_curr_dl and dl_task_timer, kernel/sched/deadline.c). One that yields says so itself, and
 * is marked the same way (yield_task_dl).
 */
static __always_inline int is_out_of_budget(struct task_struct *task, int prio)
{
    if (prio >= 0 || !bpf_core_field_exists(struct sched_dl_entity, dl_throttled))
        return 0;
    return BPF_CORE_READ_BITFIELD(task, dl.dl_throttled);
}

static __always_inline int has_yielded(struct task_struct *task)
{
    return bpf_core_field_exists(struct sched_dl_entity, dl_yielded)
           && BPF_CORE_READ_BITFIELD(task, dl.dl_yielded);
}

/*
 * Whether the real-time tasks of this CPU, or those of the task's control group there, have used
 * up their time (sched_rt_runtime_exceeded, kernel/sched/rt.c).
 */
static __always_inline int is_real_time_throttled(struct task_struct *task, int is_own)
{
    if (!bpf_core_field_exists(struct rt_rq, rt_throttled))
        return 0;
    if (is_own && bpf_core_field_exists(task->rt.rt_rq)) {
        struct rt_rq *of_group = task->rt.rt_rq;
        return of_group && of_group->rt_throttled;
    }
    struct rq *queue = run_queue(task);
    return queue && queue->rt.rt_throttled;
}

/* Why this task may not run (enum tardy_hold). */
static __always_inline u32 hold_of(struct task_struct *task, u32 pid, int prio)
{
    if (is_throttled(task, pid, prio))
        return TARDY_HELD_BY_QUOTA;
    if (is_out_of_budget(task, prio))
        return has_yielded(task) ? TARDY_HELD_BY_ITSELF : TARDY_HELD_BY_BUDGET;
    if (prio >= 0 && prio < MAX_RT_PRIO && is_real_time_throttled(task, 1))
        return TARDY_HELD_BY_THROTTLING;
    return TARDY_NOT_HELD;
}

/*
 * Whether the fair server runs this task, which is not real-time, before tasks that are: one that
 * is a deadline entity, and acts once those have left the others no time (since 6.12). Who is
 * picked for it has a pointer to it before sched_switch comes (__pick_task_dl in
 * kernel/sched/deadline.c, __put_prev_set_next_dl_server in kernel/sched/sched.h). Where there is
 * one of sched_ext as well, the pointer tells which.
 */
static __always_inline int is_served(struct task_struct *task)
{
    if (!bpf_core_field_exists(task->dl_server) || !bpf_core_field_exists(struct rq, fair_server)
        || task->prio < MAX_RT_PRIO)
        return 0;
    struct sched_dl_entity *server = task->dl_server;
    if (!server || !bpf_core_field_exists(struct rq, ext_server))
        return server != NULL;
    u64 queue = (u64)run_queue(task);
    return queue && (u64)server == queue + bpf_core_field_offset(struct rq, fair_server);
}

/* Of a task that is switched in: what lets it run before real-time tasks; flags of TARDY_SWITCH. */
static __always_inline u32 runs_ahead(struct task_struct *task, int prio)
{
    if (prio < MAX_RT_PRIO)
        return 0;
    if (is_served(task))
        return TARDY_SERVED;
    return is_real_time_throttled(task, 0) ? TARDY_THROTTLED : 0;
}

#endif
