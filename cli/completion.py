"""`cardquota completion`: what a shell offers behind the TAB key."""

import argparse
from collections.abc import Iterator, Mapping
from typing import Final

HELP = "completion for a shell"
DESCRIPTION = """\
Prints a script that has a shell complete commands, flags and their values.
"""
EPILOG = """\
examples:
  source <(cardquota completion bash)                                        in ~/.bashrc
  source <(cardquota completion zsh)                                         in ~/.zshrc, after compinit
  cardquota completion fish > ~/.config/fish/completions/cardquota.fish
"""

_BASH: Final = """\
_cardquota() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" previous="" command="" word
    ((COMP_CWORD > 0)) && previous="${{COMP_WORDS[COMP_CWORD-1]}}"
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        case "$word" in -*) ;; *) command="$word"; break ;; esac
    done
    case "$command:$previous" in
{values}
    esac
    case "$command" in
{flags}
    *) COMPREPLY=($(compgen -W "{commands} --help --version" -- "$current")) ;;
    esac
}}
complete -o default -F _cardquota cardquota
"""
_ZSH: Final = "autoload -U +X bashcompinit && bashcompinit\n"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), metavar="SHELL", help="bash, zsh or fish")


def run(options: argparse.Namespace) -> int:
    """Prints the script."""
    from cli.main import parser

    commands = dict(_commands(parser()))
    if options.shell == "fish":
        print("\n".join(_fish(commands)))
    else:
        print((_ZSH if options.shell == "zsh" else "") + _bash(commands), end="")
    return 0


def _commands(top: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for action in top._actions:  # noqa: SLF001 - argparse shows its parts nowhere else
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            yield from action.choices.items()


def _actions(command: argparse.ArgumentParser) -> list[argparse.Action]:
    return [action for action in command._actions if action.help is not argparse.SUPPRESS]  # noqa: SLF001


def _words(action: argparse.Action) -> list[str]:
    return [str(choice) for choice in action.choices or ()]


def _bash(commands: Mapping[str, argparse.ArgumentParser]) -> str:
    values, flags = [], []
    for name, command in commands.items():
        offered: list[str] = []
        for action in _actions(command):
            if not action.option_strings:
                offered += _words(action)
                continue
            offered += action.option_strings
            if _words(action):
                places = "|".join(f"{name}:{flag}" for flag in action.option_strings)
                reply = f'COMPREPLY=($(compgen -W "{" ".join(_words(action))}" -- "$current")); return'
                values.append(f"    {places}) {reply} ;;")
            elif action.nargs != 0:
                # A value of the user's, most often a file: left to the shell.
                places = "|".join(f"{name}:{flag}" for flag in action.option_strings)
                values.append(f"    {places}) return ;;")
        flags.append(f'    {name}) COMPREPLY=($(compgen -W "{" ".join(offered)}" -- "$current")) ;;')
    return _BASH.format(values="\n".join(values), flags="\n".join(flags), commands=" ".join(commands))


def _fish(commands: Mapping[str, argparse.ArgumentParser]) -> Iterator[str]:
    some = " ".join(commands)
    yield f"complete -c cardquota -f -n 'not __fish_seen_subcommand_from {some}' -a '{some}'"
    for name, command in commands.items():
        seen = f"complete -c cardquota -n '__fish_seen_subcommand_from {name}'"
        for action in _actions(command):
            flags = "".join(
                f" -l {flag[2:]}" if flag.startswith("--") else f" -s {flag[1:]}"
                for flag in action.option_strings
            )
            words = f" -x -a '{' '.join(_words(action))}'" if _words(action) else ""
            takes = " -r" if action.option_strings and not words and action.nargs != 0 else ""
            if flags or words:
                yield f"{seen}{flags}{words}{takes}"
