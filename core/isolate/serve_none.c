// SPDX-License-Identifier: MIT
// Where devices can't be isolated yet.
#include "isolate/serve.h"

int isolate_serve(const char *plugin_path) {
    (void)plugin_path;
    return 1;
}
