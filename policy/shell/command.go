package shell

import (
	"slices"
	"strings"
)

// readCommand records a command and reads the commands that it starts. It cannot read those of an
// unknown program.
func (r *reader) readCommand(words []Word, from origin) {
	if r.reading.TooComplex != "" || len(words) == 0 {
		return
	}
	if isRecorded := r.recordCommand(words, from); !isRecorded || !words[0].Known {
		return
	}
	if len(from.via) > maxDepth {
		r.reading.TooComplex = "programs start one another too many times"
		return
	}
	name, args := programName(words[0].Text), words[1:]
	inner := from.startedBy(name)
	switch name {
	case "cd", "pushd", "popd", "chdir":
		r.reading.ChangesDir = true
	case "git":
		r.readGit(words, from)
	case "find":
		r.readFind(args, inner)
	case "fd", "fdfind":
		r.readAfterOption(args, inner, "-x", "-X", "--exec", "--exec-batch")
	case "trap":
		r.readTrap(args, inner)
	case "alias":
		r.readAliases(args, inner)
	case "bundle", "poetry", "pipenv", "uv", "pdm", "rye", "conda", "rbenv", "pyenv", "nvm", "pnpm", "yarn", "npm", "opam":
		r.readAfterOption(args, inner, "exec", "run", "x", "dlx")
	default:
		r.readWrapped(name, args, inner)
	}
}

// readWrapped reads the commands started by a shell or a wrapper.
func (r *reader) readWrapped(name string, args []Word, inner origin) {
	if slices.Contains(shells, name) {
		if script, ok := inlineScript(args); ok {
			r.readIfKnown(script, inner)
		}
		return
	}
	wrapper, ok := wrapperNamed(name)
	if !ok {
		return
	}
	start := wrapper.locateCommand(args)
	for _, script := range start.scripts {
		r.readIfKnown(script, inner)
	}
	rest := args[min(start.index, len(args)):]
	switch {
	case start.startsNothing: // command -v, for example, starts nothing
	case start.isUnsure:
		r.readFromEveryWord(args, inner)
	case wrapper.joinsWords:
		r.readJoined(rest, inner)
	case name == "flock" && len(rest) > 1 && rest[0].Text == "-c": // flock FILE -c SCRIPT
		r.readIfKnown(rest[1], inner)
	default:
		if wrapper.appendsArguments && len(rest) > 0 {
			rest = append(rest[:len(rest):len(rest)], Word{Text: "…"}) // a copy: args must not change
		}
		r.readCommand(rest, inner)
	}
	if name == "sudo" || name == "env" {
		r.noteChangedFolder(args[:len(args)-len(rest)])
	}
}

// noteChangedFolder sets ChangesDir if the options of sudo or env change the working directory or HOME.
func (r *reader) noteChangedFolder(options []Word) {
	for _, o := range options {
		if strings.HasPrefix(o.Text, "-C") || strings.HasPrefix(o.Text, "-D") || strings.HasPrefix(o.Text, "--chdir") || strings.HasPrefix(o.Text, "HOME=") {
			r.reading.ChangesDir = true
		}
	}
}

// readIfKnown reads a word as a script if its text is known.
func (r *reader) readIfKnown(script Word, inner origin) {
	if script.Known {
		r.readScript(script.Text, inner)
	}
}

// readJoined reads words as one script, as eval does, if all of them are known.
func (r *reader) readJoined(words []Word, inner origin) {
	if known := (Command{Words: words}).Prefix(); len(known) == len(words) {
		r.readScript(strings.Join(known, " "), inner)
	}
}

// maxPossibleStarts bounds the words of a command that may begin at any of them.
const maxPossibleStarts = 200

// readFromEveryWord records a command from every word on, because the program's position is unknown.
// It also reads the script of a shell among the words.
func (r *reader) readFromEveryWord(args []Word, inner origin) {
	if len(args) > maxPossibleStarts {
		r.reading.TooComplex = "it cannot be told which of its many words is the program"
		return
	}
	for i, word := range args {
		if word.Known && !strings.HasPrefix(word.Text, "-") {
			r.recordCommand(args[i:], inner)
			if slices.Contains(shells, programName(word.Text)) {
				r.readWrapped(programName(word.Text), args[i+1:], inner.startedBy(programName(word.Text)))
			}
		}
	}
}

// readGit records a git command again without the options before its subcommand, so that rules for
// `git push` match `git -C folder push`. It also reads the scripts of aliases (-c alias.x=!script).
func (r *reader) readGit(words []Word, from origin) {
	args := words[1:]
	start := gitOptions.locateCommand(args)
	for _, arg := range args[:min(start.index, len(args))] {
		alias, isAlias := strings.CutPrefix(arg.Text, "alias.")
		if _, value, ok := strings.Cut(alias, "=!"); isAlias && ok && arg.Known {
			r.readScript(value, from.startedBy("git"))
		}
	}
	if start.index >= len(args) || start.isUnsure {
		return
	}
	if start.index > 0 {
		r.recordCommand(append([]Word{words[0]}, args[start.index:]...), from)
	}
	r.readGitArguments(args[start.index].Text, args[start.index+1:], from.startedBy("git"))
}

// readGitArguments reads commands in the arguments of git (git-submodule(1), git-bisect(1),
// git-rebase(1), git-filter-branch(1), git-difftool(1)).
func (r *reader) readGitArguments(name string, args []Word, inner origin) {
	switch name {
	case "submodule":
		if i := slices.IndexFunc(args, func(w Word) bool { return w.Text == "foreach" }); i >= 0 {
			args = args[i+1:]
			for len(args) > 0 && strings.HasPrefix(args[0].Text, "-") {
				args = args[1:]
			}
			r.readJoined(args, inner)
		}
	case "bisect":
		r.readAfterOption(args, inner, "run")
	case "rebase":
		r.readOptionScripts(args, inner, "-x", "--exec")
	case "difftool":
		r.readOptionScripts(args, inner, "-x", "--extcmd")
	case "filter-branch":
		r.readOptionScripts(args, inner, "--setup", "--env-filter", "--tree-filter", "--index-filter", "--parent-filter", "--msg-filter", "--commit-filter", "--tag-name-filter")
	}
}

// readOptionScripts reads the values of options as scripts: the next word, or the text after the option.
func (r *reader) readOptionScripts(args []Word, inner origin, options ...string) {
	for i, arg := range args {
		for _, option := range options {
			switch value, attached := strings.CutPrefix(arg.Text, option); {
			case !attached: // another word
			case value == "" && i+1 < len(args):
				r.readIfKnown(args[i+1], inner)
			case strings.HasPrefix(option, "--"):
				r.readIfKnown(Word{strings.TrimPrefix(value, "="), arg.Known}, inner)
			default:
				r.readIfKnown(Word{value, arg.Known}, inner)
			}
		}
	}
}

// readFind reads the commands after -exec and similar options, up to ; or +.
func (r *reader) readFind(args []Word, inner origin) {
	for i := 0; i < len(args); i++ {
		if !slices.Contains([]string{"-exec", "-execdir", "-ok", "-okdir"}, args[i].Text) {
			continue
		}
		var words []Word
		for i++; i < len(args) && args[i].Text != ";" && args[i].Text != "+"; i++ {
			word := args[i]
			if strings.Contains(word.Text, "{}") {
				word = Word{Text: word.Text} // find replaces {} by an unknown path
			}
			words = append(words, word)
		}
		r.readCommand(words, inner)
	}
}

// readAfterOption reads commands in the words after the first word that is listed in options.
func (r *reader) readAfterOption(args []Word, inner origin, options ...string) {
	i := slices.IndexFunc(args, func(arg Word) bool { return arg.Known && slices.Contains(options, arg.Text) })
	if i >= 0 {
		r.readFromEveryWord(args[i+1:], inner)
	}
}

// readTrap reads the script of trap SCRIPT SIGNAL.
func (r *reader) readTrap(args []Word, inner origin) {
	if len(args) > 0 && args[0].Text == "--" {
		args = args[1:]
	}
	if len(args) > 1 && !strings.HasPrefix(args[0].Text, "-") {
		r.readIfKnown(args[0], inner)
	}
}

// readAliases reads the values of alias NAME=VALUE as scripts.
func (r *reader) readAliases(args []Word, inner origin) {
	for _, arg := range args {
		if _, value, ok := strings.Cut(arg.Text, "="); ok {
			r.readIfKnown(Word{value, arg.Known}, inner)
		}
	}
}
