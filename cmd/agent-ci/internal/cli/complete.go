package cli

import (
	"slices"
	"strings"
)

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

// Complete returns the candidates for the last word of a command line. line starts after agent-ci.
func Complete(commands []Command, line []string) candidates {
	before, current := line[:len(line)-1], line[len(line)-1]
	if current == "=" { // bash splits --flag= into two words
		current = ""
	}
	before = slices.DeleteFunc(slices.Clone(before), func(word string) bool { return word == "=" })
	if len(before) == 0 || len(before) == 1 && before[0] == "help" {
		var words []candidate
		for _, c := range commands {
			words = append(words, candidate{c.Name, c.About})
		}
		return anyOf(current, append(words, candidate{"help", "show how a command is called"})...)
	}
	i := slices.IndexFunc(commands, func(c Command) bool { return c.Name == before[0] })
	if i < 0 {
		return candidates{kind: "words"}
	}
	return commands[i].complete(before[1:], current)
}

// complete returns the candidates for current, the word at the cursor. before are the earlier words after
// the command's name.
func (c Command) complete(before []string, current string) candidates {
	flags := newFlags(c)
	c.Define(flags)
	name, value, valued := strings.Cut(current, "=")
	switch dashes := slices.Index(before, "--"); {
	case dashes >= 0 && dashes == len(before)-1 && strings.HasSuffix(c.Args, "-- CMD..."):
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
	argument := c.Args
	if c.Subcommands != nil {
		_, argument, _ = strings.Cut(c.Args, " ")
	}
	switch {
	case strings.HasPrefix(current, "-"):
		return anyOf(current, flags.words(before)...)
	case len(before) > 0 || c.Subcommands == nil:
		return valuesOf(firstArgument(argument), current)
	}
	var words []candidate
	for _, sub := range c.Subcommands {
		words = append(words, candidate{sub.Name, sub.About})
	}
	return anyOf(current, words...)
}

// words returns the command's flags. After a subcommand it returns only that subcommand's flags.
func (f *FlagSet) words(before []string) (all []candidate) {
	subcommands := f.command.Subcommands
	sub := slices.IndexFunc(subcommands, func(s Subcommand) bool { return len(before) > 0 && s.Name == before[0] })
	for _, name := range f.order {
		if sub < 0 || slices.Contains(subcommands[sub].Flags, name) {
			about, _, _ := strings.Cut(f.Lookup(name).Usage, "\n")
			all = append(all, candidate{"--" + name, about})
		}
	}
	return append(all, candidate{"--help", "show how it is called"})
}

// valuesOf returns the candidates for a flag's value. begun is the part already typed.
func (f *FlagSet) valuesOf(flag, begun string) candidates {
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
