package policy

import (
	"path"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/pathname"
	"github.com/agent-ci/agent-ci/policy/shell"
)

// removalContext describes where a removal runs.
type removalContext struct {
	dir           string // working directory, absolute
	unknownDir    bool   // the command line changes the working directory or HOME
	allowedByRule bool   // a rule allows the command
}

// removalRefusal returns the built-in refusal of a dangerous removal. It refuses to remove
// everything, to remove by force outside the writable folders, and by force without a sandbox.
func (c Commands) removalRefusal(command shell.Command, context removalContext) (_ refusal, dangerous bool) {
	r, ok := parseRemoval(command.Words)
	if !ok {
		return refusal{}, false
	}
	mustNotForce := r.forced && !context.allowedByRule
	refuse := func(rule, reason, remedy string) (refusal, bool) {
		return refusal{command.String(), rule, reason, remedy}, true
	}
	for _, target := range r.targets {
		targetPath, known := c.removalPath(target, context)
		switch {
		case known && c.isEverything(targetPath):
			return refuse(ruleEverything, "It would remove "+target.Text+", with everything in it",
				"Remove only the files that the task is about, each by its path below the working directory")
		case c.Sandboxed && mustNotForce && known && !c.mayWriteBelow(targetPath):
			return refuse(ruleForced, "It removes files by force outside of the writable folders: "+target.Text,
				"Remove only what is below "+c.writableFolders())
		}
	}
	if mustNotForce && !c.Sandboxed {
		return refuse(ruleForced, "Forced removals are refused where commands are not confined",
			"Use rm without -f (rm -r for a folder): it asks nothing here. Whoever runs this job can allow the command with a prefix_rule, or confine commands with policy.sandbox: workspace-write")
	}
	return refusal{}, false
}

// removal is a parsed rm.
type removal struct {
	forced  bool
	targets []shell.Word
}

// parseRemoval parses the words of an rm. ok is false for any other command, and for an rm that is neither
// forced nor recursive.
func parseRemoval(words []shell.Word) (r removal, ok bool) {
	if !words[0].Known || path.Base(words[0].Text) != "rm" {
		return removal{}, false
	}
	recursive, inOptions := false, true
	for _, word := range words[1:] {
		text := word.Text
		switch {
		case inOptions && text == "--":
			inOptions = false
		case inOptions && strings.HasPrefix(text, "--"):
			r.forced = r.forced || isAbbreviationOf(text, "--force")
			recursive = recursive || isAbbreviationOf(text, "--recursive")
		case inOptions && len(text) > 1 && text[0] == '-':
			r.forced = r.forced || strings.Contains(text, "f")
			recursive = recursive || strings.ContainsAny(text, "rR")
		default:
			r.targets = append(r.targets, word)
		}
	}
	return r, r.forced || recursive
}

// isAbbreviationOf reports whether a long option is name or an abbreviation of it.
func isAbbreviationOf(option, name string) bool {
	return len(option) > len("--") && strings.HasPrefix(name, option)
}

// removalPath returns the absolute path of a removal's target, with its globs. It accesses no file.
// known is false if the path depends on unknown values.
func (c Commands) removalPath(target shell.Word, context removalContext) (place string, known bool) {
	text := target.Text
	switch {
	case text == "~" || strings.HasPrefix(text, "~/"):
		return path.Join("/", c.Home, text[1:]), !context.unknownDir
	case strings.HasPrefix(text, "~"):
		return "/" + text, true // the home folder of another user
	case !target.Known:
		below, isHome := strings.CutPrefix(text, "$HOME")
		isWholeName := below == "" || below[0] == '/' // not $HOMEPAGE
		if isHome && isWholeName && !strings.ContainsAny(below, "$…") {
			return path.Join("/", c.Home, below), !context.unknownDir
		}
		return "", false
	case path.IsAbs(text):
		return path.Clean(text), true
	}
	return path.Join(context.dir, text), !context.unknownDir && context.dir != ""
}

// isEverything reports whether a path is the root, a folder in the root, the home folder, or the
// whole content of one of them.
func (c Commands) isEverything(place string) bool {
	whole := strings.TrimRight(place, "*.") // FOLDER/* and FOLDER/.* are the whole content
	if place != "/" {
		whole = strings.TrimSuffix(whole, "/")
	}
	isInRoot := strings.Count(whole, "/") <= 1 && !c.mayWriteBelow(place) // such as /usr; a writable folder may be there
	isHome := c.Home != "" && whole == path.Clean(c.Home)
	return isInRoot || isHome
}

// mayWriteBelow reports whether a path is inside a writable folder.
func (c Commands) mayWriteBelow(place string) bool {
	return slices.ContainsFunc(c.Writable, func(folder string) bool {
		below, ok := pathname.Below(folder, place)
		return ok && below != "."
	})
}

// writableFolders lists the writable folders for a message.
func (c Commands) writableFolders() string {
	if len(c.Writable) == 0 {
		return "a writable folder; in this run there is none"
	}
	return strings.Join(c.Writable, ", ")
}
