// SPDX-License-Identifier: GPL-2.0
/*
 * Names an address of the kernel: user space writes the address, runs the program, and reads the
 * name. The list of all names (/proc/kallsyms) takes the kernel some 30 ms to write.
 */
#include "bpf.h"

char LICENSE[] SEC("license") = "GPL";

/* What kernel_names.rs writes and reads. */
struct tardy_name {
    u64 address;
    char name[248];
} asked;

SEC("syscall")
int name_address(void *ctx)
{
    static const char function_and_offset[] = "%pS";
    u64 address = asked.address;

    return bpf_snprintf(asked.name, sizeof(asked.name), function_and_offset, &address,
                        sizeof(address));
}
