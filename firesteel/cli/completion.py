"""Prints what a shell needs to complete this command: its commands and options, and the names of jobs.

eval "$(firesteel completion bash)"        # in ~/.bashrc
eval "$(firesteel completion zsh)"         # in ~/.zshrc
firesteel completion fish | source         # in ~/.config/fish/config.fish
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping

__all__ = ["HELP", "configure", "run", "words_of"]

HELP = "print the completion for bash, zsh or fish"

WITH_JOB = ("status", "info", "metrics", "checkpoints", "exceptions", "logs", "savepoint", "stop", "cancel")

_BASH = """\
_firesteel() {
    local word="${COMP_WORDS[COMP_CWORD]}" command="${COMP_WORDS[1]}" words=""
    if [ "$COMP_CWORD" -eq 1 ]; then
        words="%(commands)s"
    else
        case "$command" in
%(cases)s
        esac
        case "$command" in
            %(jobs)s)
                [ "${word#-}" = "$word" ] && words="$words $(firesteel completion --jobs 2>/dev/null)" ;;
            run|submit|plan)
                [ "${word#-}" = "$word" ] && { COMPREPLY=($(compgen -f -- "$word")); return; } ;;
        esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -F _firesteel firesteel
"""


def configure(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("shell", nargs="?", choices=("bash", "zsh", "fish"))
    what.add_argument("--jobs", action="store_true", help="print the names and ids of jobs, for the completion itself")


def run(options: argparse.Namespace) -> int:
    if options.jobs:
        print("\n".join(_jobs()))
        return 0
    # Here: the list of commands has this one in it.
    from firesteel.cli import _parser

    words = words_of(_parser())
    if options.shell == "fish":
        print(_fish(words))
        return 0
    cases = "\n".join(f'            {name}) words="{" ".join(more)}" ;;' for name, more in words.items())
    script = _BASH % {"commands": " ".join(words), "cases": cases, "jobs": "|".join(WITH_JOB)}
    print(("autoload -Uz bashcompinit && bashcompinit\n" if options.shell == "zsh" else "") + script, end="")
    return 0


def _fish(words: Mapping[str, list[str]]) -> str:
    lines = ["complete -c firesteel -f"]
    for name, more in words.items():
        lines.append(f"complete -c firesteel -n __fish_use_subcommand -a {name}")
        seen = f"__fish_seen_subcommand_from {name}"
        for word in more:
            kind = "-l" if word.startswith("--") else "-s" if word.startswith("-") else "-a"
            lines.append(f'complete -c firesteel -n "{seen}" {kind} {word.lstrip("-")}')
    with_job = f"__fish_seen_subcommand_from {' '.join(WITH_JOB)}"
    lines.append(f'complete -c firesteel -n "{with_job}" -a "(firesteel completion --jobs)"')
    lines.append('complete -c firesteel -n "__fish_seen_subcommand_from run submit plan" -F')
    return "\n".join(lines)


def words_of(parser: argparse.ArgumentParser) -> dict[str, list[str]]:
    """By command what may follow it."""
    found: dict[str, list[str]] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, own in action.choices.items():
                inner = words_of(own)
                options = [word for one in own._actions for word in one.option_strings]
                found[name] = [*inner, *dict.fromkeys([*options, *(word for more in inner.values() for word in more)])]
    return found


def _jobs() -> list[str]:
    from firesteel.cluster.client import ClusterClient
    from firesteel.jobs import list_jobs

    client = ClusterClient.find()
    known = [] if client is None else [(one["id"], one["name"]) for one in client.jobs()]
    known += [(job.id, job.name) for group in list_jobs() for job in group]
    # A name with blanks would be several words.
    return list(dict.fromkeys(word for pair in known for word in pair if not any(letter.isspace() for letter in word)))
