// SPDX-License-Identifier: MIT
// Every host status, once. Numbers are part of the binary contract: explicit, append-only.
//
// GGML_HOST_STATUS_ROW(number, NAME, text)
//   number  value of GGML_HOST_<NAME>; 0 is success, everything else a refusal or failure
//   behind  what a caller may make of it; the message says what happened
//   text    what ggml_host_status_text() returns
// Of calls.
GGML_HOST_STATUS_ROW(0, OK, "ok") // done
GGML_HOST_STATUS_ROW(1, FAILED, "failed") // for a reason that is only in the message
// the caller broke the contract; nothing was done
GGML_HOST_STATUS_ROW(2, INVALID_ARGUMENT, "invalid argument")
// of the host or a device; may work later or smaller
GGML_HOST_STATUS_ROW(3, OUT_OF_MEMORY, "out of memory")
GGML_HOST_STATUS_ROW(4, UNSUPPORTED, "unsupported") // this device or plugin cannot; ask another way
GGML_HOST_STATUS_ROW(5, NOT_FOUND, "not found") // no such file, key, name or device
GGML_HOST_STATUS_ROW(6, BUSY, "busy") // in use: by objects that live, or by another thread
GGML_HOST_STATUS_ROW(7, OUT_OF_RANGE, "out of range") // an index, size or offset
GGML_HOST_STATUS_ROW(8, IO_ERROR, "input/output error") // reading or writing failed
GGML_HOST_STATUS_ROW(9, PERMISSION_DENIED, "permission denied") // the operating system refuses it
GGML_HOST_STATUS_ROW(10, DEVICE_LOST, "device lost") // the device is gone: free what is on it
GGML_HOST_STATUS_ROW(11, ABORTED, "aborted by the caller") // a callback ended it
// Of plugins that are not used, in their records too.
GGML_HOST_STATUS_ROW(20, NOT_A_PLUGIN, "not a plugin") // no note in the file
GGML_HOST_STATUS_ROW(21, DAMAGED_FILE, "damaged file") // contradicts itself or ends early
GGML_HOST_STATUS_ROW(22, WRONG_MACHINE, "built for another machine") // the note says another one
// another major, or a minor above the host's
GGML_HOST_STATUS_ROW(23, WRONG_CONTRACT, "contract version does not match")
// another variant may fit
GGML_HOST_STATUS_ROW(24, MISSING_CPU_FEATURE, "needs an instruction set that this machine lacks")
GGML_HOST_STATUS_ROW(25, LAYOUT_MISMATCH, "structure layouts differ") // compiled with other headers
GGML_HOST_STATUS_ROW(26, MISSING_DEPENDENCY, "a library it needs is missing") // the record names it
GGML_HOST_STATUS_ROW(27, LINK_FAILED, "the dynamic linker refused it") // the message has its words
GGML_HOST_STATUS_ROW(28, NO_ENTRY, "has no ggml_backend_init") // nothing to call
// the plugin returned another status
GGML_HOST_STATUS_ROW(29, INIT_FAILED, "its initialisation failed")
GGML_HOST_STATUS_ROW(30, BAD_PLUGIN, "breaks the plugin contract") // the message says which rule
// works, but finds nothing to work with
GGML_HOST_STATUS_ROW(31, NO_DEVICE, "offers no usable device")
GGML_HOST_STATUS_ROW(32, DUPLICATE, "already loaded") // the first one stays
// no fault: one of its name fits better
GGML_HOST_STATUS_ROW(33, SUPERSEDED, "another variant was preferred")
GGML_HOST_STATUS_ROW(34, FILTERED, "excluded by GGML_DEVICES") // no fault: the user wants it so
GGML_HOST_STATUS_ROW(35, NOT_IMPLEMENTED, "not implemented yet") // by this version of the host
// docs/security.md has the rule
GGML_HOST_STATUS_ROW(36, UNTRUSTED, "others could have changed it, or its sum is not allowed")
// Of processes that work for this one.
// in the helper that probes, or an isolated device
GGML_HOST_STATUS_ROW(40, CRASHED, "ended its process")
GGML_HOST_STATUS_ROW(41, TIMED_OUT, "did not answer in time") // likewise
#undef GGML_HOST_STATUS_ROW
