// SPDX-License-Identifier: MIT
// Public functions of this area that are declared but not implemented yet: each answers `failure` and
// leaves a message. Rows only ever leave this list.
//
// GGML_PENDING(type, name, (parameters), failure)    GGML_PENDING_VOID(name, (parameters))
