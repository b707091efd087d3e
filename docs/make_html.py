#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes a page of a document for people who have the installed files alone: cmark-gfm's HTML with a style, an anchor for each
rule and heading, and links to the other pages that are installed.

Usage: make_html.py CMARK_GFM DOCUMENT PAGE INSTALLED..."""
import os
import re
import subprocess
import sys

STYLE = """:root{color-scheme:light dark;--paper:#fff;--ink:#1c2126;--muted:#68717c;--line:#e3e6ea;--code:#f3f5f7;--link:#1f5fc4;--mark:#fff3c4}
@media(prefers-color-scheme:dark){:root{--paper:#0f1317;--ink:#e4e8eb;--muted:#96a1ad;--line:#28303a;--code:#1a2027;--link:#7eb0ff;--mark:#4a3d0c}}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.6 system-ui,"Noto Sans","DejaVu Sans",sans-serif}
main{max-width:52em;margin:0 auto;padding:2.5em 1.5em 5em}h1{font-size:1.8em;line-height:1.25}h2{margin-top:2.4em;border-bottom:1px solid var(--line);padding-bottom:.2em}
a{color:var(--link);text-decoration:none}a:hover{text-decoration:underline}code{background:var(--code);border-radius:4px;padding:.1em .3em;font-size:.88em}
pre{background:var(--code);border-radius:8px;padding:1em;overflow-x:auto}pre code{background:none;padding:0}table{border-collapse:collapse;display:block;overflow-x:auto}
td,th{border-bottom:1px solid var(--line);padding:.3em .9em .3em 0;text-align:left;vertical-align:top}
a.rule{color:inherit}:target{background:var(--mark);border-radius:4px}li{color:var(--ink)}"""


def anchor(match):
    """As other renderers of Markdown name a heading: its words, joined by hyphens."""
    level, text = match.groups()
    words = re.sub(r"[^\w\- ]", "", re.sub(r"<[^>]*>", "", text)).strip().lower().replace(" ", "-")
    return f'<h{level} id="{words}">{text}</h{level}>'


def main():
    cmark, document, page, installed = sys.argv[1], sys.argv[2], sys.argv[3], set(sys.argv[4:])
    body = subprocess.run([cmark, "-e", "table", "--unsafe", document], check=True, stdout=subprocess.PIPE, text=True).stdout
    body = re.sub(r"<h([1-6])>(.*?)</h\1>", anchor, body, flags=re.S)
    body = re.sub(r"<strong>(GP-\d+)\.</strong>", r'<strong id="\1"><a class="rule" href="#\1">\1</a>.</strong>', body)
    title = re.sub(r"<[^>]*>", "", re.search(r"<h1[^>]*>(.*?)</h1>", body, re.S).group(1))

    def link(match):
        name, part = match.groups()
        # What is not installed is a name.
        return f'<a href="{name[:-3]}.html{part or ""}">' if name in installed else "<a>"
    body = re.sub(r'<a href="([\w.\-/]+\.md)(#[^"]*)?">', link, body)
    with open(page, "w", encoding="utf-8") as stream:
        stream.write(f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
                     f"<title>{title}</title>\n<style>{STYLE}</style></head>\n<body><main>\n{body}</main></body></html>\n")
    if not body.strip():
        sys.exit(f"{os.path.basename(document)}: nothing came out")


main()
