package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
)

// shells are those that completion knows, each with what makes its script.
var shells = map[string]func([]completed) string{"bash": bashScript, "zsh": zshScript, "fish": fishScript}

func completionCommand() command {
	return command{
		name:  "completion",
		args:  "bash|zsh|fish",
		about: "print the shell completion of commands, flags and values",
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
		script, known := shells[rest[0]]
		if !known {
			return flags.wrong(p, wantShell)
		}
		if _, err := io.WriteString(p.stdout, script(describeAll())); err != nil {
			return exitFailed
		}
		return exitOK
	}
}

type completed struct {
	Name, About string
	Flags       []completedFlag
	Argument    values       // what its arguments are, behind a subcommand where it has them
	Runs        bool         // whether a command line follows behind --
	Subcommands []subcommand // what the first argument is one of
}

// flagsOf are the flags of a subcommand.
func (c completed) flagsOf(sub subcommand) (all []completedFlag) {
	for _, f := range c.Flags {
		if slices.Contains(sub.flags, f.Name) {
			all = append(all, f)
		}
	}
	return all
}

// subnames are its subcommands as a list of words.
func (c completed) subnames() string {
	var names []string
	for _, s := range c.Subcommands {
		names = append(names, s.name)
	}
	return strings.Join(names, " ")
}

// nameList is the commands as a list of words.
func nameList(all []completed) string {
	var names strings.Builder
	for _, c := range all {
		names.WriteString(c.Name + " ")
	}
	return names.String() + "help"
}

// flagList is the flags as a list of words.
func flagList(all []completedFlag) string {
	var names strings.Builder
	for _, f := range all {
		names.WriteString("--" + f.Name + " ")
	}
	return names.String() + "--help"
}

type completedFlag struct {
	Name, About, Placeholder string
	Valued                   bool // it takes a value
	Values                   values
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

func describeAll() []completed {
	var all []completed
	for _, c := range commands() {
		flags := newFlags(c)
		c.define(flags)
		each := completed{
			Name: c.name, About: c.about, Flags: flags.describe(),
			Argument: valuesOf(firstArgument(c.args)), Runs: strings.HasSuffix(c.args, "-- CMD..."),
		}
		if c.subcommands != nil {
			_, behind, _ := strings.Cut(c.args, " ")
			each.Subcommands, each.Argument = c.subcommands(), valuesOf(firstArgument(behind))
		}
		all = append(all, each)
	}
	return all
}

func (f *flagSet) describe() []completedFlag {
	var all []completedFlag
	for _, name := range f.order {
		placeholder, valued := f.values[name]
		each := completedFlag{name, firstClause(f.Lookup(name).Usage), placeholder, valued, valuesOf(placeholder)}
		if words := f.choices[name]; len(words) > 0 {
			each.Values = values{words: words}
			if strings.HasPrefix(each.About, words[0]) {
				each.About = "one of " + strings.Join(words, ", ")
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
	case "FILE", "JOB.yml", "CAMPAIGN.yml":
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

func bashScript(all []completed) string {
	var values, subflags, flags, subnames, arguments strings.Builder
	for _, c := range all {
		for _, f := range c.Flags {
			if f.Valued {
				fmt.Fprintf(&values, "\t'%s --%s') %s; return ;;\n", c.Name, f.Name, bashValues(f.Values))
			}
		}
		for _, s := range c.Subcommands {
			fmt.Fprintf(&subflags, "\t\t'%s %s') _agent_ci_words \"$current\" '%s'; return ;;\n", c.Name, s.name, flagList(c.flagsOf(s)))
		}
		fmt.Fprintf(&flags, "\t\t%s) _agent_ci_words \"$current\" '%s' ;;\n", c.Name, flagList(c.Flags))
		if c.Subcommands != nil {
			fmt.Fprintf(&subnames, "\t'2 %s') _agent_ci_words \"$current\" '%s'; return ;;\n", c.Name, c.subnames())
		}
		fmt.Fprintf(&arguments, "\t%s) %s ;;\n", c.Name, bashValues(c.Argument))
	}
	names := nameList(all)
	return `# bash completion for agent-ci: source <(agent-ci completion bash)
_agent_ci_files() { compopt -o default 2>/dev/null || COMPREPLY=($(compgen -f -- "$1")); }
_agent_ci_folders() { compopt -o dirnames 2>/dev/null || COMPREPLY=($(compgen -d -- "$1")); }
_agent_ci_words() { COMPREPLY=($(compgen -W "$2" -- "$1")); }
_agent_ci() {
	local IFS=$' \t\n' current=${COMP_WORDS[COMP_CWORD]} flag=${COMP_WORDS[COMP_CWORD-1]} i
	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		_agent_ci_words "$current" '` + names + `'
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
` + values.String() + `	esac
	if [[ $current == -* ]]; then
		case "${COMP_WORDS[1]} ${COMP_WORDS[2]}" in
` + subflags.String() + `		esac
		case "${COMP_WORDS[1]}" in
` + flags.String() + `		esac
		return
	fi
	case "$COMP_CWORD ${COMP_WORDS[1]}" in
` + subnames.String() + `	esac
	case "${COMP_WORDS[1]}" in
` + arguments.String() + `	help) _agent_ci_words "$current" '` + names + `' ;;
	esac
}
complete -F _agent_ci agent-ci
`
}

func bashValues(v values) string {
	words := `_agent_ci_words "$current" '` + strings.Join(v.words, " ") + "'"
	return v.pick(`_agent_ci_files "$current"`, `_agent_ci_folders "$current"`, words, ":")
}

func zshScript(all []completed) string {
	var names, commands strings.Builder
	for _, c := range all {
		fmt.Fprintf(&names, "\t\t'%s:%s'\n", c.Name, zshText.Replace(c.About))
		commands.WriteString(zshCommand(c))
	}
	return `#compdef agent-ci
# zsh completion for agent-ci: source <(agent-ci completion zsh), or this as a file _agent-ci in $fpath
_agent-ci() {
	local -a commands
	commands=(
` + names.String() + `	)
	if ((CURRENT == 2)); then
		_describe command commands
		return
	fi
	shift words
	((CURRENT--))
	case $words[1] in
` + commands.String() + `	help) _describe command commands ;;
	esac
}
if [[ $funcstack[1] == _agent-ci ]]; then _agent-ci "$@"; else compdef _agent-ci agent-ci; fi
`
}

func zshCommand(c completed) string {
	var out strings.Builder
	out.WriteString("\t" + c.Name + ")\n\t\t_arguments")
	for _, f := range c.Flags {
		if f.Valued {
			fmt.Fprintf(&out, " \\\n\t\t\t'*--%s=[%s]:%s:%s'", f.Name, zshText.Replace(f.About), zshText.Replace(f.Placeholder), zshValues(f.Values))
		} else {
			fmt.Fprintf(&out, " \\\n\t\t\t'*--%s[%s]'", f.Name, zshText.Replace(f.About))
		}
	}
	out.WriteString(" \\\n\t\t\t'--help[tell how it is called]' \\\n\t\t\t")
	if c.Subcommands != nil {
		out.WriteString("'1:subcommand:(" + c.subnames() + ")' ")
	}
	if c.Runs {
		out.WriteString("'*::command:_normal'")
	} else {
		out.WriteString("'*:argument:" + zshValues(c.Argument) + "'")
	}
	return out.String() + "\n\t\t;;\n"
}

// zshText is a text in single quotes, within brackets or between colons of a
// specification.
var zshText = strings.NewReplacer(`\`, `\\`, "[", `\[`, "]", `\]`, ":", `\:`, "'", `'\''`)

func zshValues(v values) string {
	return v.pick("_files", "_files -/", "("+strings.Join(v.words, " ")+")", " ")
}

func fishScript(all []completed) string {
	var commands strings.Builder
	for _, c := range all {
		commands.WriteString(fishCommand(c))
	}
	return `# fish completion for agent-ci: agent-ci completion fish | source
function __agent_ci_first
	test (count (commandline -opc)) -eq 1
end
function __agent_ci_is
	set -l words (commandline -opc)
	test (count $words) -ge 2; and test $words[2] = $argv[1]; and not contains -- -- $words
end
complete -c agent-ci -n 'not contains -- -- (commandline -opc)' -f
complete -c agent-ci -n 'contains -- -- (commandline -opc)' -F -a '(complete -C (commandline -ct))'
` + commands.String() + `complete -c agent-ci -n '__agent_ci_is help' -a '` + nameList(all) + `'
`
}

func fishCommand(c completed) string {
	var out strings.Builder
	is := "complete -c agent-ci -n '__agent_ci_is " + c.Name
	fmt.Fprintf(&out, "complete -c agent-ci -n __agent_ci_first -a %s -d '%s'\n", c.Name, fishText.Replace(c.About))
	switch argument := fishValues(c.Argument); {
	case c.Subcommands != nil:
		fmt.Fprintf(&out, "%s; and test (count (commandline -opc)) -eq 2' -a '%s'\n", is, c.subnames())
		fmt.Fprintf(&out, "%s; and test (count (commandline -opc)) -gt 2' %s\n", is, argument)
	case argument != "":
		fmt.Fprintf(&out, "%s' %s\n", is, argument)
	}
	for _, f := range c.Flags {
		value := ""
		if f.Valued {
			value = " -r " + fishOnly(f.Values)
		}
		fmt.Fprintf(&out, "%s' -l %s%s -d '%s'\n", is, f.Name, value, fishText.Replace(f.About))
	}
	return out.String()
}

// fishText is a text in single quotes.
var fishText = strings.NewReplacer(`\`, `\\`, "'", `\'`)

// fishOnly is what stands behind a flag and nothing else.
func fishOnly(v values) string {
	if v.files {
		return fishValues(v)
	}
	return strings.TrimSpace("-f " + fishValues(v))
}

func fishValues(v values) string {
	return v.pick("-F", "-a '(__fish_complete_directories (commandline -ct))'", "-a '"+strings.Join(v.words, " ")+"'", "")
}
