package main

import (
	"context"
	"io"
	"slices"
	"strings"
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

func completionCommand() command {
	return command{
		name:  "completion",
		args:  "bash|zsh|fish",
		about: "print the shell completion of commands, flags and values",
		details: `
The script asks the agent-ci on your PATH for the commands, flags and values.`,
		example: `
source <(agent-ci completion bash)     # in ~/.bashrc
source <(agent-ci completion zsh)      # in ~/.zshrc, after compinit
agent-ci completion fish | source      # in ~/.config/fish/config.fish`,
		takes:  anyOperands,
		define: completion,
	}
}

func completion(flags *flagSet) runFunc {
	return func(_ context.Context, p process, rest []string) int {
		answer := ""
		switch {
		case len(rest) > 1 && rest[0] == "words":
			answer = complete(rest[1:]).String()
		case len(rest) == 1:
			answer = shells[rest[0]]
		}
		if answer == "" {
			return flags.wrong(p, "it takes the name of a shell: bash, zsh or fish")
		}
		_, err := io.WriteString(p.stdout, answer)
		return written(err)
	}
}

// candidates are the words that fit at the cursor.
type candidates struct {
	kind  string // words, files, folders or commands
	words []candidate
}

type candidate struct{ word, about string }

func (c candidates) String() string {
	text := c.kind + "\n"
	for _, each := range c.words {
		text += strings.TrimRight(each.word+"\t"+each.about, "\t") + "\n"
	}
	return text
}

// anyOf returns those of words that begin with prefix.
func anyOf(prefix string, words ...candidate) candidates {
	return candidates{"words", slices.DeleteFunc(words, func(c candidate) bool { return !strings.HasPrefix(c.word, prefix) })}
}

// complete returns the candidates for the last word of a command line. line starts after agent-ci.
func complete(line []string) candidates {
	before, current := line[:len(line)-1], line[len(line)-1]
	if current == "=" { // bash splits --flag= into two words
		current = ""
	}
	before = slices.DeleteFunc(slices.Clone(before), func(word string) bool { return word == "=" })
	if len(before) == 0 || len(before) == 1 && before[0] == "help" {
		var words []candidate
		for _, c := range commands() {
			words = append(words, candidate{c.name, c.about})
		}
		return anyOf(current, append(words, candidate{"help", "show how a command is called"})...)
	}
	i := slices.IndexFunc(commands(), func(c command) bool { return c.name == before[0] })
	if i < 0 {
		return candidates{kind: "words"}
	}
	return commands()[i].complete(before[1:], current)
}

// complete returns the candidates for current, the word at the cursor. before are the earlier words after
// the command's name.
func (c command) complete(before []string, current string) candidates {
	flags := newFlags(c)
	c.define(flags)
	name, value, valued := strings.Cut(current, "=")
	switch dashes := slices.Index(before, "--"); {
	case dashes >= 0 && dashes == len(before)-1 && strings.HasSuffix(c.args, "-- CMD..."):
		return candidates{kind: "commands"}
	case dashes >= 0:
		return candidates{kind: "files"}
	case valued && strings.HasPrefix(name, "--"): // zsh and fish pass --flag=value as one word
		of := flags.valuesOf(strings.TrimPrefix(name, "--"), value)
		for i := range of.words {
			of.words[i].word = name + "=" + of.words[i].word
		}
		return of
	case len(before) > 0 && flags.values[strings.TrimPrefix(before[len(before)-1], "--")] != "":
		return flags.valuesOf(strings.TrimPrefix(before[len(before)-1], "--"), current)
	}
	argument := c.args
	if c.subcommands != nil {
		_, argument, _ = strings.Cut(c.args, " ")
	}
	switch {
	case strings.HasPrefix(current, "-"):
		return anyOf(current, flags.words(before)...)
	case len(before) > 0 || c.subcommands == nil:
		return valuesOf(firstArgument(argument), current)
	}
	var words []candidate
	for _, sub := range c.subcommands {
		words = append(words, candidate{sub.name, sub.about})
	}
	return anyOf(current, words...)
}

// words returns the command's flags. After a subcommand it returns only that subcommand's flags.
func (f *flagSet) words(before []string) (all []candidate) {
	subcommands := f.command.subcommands
	sub := slices.IndexFunc(subcommands, func(s subcommand) bool { return len(before) > 0 && s.name == before[0] })
	for _, name := range f.order {
		if sub < 0 || slices.Contains(subcommands[sub].flags, name) {
			about, _, _ := strings.Cut(f.Lookup(name).Usage, "\n")
			all = append(all, candidate{"--" + name, about})
		}
	}
	return append(all, candidate{"--help", "show how it is called"})
}

// valuesOf returns the candidates for a flag's value. begun is the part already typed.
func (f *flagSet) valuesOf(flag, begun string) candidates {
	if len(f.choices[flag]) == 0 {
		return valuesOf(f.values[flag], begun)
	}
	return valuesOf(strings.Join(f.choices[flag], "|"), begun)
}

// firstArgument returns the first placeholder of a usage line, or "" if the line begins with a flag.
func firstArgument(args string) string {
	first, _, _ := strings.Cut(args, " ")
	first = strings.TrimSuffix(strings.Trim(first, "[]"), "...")
	if strings.HasPrefix(first, "-") {
		return ""
	}
	return first
}

// valuesOf returns the candidates for a placeholder of the help. A lower-case placeholder lists literal
// words, as in bash|zsh|fish.
func valuesOf(placeholder, begun string) candidates {
	switch placeholder {
	case "FILE", "JOB.yml", "CAMPAIGN.yml":
		return candidates{kind: "files"}
	case "DIR", "RUN_DIR":
		return candidates{kind: "folders"}
	}
	if placeholder == "" || strings.ToLower(placeholder) != placeholder {
		return candidates{kind: "words"}
	}
	var words []candidate
	for word := range strings.SplitSeq(placeholder, "|") {
		words = append(words, candidate{word: word})
	}
	return anyOf(begun, words...)
}
