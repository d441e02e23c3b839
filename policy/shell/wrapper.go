package shell

import (
	"slices"
	"strings"
)

// wrapper describes a program that starts another program from its arguments.
type wrapper struct {
	flags         string // short options without a value
	valueOptions  string // short options with one
	scriptOptions string // short options whose value is a script
	longOptions   string // long options; those with a value end in =
	// acceptsDigits permits options like -10.
	acceptsDigits bool
	// acceptsAssignments permits NAME=value before the command.
	acceptsAssignments bool
	// operands is the number of words between the options and the command.
	operands int
	// appendsArguments marks programs that add unknown arguments to the command, like xargs.
	appendsArguments bool
	// joinsWords marks programs that run the joined words as a script, like eval.
	joinsWords bool
	// noStartOptions lists short options that suppress the start.
	noStartOptions string
	// hasUnknownOptions marks programs with unknown options: the command may begin at any word.
	hasUnknownOptions bool
}

// shells lists programs with an option -c for a script.
// In the second line are those with another grammar, whose simple commands look the same.
var shells = strings.Fields(`
	sh bash dash zsh ksh mksh ash rbash yash posh
	fish csh tcsh elvish nu xonsh pwsh
`)

// unknownWrappers lists the wrappers whose options are all unknown.
var unknownWrappers = strings.Fields(`
	strace ltrace gdb valgrind perf unshare nsenter setpriv capsh prlimit chrt numactl fakeroot bwrap firejail systemd-run pkexec
	gosu su-exec tini dbus-run-session xvfb-run unbuffer parallel setarch linux64 bunx uvx entr hyperfine direnv mise dotenv chpst catchsegv
`)

// wrapperNamed returns the wrapper with a program's name.
func wrapperNamed(name string) (w wrapper, ok bool) {
	if slices.Contains(unknownWrappers, name) {
		return wrapper{hasUnknownOptions: true}, true
	}
	w, ok = wrappers[name]
	return w, ok
}

var wrappers = map[string]wrapper{
	"env": {
		flags: "i0v", valueOptions: "uCa", scriptOptions: "S", acceptsAssignments: true,
		longOptions: "ignore-environment null debug unset= chdir= argv0= split-string= block-signal default-signal ignore-signal list-signal-handling",
	},
	"sudo": {
		flags: "AbEeHiKklnPSsVv", valueOptions: "CDghprRtTUuac", acceptsAssignments: true,
		longOptions: "askpass background bell edit preserve-env set-home login remove-timestamp reset-timestamp list non-interactive preserve-groups stdin shell version validate " +
			"close-from= chdir= group= host= prompt= chroot= role= type= command-timeout= other-user= user=",
	},
	"doas":    {flags: "nLs", valueOptions: "aCu"},
	"timeout": {flags: "fpv", valueOptions: "ks", longOptions: "kill-after= signal= foreground preserve-status verbose", operands: 1},
	"nice":    {valueOptions: "n", longOptions: "adjustment=", acceptsDigits: true},
	"ionice":  {flags: "t", valueOptions: "cnpPu", longOptions: "class= classdata= ignore"},
	"nohup":   {}, "builtin": {}, "busybox": {}, "toybox": {},
	"setsid": {flags: "cfw", longOptions: "ctty fork wait"},
	"stdbuf": {valueOptions: "ioe", longOptions: "input= output= error="},
	"time":   {flags: "apqvlh", valueOptions: "fo", longOptions: "append portability quiet verbose format= output="},
	"xargs": {
		flags: "0rtpxo", valueOptions: "aEIdLnPsJRS", appendsArguments: true,
		longOptions: "null no-run-if-empty verbose interactive exit open-tty eof replace max-lines arg-file= delimiter= max-args= max-procs= max-chars= process-slot-var= show-limits",
	},
	"command": {flags: "p", noStartOptions: "vV"},
	"exec":    {flags: "cl", valueOptions: "a"},
	"chroot":  {longOptions: "groups= userspec= skip-chdir", operands: 1},
	"taskset": {flags: "ap", longOptions: "all-tasks pid", operands: 1},
	"flock": {
		flags: "snexuoFv", valueOptions: "wE", operands: 1,
		longOptions: "shared exclusive unlock nonblock nb timeout= wait= conflict-exit-code= close no-fork verbose command=",
	},
	"su":      {flags: "lmpfP", valueOptions: "gGsw", scriptOptions: "c", longOptions: "login preserve-environment pty fast group= supp-group= shell= command= session-command=", operands: 1},
	"runuser": {flags: "lmpfP", valueOptions: "gGswu", scriptOptions: "c", longOptions: "login preserve-environment pty fast group= supp-group= shell= command= session-command= user="},
	"eval":    {joinsWords: true},
	"watch":   {flags: "bcCdegptvwxr", valueOptions: "nqs", longOptions: "beep color no-color differences errexit chgexit exec precise no-title no-wrap no-rerun interval= equexit=", joinsWords: true},
	"script":  {flags: "aefq", valueOptions: "ImBOTtEo", scriptOptions: "c", longOptions: "append return flush force quiet command=", operands: 1},
	"npx":     {hasUnknownOptions: true, scriptOptions: "c"}, "pnpx": {hasUnknownOptions: true, scriptOptions: "c"},
}

// gitOptions describes git's options before its subcommand.
var gitOptions = wrapper{
	flags: "pPvh", valueOptions: "Cc",
	longOptions: "paginate no-pager no-replace-objects no-lazy-fetch no-optional-locks no-advice bare literal-pathspecs glob-pathspecs noglob-pathspecs icase-pathspecs " +
		"html-path man-path info-path version help git-dir= work-tree= namespace= super-prefix= config-env= attr-source= list-cmds= exec-path",
}

// commandStart locates the command after a wrapper's options and operands.
type commandStart struct {
	index         int    // index of the command's first word
	scripts       []Word // values of options that are scripts
	isUnsure      bool   // an option is unknown, so the command may begin at any word
	startsNothing bool   // an option prevents the start of the command
}

// locateCommand finds the command in the wrapper's arguments: it steps over options, assignments and
// operands.
func (w wrapper) locateCommand(args []Word) commandStart {
	start := commandStart{isUnsure: w.hasUnknownOptions}
	operands := w.operands
	for ; start.index < len(args); start.index++ {
		arg := args[start.index]
		switch {
		case arg.Text == "--":
			start.index++
			start.index += min(operands, len(args)-start.index)
			return start
		case !arg.Known && !strings.HasPrefix(arg.Text, "-"): // it may be an option, an operand or the command
			start.isUnsure = true
			return start
		case w.acceptsAssignments && strings.Contains(arg.Text, "=") && !strings.HasPrefix(arg.Text, "-"): // NAME=value
		case strings.HasPrefix(arg.Text, "-"):
			w.readOption(args, &start)
		case operands > 0:
			operands--
			if operands == 0 && w.scriptOptions == "" {
				start.index++
				return start // the next word is the command, even if it looks like an option
			}
		default:
			return start
		}
	}
	return start
}

// readOption reads the option at s.index and steps over its value.
func (w wrapper) readOption(args []Word, s *commandStart) {
	text := args[s.index].Text
	if name, isLong := strings.CutPrefix(text, "--"); isLong {
		w.readLongOption(args, s, name)
		return
	}
	if w.acceptsDigits && strings.Trim(text[1:], "0123456789") == "" {
		return
	}
	for i := 1; i < len(text); i++ {
		letter := text[i]
		switch {
		case strings.IndexByte(w.flags, letter) >= 0:
			continue
		case strings.IndexByte(w.noStartOptions, letter) >= 0:
			s.startsNothing = true
			continue
		case strings.IndexByte(w.valueOptions, letter) >= 0:
			if i+1 == len(text) {
				s.index++
			}
		case strings.IndexByte(w.scriptOptions, letter) >= 0:
			s.addScript(args, text[i+1:])
		default:
			s.isUnsure = true
		}
		return // the rest is the letter's value
	}
}

// readLongOption reads an option that begins with two dashes. name is the option without the dashes.
func (w wrapper) readLongOption(args []Word, s *commandStart, name string) {
	name, value, hasValue := strings.Cut(name, "=")
	switch {
	case name == "command" || name == "session-command" || name == "split-string" || name == "call":
		s.addScript(args, value)
	case hasWord(w.longOptions, name+"="):
		if !hasValue {
			s.index++
		}
	case hasWord(w.longOptions, name): // an option without a value
	default:
		s.isUnsure = true
	}
}

// addScript adds the value of a script option to scripts: the attached text, or else the next word.
func (s *commandStart) addScript(args []Word, attached string) {
	switch {
	case attached != "":
		s.scripts = append(s.scripts, Word{attached, args[s.index].Known})
	case s.index+1 < len(args):
		s.index++
		s.scripts = append(s.scripts, args[s.index])
	}
}

// hasWord reports whether a list separated by spaces has a word.
func hasWord(list, word string) bool {
	return strings.Contains(" "+list+" ", " "+word+" ")
}

// inlineScript returns the script among a shell's arguments: the first operand after -c.
func inlineScript(args []Word) (script Word, ok bool) {
	expectsScript := false // -c was found
	for i := 0; i < len(args); i++ {
		text := args[i].Text
		isOption := len(text) > 1 && (text[0] == '-' || text[0] == '+')
		switch {
		case text == "--" || text == "-":
			if expectsScript && i+1 < len(args) {
				return args[i+1], true
			}
			return Word{}, false
		case text == "--rcfile" || text == "--init-file":
			i++
		case strings.HasPrefix(text, "--"): // an option without a value
		case isOption:
			expectsScript = expectsScript || text[0] == '-' && strings.Contains(text, "c")
			if strings.ContainsAny(text, "oO") { // options with a value
				i++
			}
		case expectsScript:
			return args[i], true
		default:
			return Word{}, false
		}
	}
	return Word{}, false
}
