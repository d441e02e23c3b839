package cli

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/runner/publish/progress"
	"github.com/agent-ci/agent-ci/runner/task/config"
)

// FlagPrefix is the prefix of variables for flags: AGENT_CI_PROMPT_FILE is --prompt-file.
const FlagPrefix = "AGENT_CI_"

// FlagSet is a command's flags with explanations.
type FlagSet struct {
	*flag.FlagSet
	command Command
	order   []string
	values  map[string]string   // placeholder of a flag's value in the help
	choices map[string][]string // a flag's permitted values, for completion
	// FromVariables permits AGENT_CI_ variables for flags. Only commands for runs set it: for others, such
	// a name could also mean a job key.
	FromVariables bool
	// JobKeys lists flags that set a job key. The job key's variable serves for them.
	JobKeys []string
}

func newFlags(c Command) *FlagSet {
	f := &FlagSet{FlagSet: flag.NewFlagSet(c.Name, flag.ContinueOnError), command: c, values: map[string]string{}, choices: map[string][]string{}}
	f.SetOutput(io.Discard)
	return f
}

// Text adds a flag with a text value. choices are its permitted values; without choices any text is
// accepted. Completion uses choices, but only the command checks them.
func (f *FlagSet) Text(to *string, name, value, usage string, choices ...string) {
	f.StringVar(to, name, "", usage)
	f.order, f.values[name], f.choices[name] = append(f.order, name), value, choices
}

// Boolean adds a flag without a value.
func (f *FlagSet) Boolean(to *bool, name, usage string) {
	f.BoolVar(to, name, false, usage)
	f.order = append(f.order, name)
}

// List adds a flag that may be repeated. choices are as for text.
func (f *FlagSet) List(to *[]string, name, value, usage string, choices ...string) {
	f.Func(name, usage, func(s string) error { *to = append(*to, s); return nil })
	f.order, f.values[name], f.choices[name] = append(f.order, name), value, choices
}

// Last adds --last.
func (f *FlagSet) Last(to *bool) { f.Boolean(to, "last", "the newest run of this machine") }

// Quiet adds --quiet.
func (f *FlagSet) Quiet(to *bool) { f.Boolean(to, "quiet", "no progress on standard error") }

// OperatorFile adds --operator-file.
func (f *FlagSet) OperatorFile(to *string) {
	f.Text(to, "operator-file", "FILE", "file with the operator's hooks, outside of the checkout; no job can change them")
}

// JSONEvents adds --json of commands for runs.
func (f *FlagSet) JSONEvents(to *bool) {
	f.Boolean(to, "json", "print each event of the transcript as a line of JSON on standard output")
}

// Replay adds --replay.
func (f *FlagSet) Replay(to *string) {
	f.Text(to, "replay", "FILE", "take the model's answers from a scripted session instead of the API")
}

// Assignments adds --set.
func (f *FlagSet) Assignments(to *[]string) {
	f.List(to, "set", "KEY=VALUE", "set a job key; may be repeated")
}

// parse parses the flags among the arguments, and returns the other arguments. With FromVariables, variables set the
// flags that are not among the arguments. The error is flag.ErrHelp if the arguments ask for help.
func (f *FlagSet) parse(p Process, args []string) (rest []string, err error) {
	rest, err = f.parseInterspersed(args)
	if err == nil && f.FromVariables {
		err = f.setFromVariables(p)
	}
	takes := f.command.Takes
	switch {
	case errors.Is(err, flag.ErrHelp):
		return rest, err
	case err != nil:
		return rest, Misuse("%w", err)
	case len(rest) < takes.Least || len(rest) > takes.Most:
		return rest, Misuse("%s", cmp.Or(takes.Problem, "it takes no arguments"))
	}
	return rest, nil
}

// parseInterspersed parses flags before, between and after other arguments, up to --. It returns the others.
func (f *FlagSet) parseInterspersed(args []string) (rest []string, err error) {
	for {
		if err := f.Parse(args); err != nil {
			return rest, f.rewordError(err)
		}
		unparsed := f.Args()
		if len(unparsed) == 0 {
			return rest, nil
		}
		parsed := args[:len(args)-len(unparsed)]
		if len(parsed) > 0 && parsed[len(parsed)-1] == "--" {
			return append(rest, unparsed...), nil
		}
		rest, args = append(rest, unparsed[0]), unparsed[1:]
	}
}

// rewordError rewords an error of package flag: it writes flags with two dashes and suggests a similar flag.
func (f *FlagSet) rewordError(err error) error {
	message := err.Error()
	if name, unknown := strings.CutPrefix(message, "flag provided but not defined: -"); unknown {
		if meant := config.Nearest(name, f.order); meant != "" {
			return fmt.Errorf("there is no flag --%s; did you mean --%s?", progress.Printable(name), meant)
		}
		return fmt.Errorf("there is no flag --%s", progress.Printable(name))
	}
	if name, lacksValue := strings.CutPrefix(message, "flag needs an argument: -"); lacksValue {
		return fmt.Errorf("--%s needs a value, %s", name, f.values[name])
	}
	if mistake, isBoolean := strings.CutPrefix(message, "invalid boolean value "); isBoolean {
		value, name, _ := strings.Cut(strings.TrimSuffix(mistake, ": parse error"), " for -")
		return fmt.Errorf("--%s is true or false, not %s", name, progress.Printable(value))
	}
	return err
}

// setFromVariables sets flags that are not on the command line from their variables, except flags for job keys.
func (f *FlagSet) setFromVariables(p Process) error {
	onCommandLine := map[string]bool{}
	f.Visit(func(set *flag.Flag) { onCommandLine[set.Name] = true })
	for _, name := range f.order {
		value := p.Variable(variableOf(name))
		if value == "" || onCommandLine[name] || slices.Contains(f.JobKeys, name) {
			continue
		}
		if err := f.Set(name, value); err != nil { // only boolean flags refuse a value
			return fmt.Errorf("%s is true or false, not %q", variableOf(name), value)
		}
	}
	return nil
}

func variableOf(flagName string) string {
	return FlagPrefix + strings.ToUpper(strings.ReplaceAll(flagName, "-", "_"))
}

// flagsAfter returns the names of the flags that may follow words of a command line: the flags of the subcommand that
// the words begin with, or all flags without a subcommand.
func (f *FlagSet) flagsAfter(words []string) []string {
	sub := f.command.subcommand(words)
	if sub == nil {
		return f.order
	}
	return slices.DeleteFunc(slices.Clone(f.order), func(name string) bool { return !slices.Contains(sub.Flags, name) })
}

// UnexpectedFlag returns the name of a given flag that is not in permitted, or "" if there is none.
func (f *FlagSet) UnexpectedFlag(permitted []string) (name string) {
	f.Visit(func(set *flag.Flag) {
		if !slices.Contains(permitted, set.Name) {
			name = set.Name
		}
	})
	return name
}

// helpText returns the help of the command, or of the subcommand that rest names.
func (f *FlagSet) helpText(rest []string) string {
	c, flags := f.command, f.flagsAfter(rest)
	if sub := c.subcommand(rest); sub != nil {
		c.Args, c.About, c.Details, c.Example, c.Subcommands = sub.Name+" "+sub.Args, sub.About, sub.Details, sub.Example, nil
	}
	var s strings.Builder
	fmt.Fprintf(&s, "%s\n\nUsage:\n  agent-ci %s\n", c.About, strings.TrimSpace(c.Name+" "+c.Args))
	if len(c.Subcommands) > 0 {
		s.WriteString("\nSubcommands:\n")
	}
	for _, sub := range c.Subcommands {
		fmt.Fprintf(&s, "  %-9s %s\n", sub.Name, sub.About)
	}
	if c.Details != "" {
		fmt.Fprintf(&s, "\n%s\n", strings.TrimSpace(c.Details))
	}
	if len(flags) > 0 {
		s.WriteString("\nFlags:\n")
	}
	for _, name := range flags {
		title := strings.TrimSpace("--" + name + " " + f.values[name])
		fmt.Fprintf(&s, "  %-20s %s\n", title, strings.ReplaceAll(f.Lookup(name).Usage, "\n", "\n"+strings.Repeat(" ", 23)))
	}
	fmt.Fprintf(&s, "\nExample:\n  %s\n", strings.ReplaceAll(strings.TrimSpace(c.Example), "\n", "\n  "))
	return s.String()
}
