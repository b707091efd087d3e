// SPDX-License-Identifier: MIT
// Every check, once, in the order in which they are reported.
//
// CHECK_ROW(id, rule, needs, function, argument, title)
//   id        "area.name", stable; areas: file, life, enum, buffer, stream, op, comm
//   rule      number of the rule in docs/plugin-contract.md that is checked
//   needs     checks without whose success this one would only repeat their failure; "area.*": all
//             of an area. They come earlier in this list
//   function  in check_AREA.c; several rows may share one
//   argument  what it tells the rows of one function apart by
//   title     what has to hold
// Before operations are compared one by one: what would go wrong with all of them.
#define NEEDS_ARITHMETIC                                                                           \
    "buffer.* op.claims-views op.claims-placed op.broadcast op.strided op.in-place op.guard "      \
    "op.no-elements op.any-node op.unknown-unary op.unknown-glu op.unknown-value stream.repeat "       \
    "stream.graph-freed"
#define NEEDS_WORK "life.shutdown enum.memory enum.no-threads enum.no-files buffer.free op.sum"
// The file, read and never mapped: name, ELF header, note, exported and needed symbols,
// segments. A file that could harm who maps it is found out here.
CHECK_ROW("file.name", 1, "", file_name, 0, "the file is called [lib]ggml-NAME[-VARIANT].so")
CHECK_ROW("file.shared", 2, "", file_shared, 0, "it is a shared library")
CHECK_ROW("file.not-a-program", 2, "file.shared", file_interpreter, 0,
          "it asks for no program interpreter")
CHECK_ROW("file.machine", 2, "file.shared", file_machine, 0, "it is for this machine")
CHECK_ROW("file.note-present", 3, "file.shared", file_note_present, 0, "it has one note")
CHECK_ROW("file.note-bytes", 5, "file.note-present", file_note_bytes, 0,
          "the note's bytes are in the file")
CHECK_ROW("file.note-relocation", 5, "file.note-bytes", file_note_relocation, 0,
          "the note needs no relocation")
CHECK_ROW("file.note-magic", 4, "file.note-bytes", file_note_magic, 0,
          "the note begins with the magic")
CHECK_ROW("file.note-size", 4, "file.note-magic", file_note_size, 0, "the note's size is possible")
CHECK_ROW("file.note-name", 6, "file.note-size", file_note_text, 0,
          "the note's name is printable and padded")
CHECK_ROW("file.note-variant", 6, "file.note-size", file_note_text, 1,
          "the note's variant is printable and padded")
CHECK_ROW("file.note-version", 6, "file.note-size", file_note_text, 2,
          "the note's version is printable and padded")
CHECK_ROW("file.note-file-name", 1,
          "file.name file.note-name file.note-variant", file_name_of_note, 0,
          "the note's names are the file's")
CHECK_ROW("file.note-contract", 7, "file.note-size", file_note_contract, 0,
          "the note's contract has this major")
CHECK_ROW("file.note-min-minor", 8, "file.note-contract", file_note_min_minor, 0,
          "the lowest minor is not above its own")
CHECK_ROW("file.note-machine", 7, "file.note-size file.machine", file_note_machine, 0,
          "the note's machine is the file's")
CHECK_ROW("file.note-layout", 7, "file.note-contract", file_note_layout, 0,
          "the note's layout is this contract's")
CHECK_ROW("file.note-flags", 10, "file.note-contract", file_note_flags, 0,
          "the note's flags are defined")
CHECK_ROW("file.note-reserved", 10, "file.note-contract", file_note_reserved, 0,
          "the note's reserved words are zero")
CHECK_ROW("file.note-cpu-known", 10, "file.note-contract", file_note_cpu_known, 0,
          "the note's CPU features are defined")
CHECK_ROW("file.note-cpu-honest", 9, "file.note-contract", file_isa_needed, 0,
          "the note's CPU features cover what the compiler noted")
CHECK_ROW("file.instructions", 9,
          "file.note-contract file.machine file.entry-function file.text-relocations",
          file_instructions, 0,
          "the note's CPU features cover what its entry and initialisers execute")
CHECK_ROW("file.entry", 13, "file.shared", file_entry, 0, "it exports the entry")
CHECK_ROW("file.entry-function", 13, "file.entry", file_entry_function, 0,
          "the entry is a function")
CHECK_ROW("file.exports", 14, "file.shared", file_exports, 0, "it exports nothing else")
CHECK_ROW("file.no-host-symbols", 15, "file.shared", file_undefined_host, 0,
          "it needs no symbol of the host library")
CHECK_ROW("file.no-host-library", 15, "file.shared", file_depends_host, 0,
          "it does not depend on the host library")
CHECK_ROW("file.dependencies", 91, "file.shared", file_dependencies, 0,
          "the libraries that it needs are found")
CHECK_ROW("file.run-path", 91, "file.shared", file_run_path, 0,
          "libraries are searched at fixed places")
CHECK_ROW("file.symbols", 91, "file.dependencies file.run-path file.no-host-symbols", file_symbols,
          0, "every symbol that it needs is in a library that it needs")
CHECK_ROW("file.text-relocations", 90, "file.shared", file_text_relocations, 0,
          "its code needs no relocation")
CHECK_ROW("file.stack", 90, "file.shared", file_stack, 0, "it wants no executable stack")
CHECK_ROW("file.writable-code", 90, "file.shared", file_writable_code, 0,
          "no segment is writable and executable")
// Mapping it, its entry and the table that it returns: what the rest builds on. Each check runs
// in a process of its own, so a crash is one failed check.
CHECK_ROW("life.map", 15,
          "file.machine file.entry-function file.no-host-symbols file.symbols file.run-path file.stack file.text-relocations",
          life_map, 0,
          "it can be mapped with everything bound at once")
CHECK_ROW("life.map-threads", 16, "life.map", life_map_leaves, STATE_THREADS,
          "mapping it starts no thread")
CHECK_ROW("life.map-files", 16, "life.map", life_map_leaves, STATE_FILES,
          "mapping it opens no file")
CHECK_ROW("life.map-signals", 16, "life.map", life_map_leaves, STATE_SIGNALS,
          "mapping it installs no signal handler")
CHECK_ROW("life.map-environment", 16, "life.map", life_map_leaves, STATE_ENVIRONMENT,
          "mapping it changes no environment variable")
CHECK_ROW("life.map-quiet", 16, "life.map", life_map_quiet, 0, "mapping it writes nothing")
CHECK_ROW("life.init", 18, "life.map", life_init, 0, "the entry returns")
CHECK_ROW("life.init-status", 17, "life.init", life_init_status, 0,
          "the entry succeeds or finds no device")
CHECK_ROW("life.table", 17, "life.init-status", life_table, 0, "the entry sets the table")
CHECK_ROW("life.table-size", 87, "life.table", life_table_size, 0, "the table's size is possible")
CHECK_ROW("life.table-contract", 17, "life.table-size file.note-contract", life_table_contract, 0,
          "the table's contract is the note's")
CHECK_ROW("life.table-backend", 17, "life.table-size", life_table_reg, 0, "the table has a backend")
CHECK_ROW("life.table-reserved", 82, "life.table-size", life_table_reserved, 0,
          "the table's reserved slots are zero")
CHECK_ROW("life.score", 23, "life.table-backend", life_score, 0,
          "the score is constant and not negative")
CHECK_ROW("life.extension", 28, "life.table-backend", life_extension, 0,
          "NULL is returned for unknown extensions")
CHECK_ROW("life.shutdown", 21, "life.table-backend", life_shutdown, 0, "shutdown returns")
// The backend and its devices: names, ids, properties, claimed capabilities. Lists of what the
// plugin has must be constant, as the host keeps pointers into them.
CHECK_ROW("enum.backend-table", 29, "life.table-backend", enum_backend_table, 0,
          "the backend has a table of this contract")
CHECK_ROW("enum.backend-entries", 29, "enum.backend-table", enum_backend_entries, 0,
          "the backend has its entries")
CHECK_ROW("enum.backend-name", 29, "enum.backend-entries", enum_backend_name, 0,
          "the backend's name is valid and constant")
CHECK_ROW("enum.backend-reserved", 82, "enum.backend-entries", enum_backend_reserved, 0,
          "the backend's reserved slots are zero")
CHECK_ROW("enum.unknown-function", 83, "enum.backend-entries", enum_unknown_function, 0,
          "NULL is returned for unknown functions")
CHECK_ROW("enum.features", 81, "enum.unknown-function", enum_features, 0,
          "the list of features is well-formed")
CHECK_ROW("enum.count", 30, "enum.backend-entries", enum_count, 0,
          "the number of devices is constant")
CHECK_ROW("enum.objects", 31, "enum.count", enum_objects, 0, "there is an object for each device")
CHECK_ROW("enum.objects-constant", 30, "enum.objects", enum_objects_stable, 0,
          "the device objects are constant and distinct")
CHECK_ROW("enum.entries", 33, "enum.objects-constant", enum_entries, 0,
          "the devices have the entries that they must")
CHECK_ROW("enum.event-entries", 33, "enum.entries", enum_event_entries, 0,
          "the entries for events come together")
CHECK_ROW("enum.back-pointer", 31, "enum.entries", enum_back_pointer, 0,
          "the devices point back to the backend")
CHECK_ROW("enum.device-reserved", 82, "enum.entries", enum_device_reserved, 0,
          "the devices' reserved slots are zero")
CHECK_ROW("enum.name", 34, "enum.entries", enum_name, 0, "the devices' names are valid and bounded")
CHECK_ROW("enum.name-constant", 34, "enum.name", enum_name_constant, 0,
          "the devices' names are constant")
CHECK_ROW("enum.name-unique", 34, "enum.name-constant", enum_name_unique, 0,
          "the devices' names are unique")
CHECK_ROW("enum.description", 81, "enum.entries", enum_description, 0, "the descriptions are valid")
CHECK_ROW("enum.memory", 37, "enum.entries", enum_memory, 0, "free memory is at most the total")
CHECK_ROW("enum.type", 38, "enum.entries", enum_type, 0, "the type is defined and constant")
CHECK_ROW("enum.props-name", 92, "enum.name-constant", enum_props, 0,
          "the properties have the device's name")
CHECK_ROW("enum.props-description", 92, "enum.description", enum_props, 1,
          "the properties have the device's description")
CHECK_ROW("enum.props-type", 92, "enum.type", enum_props, 2,
          "the properties have the device's type")
CHECK_ROW("enum.props-memory", 92, "enum.memory", enum_props, 3,
          "the properties have the device's memory")
CHECK_ROW("enum.id", 35, "enum.entries", enum_id, 0, "the devices' ids are well-formed")
CHECK_ROW("enum.id-constant", 35, "enum.id", enum_id_constant, 0, "the devices' ids are constant")
CHECK_ROW("enum.details", 104, "enum.entries life.extension", enum_details, 0,
          "keys and values about the devices are well-formed and constant")
CHECK_ROW("enum.caps-async", 39, "enum.entries", enum_caps_async, 0,
          "who claims to queue can be waited for")
CHECK_ROW("enum.caps-host-buffer", 39, "enum.entries", enum_caps_host_buffer, 0,
          "claimed host buffers are host memory")
CHECK_ROW("enum.caps-host-ptr", 39, "enum.entries", enum_caps_host_ptr, 0,
          "claimed wrapping of host memory works")
CHECK_ROW("enum.caps-events", 39, "enum.event-entries", enum_caps_events, 0,
          "claimed events can be made")
CHECK_ROW("enum.buffer-type", 31, "enum.entries", enum_buffer_type, 0,
          "each device has one constant buffer type")
CHECK_ROW("enum.supports-own", 93, "enum.buffer-type", enum_supports_own, 0,
          "a device supports its own buffer type")
CHECK_ROW("enum.supports-strange", 93, "enum.supports-own", enum_supports_strange, 0,
          "it declines the memory of a strange device")
CHECK_ROW("enum.no-threads", 36, "enum.buffer-type", enum_leaves, STATE_THREADS,
          "listing starts no thread")
CHECK_ROW("enum.no-files", 36, "enum.buffer-type", enum_leaves, STATE_FILES,
          "listing opens no file that stays open")
CHECK_ROW("enum.threads", 73, "enum.buffer-type enum.name-constant enum.id-constant enum.props-name", enum_threads, 0,
          "listing works from several threads")
// Buffer types, then buffers, then transfers: whole tensors first, pieces and strides after
// them.
CHECK_ROW("buffer.type-table", 44, "enum.buffer-type enum.unknown-function", buffer_type_table, 0,
          "buffer types have a table of this contract")
CHECK_ROW("buffer.type-name", 43, "buffer.type-table", buffer_type_name, 0,
          "a buffer type has a constant name")
CHECK_ROW("buffer.type-entries", 44, "buffer.type-table", buffer_type_entries, 0,
          "a buffer type allocates and has an alignment")
CHECK_ROW("buffer.type-alignment", 44, "buffer.type-entries", buffer_type_alignment, 0,
          "the alignment is a constant power of two")
CHECK_ROW("buffer.type-max-size", 45, "buffer.type-entries", buffer_type_max_size, 0,
          "the largest size is above 0")
CHECK_ROW("buffer.type-alloc-size", 46, "buffer.type-entries", buffer_type_alloc_size, 0,
          "a tensor gets at least its bytes")
CHECK_ROW("buffer.type-is-host", 47, "buffer.type-entries", buffer_type_is_host, 0,
          "being host memory is constant")
CHECK_ROW("buffer.type-device", 95, "buffer.type-entries enum.back-pointer", buffer_type_device, 0,
          "a buffer type belongs to a device of its plugin")
CHECK_ROW("buffer.type-reserved", 82, "buffer.type-entries", buffer_type_reserved, 0,
          "reserved slots of buffer types are zero")
CHECK_ROW("buffer.alloc", 48, "buffer.type-alignment buffer.type-max-size", buffer_alloc, 0,
          "buffers of tiny and odd sizes are as large as asked for")
CHECK_ROW("buffer.object", 49, "buffer.alloc", buffer_object, 0,
          "a buffer object is made by the helper library")
CHECK_ROW("buffer.usage", 49, "buffer.alloc", buffer_usage_initial, 0,
          "a new buffer has no usage, and keeps the one it is given")
CHECK_ROW("buffer.base", 51, "buffer.alloc", buffer_base, 0, "the base is constant and not NULL")
CHECK_ROW("buffer.base-aligned", 44, "buffer.base", buffer_base_aligned, 0, "the base is aligned")
CHECK_ROW("buffer.over-limit", 48, "buffer.alloc", buffer_over_limit, 0,
          "a buffer above the largest size is refused")
CHECK_ROW("buffer.absurd", 80, "buffer.alloc", buffer_absurd, 0, "sizes that can't be are refused")
CHECK_ROW("buffer.free", 50, "buffer.alloc", buffer_free_often, 0,
          "freeing a buffer frees its memory")
CHECK_ROW("buffer.out-of-memory", 85, "buffer.free", buffer_out_of_memory, 0,
          "nothing is left when an allocation fails")
CHECK_ROW("buffer.round-trip", 52, "buffer.base-aligned", buffer_round_trip, 0,
          "what was set is read")
CHECK_ROW("buffer.set-offsets", 54, "buffer.host-address", buffer_set_offsets, 0,
          "pieces are set at any offset")
CHECK_ROW("buffer.get-offsets", 54, "buffer.host-address", buffer_get_offsets, 0,
          "pieces are read from any offset")
CHECK_ROW("buffer.memset", 54, "buffer.host-address", buffer_memset, 0,
          "pieces are filled at any offset")
CHECK_ROW("buffer.set-2d", 54, "buffer.host-address", buffer_set_2d, 0,
          "pieces are set with strides")
CHECK_ROW("buffer.get-2d", 54, "buffer.host-address", buffer_get_2d, 0,
          "pieces are read with strides")
CHECK_ROW("buffer.set-complete", 52, "buffer.round-trip", buffer_set_complete, 0,
          "the source can be reused at once")
CHECK_ROW("buffer.guard-set", 54, "buffer.host-address", buffer_guard, 0,
          "setting a tensor changes nothing around it")
CHECK_ROW("buffer.guard-memset", 54, "buffer.memset", buffer_guard, 1,
          "filling a tensor changes nothing around it")
CHECK_ROW("buffer.guard-2d", 54, "buffer.set-2d", buffer_guard, 2,
          "setting with strides changes nothing around it")
CHECK_ROW("buffer.clear", 52, "buffer.host-address", buffer_clear, 0, "clear sets every byte")
CHECK_ROW("buffer.copy-own", 55, "buffer.host-address", buffer_copy_direct, 1,
          "a direct copy within a buffer is whole or refused")
CHECK_ROW("buffer.copy-direct", 55, "buffer.host-address", buffer_copy_direct, 0,
          "a direct copy is whole or refused")
CHECK_ROW("buffer.copy-pairs", 55,
          "buffer.copy-own buffer.copy-direct", buffer_copy_pairs, 0,
          "a direct copy between buffers is whole or refused")
CHECK_ROW("buffer.foreign-extra", 56, "buffer.copy-direct", buffer_foreign_extra, 0,
          "what other plugins attach to tensors is left alone")
CHECK_ROW("buffer.view", 54, "buffer.host-address", buffer_view, 0, "a view is at its offset in its tensor")
CHECK_ROW("buffer.usage-kept", 97, "buffer.host-address", buffer_usage_kept, 0,
          "data reads back for every usage of the buffer")
CHECK_ROW("buffer.reset", 53, "buffer.host-address", buffer_reset, 0,
          "a buffer can be used after its reset")
CHECK_ROW("buffer.host-address", 47, "buffer.set-complete", buffer_host_address, 0,
          "host memory is at the tensor's address")
CHECK_ROW("buffer.wrapped", 78, "enum.caps-host-ptr buffer.alloc", buffer_wrapped_memory, 0,
          "wrapped memory stays the caller's")
CHECK_ROW("buffer.wrapped-read-only", 96, "buffer.wrapped", buffer_wrapped_read_only, 0,
          "memory that can only be read is wrapped without writing to it, or refused")
CHECK_ROW("buffer.quantised", 54, "buffer.set-offsets", buffer_quantised, 0,
          "quantised tensors are set and read, also in memory for weights")
CHECK_ROW("buffer.statuses", 70, "buffer.host-address", buffer_statuses, 0,
          "entries return known statuses")
CHECK_ROW("buffer.threads", 74, "buffer.host-address", buffer_threads, 0,
          "two buffers work in two threads")
// Streams without work; work needs an operation, which is checked below.
CHECK_ROW("stream.create", 57, "enum.entries", stream_create, 0,
          "a device makes a stream or says why not")
CHECK_ROW("stream.table", 57, "stream.create", stream_table, 0, "a stream has a table of this contract")
CHECK_ROW("stream.entries", 57, "stream.table", stream_entries, 0,
          "a stream has the entries that it must")
CHECK_ROW("stream.plan-entries", 63, "stream.entries", stream_plan_entries, 0,
          "the entries for plans come together")
CHECK_ROW("stream.event-entries", 39, "stream.entries", stream_event_entries, 0,
          "streams use the events that their device makes")
CHECK_ROW("stream.name", 57, "stream.entries", stream_name, 0, "a stream has a valid name")
CHECK_ROW("stream.identity", 57, "stream.entries", stream_guid, 0, "all streams have one identity")
CHECK_ROW("stream.device", 57, "stream.entries", stream_device, 0, "a stream names its device")
CHECK_ROW("stream.reserved", 82, "stream.entries", stream_reserved, 0,
          "reserved slots of streams are zero")
CHECK_ROW("stream.free", 60, "stream.entries", stream_free, 0, "freeing streams frees their memory")
CHECK_ROW("stream.parameters", 83, "stream.free", stream_parameters, 0,
          "strange parameters do no harm")
CHECK_ROW("stream.out-of-memory", 85, "stream.free", stream_out_of_memory, 0,
          "nothing is left when an allocation fails")
CHECK_ROW("stream.idle", 59, "stream.free", stream_idle, 0,
          "waiting for a stream without work returns")
CHECK_ROW("stream.empty-graph", 66, "stream.idle", stream_empty_graph, 0,
          "a graph without nodes succeeds")
CHECK_ROW("stream.skips-views", 66, "stream.empty-graph buffer.round-trip", stream_skips_views, 0,
          "nodes that move no data are skipped")
// Claims, before anything is computed: what the plugin can't know it must decline, as later
// hosts have operations, types, parameters and flags that it has never heard of.
CHECK_ROW("op.claims-constant", 41, "enum.entries", op_claims_constant, 0, "claims are constant")
CHECK_ROW("op.claims-views", 41, "op.claims-constant", op_claims_nothing, 0,
          "what moves no data is claimed")
CHECK_ROW("op.unknown-op", 41, "op.claims-constant", op_declines, STRANGE_OP,
          "unknown operations are declined")
CHECK_ROW("op.unknown-type", 41, "op.claims-constant", op_declines, STRANGE_TYPE,
          "unknown result types are declined")
CHECK_ROW("op.unknown-source", 41, "op.claims-constant", op_declines, STRANGE_SOURCE,
          "unknown source types are declined")
CHECK_ROW("op.unknown-unary", 41, "op.claims-constant", op_declines, STRANGE_UNARY,
          "unknown unary functions are declined")
CHECK_ROW("op.unknown-glu", 41, "op.claims-constant", op_declines, STRANGE_GLU,
          "unknown gated functions are declined")
CHECK_ROW("op.unknown-value", 41, "op.claims-constant op.unknown-glu", op_declines_values, 0,
          "values of parameters without a meaning are declined")
CHECK_ROW("op.unknown-private", 102, "op.claims-constant", op_declines_private, 0,
          "private operations and types of others are declined")
CHECK_ROW("op.unknown-parameter", 99, "op.claims-constant", op_declines_grown, GROWN_PARAMETER,
          "parameter words without a meaning are declined")
CHECK_ROW("op.unknown-extra-source", 99, "op.claims-constant", op_declines_grown, GROWN_SOURCE,
          "sources without a meaning are declined")
CHECK_ROW("op.unknown-flag", 100, "op.claims-constant", op_declines_grown, GROWN_FLAG,
          "unknown flags that must be understood are declined")
CHECK_ROW("op.unknown-padding", 101, "op.claims-constant", op_declines_grown, GROWN_PADDING,
          "tensors with an extension are declined")
CHECK_ROW("op.any-node", 40, "op.claims-constant", op_any_node, 0,
          "any operation can be asked about without buffers")
CHECK_ROW("op.claims-threads", 73, "op.claims-constant", op_claims_threads, 0,
          "claims can be asked for from several threads")
// An addition of floats: the simplest that all plugins compute, on which checks of streams rest.
CHECK_ROW("op.sum", 42,
          "op.claims-constant stream.idle stream.free buffer.host-address enum.caps-async",
          op_sum, 0,
          "a claimed addition is computed")
CHECK_ROW("op.claims-placed", 40, "op.sum", op_claims_placed, 0, "claims do not depend on buffers")
CHECK_ROW("op.broadcast", 42, "op.sum stream.skips-views", op_compute, CASE_BROADCAST,
          "claimed: addition with a repeated row is right")
CHECK_ROW("op.strided", 42, "op.sum stream.skips-views", op_compute, CASE_STRIDED,
          "claimed: addition of views is right")
CHECK_ROW("op.in-place", 68, "op.sum", op_in_place, 0,
          "claimed: results in the memory of a source are right")
CHECK_ROW("op.guard", 68, "op.sum", op_guard, 0, "only the result is written")
CHECK_ROW("op.chain", 67, "op.sum", op_chain, 0, "nodes take effect in order")
CHECK_ROW("op.non-finite", 83, "op.sum", op_non_finite, 0, "numbers that are not finite do no harm")
CHECK_ROW("op.no-elements", 83, "op.sum", op_no_elements, 0, "tensors without elements do no harm")
// One for each operation and sub-operation.
#define CONFORMANCE_ROW(name)                                                                      \
    CHECK_ROW("op.conformance." name, 42, NEEDS_ARITHMETIC, op_conformance, 0,                     \
              "claimed: every case of " name " is right")
#define GGML_OP_ROW(number, name, ...) CONFORMANCE_ROW(#name)
#include "op_list.inl"
#define GGML_UNARY_ROW(number, name, ...) CONFORMANCE_ROW(#name)
#include "unary_list.inl"
#define GGML_GLU_ROW(number, name, ...) CONFORMANCE_ROW(#name)
#include "glu_list.inl"
#undef CONFORMANCE_ROW
CHECK_ROW("op.bad-index", 69, "op.conformance.GET_ROWS", op_bad_index, 0,
          "an index that points outside is an error, or gives NaN")
// Streams at work: order, events, plans, aborts, lost devices, threads.
CHECK_ROW("stream.async-set", 61, "op.sum", stream_async_set, 0,
          "a queued transfer to the device arrives")
CHECK_ROW("stream.async-get", 61, "op.sum", stream_async_get, 0,
          "a queued transfer from the device arrives")
CHECK_ROW("stream.order", 58, "stream.repeat stream.async-set stream.async-get", stream_order, 0,
          "queued work takes effect in order")
CHECK_ROW("stream.copy-async", 62, "op.sum", stream_copy_queued, 0,
          "a copy between two streams arrives")
CHECK_ROW("stream.copy-foreign", 62, "op.sum", stream_copy_foreign, 0,
          "a copy from a strange stream is refused")
CHECK_ROW("stream.free-waits", 60, "op.sum", stream_free_waits, 0,
          "freeing a stream waits for its work")
CHECK_ROW("stream.event-unrecorded", 64,
          "op.sum enum.caps-events stream.event-entries stream.device", stream_event, 0,
          "an event that was never recorded does not block")
CHECK_ROW("stream.event", 64, "stream.event-unrecorded", stream_event, 1,
          "an event says that work is complete")
CHECK_ROW("stream.event-again", 64, "stream.event stream.repeat", stream_event, 2,
          "an event can be recorded again")
CHECK_ROW("stream.event-wait-returns", 64, "stream.event stream.abort", stream_event_wait_returns, 0,
          "waiting for an event does not wait for its work")
CHECK_ROW("stream.event-across", 64, "stream.event stream.order", stream_event_across, 0,
          "a stream waits for another one's event")
CHECK_ROW("stream.event-devices", 65, "stream.event stream.event-across", stream_event_devices, 0,
          "a stream waits for an event of another device")
CHECK_ROW("stream.skips-unflagged", 66, "op.sum", stream_skips_unflagged, 0,
          "nodes that are not to be computed are skipped")
CHECK_ROW("stream.repeat", 67, "op.sum", stream_repeat, 0, "a graph can be computed again")
CHECK_ROW("stream.graph-freed", 71, "op.sum", stream_graph_freed, 0,
          "the graph can be freed after synchronize")
CHECK_ROW("stream.graph-uid", 71, "stream.repeat", stream_graph_uid, 0,
          "a graph is known by its uid on one stream only, and computed each time")
CHECK_ROW("stream.graph-structure", 103, "stream.repeat", stream_graph_structure, 0,
          "graphs of equal structure are computed on their own tensors")
CHECK_ROW("stream.use-counts", 98, "stream.repeat", stream_use_counts, 0,
          "results that are used outside are there")
CHECK_ROW("stream.plan", 63, "stream.repeat stream.plan-entries", stream_plan, 0,
          "a plan computes, again and again")
CHECK_ROW("stream.optimize", 72, "op.sum", stream_optimize, 0, "optimising keeps the nodes")
CHECK_ROW("stream.abort", 70,
          "stream.repeat enum.unknown-function enum.back-pointer", stream_abort, 0,
          "a computation can be aborted")
CHECK_ROW("stream.callback-unlocked", 76, "stream.abort op.claims-threads enum.threads",
          stream_callback_unlocked, 0,
          "calls of other threads return while the application's callback runs")
CHECK_ROW("stream.device-lost", 84,
          "op.sum stream.free enum.unknown-function enum.back-pointer life.shutdown",
          stream_device_lost, 0,
          "a device that was lost fails and says so")
CHECK_ROW("stream.threads", 74, "stream.repeat", stream_threads, 0, "two streams work in two threads")
CHECK_ROW("stream.other-thread", 74, "stream.repeat", stream_other_thread, 0,
          "a stream can be used by one thread after the other")
// When nodes are computed.
#define NEEDS_PROFILE "stream.profile-table stream.repeat stream.skips-unflagged stream.graph-freed op.chain"
CHECK_ROW("stream.profile-table", 110, "life.extension stream.entries", profile_table, 0,
          "the table of ggml.profile is of its size, with all entries")
CHECK_ROW("stream.profile-nodes", 110, NEEDS_PROFILE " stream.skips-views", profile_nodes, 0,
          "each computed node is in one slice, under the tag of its graph")
CHECK_ROW("stream.profile-times", 111, NEEDS_PROFILE " stream.profile-nodes", profile_times, 0,
          "slices follow one another, within the time of their graph")
CHECK_ROW("stream.profile-capacity", 111, NEEDS_PROFILE " stream.profile-nodes", profile_capacity, 0,
          "slices that find no room are counted")
CHECK_ROW("stream.profile-end", 111, NEEDS_PROFILE " stream.profile-nodes", profile_end, 0,
          "recording begins once, and nothing is left after its end")
#undef NEEDS_PROFILE
// Memory that others use too.
CHECK_ROW("buffer.external", 112, "life.extension enum.caps-host-ptr buffer.host-address buffer.free stream.free op.sum",
          buffer_external, 0,
          "two buffers of the same external memory see what the other writes")
CHECK_ROW("buffer.external-refused", 113, "buffer.external", buffer_external_refused, 0,
          "external memory that isn't the device's, or doesn't fit, is refused")
// Groups of streams.
#define NEEDS_GROUP "comm.table buffer.* stream.free stream.device stream.order enum.caps-async"
CHECK_ROW("comm.table", 105, "life.extension enum.entries", comm_table, 0,
          "the table of ggml.comm is of its size, with all entries")
CHECK_ROW("comm.group-refused", 105, NEEDS_GROUP, comm_group_refused, 0,
          "what can't be a group is refused")
CHECK_ROW("comm.all-reduce", 106, NEEDS_GROUP " comm.group-refused", comm_all_reduce, 0,
          "all ranks get the sum or the maximum of what counts")
CHECK_ROW("comm.broadcast", 106, NEEDS_GROUP " comm.group-refused", comm_broadcast, 0,
          "all ranks get what the root has")
CHECK_ROW("comm.all-gather", 106, NEEDS_GROUP " comm.group-refused", comm_all_gather, 0,
          "all ranks get all parts, in order of the ranks")
CHECK_ROW("comm.messages", 106, NEEDS_GROUP " comm.group-refused", comm_messages, 0,
          "what is sent is received, in order from each rank")
CHECK_ROW("comm.order", 107, NEEDS_GROUP " comm.all-reduce", comm_order, 0,
          "work of a group stands in the order of its streams")
CHECK_ROW("comm.refused", 108, NEEDS_GROUP " comm.all-reduce comm.broadcast comm.all-gather comm.messages",
          comm_refused, 0,
          "unequal types and sizes and wrong ranks are refused, without effect")
CHECK_ROW("comm.group-free", 105, NEEDS_GROUP " comm.group-refused comm.all-reduce", comm_group_free, 0,
          "freeing groups frees their memory")
#undef NEEDS_GROUP
// What using the plugin leaves behind, once it is known to work.
CHECK_ROW("life.leaves-thread", 21, NEEDS_WORK, life_leaves, STATE_THREADS,
          "its use leaves no thread")
CHECK_ROW("life.leaves-file", 21, NEEDS_WORK, life_leaves, STATE_FILES,
          "its use leaves no open file")
CHECK_ROW("life.leaves-mapping", 12, NEEDS_WORK, life_leaves, STATE_MAPPINGS,
          "its use leaves no mapping of its file")
CHECK_ROW("life.leaves-signal", 86, NEEDS_WORK, life_leaves, STATE_SIGNALS,
          "its use leaves no signal handler")
CHECK_ROW("life.leaves-signal-mask", 86, NEEDS_WORK, life_leaves, STATE_SIGNAL_MASK,
          "its use leaves no other signal mask")
CHECK_ROW("life.leaves-locale", 86, NEEDS_WORK, life_leaves, STATE_LOCALE,
          "its use leaves no other locale")
CHECK_ROW("life.leaves-fp-mode", 86, NEEDS_WORK, life_leaves, STATE_FP_MODE,
          "its use leaves no other floating-point mode")
CHECK_ROW("life.leaves-umask", 86, NEEDS_WORK, life_leaves, STATE_UMASK,
          "its use leaves no other umask")
CHECK_ROW("life.leaves-directory", 86, NEEDS_WORK, life_leaves, STATE_DIRECTORY,
          "its use leaves no other working directory")
CHECK_ROW("life.leaves-environment", 86, NEEDS_WORK, life_leaves, STATE_ENVIRONMENT,
          "its use leaves no other environment")
CHECK_ROW("life.leaves-affinity", 86, NEEDS_WORK, life_leaves, STATE_AFFINITY,
          "its use leaves no other affinity or priority")
CHECK_ROW("life.leaves-streams", 86, NEEDS_WORK, life_leaves, STATE_STREAMS,
          "its use leaves no other standard streams")
CHECK_ROW("life.leaves-limits", 86, NEEDS_WORK, life_leaves, STATE_LIMITS,
          "its use leaves no other resource limits")
CHECK_ROW("life.leaves-timer", 86, NEEDS_WORK, life_leaves, STATE_TIMERS, "its use leaves no timer")
CHECK_ROW("life.leaves-process", 21, NEEDS_WORK, life_leaves, STATE_CHILDREN,
          "its use leaves no child process")
CHECK_ROW("life.leaves-memory", 21, NEEDS_WORK, life_memory, 0,
          "its use leaves no memory of the host's")
CHECK_ROW("life.quiet", 26, "life.map-quiet life.leaves-memory", life_quiet, 0,
          "its use writes nothing to the standard streams")
CHECK_ROW("life.log-unlocked", 76, "life.leaves-memory op.claims-threads enum.threads",
          life_log_unlocked, 0,
          "calls of other threads return while the host's log runs")
CHECK_ROW("life.threads-named", 75, "life.leaves-thread", life_threads, 0,
          "threads that it starts have names")
CHECK_ROW("life.threads-bound", 75, "life.leaves-thread", life_threads, 1,
          "threads that it starts are bound by the host only")
CHECK_ROW("life.table-constant", 22, NEEDS_WORK, life_table_constant, 0,
          "the table does not change in use")
CHECK_ROW("life.init-again", 19, NEEDS_WORK, life_init_again, 0,
          "the entry works again after shutdown")
CHECK_ROW("life.two-hosts", 20, "life.init-again", life_two_hosts, 0,
          "two hosts, the first one goes first")
CHECK_ROW("life.two-hosts-reversed", 20, "life.two-hosts", life_two_hosts, 1,
          "two hosts, the second one goes first")
CHECK_ROW("life.two-hosts-told", 20, "life.two-hosts buffer.absurd", life_two_hosts_told, 0,
          "a failure is reported to both of two hosts")
CHECK_ROW("life.exit", 94, NEEDS_WORK, life_exit, 0, "a process may end without shutdown")
CHECK_ROW("life.fork", 94, NEEDS_WORK, life_fork, 0,
          "in the child of a fork its entries return")
CHECK_ROW("life.reload", 19, "life.init-again life.leaves-thread", life_reload, 0,
          "it can be unmapped and mapped again")
CHECK_ROW("life.reload-threads", 21, "life.reload", life_reload_often, STATE_THREADS,
          "reloading it often adds no thread")
CHECK_ROW("life.reload-files", 21, "life.reload life.leaves-file", life_reload_often, STATE_FILES,
          "reloading it often adds no open file")
CHECK_ROW("life.out-of-memory", 85, "life.init-again life.leaves-memory", life_out_of_memory, 0,
          "the entry survives every failing allocation and leaves nothing")
CHECK_ROW("life.failure-told", 27, "life.out-of-memory", life_failure_told, 0,
          "an entry that fails says why")
CHECK_ROW("life.small-host", 24, NEEDS_WORK, life_small_host, 0,
          "it reads nothing behind the tables and extensions of contract 1.0")
CHECK_ROW("life.later-host", 8, NEEDS_WORK " life.small-host", life_later_host, 0,
          "it works with a host of a later minor")
CHECK_ROW("life.sizes-told", 25, NEEDS_WORK, life_sizes_told, 0,
          "what it has the host fill says its size")
CHECK_ROW("life.no-extensions", 28, NEEDS_WORK, life_no_extensions, 0,
          "it survives a host without extensions")
CHECK_ROW("life.host-load", 17, "file.* life.table-contract enum.*", life_host_load, 0,
          "the host library loads it")
CHECK_ROW("life.host-unload", 19, "life.host-load life.init-again", life_host_unload, 0,
          "the host library unloads it and loads it again")
#undef CHECK_ROW
#undef NEEDS_WORK
#undef NEEDS_ARITHMETIC
