# SPDX-License-Identifier: MIT
"""Measurements that nobody made, for the tests of the page that shows them: a processor, a GPU, and a device that failed."""

CASES = (  # operation, case, columns, operations, bytes
    ("MUL_MAT", "f16 m=4096 k=4096 n=1", 1, 33554432, 33587200),
    ("MUL_MAT", "q4_0 m=4096 k=4096 n=1", 1, 33554432, 9469952),
    ("MUL_MAT", "q4_0 m=4096 k=4096 n=8", 8, 268435456, 9699328),
    ("MUL_MAT", "f16 m=4096 k=4096 n=512", 512, 17179869184, 50331648),
    ("MUL_MAT", "q4_0 m=4096 k=4096 n=512", 512, 17179869184, 26214400),
    ("MUL_MAT_ID", "q4_0 2 of 8, m/4, k/4 n=512", 512, 2147483648, 12582912),
    ("OUT_PROD", "f32 1024x1024 n=512", 512, 1073741824, 8388608),
    ("FLASH_ATTN_EXT", "f16 128x4096, 32/8 heads n=1", 1, 67108864, 16793600),
    ("FLASH_ATTN_EXT", "f16 128x4096, 32/8 heads n=512", 512, 34359738368, 37748736),
    ("ADD", "f32 4096xn n=1", 1, 4096, 49152),
    ("ADD", "f32 4096xn n=512", 512, 2097152, 25165824),
    ("SILU", "f32 4096xn n=512", 512, 2097152, 16777216),
    ("RMS_NORM", "f32 4096xn n=512", 512, 8388608, 16777216),
    ("SOFT_MAX", "f32 4096xn, mask n=512", 512, 10485760, 20971520),
    ("ROPE", "f32 128x32xn n=512", 512, 16777216, 16779264),
    ("CPY", "f32 4096xn to f16 n=512", 512, 0, 12582912),
    ("GET_ROWS", "q8_0 4096xn n=512", 512, 0, 10616832),
    ("SET_ROWS", "f32 4096xn to f16 n=512", 512, 0, 12587008),
    ("CONV_2D", "f32 3x3, 64 to 64, 64x64", 1, 301989888, 2170880),
    ("IM2COL", "f32 3x3, 64, 64x64", 1, 0, 5767168),
)
SHAPES = (("0.2B", "q4_0", 94519296, 3.5e8), ("0.2B", "f16", 335544320, 3.5e8), ("1B", "q4_0", 695205888, 2.5e9))


def device(name, description, kind, flops, reads, copies, slower=1.0):
    """Everything at two thirds of the limits, or so many times as slow as that."""
    limit, memory = flops or 3e13, reads or copies
    operations = [{"op": op, "case": case, "columns": columns, "flops": work, "bytes": size, "runs": 9, "cold": columns < 16 and op[:3] == "MUL",
                   "seconds": (1e-6 + max(work / limit, size / memory) * 1.5) * slower * (1 + 0.03 * (i % 5)),
                   "median_seconds": (1e-6 + max(work / limit, size / memory) * 1.7) * slower}
                  for i, (op, case, columns, work, size) in enumerate(CASES)]
    models = [{"size": size, "type": kind_of, "prompt": 256, "context": 64, "prompt_seconds": 256 * work / limit * 1.4 * slower,
               "token_seconds": weights / memory * 1.3 * slower, "prompt_flops": 256 * work, "weight_bytes": weights}
              for size, kind_of, weights, work in SHAPES]
    return {"name": name, "description": description, "type": kind, "plugin": kind, "failure": "", "note": "", "memory_bytes": 2**35,
            "peak_flops": flops, "read_bytes_per_second": reads, "copy_bytes_per_second": copies, "launch_seconds": 2.5e-6,
            "submit_seconds": 1e-6, "operations": operations, "models": models}


def report(slower=1.0, version="0.27.0", load=0.0):
    gpu = device("Example0", "a GPU of nobody's <script>alert(1)</script> \"&", "GPU", 0, 0, 1.2e12, slower)
    gpu["note"] = "not measured: 8B q4_0: not enough memory"
    broken = dict(device("Broken0", "a device that is lost at once", "GPU", 0, 0, 1e9), operations=[], models=[],
                  failure="the device was lost </script><b>")
    return {"schema": "ggml-bench-report/1", "time": "2026-03-04T05:06:07Z", "version": version, "commit": "unknown", "threads": 8,
            "other_load": load, "quick": False, "devices": [device("CPU", "a processor of nobody's", "CPU", 8e11, 6e10, 5e10, slower), gpu, broken]}
