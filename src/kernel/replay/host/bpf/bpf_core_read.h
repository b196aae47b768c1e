/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Stands for libbpf's header of this name: the kernel has the fields of `vmlinux.h`.
 */
#ifndef TARDY_HOST_CORE_READ_H
#define TARDY_HOST_CORE_READ_H

extern int host_is_rt;

#define BPF_CORE_READ(from, field) ((from)->field)
#define BPF_CORE_READ_BITFIELD(from, field) ((from)->field)
#define bpf_core_field_exists(field...) (host_is_rt || !strstr(#field, "softirq_disable_cnt"))
#define bpf_core_field_offset(type, field) __builtin_offsetof(type, field)
#define bpf_core_enum_value_exists(type, value) 1

#endif
