package shell

import (
	"slices"
	"strings"
)

// command records a command and reads the commands that it starts. It cannot read those of an
// unknown program.
func (r *reader) command(words []Word, from origin) {
	if r.reading.TooComplex != "" || len(words) == 0 || !r.record(words, from) || !words[0].Known {
		return
	}
	if len(from.via) > maxDepth {
		r.reading.TooComplex = "programs start one another too many times"
		return
	}
	name, args := base(words[0].Text), words[1:]
	inner := from.through(name)
	switch name {
	case "cd", "pushd", "popd", "chdir":
		r.reading.ChangesDir = true
	case "git":
		r.git(words, from)
	case "find":
		r.find(args, inner)
	case "fd", "fdfind":
		r.afterOption(args, inner, "-x", "-X", "--exec", "--exec-batch")
	case "trap":
		r.trap(args, inner)
	case "alias":
		r.aliases(args, inner)
	case "bundle", "poetry", "pipenv", "uv", "pdm", "rye", "conda", "rbenv", "pyenv", "nvm", "pnpm", "yarn", "npm", "opam":
		r.afterOption(args, inner, "exec", "run", "x", "dlx")
	default:
		r.readWrapped(name, args, inner)
	}
}

// readWrapped reads the commands started by a shell or a wrapper.
func (r *reader) readWrapped(name string, args []Word, inner origin) {
	if shells[name] {
		if script, ok := scriptOption(args); ok {
			r.readCertain(script, inner)
		}
		return
	}
	w, ok := wrappers[name]
	if !ok {
		return
	}
	s := w.skip(args)
	for _, script := range s.scripts {
		r.readCertain(script, inner)
	}
	rest := args[min(s.at, len(args)):]
	switch {
	case s.nothing: // command -v, for example, starts nothing
	case s.unsure:
		r.readFromEveryWord(args, inner)
	case w.joins:
		r.readJoined(rest, inner)
	case name == "flock" && len(rest) > 1 && rest[0].Text == "-c": // flock FILE -c SCRIPT
		r.readCertain(rest[1], inner)
	default:
		if w.appends && len(rest) > 0 {
			rest = append(rest[:len(rest):len(rest)], Word{Text: "…"}) // a copy: args must not change
		}
		r.command(rest, inner)
	}
	if name == "sudo" || name == "env" {
		r.noteMoves(args[:len(args)-len(rest)])
	}
}

// noteMoves sets ChangesDir if the options of sudo or env change the working directory or HOME.
func (r *reader) noteMoves(options []Word) {
	for _, o := range options {
		if strings.HasPrefix(o.Text, "-C") || strings.HasPrefix(o.Text, "-D") || strings.HasPrefix(o.Text, "--chdir") || strings.HasPrefix(o.Text, "HOME=") {
			r.reading.ChangesDir = true
		}
	}
}

// readCertain reads a word as a script if its text is known.
func (r *reader) readCertain(script Word, inner origin) {
	if script.Known {
		r.script(script.Text, inner)
	}
}

// readJoined reads words as one script, as eval does, if all of them are known.
func (r *reader) readJoined(words []Word, inner origin) {
	if known := (Command{Words: words}).Prefix(); len(known) == len(words) {
		r.script(strings.Join(known, " "), inner)
	}
}

// maxStarts bounds the words of a command that may begin at any of them.
const maxStarts = 200

// readFromEveryWord records a command from every word on, because the program's position is unknown.
// It also reads the script of a shell among the words.
func (r *reader) readFromEveryWord(args []Word, inner origin) {
	if len(args) > maxStarts {
		r.reading.TooComplex = "it cannot be told which of its many words is the program"
		return
	}
	for i, word := range args {
		if word.Known && !strings.HasPrefix(word.Text, "-") {
			r.record(args[i:], inner)
			if shells[base(word.Text)] {
				r.readWrapped(base(word.Text), args[i+1:], inner.through(base(word.Text)))
			}
		}
	}
}

// git records a git command again without the options before its subcommand, so that rules for
// `git push` match `git -C folder push`. It also reads the scripts of aliases (-c alias.x=!script).
func (r *reader) git(words []Word, from origin) {
	args := words[1:]
	s := gitOptions.skip(args)
	for _, arg := range args[:min(s.at, len(args))] {
		alias, isAlias := strings.CutPrefix(arg.Text, "alias.")
		if _, value, ok := strings.Cut(alias, "=!"); isAlias && ok && arg.Known {
			r.script(value, from.through("git"))
		}
	}
	if s.at >= len(args) || s.unsure {
		return
	}
	if s.at > 0 {
		r.record(append([]Word{words[0]}, args[s.at:]...), from)
	}
	r.startedByGit(args[s.at].Text, args[s.at+1:], from.through("git"))
}

// startedByGit reads commands in the arguments of git (git-submodule(1), git-bisect(1),
// git-rebase(1), git-filter-branch(1), git-difftool(1)).
func (r *reader) startedByGit(name string, args []Word, inner origin) {
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
		r.afterOption(args, inner, "run")
	case "rebase":
		r.optionScripts(args, inner, "-x", "--exec")
	case "difftool":
		r.optionScripts(args, inner, "-x", "--extcmd")
	case "filter-branch":
		r.optionScripts(args, inner, "--setup", "--env-filter", "--tree-filter", "--index-filter", "--parent-filter", "--msg-filter", "--commit-filter", "--tag-name-filter")
	}
}

// optionScripts reads the values of options as scripts: the next word, or the text after the option.
func (r *reader) optionScripts(args []Word, inner origin, options ...string) {
	for i, arg := range args {
		for _, option := range options {
			switch value, attached := strings.CutPrefix(arg.Text, option); {
			case !attached:
			case value == "" && i+1 < len(args):
				r.readCertain(args[i+1], inner)
			case strings.HasPrefix(option, "--"):
				r.readCertain(Word{strings.TrimPrefix(value, "="), arg.Known}, inner)
			default:
				r.readCertain(Word{value, arg.Known}, inner)
			}
		}
	}
}

// find reads the commands after -exec and similar options, up to ; or +.
func (r *reader) find(args []Word, inner origin) {
	for i := 0; i < len(args); i++ {
		switch args[i].Text {
		case "-exec", "-execdir", "-ok", "-okdir":
		default:
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
		r.command(words, inner)
	}
}

// afterOption reads commands in the words after the first word that is listed in options.
func (r *reader) afterOption(args []Word, inner origin, options ...string) {
	i := slices.IndexFunc(args, func(arg Word) bool { return arg.Known && slices.Contains(options, arg.Text) })
	if i >= 0 {
		r.readFromEveryWord(args[i+1:], inner)
	}
}

// trap reads the script of trap SCRIPT SIGNAL.
func (r *reader) trap(args []Word, inner origin) {
	if len(args) > 0 && args[0].Text == "--" {
		args = args[1:]
	}
	if len(args) > 1 && !strings.HasPrefix(args[0].Text, "-") {
		r.readCertain(args[0], inner)
	}
}

// aliases reads the values of alias NAME=VALUE as scripts.
func (r *reader) aliases(args []Word, inner origin) {
	for _, arg := range args {
		if _, value, ok := strings.Cut(arg.Text, "="); ok {
			r.readCertain(Word{value, arg.Known}, inner)
		}
	}
}
