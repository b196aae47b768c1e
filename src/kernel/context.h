/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Programs that only record what a CPU is at; included by recorder.bpf.c alone. Each is loaded
 * only where events are recorded and the kernel has its tracepoint.
 */

#define VECTOR(name, vector) \
    SEC("tp_btf/" #name "_entry") int on_##name##_entry(u64 *ctx) \
    { \
        return note(TARDY_VECTOR_ENTRY, 0, vector, 0); \
    } \
    VECTOR_EXIT(name, vector)

#define VECTOR_EXIT(name, vector) \
    SEC("tp_btf/" #name "_exit") int on_##name##_exit(u64 *ctx) \
    { \
        return note(TARDY_VECTOR_EXIT, 0, vector, 0); \
    }

VECTOR_EXIT(local_timer, TARDY_LOCAL_TIMER)
VECTOR(reschedule, TARDY_RESCHEDULE)
VECTOR(call_function, TARDY_CALL_FUNCTION)
VECTOR(call_function_single, TARDY_CALL_FUNCTION_SINGLE)
VECTOR(irq_work, TARDY_IRQ_WORK)

/* A tracepoint whose first argument is all that is kept of it. */
#define PLAIN(name, kind) \
    SEC("tp_btf/" #name) int on_##name(u64 *ctx) \
    { \
        return note(kind, 0, (u32)ctx[0], 0); \
    }

PLAIN(irq_handler_entry, TARDY_IRQ_ENTRY)
PLAIN(irq_handler_exit, TARDY_IRQ_EXIT)
PLAIN(softirq_entry, TARDY_SOFTIRQ_ENTRY)
PLAIN(softirq_exit, TARDY_SOFTIRQ_EXIT)
PLAIN(cpu_idle, TARDY_IDLE)

SEC("tp_btf/sched_migrate_task")
int on_migrate(u64 *ctx)
{
    struct task_struct *task = (void *)ctx[0];
    int prio = task->prio;
    struct spot spot;

    if ((prio < FIRST_FAIR || measured(task)) && here(&spot))
        record(&spot, TARDY_MIGRATE, 0, prio, task->pid, cpu_of(task), (u32)ctx[1]);
    return 0;
}

/* Recorded where it is sent; the task that runs there is the sender, or was interrupted by it. */
SEC("tp_btf/ipi_send_cpu")
int on_ipi(u64 *ctx)
{
    struct task_struct *current = bpf_get_current_task_btf();

    return note(TARDY_IPI, current->pid, (u32)ctx[0], 0);
}

INLINE int note_fault(u64 *ctx)
{
    struct task_struct *current = bpf_get_current_task_btf();
    struct pt_regs *regs = (void *)ctx[1];

    return measured(current) ? note(TARDY_PAGE_FAULT, current->pid, ctx[0], regs->ip) : 0;
}

SEC("tp_btf/page_fault_user")
int on_page_fault_user(u64 *ctx)
{
    return note_fault(ctx);
}

SEC("tp_btf/page_fault_kernel")
int on_page_fault_kernel(u64 *ctx)
{
    return note_fault(ctx);
}

SEC("tp_btf/nmi_handler")
int on_nmi(u64 *ctx)
{
    return note(TARDY_NMI, 0, ctx[1], ctx[0]);
}

INLINE int note_lock(u32 kind, u64 *ctx, u64 flags)
{
    struct task_struct *current = bpf_get_current_task_btf();

    return measured(current) ? note(kind, current->pid, ctx[0], flags) : 0;
}

SEC("tp_btf/contention_begin")
int on_contention_begin(u64 *ctx)
{
    return note_lock(TARDY_LOCK_BEGIN, ctx, (u32)ctx[1]);
}

SEC("tp_btf/contention_end")
int on_contention_end(u64 *ctx)
{
    return note_lock(TARDY_LOCK_END, ctx, 0);
}
