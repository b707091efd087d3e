// SPDX-License-Identifier: MIT
// Everything that is declared but not implemented yet, by area.
#include "pending/alloc.inl"
#include "pending/backward.inl"
#include "pending/cpu.inl"
#include "pending/device.inl"
#include "pending/gguf.inl"
#include "pending/graph.inl"
#include "pending/host.inl"
#include "pending/op.inl"
#include "pending/opt.inl"
#include "pending/quant.inl"
#include "pending/sched.inl"
#include "pending/topology.inl"
#include "pending/types.inl"
#undef GGML_PENDING
#undef GGML_PENDING_VOID
