// SPDX-License-Identifier: MIT
// ggml-ext-device-info.h: extension "ggml.device-info", which plugins offer: what is worth knowing
// about a device beyond its properties.
//
// A part of ggml-plugin.h; how extensions are offered and found is in ggml-plugin-extensions.h.
#ifndef GGML_EXT_DEVICE_INFO_H
#define GGML_EXT_DEVICE_INFO_H

#include <stdint.h>

#include "ggml-backend-impl.h"

#ifdef __cplusplus
extern "C" {
#endif

// Extension "ggml.device-info", revision 1: pairs of keys and values for people, and for programs
// that place work.
//
// Keys are lower-case letters, digits and '-'. Those with a meaning here:
//   driver, driver-version, api-version  of what runs the device, as it says itself
//   unified-memory   "yes": its memory is the host's; "no"
//   numa-node        number of the node that it is attached to, as the system counts them
//   link             how it is attached: "pci", "usb", "network", or a word of the plugin's
//   host             name of the machine that it is in, where that need not be the program's
//   node             what serves it there; devices of one node share their links to others
//   peers            names of devices of this plugin that it copies to directly, with commas
// Others begin with the plugin's name and a '-'.
#define GGML_EXTENSION_DEVICE_INFO "ggml.device-info"
#define GGML_EXTENSION_DEVICE_INFO_REVISION 1
enum { GGML_DEVICE_INFO_MAX_PAIRS = 32, GGML_DEVICE_INFO_MAX_TEXT = 128 };
struct ggml_extension_device_info {
    uint32_t size;
    uint32_t revision;
    // Keys (name) and values of a device of this plugin, up to a key that is NULL: no key twice, at
    // most MAX_PAIRS, each text valid UTF-8 of less than MAX_TEXT bytes. NULL: nothing is known.
    // The list stays the same until shutdown. [any-thread]
    const struct ggml_backend_feature *(*info)(ggml_backend_dev_t device);
};

#ifdef __cplusplus
}
#endif

#endif
