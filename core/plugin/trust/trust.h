// SPDX-License-Identifier: MIT
// Whether a user other than root and the effective one could change what is at a path: the rule of
// docs/security.md.
#ifndef GGML_PLUGIN_TRUST_TRUST_H
#define GGML_PLUGIN_TRUST_TRUST_H

#include "plugin/image/plugin_file.h"

// UNTRUSTED, with a message that names the file or directory, what is wrong with it and what to do.
// `path` is absolute and must lead to the open file, else DAMAGED_FILE. Where the system has no
// such permissions everything is trusted. [any-thread]
enum ggml_host_status trust_check_file(const char *path, const struct plugin_file *file);
// The same for a directory; one that does not exist is trusted. [any-thread]
enum ggml_host_status trust_check_dir(const char *path);

#endif
