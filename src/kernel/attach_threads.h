/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Which threads are attached: as they come, change their names and go. */
#ifndef TARDY_ATTACH_THREADS_H
#define TARDY_ATTACH_THREADS_H

#include "attach_arrivals.h"
#include "attach_memory.h"
#include "attach_period.h"
#include "attach_response.h"

/* Places are taken by programs on several CPUs and by user space. */
static __always_inline u32 take_place(void)
{
    struct tardy_attach_settings *settings = &attach_memory.settings;

    for (int attempt = 0; attempt < 8; attempt++) {
        u64 head = *(volatile u64 *)&settings->head;
        if (head >= *(volatile u64 *)&settings->tail)
            break;
        if (__sync_val_compare_and_swap(&settings->head, head, head + 1) != head)
            continue;
        return settings->free[head & (TARDY_ATTACH_PLACES - 1)];
    }
    __sync_fetch_and_add(&settings->refused, 1);
    return 0;
}

static __always_inline void begin_thread(struct task_struct *task, u64 comm0, u64 comm1)
{
    u32 pid = task->pid;
    u16 *entry = place_of(pid);

    if (!attach_memory.settings.on || !entry || get_attached(task))
        return;
    u32 place = take_place();
    struct tardy_attach_thread *thread = thread_at(place & (TARDY_ATTACH_PLACES - 1));
    if (!thread)
        return;
    thread->tid = pid;
    thread->pid = task->tgid;
    thread->prio = task->prio;
    thread->start_ns = task->start_time;
    thread->deadline_ns = attach_config.deadline_ns;
    *(u64 *)&thread->comm[0] = comm0;
    *(u64 *)&thread->comm[8] = comm1;
    barrier();
    WRITE_ONCE(thread->state, TARDY_ATTACH_LIVE);
    *entry = place;
    __sync_fetch_and_add(&attach_memory.settings.started, 1);
}

static __always_inline void end_thread(struct task_struct *task, u32 pid)
{
    u16 *entry = place_of(pid);

    if (!entry || !*entry)
        return;
    struct tardy_attach_thread *thread = thread_at(*entry);
    if (thread && thread->tid == pid) {
        if (thread->arrived)
            count_arrival(thread, task_cpu(task));
        settle(thread);
        WRITE_ONCE(thread->state, TARDY_ATTACH_ENDED);
    }
    *entry = 0;
}

/* By what it is itself; not by who started it. */
static __always_inline int is_wanted(struct task_struct *task, u64 comm0, u64 comm1)
{
    switch (attach_config.mode) {
    case TARDY_ATTACH_PROCESS:
        return task->tgid == attach_config.target;
    case TARDY_ATTACH_THREAD:
        return task->pid == attach_config.target;
    case TARDY_ATTACH_NAME:
        return comm0 == attach_memory.settings.name[0] && comm1 == attach_memory.settings.name[1];
    }
    return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_sched_process_fork, struct task_struct *parent, struct task_struct *child)
{
    u64 comm0 = *(u64 *)&child->comm[0], comm1 = *(u64 *)&child->comm[8];

    if (attach_config.mode == TARDY_ATTACH_CHILDREN) {
        u32 own = attach_memory.settings.own_pid;
        if (!(own && parent->tgid == own && child->tgid != own) && !get_attached(parent))
            return 0;
    } else if (!is_wanted(child, comm0, comm1)) {
        return 0;
    }
    begin_thread(child, comm0, comm1);
    return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_sched_process_exit, struct task_struct *task)
{
    end_thread(task, task->pid);
    return 0;
}

/* An exec by another thread than the first gives it the number of the first, which is gone. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_sched_process_exec, struct task_struct *task, int old_pid)
{
    u64 comm0 = *(u64 *)&task->comm[0], comm1 = *(u64 *)&task->comm[8];
    u16 *entry = place_of(old_pid);

    if (old_pid == task->pid || !entry)
        return 0;
    u32 was = *entry;
    end_thread(task, old_pid);
    if (attach_config.mode == TARDY_ATTACH_CHILDREN ? was : is_wanted(task, comm0, comm1))
        begin_thread(task, comm0, comm1);
    return 0;
}

/* A thread under another name is another one: its series is. `comm` is the name to come. */
SEC("tp_btf/task_rename")
int BPF_PROG(on_task_rename, struct task_struct *task, const char *comm)
{
    u64 name[2] = {};
    struct tardy_attach_thread *thread = get_attached(task);

    if (!thread && attach_config.mode != TARDY_ATTACH_NAME)
        return 0;
    bpf_probe_read_kernel_str(name, sizeof(name), comm);
    if (thread) {
        if (*(u64 *)&thread->comm[0] == name[0] && *(u64 *)&thread->comm[8] == name[1])
            return 0;
        end_thread(task, task->pid);
    }
    if (attach_config.mode != TARDY_ATTACH_NAME || is_wanted(task, name[0], name[1]))
        begin_thread(task, name[0], name[1]);
    return 0;
}

#endif
