/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Programs that name the function a CPU is in: a timer's, a tasklet's, a kworker's, the poll of a
 * network device, a call for another CPU; included by recorder.bpf.c alone. An event is written
 * when one ends that took long: short ones cost none, and no CPU has more of them than one in
 * TARDY_LONG_NS. None of these programs runs on the way of a thread that its timer wakes.
 */
#ifndef TARDY_FUNCTIONS_H
#define TARDY_FUNCTIONS_H

#include "bpf.h"
#include "events.h"
#include "recorder.h"

/* A function that began on this CPU. */
struct tardy_begun {
    u64 at_ns;   /* 0 while none is in progress */
    u64 address;
    u64 object;  /* what it is called for, where one may begin before another ends; else 0 */
    u32 pid;     /* the task in which it runs, or which it interrupted */
};

/* By enum tardy_function. */
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, TARDY_FUNCTIONS);
    __type(key, u32);
    __type(value, struct tardy_begun);
} begun SEC(".maps");

static __always_inline struct tardy_begun *get_begun(u32 kind)
{
    return bpf_map_lookup_elem(&begun, &kind);
}

static __always_inline u32 current_pid(void)
{
    return (u32)bpf_get_current_pid_tgid();
}

static __noinline int begin_function(u32 kind, u64 object, u64 address)
{
    struct tardy_begun *it = get_begun(kind);

    if (it) {
        it->address = address;
        it->object = object;
        it->pid = current_pid();
        it->at_ns = bpf_ktime_get_ns();
    }
    return 0;
}

/* Nothing is recorded of one whose begin was not seen on this CPU. */
static __noinline int end_function(u32 kind, u64 object)
{
    struct tardy_begun *it = get_begun(kind);
    struct trace_context tc;

    if (!it || !it->at_ns || it->object != object || it->pid != current_pid())
        return 0;
    if (!get_trace_context(&tc))
        return 0;
    u64 since_ns = it->at_ns;
    it->at_ns = 0;
    /* Where it slept, it took what came after the last switch. */
    if (since_ns < tc.cpu->switch_ns)
        since_ns = tc.cpu->switch_ns;
    u64 took_ns = tc.now_ns - since_ns;
    if (took_ns >= TARDY_LONG_NS)
        trace_event(&tc, TARDY_FUNCTION, kind, 0, it->pid, took_ns, it->address);
    return 0;
}

SEC("tp_btf/timer_expire_entry")
int BPF_PROG(on_timer_expire_entry, struct timer_list *timer)
{
    return begin_function(TARDY_OF_TIMER, 0, (u64)timer->function);
}

SEC("tp_btf/timer_expire_exit")
int BPF_PROG(on_timer_expire_exit)
{
    return end_function(TARDY_OF_TIMER, 0);
}

/* 6.1 has neither. */
SEC("tp_btf/tasklet_entry")
int BPF_PROG(on_tasklet_entry, void *tasklet, u64 function)
{
    return begin_function(TARDY_OF_TASKLET, 0, function);
}

SEC("tp_btf/tasklet_exit")
int BPF_PROG(on_tasklet_exit)
{
    return end_function(TARDY_OF_TASKLET, 0);
}

/* A kworker may sleep, and others begin their work on its CPU meanwhile. */
SEC("tp_btf/workqueue_execute_start")
int BPF_PROG(on_workqueue_execute_start, struct work_struct *work)
{
    return begin_function(TARDY_OF_WORK, (u64)work, (u64)work->func);
}

/* The work may be gone by now: only its address is compared. */
SEC("tp_btf/workqueue_execute_end")
int BPF_PROG(on_workqueue_execute_end, struct work_struct *work)
{
    return end_function(TARDY_OF_WORK, (u64)work);
}

/*
 * The work that this task has not ended where it is switched out, and has had the CPU since before
 * the work began. Called before the switch is noted.
 */
static __noinline int trace_unfinished_work(u32 pid)
{
    struct tardy_begun *it = get_begun(TARDY_OF_WORK);
    struct trace_context tc;

    if (!it || !it->at_ns || it->pid != pid || !get_trace_context(&tc))
        return 0;
    if (it->at_ns >= tc.cpu->switch_ns)
        trace_event(&tc, TARDY_FUNCTION, TARDY_OF_WORK, 0, pid, tc.now_ns - it->at_ns,
                    it->address);
    return 0;
}

/*
 * A call that another CPU asked for; since 6.5. A program may not take a
 * pointer to a function as an argument, and the call's own record may be in use again by now: so
 * the argument is read as memory.
 */
SEC("tp_btf/csd_function_entry")
int BPF_PROG(on_csd_function_entry)
{
    u64 function = 0;

    bpf_probe_read_kernel(&function, sizeof(function), ctx);
    return begin_function(TARDY_OF_CALL, 0, function);
}

SEC("tp_btf/csd_function_exit")
int BPF_PROG(on_csd_function_exit)
{
    return end_function(TARDY_OF_CALL, 0);
}

/* Polls have no event at their begin: the first one begins with the softirq. */
static __always_inline void begin_polls(u32 vec_nr)
{
    if (config.woken_by == TARDY_BY_TIMERS && vec_nr == NET_RX_SOFTIRQ)
        begin_function(TARDY_OF_POLL, 0, 0);
}

static __always_inline void end_polls(u32 vec_nr)
{
    if (config.woken_by != TARDY_BY_TIMERS || vec_nr != NET_RX_SOFTIRQ)
        return;
    struct tardy_begun *it = get_begun(TARDY_OF_POLL);
    if (it)
        it->at_ns = 0;
}

static __always_inline void trace_poll(const struct trace_context *tc, struct napi_struct *napi,
                                       int packets, int budget, u64 took_ns)
{
    struct net_device *device = napi->dev;
    u64 index, name[2] = {};

    if (!device) {
        trace_event(tc, TARDY_FUNCTION, TARDY_OF_POLL, 0, current_pid(), took_ns,
                    (u64)napi->poll);
        return;
    }
    bpf_probe_read_kernel(name, sizeof(name), &device->name);
    trace_steal(tc);
    struct tardy_event *event = reserve_event(tc, &index);
    if (event) {
        event->a = name[0];
        event->b = name[1];
        commit_event(event, TARDY_POLL, budget > 255 ? 255 : budget, packets,
                     took_ns > 0xffffffff ? 0xffffffff : took_ns);
    }
}

/* Not loaded where threads are woken by messages, as those may come this way. */
SEC("tp_btf/napi_poll")
int BPF_PROG(on_napi_poll, struct napi_struct *napi, int packets, int budget)
{
    struct tardy_begun *it = get_begun(TARDY_OF_POLL);
    struct trace_context tc;

    /* Outside of the softirq, a task of its own polls, and is seen by itself. */
    if (!it || !it->at_ns || it->pid != current_pid() || !get_trace_context(&tc))
        return 0;
    u64 took_ns = tc.now_ns - it->at_ns;
    it->at_ns = tc.now_ns;
    if (took_ns >= TARDY_LONG_NS)
        trace_poll(&tc, napi, packets, budget, took_ns);
    return 0;
}

#endif
