package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/runner/task/config"

	"github.com/agent-ci/agent-ci/runner/publish/progress"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
)

// flagPrefix is the prefix of variables for flags: AGENT_CI_PROMPT_FILE is --prompt-file.
const flagPrefix = "AGENT_CI_"

// flagSet is a command's flags with explanations.
type flagSet struct {
	*flag.FlagSet
	command command
	order   []string
	values  map[string]string   // placeholder of a flag's value in the help
	choices map[string][]string // a flag's permitted values, for completion
	// variables permits AGENT_CI_ variables for flags. Only commands for runs set it: for others, such
	// a name could also mean a job key.
	variables bool
	// jobKeys lists flags that set a job key. The job key's variable serves for them.
	jobKeys []string
}

func newFlags(c command) *flagSet {
	f := &flagSet{FlagSet: flag.NewFlagSet(c.name, flag.ContinueOnError), command: c, values: map[string]string{}, choices: map[string][]string{}}
	f.SetOutput(io.Discard)
	return f
}

// text adds a flag with a text value. choices are its permitted values; without choices any text is
// accepted. Completion uses them, but only the command checks them.
func (f *flagSet) text(to *string, name, value, usage string, choices ...string) {
	f.StringVar(to, name, "", usage)
	f.order, f.values[name], f.choices[name] = append(f.order, name), value, choices
}

func (f *flagSet) boolean(to *bool, name, usage string) {
	f.BoolVar(to, name, false, usage)
	f.order = append(f.order, name)
}

// last adds --last. process.runDirectoryOrLast uses its value.
func (f *flagSet) last(to *bool) { f.boolean(to, "last", "the newest run of this machine") }

// Flags of several commands.
func (f *flagSet) quiet(to *bool) { f.boolean(to, "quiet", "no progress on standard error") }

func (f *flagSet) operatorFile(to *string) {
	f.text(to, "operator-file", "FILE", "file with the operator's hooks, outside of the checkout; no job can change them")
}

func (f *flagSet) events(to *bool) {
	f.boolean(to, "json", "print each event of the transcript as a line of JSON on standard output")
}

func (f *flagSet) session(to *string) {
	f.text(to, "replay", "FILE", "take the model's answers from a scripted session instead of the API")
}

func (f *flagSet) jobKey(to *[]string) {
	f.list(to, "set", "KEY=VALUE", "set a job key; may be repeated")
}

func (f *flagSet) list(to *[]string, name, value, usage string) {
	f.Func(name, usage, func(s string) error { *to = append(*to, s); return nil })
	f.order, f.values[name] = append(f.order, name), value
}

// parse parses the flags among the arguments. Flags missing there come from variables. done means that
// the command has finished, with status: it printed help or a mistake.
func (f *flagSet) parse(p process, args []string) (rest []string, status int, done bool) {
	rest, err := f.intersperse(args)
	if err == nil && f.variables {
		err = f.fromEnvironment(p)
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(p.stdout, f.help(rest))
		return nil, exitOK, true
	case err != nil:
		return nil, f.wrong(p, "%v", err), true
	}
	if takes := f.command.takes; len(rest) < takes.least || len(rest) > takes.most {
		return nil, f.wrong(p, "%s", cmp.Or(takes.problem, "it takes no arguments")), true
	}
	return rest, 0, false
}

// intersperse parses flags before, between and after other arguments, up to --. It returns the other
// arguments.
func (f *flagSet) intersperse(args []string) (rest []string, err error) {
	for {
		if err := f.Parse(args); err != nil {
			return rest, f.explain(err)
		}
		left := f.Args()
		if len(left) == 0 {
			return rest, nil
		}
		if len(left) < len(args) && args[len(args)-len(left)-1] == "--" {
			return append(rest, left...), nil
		}
		rest, args = append(rest, left[0]), left[1:]
	}
}

// explain rewords an error of package flag: it writes flags with two dashes and suggests a similar flag.
func (f *flagSet) explain(err error) error {
	message := err.Error()
	if name, unknown := strings.CutPrefix(message, "flag provided but not defined: -"); unknown {
		if meant := config.Nearest(name, f.order); meant != "" {
			return fmt.Errorf("there is no flag --%s; did you mean --%s?", progress.Printable(name), meant)
		}
		return fmt.Errorf("there is no flag --%s", progress.Printable(name))
	}
	if name, alone := strings.CutPrefix(message, "flag needs an argument: -"); alone {
		return fmt.Errorf("--%s needs a value, %s", name, f.values[name])
	}
	return err
}

// fromEnvironment sets flags from their variables if they are not on the command line. Flags for job keys
// are left to the job.
func (f *flagSet) fromEnvironment(p process) error {
	given := map[string]bool{}
	f.Visit(func(set *flag.Flag) { given[set.Name] = true })
	for _, name := range f.order {
		value := p.variable(variableOf(name))
		if value == "" || given[name] || slices.Contains(f.jobKeys, name) {
			continue
		}
		if err := f.Set(name, value); err != nil {
			return fmt.Errorf("%s=%s: %w", variableOf(name), value, err)
		}
	}
	return nil
}

func variableOf(flagName string) string {
	return flagPrefix + strings.ToUpper(strings.ReplaceAll(flagName, "-", "_"))
}

// reserved returns the AGENT_CI_ variables that are not job keys: those of flags and of the action.
func reserved() []string {
	names := append([]string{setVariable}, actionVariables...)
	for _, c := range []command{runCommand(), publishCommand()} {
		f := newFlags(c)
		c.define(f)
		for _, name := range f.order {
			if !slices.Contains(f.jobKeys, name) {
				names = append(names, variableOf(name))
			}
		}
	}
	return names
}

// unexpectedFlag returns a flag of the command line that is not in own, or "".
func (f *flagSet) unexpectedFlag(own []string) (name string) {
	f.Visit(func(set *flag.Flag) {
		if !slices.Contains(own, set.Name) {
			name = set.Name
		}
	})
	return name
}

// wrong prints a mistake in the command line and returns exitInvalid.
func (f *flagSet) wrong(p process, format string, args ...any) int {
	problem := outcome.ShortenNames(fmt.Sprintf(format, args...))
	if !strings.HasSuffix(problem, "?") {
		problem += "."
	}
	fmt.Fprintf(p.stderr, "agent-ci %s: %s\nRun agent-ci %s --help to see its usage.\n", f.Name(), problem, f.Name())
	return exitInvalid
}

// help returns the help of the command, or of the subcommand that rest names.
func (f *flagSet) help(rest []string) string {
	c, order, subcommands := f.command, f.order, f.command.subcommands
	if i := slices.IndexFunc(subcommands, func(sub subcommand) bool { return len(rest) > 0 && sub.name == rest[0] }); i >= 0 {
		sub := subcommands[i]
		c.args, c.about, c.details, c.example = sub.name+" "+sub.args, sub.about, sub.details, sub.example
		order = slices.DeleteFunc(slices.Clone(order), func(name string) bool { return !slices.Contains(sub.flags, name) })
		subcommands = nil
	}
	var s strings.Builder
	fmt.Fprintf(&s, "%s\n\nUsage:\n  agent-ci %s\n", c.about, strings.TrimSpace(c.name+" "+c.args))
	if len(subcommands) > 0 {
		s.WriteString("\nSubcommands:\n")
	}
	for _, sub := range subcommands {
		fmt.Fprintf(&s, "  %-9s %s\n", sub.name, sub.about)
	}
	if c.details != "" {
		fmt.Fprintf(&s, "\n%s\n", strings.TrimSpace(c.details))
	}
	if len(order) > 0 {
		s.WriteString("\nFlags:\n")
	}
	for _, name := range order {
		title := strings.TrimSpace("--" + name + " " + f.values[name])
		fmt.Fprintf(&s, "  %-20s %s\n", title, strings.ReplaceAll(f.Lookup(name).Usage, "\n", "\n"+strings.Repeat(" ", 23)))
	}
	fmt.Fprintf(&s, "\nExample:\n  %s\n", strings.ReplaceAll(strings.TrimSpace(c.example), "\n", "\n  "))
	return s.String()
}
