/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Programs that only record what a CPU is at; included by recorder.bpf.c alone. Each is loaded
 * only where events are recorded and the kernel has its tracepoint.
 */

#define TRACE_VECTOR(name, vector) \
    SEC("tp_btf/" #name "_entry") int BPF_PROG(on_##name##_entry) \
    { \
        return record_simple_event(TARDY_VECTOR_ENTRY, 0, vector, 0); \
    } \
    SEC("tp_btf/" #name "_exit") int BPF_PROG(on_##name##_exit) \
    { \
        return record_simple_event(TARDY_VECTOR_EXIT, 0, vector, 0); \
    }

TRACE_VECTOR(reschedule, TARDY_RESCHEDULE)
TRACE_VECTOR(call_function, TARDY_CALL_FUNCTION)
TRACE_VECTOR(call_function_single, TARDY_CALL_FUNCTION_SINGLE)
TRACE_VECTOR(irq_work, TARDY_IRQ_WORK)
TRACE_VECTOR(spurious_apic, TARDY_SPURIOUS)
TRACE_VECTOR(error_apic, TARDY_APIC_ERROR)
TRACE_VECTOR(x86_platform_ipi, TARDY_PLATFORM_IPI)
TRACE_VECTOR(threshold_apic, TARDY_MCE_THRESHOLD)
TRACE_VECTOR(deferred_error_apic, TARDY_MCE_DEFERRED)
TRACE_VECTOR(thermal_apic, TARDY_THERMAL)

/* A tracepoint of which only the first argument is recorded. */
#define TRACE_FIRST_ARG(name, kind) \
    SEC("tp_btf/" #name) int BPF_PROG(on_##name, u32 arg) \
    { \
        return record_simple_event(kind, 0, arg, 0); \
    }

TRACE_FIRST_ARG(irq_handler_exit, TARDY_IRQ_EXIT)

/* Drivers that share a line each have a handler, with events of its own (__handle_irq_event_percpu,
 * kernel/irq/handle.c). */
SEC("tp_btf/irq_handler_entry")
int BPF_PROG(on_irq_handler_entry, u32 irq, struct irqaction *action)
{
    struct trace_context tc;
    u64 index;

    if (!get_trace_context(&tc))
        return 0;
    trace_steal(&tc);
    struct tardy_event *event = reserve_event(&tc, &index);
    if (event) {
        event->a = event->b = 0;
        bpf_probe_read_kernel_str(event->comm, sizeof(event->comm), action->name);
        commit_event(event, TARDY_IRQ_ENTRY, 0, 0, irq);
    }
    return 0;
}

/* That the CPU leaves the state, which is -1 then, shows in what it does next. */
SEC("tp_btf/cpu_idle")
int BPF_PROG(on_cpu_idle, u32 state)
{
    return state == (u32)-1 ? 0 : record_simple_event(TARDY_IDLE, 0, state, 0);
}

SEC("tp_btf/softirq_entry")
int BPF_PROG(on_softirq_entry, u32 vec_nr)
{
    begin_polls(vec_nr);
    return record_simple_event(TARDY_SOFTIRQ_ENTRY, 0, vec_nr, 0);
}

SEC("tp_btf/softirq_exit")
int BPF_PROG(on_softirq_exit, u32 vec_nr)
{
    end_polls(vec_nr);
    return record_simple_event(TARDY_SOFTIRQ_EXIT, 0, vec_nr, 0);
}

SEC("tp_btf/sched_migrate_task")
int BPF_PROG(on_sched_migrate_task, struct task_struct *task, u32 dest_cpu)
{
    int prio = task->prio;
    struct trace_context tc;

    if ((prio < MAX_RT_PRIO || get_thread(task->pid, prio)) && get_trace_context(&tc))
        trace_event(&tc, TARDY_MIGRATE, 0, prio, task->pid, task_cpu(task), dest_cpu);
    return 0;
}

/* Recorded where it is sent; the task that runs there is the sender, or was interrupted by it. */
SEC("tp_btf/ipi_send_cpu")
int BPF_PROG(on_ipi_send_cpu, u32 cpu, u64 callsite, u64 callback)
{
    struct task_struct *current = bpf_get_current_task_btf();

    return record_simple_event(TARDY_IPI, current->pid, cpu, callback);
}

static __noinline int record_ipi_mask(u32 word, u64 cpus, u64 callback)
{
    struct task_struct *current = bpf_get_current_task_btf();
    struct trace_context tc;

    if (cpus && get_trace_context(&tc))
        trace_event(&tc, TARDY_IPI_MASK, word, 0, current->pid, cpus, callback);
    return 0;
}

SEC("tp_btf/ipi_send_cpumask")
int BPF_PROG(on_ipi_send_cpumask, const struct cpumask *mask, u64 callsite, u64 callback)
{
    u64 words[TARDY_CPUS / 64] = {};
    u32 bytes = config.cpu_bytes;

    if (bytes > sizeof(words))
        bytes = sizeof(words);
    if (bpf_probe_read_kernel(words, bytes, mask))
        return 0;
    for (u32 word = 0; word < TARDY_CPUS / 64; word++)
        record_ipi_mask(word, words[word], callback);
    return 0;
}

static __always_inline int trace_page_fault(u64 address, struct pt_regs *regs)
{
    struct task_struct *current = bpf_get_current_task_btf();

    if (!get_thread(current->pid, current->prio))
        return 0;
    return record_simple_event(TARDY_PAGE_FAULT, current->pid, address, regs->ip);
}

SEC("tp_btf/page_fault_user")
int BPF_PROG(on_page_fault_user, u64 address, struct pt_regs *regs)
{
    return trace_page_fault(address, regs);
}

SEC("tp_btf/page_fault_kernel")
int BPF_PROG(on_page_fault_kernel, u64 address, struct pt_regs *regs)
{
    return trace_page_fault(address, regs);
}

SEC("tp_btf/nmi_handler")
int BPF_PROG(on_nmi_handler, u64 handler, u64 delta_ns)
{
    return record_simple_event(TARDY_NMI, 0, delta_ns, handler);
}

static __always_inline int trace_lock(u32 kind, u64 lock, u64 flags)
{
    struct task_struct *current = bpf_get_current_task_btf();

    if (!get_thread(current->pid, current->prio))
        return 0;
    return record_simple_event(kind, current->pid, lock, flags);
}

SEC("tp_btf/contention_begin")
int BPF_PROG(on_contention_begin, u64 lock, u32 flags)
{
    return trace_lock(TARDY_LOCK_BEGIN, lock, flags);
}

SEC("tp_btf/contention_end")
int BPF_PROG(on_contention_end, u64 lock)
{
    return trace_lock(TARDY_LOCK_END, lock, 0);
}

/* Wherever that is done: often on another CPU than the one it is about. */
SEC("tp_btf/cpu_frequency")
int BPF_PROG(on_cpu_frequency, u32 khz, u32 cpu)
{
    u64 index = __sync_fetch_and_add(&memory.settings.frequencies, 1);
    struct tardy_frequency *set = &memory.frequencies[index & (TARDY_FREQUENCIES - 1)];

    barrier_var(set);
    WRITE_ONCE(set->at_ns, 0);
    barrier();
    set->cpu = cpu;
    set->khz = khz;
    barrier();
    WRITE_ONCE(set->at_ns, bpf_ktime_get_ns());
    return 0;
}

/*
 * The priority that a task has from now on: that of who waits for its lock, or its own again
 * (__rt_effective_prio and rt_mutex_setprio, kernel/sched/core.c, which sets `pi_top_task` before
 * the tracepoint; `waiter` is the same, but where it is NULL the verifier of some kernels believes
 * that it is not). It is one of the events of that task's CPU, which may be another one: its run
 * queue is locked, so that it does not move.
 */
static __always_inline void trace_priority(struct task_struct *owner, struct task_struct *current)
{
    struct trace_context tc;
    int prio = owner->normal_prio;

    if (!bpf_core_field_exists(owner->pi_top_task) || !get_cpu_of(&tc, task_cpu(owner)))
        return;
    struct task_struct *top = owner->pi_top_task;
    if (top) {
        int inherited = top->prio;
        if (inherited < prio)
            prio = inherited;
    }
    tc.now_ns = bpf_ktime_get_ns();
    write_event(&tc, TARDY_PRIORITY, 0, prio, owner->pid, current->pid, 0);
}

/* The kernel has interrupts off from the begin of the wait to here. */
SEC("tp_btf/sched_pi_setprio")
int BPF_PROG(on_sched_pi_setprio, struct task_struct *owner, struct task_struct *waiter)
{
    struct task_struct *current = bpf_get_current_task_btf();
    struct trace_context tc;

    trace_priority(owner, current);
    /* In this order: the verifier does not let `waiter` be read, for which `current` may stand. */
    if (get_thread(current->pid, current->prio) && waiter == current && get_trace_context(&tc))
        trace_task(&tc, TARDY_LOCK_OWNER, 0, owner, owner->pid, owner->prio);
    return 0;
}
