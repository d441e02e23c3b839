package main

import (
	"context"
	"fmt"
	"io"
	"strings"
)

// shells are those that completion knows, with how a script for them is made.
var shells = []struct {
	name  string
	write func([]completed) string
}{{"bash", bashCompletion}, {"zsh", zshCompletion}, {"fish", fishCompletion}}

func completionCommand() command {
	return command{
		name:  "completion",
		args:  "bash|zsh|fish",
		about: "print what lets a shell complete commands, flags and values",
		details: `
The script knows the commands and flags of this very program and starts nothing
while it completes; print it again after an update.`,
		example: `
source <(agent-ci completion bash)     # in ~/.bashrc
source <(agent-ci completion zsh)      # in ~/.zshrc, after compinit
agent-ci completion fish | source      # in ~/.config/fish/config.fish`,
		takes:  operands{1, 1, wantShell},
		define: completion,
	}
}

const wantShell = "it takes the name of a shell: bash, zsh or fish"

func completion(flags *flagSet) deed {
	return func(_ context.Context, p process, rest []string) int {
		for _, shell := range shells {
			if rest[0] != shell.name {
				continue
			}
			if _, err := io.WriteString(p.stdout, shell.write(describeAll())); err != nil {
				return exitFailed
			}
			return exitOK
		}
		return flags.wrong(p, wantShell)
	}
}

// completed is a command as a shell completes it.
type completed struct {
	name, about string
	flags       []completedFlag
	argument    values // what its first argument is
	runs        bool   // whether a command line follows behind --
}

type completedFlag struct {
	name, about, placeholder string
	bare                     bool // it takes no value
	values                   values
}

// values are what may stand somewhere: words of a closed list, else files or
// folders, else anything.
type values struct {
	words          []string
	files, folders bool
}

// pick is what a shell has for values of their kind.
func (v values) pick(files, folders, words, anything string) string {
	switch {
	case v.files:
		return files
	case v.folders:
		return folders
	case len(v.words) > 0:
		return words
	}
	return anything
}

// describeAll asks each command for its flags.
func describeAll() []completed {
	var all []completed
	for _, c := range commands() {
		flags := newFlags(c)
		c.define(flags)
		all = append(all, completed{
			name: c.name, about: c.about, flags: flags.describe(),
			argument: valuesOf(firstArgument(c.args)), runs: strings.HasSuffix(c.args, "-- CMD..."),
		})
	}
	return all
}

func (f *flagSet) describe() []completedFlag {
	var all []completedFlag
	for _, name := range f.order {
		placeholder, valued := f.values[name]
		each := completedFlag{name: name, about: firstClause(f.Lookup(name).Usage), placeholder: placeholder, bare: !valued, values: valuesOf(placeholder)}
		if words := f.choices[name]; len(words) > 0 {
			each.values = values{words: words}
			if strings.HasPrefix(each.about, words[0]) {
				each.about = "one of " + strings.Join(words, ", ")
			}
		}
		all = append(all, each)
	}
	return all
}

// firstArgument is the first word of a usage line, if it is no flag.
func firstArgument(args string) string {
	first, _, _ := strings.Cut(args, " ")
	first = strings.TrimSuffix(strings.Trim(first, "[]"), "...")
	if strings.HasPrefix(first, "-") {
		return ""
	}
	return first
}

// valuesOf reads what may stand for a placeholder of the help: lower case is
// meant as it stands.
func valuesOf(placeholder string) values {
	switch placeholder {
	case "FILE", "JOB.yml":
		return values{files: true}
	case "DIR", "RUN_DIR":
		return values{folders: true}
	}
	if placeholder == "" || strings.ToLower(placeholder) != placeholder {
		return values{}
	}
	return values{words: strings.Split(placeholder, "|")}
}

// firstClause is a usage up to where it goes into details.
func firstClause(usage string) string {
	usage, _, _ = strings.Cut(usage, "\n")
	usage, _, _ = strings.Cut(usage, " (default")
	return strings.TrimRight(usage, ";, ")
}

func names(all []completed) []string {
	list := make([]string, 0, len(all)+1)
	for _, c := range all {
		list = append(list, c.name)
	}
	return append(list, "help")
}

// quoted is a word for all three shells.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

const bashFrame = `# bash completion for agent-ci: source <(agent-ci completion bash)
_agent_ci_files() { compopt -o default 2>/dev/null || COMPREPLY=($(compgen -f -- "$1")); }
_agent_ci_folders() { compopt -o dirnames 2>/dev/null || COMPREPLY=($(compgen -d -- "$1")); }
_agent_ci_words() { COMPREPLY=($(compgen -W "$2" -- "$1")); }
_agent_ci() {
	local IFS=$' \t\n' current=${COMP_WORDS[COMP_CWORD]} flag=${COMP_WORDS[COMP_CWORD-1]} i
	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		_agent_ci_words "$current" %[1]s
		return
	fi
	# readline takes --flag=value apart
	if [[ $current == = ]]; then current=
	elif [[ $flag == = ]]; then flag=${COMP_WORDS[COMP_CWORD-2]}; fi
	for ((i = 2; i < COMP_CWORD; i++)); do
		if [[ ${COMP_WORDS[i]} == -- ]]; then
			if ((i == COMP_CWORD - 1)); then COMPREPLY=($(compgen -c -- "$current")); else _agent_ci_files "$current"; fi
			return
		fi
	done
	case "${COMP_WORDS[1]} $flag" in
%[2]s	esac
	if [[ $current == -* ]]; then
		case "${COMP_WORDS[1]}" in
%[3]s		esac
		return
	fi
	case "${COMP_WORDS[1]}" in
%[4]s	esac
}
complete -F _agent_ci agent-ci
`

func bashCompletion(all []completed) string {
	var flagValues, flagNames, arguments strings.Builder
	for _, c := range all {
		var dashed []string
		for _, f := range c.flags {
			dashed = append(dashed, "--"+f.name)
			if !f.bare {
				fmt.Fprintf(&flagValues, "\t%s) %s; return ;;\n", quoted(c.name+" --"+f.name), bashValues(f.values))
			}
		}
		fmt.Fprintf(&flagNames, "\t\t%s) _agent_ci_words \"$current\" %s ;;\n", c.name, quoted(strings.Join(append(dashed, "--help"), " ")))
		fmt.Fprintf(&arguments, "\t%s) %s ;;\n", c.name, bashValues(c.argument))
	}
	commandNames := quoted(strings.Join(names(all), " "))
	fmt.Fprintf(&arguments, "\thelp) _agent_ci_words \"$current\" %s ;;\n", commandNames)
	return fmt.Sprintf(bashFrame, commandNames, flagValues.String(), flagNames.String(), arguments.String())
}

func bashValues(v values) string {
	words := `_agent_ci_words "$current" ` + quoted(strings.Join(v.words, " "))
	return v.pick(`_agent_ci_files "$current"`, `_agent_ci_folders "$current"`, words, ":")
}

const zshFrame = `#compdef agent-ci
# zsh completion for agent-ci: source <(agent-ci completion zsh), or this as a file _agent-ci in $fpath
_agent-ci() {
	local -a commands
	commands=(
%[1]s	)
	if ((CURRENT == 2)); then
		_describe command commands
		return
	fi
	shift words
	((CURRENT--))
	case $words[1] in
%[2]s	help) _describe command commands ;;
	esac
}
if [[ $funcstack[1] == _agent-ci ]]; then _agent-ci "$@"; else compdef _agent-ci agent-ci; fi
`

// zshText is a text within brackets or between colons of a specification.
var zshText = strings.NewReplacer(`\`, `\\`, "[", `\[`, "]", `\]`, ":", `\:`)

func zshCompletion(all []completed) string {
	var described, cases strings.Builder
	for _, c := range all {
		fmt.Fprintf(&described, "\t\t%s\n", quoted(c.name+":"+zshText.Replace(c.about)))
		fmt.Fprintf(&cases, "\t%s)\n\t\t_arguments", c.name)
		for _, f := range c.flags {
			spec := "*--" + f.name + "[" + zshText.Replace(f.about) + "]"
			if !f.bare {
				spec = "*--" + f.name + "=[" + zshText.Replace(f.about) + "]:" + zshText.Replace(f.placeholder) + ":" + zshValues(f.values)
			}
			fmt.Fprintf(&cases, " \\\n\t\t\t%s", quoted(spec))
		}
		rest := "*:argument:" + zshValues(c.argument)
		if c.runs {
			rest = "*::command:_normal"
		}
		fmt.Fprintf(&cases, " \\\n\t\t\t'--help[tell how it is called]' \\\n\t\t\t%s\n\t\t;;\n", quoted(rest))
	}
	return fmt.Sprintf(zshFrame, described.String(), cases.String())
}

func zshValues(v values) string {
	return v.pick("_files", "_files -/", "("+strings.Join(v.words, " ")+")", " ")
}

const fishFrame = `# fish completion for agent-ci: agent-ci completion fish | source
function __agent_ci_first
	test (count (commandline -opc)) -eq 1
end
function __agent_ci_is
	set -l words (commandline -opc)
	test (count $words) -ge 2; and test $words[2] = $argv[1]; and not contains -- -- $words
end
complete -c agent-ci -n 'not contains -- -- (commandline -opc)' -f
complete -c agent-ci -n 'contains -- -- (commandline -opc)' -F -a '(complete -C (commandline -ct))'
`

func fishCompletion(all []completed) string {
	var s strings.Builder
	s.WriteString(fishFrame)
	for _, c := range all {
		fmt.Fprintf(&s, "complete -c agent-ci -n __agent_ci_first -a %s -d %s\n", c.name, fishQuoted(c.about))
		here := fishQuoted("__agent_ci_is " + c.name)
		if offers := fishValues(c.argument); offers != "" {
			fmt.Fprintf(&s, "complete -c agent-ci -n %s %s\n", here, offers)
		}
		for _, f := range c.flags {
			takes := ""
			if !f.bare {
				takes = " -r " + fishOnly(f.values)
			}
			fmt.Fprintf(&s, "complete -c agent-ci -n %s -l %s%s -d %s\n", here, f.name, takes, fishQuoted(f.about))
		}
	}
	fmt.Fprintf(&s, "complete -c agent-ci -n '__agent_ci_is help' -a %s\n", fishQuoted(strings.Join(names(all), " ")))
	return s.String()
}

// fishOnly is what stands behind a flag and nothing else.
func fishOnly(v values) string {
	if v.files {
		return fishValues(v)
	}
	return strings.TrimSpace("-f " + fishValues(v))
}

func fishValues(v values) string {
	return v.pick("-F", "-a '(__fish_complete_directories (commandline -ct))'", "-a "+fishQuoted(strings.Join(v.words, " ")), "")
}

// fishQuoted escapes as fish does within single quotes.
func fishQuoted(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'"
}
