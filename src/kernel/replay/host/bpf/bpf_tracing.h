/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Stands for libbpf's header of this name: arguments are given as they are. */
#ifndef TARDY_HOST_TRACING_H
#define TARDY_HOST_TRACING_H

#define BPF_PROG(name, args...) name(unsigned long long *ctx, ##args)

#endif
