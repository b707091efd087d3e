// SPDX-License-Identifier: MIT
// What the log records, once.
//
// VIRTUAL_CALL(name, text)
VIRTUAL_CALL(ALLOC, "a buffer is made")
VIRTUAL_CALL(FREE, "a buffer ends")
VIRTUAL_CALL(CLEAR, "a buffer is filled")
VIRTUAL_CALL(MEMSET, "a part of a tensor is filled")
VIRTUAL_CALL(SET, "host to device")
VIRTUAL_CALL(GET, "device to host")
VIRTUAL_CALL(COPY, "device to device")
VIRTUAL_CALL(GRAPH, "a graph is computed")
VIRTUAL_CALL(NODE, "a node of it is computed")
VIRTUAL_CALL(REDUCE, "the share of one device in an all-reduce")
VIRTUAL_CALL(EXCHANGE, "the share of one device in a broadcast or an all-gather, a send, a receive")
VIRTUAL_CALL(RECORD, "an event is recorded")
VIRTUAL_CALL(WAIT, "a stream waits for an event or for a copy from elsewhere")
VIRTUAL_CALL(SYNCHRONIZE, "the host waits for a stream or for an event")
VIRTUAL_CALL(OPTIMIZE, "graph_optimize")
VIRTUAL_CALL(STREAM_NEW, "a stream begins")
VIRTUAL_CALL(STREAM_FREE, "a stream ends")
VIRTUAL_CALL(VIOLATION, "the host broke a rule; the text says which")
#undef VIRTUAL_CALL
