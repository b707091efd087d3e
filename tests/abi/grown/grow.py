# SPDX-License-Identifier: MIT
"""Copies the headers as a later minor of the contract might have them: one thing more in each list.

usage: grow.py ABI_DIR OUT_DIR
"""
import os
import re
import shutil
import sys


def edit(folder, name, *changes):
    path = os.path.join(folder, name)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    for pattern, replacement in changes:
        text, found = re.subn(pattern, replacement, text, count=1, flags=re.DOTALL)
        if not found:
            sys.exit("%s: nothing matches %s" % (name, pattern))
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def count(text, pattern):
    return int(re.search(pattern, text).group(1))


def main():
    abi_dir, out_dir = sys.argv[1:]
    for name in os.listdir(abi_dir):
        if name.endswith((".h", ".inl")):
            shutil.copyfile(os.path.join(abi_dir, name), os.path.join(out_dir, name))
    with open(os.path.join(abi_dir, "ggml.h"), encoding="utf-8") as file:
        header = file.read()
    with open(os.path.join(abi_dir, "ggml-plugin-note.h"), encoding="utf-8") as file:
        minor = count(file.read(), r"define GGML_CONTRACT_MINOR (\d+)") + 1
    ops, unary, glu, types = (count(header, r"GGML_%sCOUNT = (\d+)" % kind)
                              for kind in ("OP_", "UNARY_OP_", "GLU_OP_", "TYPE_"))
    edit(out_dir, "ggml-plugin-note.h", (r"define GGML_CONTRACT_MINOR \d+", "define GGML_CONTRACT_MINOR %d" % minor))
    edit(out_dir, "ggml.h", *((r"GGML_%sCOUNT = \d+" % kind, "GGML_%sCOUNT = %d" % (kind, n + 1))
                              for kind, n in (("OP_", ops), ("UNARY_OP_", unary), ("GLU_OP_", glu), ("TYPE_", types))))
    edit(out_dir, "op_list.inl",
         (r'(, ROPE, [^)]*\)[^G]*?)(GGML_OP_PARAM\("i32 n_dims")', r'\1GGML_OP_PARAM("f32 grown", 3, 1, %d) \2' % minor),
         (r'(, SOFT_MAX, "[^"]*", 1, )3(,.*?GGML_OP_PARAM)', r"\g<1>4\2"),
         (r'(, SOFT_MAX, .*?)(GGML_OP_PARAM)', r"\1GGML_OP_SRC(3, %d) \2" % minor),
         (r'(GGML_OP_PARAM\("i32 order")', r"GGML_OP_VALUES(0, 0, 32, 0x4, %d) \1" % minor),
         (r"#undef GGML_OP_ROW", 'GGML_OP_ROW(%d, GROWN, "grown", 1, 1, same, same, elements, 1, NONE, "none", %d, )\n'
          r"#undef GGML_OP_ROW" % (ops, minor)))
    edit(out_dir, "unary_list.inl",
         ("#undef GGML_UNARY_ROW", "GGML_UNARY_ROW(%d, GROWN, %d, )\n#undef GGML_UNARY_ROW" % (unary, minor)))
    edit(out_dir, "glu_list.inl",
         (r"(, REGLU, 0, )\)", r'\1GGML_OP_PARAM("f32 grown", 4, 1, %d))' % minor),
         ("#undef GGML_GLU_ROW", "GGML_GLU_ROW(%d, GROWN, %d, )\n#undef GGML_GLU_ROW" % (glu, minor)))
    edit(out_dir, "type_list.inl",
         ("#undef GGML_TYPE_ROW",
          'GGML_TYPE_ROW(%d, GROWN, "grown", 1, 4, false, %d)\n#undef GGML_TYPE_ROW' % (types, minor)))
    edit(out_dir, "flag_list.inl",
         ("#undef GGML_TENSOR_FLAG_ROW",
          "GGML_TENSOR_FLAG_ROW(0x8000, GROWN_HINT, %d)\nGGML_TENSOR_FLAG_ROW(0x10000, GROWN, %d)\n"
          "#undef GGML_TENSOR_FLAG_ROW" % (minor, minor)))


if __name__ == "__main__":
    main()
