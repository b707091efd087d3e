# SPDX-License-Identifier: MIT
"""The rows of tools/real-programs, which sets up what they need and calls this."""
import argparse
import sys

import bench
import harness
import rows_api  # noqa: F401 each adds its rows
import rows_foreign  # noqa: F401
import rows_ggml  # noqa: F401
import rows_models  # noqa: F401
import rows_perplexity  # noqa: F401
import rows_quantize  # noqa: F401
import rows_server  # noqa: F401
import rows_whisper  # noqa: F401


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--bench", action="store_true")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--json")
    for name in ("--root", "--home", "--build", "--results"):
        parser.add_argument(name)
    options = parser.parse_args()
    if options.list:
        for name, only_all, _ in harness.ROWS:
            print(name + ("  (--all)" if only_all else ""))
        return 0
    context = harness.Context(options.root, options.home, options.build, options.results, options.all)
    if options.bench:
        bench.run(context, options.only, options.json)
        return 0
    return 1 if harness.run_rows(context, options.only, options.json) else 0


if __name__ == "__main__":
    sys.exit(main())
