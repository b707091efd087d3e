// SPDX-License-Identifier: MIT
// Where builder_diff doesn't expect of ours what theirs does, and why.
#include "builder_diff.h"

// Reasons to refuse what would read or write out of bounds, overflow or divide by zero, and numbers
// that name no operation. theirs may survive it.
static const char *const good_reasons[] = {
    "reach beyond its",                // views
    "overflow",                        // strides
    "is negative",                     // extents
    "does not fit",                    // regions, windows, strides in op_params
    "is larger than the padded",       // windows that leave a negative extent
    "the block of",                    // rows of a quantised result that are no whole blocks
    "must have the same shape",        // gradients
    "src0 is [",                       // gradients of convolutions and pooling, windows
    "src1 is [",                       // states
    "src2 is [",                       // ids
    "src3 is [",                       // gates
    "src4 is [",                       // gates
    "the cache length = ",             // more keys than values
    "src3 ne1 = ",                     // fewer rows of a mask than queries
    "the rows of src0 that are added", // more than there are
    "stride = ",
    "src1 ne0 = 0",              // no filter
    "s0 = -",                    // division
    "the windows = ",            // fewer than are put together
    "there is nothing to scale", // from no element
    "a stride = ",               // division
    "n_groups = 0",              //
    "n_groups = -",              //
    "a window = ",               //
    "w = ",                      //
    "w0 = ",                     //
    "h0 = ",                     //
    "p0 = -",                    // pooling outside of the source
    "a padding = ",              // of more than there is to repeat, or a negative result
    "an extent = -",             //
    "an extent of the result = -",
    "k = ",                  // more than there are
    "dim = -",               //
    "op = ",                 // no such operation, order or mode
    "order = ",              //
    "type = ",               //
    "channels must agree",   // gradients
    "must be a multiple of", // shared heads and sequences
    "it must have one per channel",
    "it has too many dimensions", // of operands whose elements are counted
    "it must be f32",             // narrower types read as F32
};

bool is_good_reason(const char *message) {
    for (size_t i = 0; i < sizeof(good_reasons) / sizeof(good_reasons[0]); ++i) {
        if (strstr(message, good_reasons[i]) != NULL) return true;
    }
    return false;
}

// Operations that ggml's CPU computes from rows that are not dense. Of others some are right by
// chance: nothing is checked.
static bool takes_any_layout(int builder) {
    switch (builder) {
    case BUILDER_add:
    case BUILDER_sub:
    case BUILDER_mul:
    case BUILDER_div:
    case BUILDER_dup:
    case BUILDER_cpy:
    case BUILDER_cast:
    case BUILDER_cont:
    case BUILDER_concat:
    case BUILDER_repeat:
    case BUILDER_get_rows:
    case BUILDER_mul_mat:
    case BUILDER_mul_mat_id:
    case BUILDER_out_prod:
    case BUILDER_rope_ext:
    case BUILDER_flash_attn_ext:
    case BUILDER_sum: return true;
    default: return false;
    }
}

// Cases in which theirs is not to be followed: results known to be wrong, or that depend on the
// order in which elements are written; numbers of one type read as another's.
bool is_known(const struct base_case *c, const struct operand *operands,
              const struct outcome *outcome) {
    const struct argument *args = c->args;
    for (int i = 0; i < c->n_args; ++i) {
        if (args[i].kind != 't' || args[i].absent) continue;
        const bool whole = args[i].type[0] == 'i' && strncmp(args[i].type, "iq", 2) != 0;
        if (args[i].was_float && whole) return true;
        if (outcome->stage == OURS_UNSUPPORTED && operands[i].layout == PERMUTED &&
            !takes_any_layout(c->builder)) {
            return true;
        }
    }
    switch (c->builder) {
    case BUILDER_acc:
    case BUILDER_acc_inplace:
    case BUILDER_set:
    case BUILDER_set_inplace:
    case BUILDER_set_1d:
    case BUILDER_set_2d: return args[1].ne[0] > args[0].ne[0]; // rows overlap
    case BUILDER_add1: // another type is read as F32; blocks of later matrices aren't written
        return strcmp(args[1].type, "f32") != 0 || args[0].type[0] == 'q';
    case BUILDER_add_id: return args[1].ne[2] * args[1].ne[3] == 0; // read although empty
    case BUILDER_conv_transpose_1d:
    case BUILDER_conv_transpose_2d_p0:
        return args[2].number == 0 || args[0].ne[0] * args[0].ne[1] == 0; // no stride
    case BUILDER_count_equal: return args[0].ne[2] * args[0].ne[3] > 1;   // some rows twice
    case BUILDER_cpy: return args[0].ne[0] % 32 != 0;           // rows that are no whole blocks
    case BUILDER_cross_entropy_loss: return args[0].ne[1] == 0; // mean of nothing
    case BUILDER_cross_entropy_loss_back:
    case BUILDER_pool_2d_back:
    case BUILDER_silu_back: // everything is read as F32
        for (int i = 0; i < c->n_args; ++i) {
            if (args[i].kind == 't' && strcmp(args[i].type, "f32") != 0) return true;
        }
        return c->builder == BUILDER_silu_back && operands[0].layout == PERMUTED;
    case BUILDER_flash_attn_ext: return strcmp(args[0].type, "f32") != 0;
    case BUILDER_conv_1d:
    case BUILDER_conv_1d_dw:
    case BUILDER_conv_1d_dw_ph:
    case BUILDER_conv_2d:
    case BUILDER_conv_2d_dw:
    case BUILDER_conv_2d_dw_direct:
    case BUILDER_conv_2d_direct:
    case BUILDER_conv_3d:
    case BUILDER_conv_3d_direct:
    case BUILDER_im2col:
    case BUILDER_im2col_3d:
        for (int i = 2; i < c->n_args; ++i) { // negative dilations
            if (args[i].number < 0) return true;
        }
        return strcmp(args[1].type, "f32") != 0;           // read as F32
    case BUILDER_rms_norm_back: return args[2].number < 0; // differences near zero
    case BUILDER_dsv4_hc_comb: return args[3].number < 0;
    case BUILDER_rope:
    case BUILDER_rope_ext:
    case BUILDER_rope_ext_back:
    case BUILDER_rope_multi:
    case BUILDER_rope_multi_back: // the last element's partner is the next row's first
        return args[0].ne[0] % 2 != 0;
    case BUILDER_rwkv_wkv6:
    case BUILDER_rwkv_wkv7:
    case BUILDER_gated_linear_attn:
        return args[0].ne[2] == 0; // no token: not even the state is set
    case BUILDER_set_rows: return args[1].ne[1] > args[0].ne[1]; // a row twice
    default: return false;
    }
}
