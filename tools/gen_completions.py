#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the completions of the tools for a shell. Their options come from where the tools have them: the text that
--help prints, a string in a source named after "Usage:".

Usage: gen_completions.py bash|zsh|fish OPERATIONS TYPES OUTPUT SOURCE..."""
import re
import sys

STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
OPTION = re.compile(r"^ {2}(?:(-\w), |    )?(--[\w-]+|-\w [A-Z](?:, -\w [A-Z])*)(?: ([A-Z=]+|result|guard))?(?: {2,}(.*))?$")


def usage_texts(path):
    """The texts that begin with "Usage:", strings next to each other joined."""
    with open(path, encoding="utf-8") as stream:
        source = stream.read()
    for start in re.finditer(r'"Usage: ', source):
        text, at = "", start.start()
        while True:
            part = STRING.match(source, at)
            if not part:
                break
            text += part.group(1).replace("\\n", "\n").replace('\\"', '"').replace("\\\\", "\\")
            at = re.compile(r"\s*").match(source, part.end()).end()
        yield text


class Command:
    def __init__(self, text):
        words = text.split("\n", 1)[0].split()
        self.tool = words[1]
        self.name = words[2] if len(words) > 2 and words[2].islower() else ""
        self.options = []   # (short, long, argument, help)
        self.rest = "DEVICE" if "[DEVICE]" in words else "FILE" if "PLUGIN" in words else \
            "COMMAND" if "COMMAND" in words or "PROGRAM" in words else ""
        for line in text.split("\n"):
            found = OPTION.match(line)
            if found and found.group(2).startswith("--"):
                short, long, argument, text_of = found.groups()
                self.add(short or "", long, argument or "", text_of or "")

    def add(self, short, long, argument, text):
        if long in (option[1] for option in self.options):
            old = next(option for option in self.options if option[1] == long)
            if old[2].islower():  # --corrupt result, --corrupt guard
                self.options[self.options.index(old)] = (old[0], long, old[2] + "|" + argument, old[3])
            return
        self.options.append((short, long, argument, text))


def values(option, lists):
    """What an option takes: ("files"|"directories"|"devices"|"words"|"text"|"", words)."""
    _, long, argument, text = option
    if not argument:
        return "", ""
    if argument.islower():
        return "words", argument.replace("|", " ")
    if long in ("--op", "--type"):
        return "words", " ".join(lists[long])
    if long == "--device" or argument == "LIST":
        return "devices", ""
    if argument in ("FILE", "PLUGIN"):
        return "files", ""
    if argument == "DIR":
        return "directories", ""
    choice = re.match(r"^([a-z]+)(?: \([^)]*\))?, ((?:[a-z]+, )*)([a-z]+) or ([a-z]+)\b", text)
    if choice:
        return "words", " ".join([choice[1], *re.findall("[a-z]+", choice[2]), choice[3], choice[4]])
    return "text", ""


def bash(commands, lists):
    # Not by `compgen -W`, which expands the words of its list: a plugin names its devices as it likes.
    out = ["# bash completion for the tools of ggml-host", "_ggml_devices_known() {",
           "    local name",
           "    while IFS= read -r name; do",
           '        [[ $name == "$cur"* ]] && COMPREPLY+=("$(printf %q "$name")")',
           "    done < <(ggml-devices --names 2>/dev/null)", "}", "",
           "# Readline quotes what it is told are names of files.",
           "_ggml_names_of() {",
           "    local name", "    compopt -o filenames 2>/dev/null",
           "    while IFS= read -r name; do",
           '        COMPREPLY+=("$name")',
           '    done < <(compgen "$1" -- "$cur")', "}", ""]
    for tool in sorted({command.tool for command in commands}):
        own = [command for command in commands if command.tool == tool]
        function = "_" + tool.replace("-", "_")
        out += [f"{function}() {{", '    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} sub=${COMP_WORDS[1]}',
                "    COMPREPLY=()"]
        subs = [command.name for command in own if command.name]
        if subs:
            out += ["    if [[ $COMP_CWORD -eq 1 ]]; then",
                    f'        COMPREPLY=($(compgen -W "{" ".join(sorted(subs))} --help --version" -- "$cur"))', "        return", "    fi"]
        out += ['    case "$sub" in' if subs else "    case x in"]
        for command in own:
            if subs and not command.name:
                continue
            out += [f"    {command.name if subs else 'x'})", '        case "$prev" in']
            for option in command.options:
                kind, words = values(option, lists)
                names = "|".join(name for name in option[:2] if name)
                if kind == "words":
                    out += [f'        {names}) COMPREPLY=($(compgen -W "{words}" -- "$cur")); return ;;']
                elif kind == "devices":
                    out += [f'        {names}) _ggml_devices_known; return ;;']
                elif kind == "files":
                    out += [f'        {names}) _ggml_names_of -f; return ;;']
                elif kind == "directories":
                    out += [f'        {names}) _ggml_names_of -d; return ;;']
                elif kind == "text":
                    out += [f"        {names}) return ;;"]
            every = " ".join(name for option in command.options for name in option[:2] if name)
            out += ["        esac", '        if [[ $cur == -* ]]; then',
                    f'            COMPREPLY=($(compgen -W "{every}" -- "$cur"))']
            if command.rest == "DEVICE":
                out += ["        else", '            _ggml_devices_known']
            elif command.rest == "FILE":
                out += ["        else", '            _ggml_names_of -f']
            elif command.rest == "COMMAND":
                out += ["        else", '            COMPREPLY=($(compgen -c -- "$cur"))']
            out += ["        fi", "        ;;"]
        out += ["    esac", "}", f"complete -F {function} {tool}", ""]
    return "\n".join(out)


def zsh_quote(text):
    """In the brackets of an argument of _arguments, which is between single quotes."""
    return re.sub(r"([\\\[\]])", r"\\\1", text).replace("'", "'\\''")


def fish_quote(text):
    return text.replace("\\", "\\\\").replace("'", "\\'")


def zsh_action(kind, words):
    return {"words": f":value:({words})", "devices": ":device:_ggml_devices_known", "files": ":file:_files",
            "directories": ":directory:_files -/", "text": ":value: ", "": ""}[kind]


def zsh(commands, lists):
    tools = sorted({command.tool for command in commands})
    out = ["#compdef " + " ".join(tools), "# zsh completion for the tools of ggml-host", "", "_ggml_devices_known() {",
           '    local -a names', '    names=(${(f)"$(ggml-devices --names 2>/dev/null)"})', "    compadd -a names", "}", "",
           'case "$service" in']
    for tool in tools:
        own = [command for command in commands if command.tool == tool]
        subs = [command.name for command in own if command.name]
        out += [f"{tool})"]
        if subs:
            out += ["    if (( CURRENT == 2 )); then", f"        compadd {' '.join(sorted(subs))} -- --help --version", "        return",
                    "    fi", '    local sub=$words[2]', "    shift words", "    (( CURRENT-- ))", '    case "$sub" in']
        for command in own:
            if subs and not command.name:
                continue
            if subs:
                out += [f"    {command.name})"]
            out += ["    _arguments \\"]
            for option in command.options:
                kind, words = values(option, lists)
                for name in (name for name in option[:2] if name):
                    out += [f"        '{name}[{zsh_quote(option[3])}]{zsh_action(kind, words)}' \\"]
            rest = {"DEVICE": "'::device:_ggml_devices_known'", "FILE": "'*:plugin:_files'", "COMMAND": "'*::program:_normal'"}
            out += ["        " + rest.get(command.rest, "'*: :'")]
            if subs:
                out += ["    ;;"]
        if subs:
            out += ["    esac"]
        out += ["    ;;"]
    return "\n".join(out + ["esac", ""])


def fish(commands, lists):
    out = ["# fish completion for the tools of ggml-host"]
    for tool in sorted({command.tool for command in commands}):
        own = [command for command in commands if command.tool == tool]
        subs = sorted(command.name for command in own if command.name)
        if not any(command.rest in ("FILE", "COMMAND") for command in own):
            out += [f"complete -c {tool} -f"]
        if subs:
            out += [f"complete -c {tool} -n __fish_use_subcommand -a '{' '.join(subs)}'"]
        for command in own:
            if subs and not command.name:
                continue
            where = f" -n '__fish_seen_subcommand_from {command.name}'" if command.name else ""
            for option in command.options:
                kind, words = values(option, lists)
                action = {"words": f" -x -a '{words}'", "devices": " -x -a '(ggml-devices --names 2>/dev/null)'",
                          "files": " -r -F", "directories": " -x -a '(__fish_complete_directories)'", "text": " -x", "": ""}[kind]
                short = f" -s {option[0][1:]}" if option[0] else ""
                out += [f"complete -c {tool}{where}{short} -l {option[1][2:]}{action} -d '{fish_quote(option[3])}'"]
            if command.rest == "DEVICE":
                out += [f"complete -c {tool} -a '(ggml-devices --names 2>/dev/null)'"]
    return "\n".join(out + [""])


def names(path, row):
    with open(path, encoding="utf-8") as stream:
        return re.findall(row, stream.read(), re.M)


def main():
    shell, operations, types, output = sys.argv[1:5]
    lists = {"--op": names(operations, r"^GGML_OP_ROW\(\d+, (\w+)"), "--type": names(types, r'^GGML_TYPE_ROW\([^"\n]*"(\w+)"')}
    if not all(lists.values()):
        sys.exit("gen_completions.py: no names in the lists")
    commands = [Command(text) for path in sys.argv[5:] for text in usage_texts(path)]
    with open(output, "w", encoding="utf-8") as stream:
        stream.write({"bash": bash, "zsh": zsh, "fish": fish}[shell](commands, lists))


if __name__ == "__main__":
    main()
