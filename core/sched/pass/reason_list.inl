// SPDX-License-Identifier: MIT
// Why a node runs where it does, once.
//
// SCHED_REASON_ROW(NAME, text)   text is public: it stands in placement reports
SCHED_REASON_ROW(NONE, "not placed")
SCHED_REASON_ROW(PINNED, "pinned by the caller")
SCHED_REASON_ROW(BUFFER, "its memory is there")
SCHED_REASON_ROW(INPUT, "an input of the graph")
SCHED_REASON_ROW(WEIGHT, "its weight is there")
SCHED_REASON_ROW(OFFLOAD, "worth copying its weight to")
SCHED_REASON_ROW(NEIGHBOUR, "follows its neighbours")
SCHED_REASON_ROW(BEST_FIT, "most of its sources can be read there")
SCHED_REASON_ROW(UPGRADE, "preferred over another stream with the same memory")
SCHED_REASON_ROW(VIEW, "a view of a tensor there")
SCHED_REASON_ROW(CONSUMER, "used there")
SCHED_REASON_ROW(FIRST, "the first that supports it")
SCHED_REASON_ROW(COST, "predicted to be fastest")
#undef SCHED_REASON_ROW
