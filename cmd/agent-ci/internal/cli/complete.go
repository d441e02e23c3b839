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

// anyOf returns the candidates among words that begin with prefix.
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
	if len(before) == 0 || slices.Equal(before, []string{"help"}) {
		var words []candidate
		for _, c := range commands {
			words = append(words, candidate{c.Name, c.About})
		}
		return anyOf(current, append(words, candidate{"help", "show how a command is called"})...)
	}
	for _, c := range commands {
		if c.Name == before[0] {
			return c.complete(before[1:], current)
		}
	}
	return candidates{kind: "words"}
}

// complete returns the candidates for current, the word at the cursor, after the command's words before.
func (c Command) complete(before []string, current string) candidates {
	flags := newFlags(c)
	c.Define(flags)
	if dashes := slices.Index(before, "--"); dashes >= 0 {
		startsCommand := dashes == len(before)-1 && strings.HasSuffix(c.Args, "-- CMD...")
		if startsCommand {
			return candidates{kind: "commands"}
		}
		return candidates{kind: "files"}
	}
	if flag, value, hasValue := strings.Cut(current, "="); hasValue && strings.HasPrefix(flag, "--") { // zsh and fish pass --flag=value as one word
		values := flags.completeValue(flag, value)
		for i := range values.words {
			values.words[i].word = flag + "=" + values.words[i].word
		}
		return values
	}
	if len(before) > 0 {
		previous := before[len(before)-1]
		if takesValue := flags.values[strings.TrimPrefix(previous, "--")] != ""; takesValue {
			return flags.completeValue(previous, current)
		}
	}
	if strings.HasPrefix(current, "-") {
		return anyOf(current, flags.completeFlags(before)...)
	}
	if len(c.Subcommands) == 0 {
		return completePlaceholder(firstArgument(c.Args), current)
	}
	if len(before) > 0 {
		_, argumentsAfterSubcommand, _ := strings.Cut(c.Args, " ")
		return completePlaceholder(firstArgument(argumentsAfterSubcommand), current)
	}
	var words []candidate
	for _, sub := range c.Subcommands {
		words = append(words, candidate{sub.Name, sub.About})
	}
	return anyOf(current, words...)
}

// completeFlags returns the flags that may follow the words before the cursor.
func (f *FlagSet) completeFlags(before []string) (all []candidate) {
	for _, name := range f.flagsAfter(before) {
		about, _, _ := strings.Cut(f.Lookup(name).Usage, "\n")
		all = append(all, candidate{"--" + name, about})
	}
	return append(all, candidate{"--help", "show how it is called"})
}

// completeValue returns the candidates for the value of a flag, given as --flag. begun is the part already typed.
func (f *FlagSet) completeValue(flag, begun string) candidates {
	name := strings.TrimPrefix(flag, "--")
	if len(f.choices[name]) == 0 {
		return completePlaceholder(f.values[name], begun)
	}
	return completePlaceholder(strings.Join(f.choices[name], "|"), begun)
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

// completePlaceholder returns the candidates for a placeholder of the help. A lower-case placeholder lists
// literal words, as in bash|zsh|fish.
func completePlaceholder(placeholder, begun string) candidates {
	switch placeholder {
	case "FILE", "JOB.yml", "CAMPAIGN.yml":
		return candidates{kind: "files"}
	case "DIR", "RUN_DIR":
		return candidates{kind: "folders"}
	}
	isLiteral := placeholder != "" && placeholder == strings.ToLower(placeholder)
	if !isLiteral {
		return candidates{kind: "words"}
	}
	var words []candidate
	for word := range strings.SplitSeq(placeholder, "|") {
		words = append(words, candidate{word: word})
	}
	return anyOf(begun, words...)
}
