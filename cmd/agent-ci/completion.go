package main

import (
	"context"
	"io"

	"github.com/agent-ci/agent-ci/cmd/agent-ci/internal/cli"
)

// shells has the completion script of each shell. A script calls agent-ci completion words with the
// command line. The first line of the answer is the kind of word at the cursor: words, files, folders or
// commands. Each further line is a word, a tab and its meaning.
var shells = map[string]string{
	"bash": `# bash completion for agent-ci: source <(agent-ci completion bash)
_agent_ci() {
	local IFS=$'\n' current=${COMP_WORDS[COMP_CWORD]} found
	found=($(command agent-ci completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
	[[ $current == = ]] && current= # readline takes --flag=value apart
	case ${found[0]} in
	files) compopt -o default 2>/dev/null || COMPREPLY=($(compgen -f -- "$current")) ;;
	folders) compopt -o dirnames 2>/dev/null || COMPREPLY=($(compgen -d -- "$current")) ;;
	commands) COMPREPLY=($(compgen -c -- "$current")) ;;
	*) COMPREPLY=("${found[@]:1}") && COMPREPLY=("${COMPREPLY[@]%%$'\t'*}") ;;
	esac
}
complete -F _agent_ci agent-ci
`,
	"zsh": `#compdef agent-ci
# zsh completion for agent-ci: source <(agent-ci completion zsh), or this as a file _agent-ci in $fpath
_agent-ci() {
	local -a found
	found=("${(@f)$(command agent-ci completion words -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
	case $found[1] in
	files) compset -P '--*='; _files ;;
	folders) compset -P '--*='; _files -/ ;;
	commands) _command_names -e ;;
	*)
		shift found
		found=("${(@)found//:/\\:}")
		found=("${(@)found/$'\t'/:}")
		_describe argument found
		;;
	esac
}
if [[ $funcstack[1] == _agent-ci ]]; then _agent-ci "$@"; else compdef _agent-ci agent-ci; fi
`,
	"fish": `# fish completion for agent-ci: agent-ci completion fish | source
function __agent_ci
	set -l words (commandline -opc)
	set -l found (command agent-ci completion words -- $words[2..] (commandline -ct) 2>/dev/null)
	switch "$found[1]"
		case files
			__fish_complete_path (commandline -ct | string replace -r '^--[a-z-]+=' '')
		case folders
			__fish_complete_directories (commandline -ct | string replace -r '^--[a-z-]+=' '')
		case commands
			complete -C (commandline -ct)
		case '*'
			printf '%s\n' $found[2..]
	end
end
complete -c agent-ci -f -a '(__agent_ci)'
`,
}

func completionCommand() cli.Command {
	return cli.Command{
		Name:  "completion",
		Args:  "bash|zsh|fish",
		About: "print the shell completion of commands, flags and values",
		Details: `
The script asks the agent-ci on your PATH for the commands, flags and values.`,
		Example: `
source <(agent-ci completion bash)     # in ~/.bashrc
source <(agent-ci completion zsh)      # in ~/.zshrc, after compinit
agent-ci completion fish | source      # in ~/.config/fish/config.fish`,
		Takes:  cli.AnyOperands,
		Define: defineCompletion,
	}
}

func defineCompletion(*cli.FlagSet) cli.RunFunc {
	return func(_ context.Context, p cli.Process, rest []string) error {
		answer := ""
		switch {
		case len(rest) > 1 && rest[0] == "words": // the shells' scripts ask for the words that may follow
			answer = cli.Complete(commands(), rest[1:]).String()
		case len(rest) == 1:
			answer = shells[rest[0]]
		}
		if answer == "" {
			return cli.Misuse("it takes the name of a shell: bash, zsh or fish")
		}
		_, err := io.WriteString(p.Stdout, answer)
		return err
	}
}
