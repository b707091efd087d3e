#!/bin/sh
# SPDX-License-Identifier: MIT
# Gives a plugin that ggml-plugin-new has made in C an ADD of F32, as its author would.
# Usage: write_add.sh FILE
set -eu
code=$(mktemp)
trap 'rm -f "$code"' EXIT
cat >"$code" <<'CODE'

static bool takes(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0], *b = node->src[1];
    return node->op == GGML_OP_ADD && node->type == GGML_TYPE_F32 && a->type == GGML_TYPE_F32 && b->type == GGML_TYPE_F32 &&
           ggml_are_same_shape(a, b) && ggml_is_contiguous(a) && ggml_is_contiguous(b) && ggml_is_contiguous(node);
}

static void add(const struct ggml_tensor *node) {
    const float *a = node->src[0]->data, *b = node->src[1]->data;
    float *sum = node->data;
    for (int64_t i = 0; i < ggml_nelements(node); ++i) sum[i] = a[i] + b[i];
}
CODE
sed -i -e "/^\/\/ --- stream/r $code" -e 's/return ggml_sdk_fail(GGML_HOST_UNSUPPORTED, .*/add(node);/' \
    -e 's/return ggml_op_is_empty(op->op);/return ggml_op_is_empty(op->op) || takes(op);/' "$1"
# The places are where the skeleton has them.
for text in 'static bool takes' ' add(node);' '|| takes(op);'; do
    grep -qF "$text" "$1" || { echo "$1: the skeleton is another one: no place for '$text'" >&2; exit 1; }
done
