package shell

import "strings"

// wrapper describes a program that starts another program from its arguments.
type wrapper struct {
	flags  string // short options without a value
	valued string // short options with one
	script string // short options whose value is a script
	long   string // long options; those with a value end in =
	// digits permits options like -10.
	digits bool
	// assigns permits NAME=value before the command.
	assigns bool
	// operands is the number of words between the options and the command.
	operands int
	// appends marks programs that add unknown arguments to the command, like xargs.
	appends bool
	// joins marks programs that run the joined words as a script, like eval.
	joins bool
	// quiet lists short options that suppress the start.
	quiet string
	// anywhere marks programs with unknown options: the command may begin at any word.
	anywhere bool
}

// shells lists programs with an option -c for a script.
var shells = map[string]bool{
	"sh": true, "bash": true, "dash": true, "zsh": true, "ksh": true, "mksh": true, "ash": true, "rbash": true, "yash": true, "posh": true,
	// These have another grammar, but simple commands look the same.
	"fish": true, "csh": true, "tcsh": true, "elvish": true, "nu": true, "xonsh": true, "pwsh": true,
}

var wrappers = map[string]wrapper{
	"env": {
		flags: "i0v", valued: "uCa", script: "S", assigns: true,
		long: "ignore-environment null debug unset= chdir= argv0= split-string= block-signal default-signal ignore-signal list-signal-handling",
	},
	"sudo": {
		flags: "AbEeHiKklnPSsVv", valued: "CDghprRtTUuac", assigns: true,
		long: "askpass background bell edit preserve-env set-home login remove-timestamp reset-timestamp list non-interactive preserve-groups stdin shell version validate " +
			"close-from= chdir= group= host= prompt= chroot= role= type= command-timeout= other-user= user=",
	},
	"doas":    {flags: "nLs", valued: "aCu"},
	"timeout": {flags: "fpv", valued: "ks", long: "kill-after= signal= foreground preserve-status verbose", operands: 1},
	"nice":    {valued: "n", long: "adjustment=", digits: true},
	"ionice":  {flags: "t", valued: "cnpPu", long: "class= classdata= ignore"},
	"nohup":   {}, "builtin": {}, "busybox": {}, "toybox": {},
	"setsid": {flags: "cfw", long: "ctty fork wait"},
	"stdbuf": {valued: "ioe", long: "input= output= error="},
	"time":   {flags: "apqvlh", valued: "fo", long: "append portability quiet verbose format= output="},
	"xargs": {
		flags: "0rtpxo", valued: "aEIdLnPsJRS", appends: true,
		long: "null no-run-if-empty verbose interactive exit open-tty eof replace max-lines arg-file= delimiter= max-args= max-procs= max-chars= process-slot-var= show-limits",
	},
	"command": {flags: "p", quiet: "vV"},
	"exec":    {flags: "cl", valued: "a"},
	"chroot":  {long: "groups= userspec= skip-chdir", operands: 1},
	"taskset": {flags: "ap", long: "all-tasks pid", operands: 1},
	"flock": {
		flags: "snexuoFv", valued: "wE", operands: 1,
		long: "shared exclusive unlock nonblock nb timeout= wait= conflict-exit-code= close no-fork verbose command=",
	},
	"su":      {flags: "lmpfP", valued: "gGsw", script: "c", long: "login preserve-environment pty fast group= supp-group= shell= command= session-command=", operands: 1},
	"runuser": {flags: "lmpfP", valued: "gGswu", script: "c", long: "login preserve-environment pty fast group= supp-group= shell= command= session-command= user="},
	"eval":    {joins: true},
	"watch":   {flags: "bcCdegptvwxr", valued: "nqs", long: "beep color no-color differences errexit chgexit exec precise no-title no-wrap no-rerun interval= equexit=", joins: true},
	"script":  {flags: "aefq", valued: "ImBOTtEo", script: "c", long: "append return flush force quiet command=", operands: 1},
	"strace":  {anywhere: true}, "ltrace": {anywhere: true}, "gdb": {anywhere: true}, "valgrind": {anywhere: true}, "perf": {anywhere: true},
	"unshare": {anywhere: true}, "nsenter": {anywhere: true}, "setpriv": {anywhere: true}, "capsh": {anywhere: true}, "prlimit": {anywhere: true},
	"chrt": {anywhere: true}, "numactl": {anywhere: true}, "fakeroot": {anywhere: true}, "bwrap": {anywhere: true}, "firejail": {anywhere: true},
	"systemd-run": {anywhere: true}, "pkexec": {anywhere: true}, "gosu": {anywhere: true}, "su-exec": {anywhere: true}, "tini": {anywhere: true},
	"dbus-run-session": {anywhere: true}, "xvfb-run": {anywhere: true}, "unbuffer": {anywhere: true}, "parallel": {anywhere: true}, "setarch": {anywhere: true},
	"linux64": {anywhere: true}, "npx": {anywhere: true, script: "c"}, "pnpx": {anywhere: true, script: "c"}, "bunx": {anywhere: true}, "uvx": {anywhere: true}, "entr": {anywhere: true},
	"hyperfine": {anywhere: true}, "direnv": {anywhere: true}, "mise": {anywhere: true}, "dotenv": {anywhere: true}, "chpst": {anywhere: true}, "catchsegv": {anywhere: true},
}

// gitOptions describes git's options before its subcommand.
var gitOptions = wrapper{
	flags: "pPvh", valued: "Cc",
	long: "paginate no-pager no-replace-objects no-lazy-fetch no-optional-locks no-advice bare literal-pathspecs glob-pathspecs noglob-pathspecs icase-pathspecs " +
		"html-path man-path info-path version help git-dir= work-tree= namespace= super-prefix= config-env= attr-source= list-cmds= exec-path",
}

// start locates the command after a wrapper's options and operands.
type start struct {
	at      int    // index of the command's first word
	scripts []Word // values of options that are scripts
	unsure  bool   // an option is unknown, so the command may begin at any word
	nothing bool   // an option prevents the start of the command
}

// skip finds the beginning of the command in the wrapper's arguments.
func (w wrapper) skip(args []Word) start {
	s := start{unsure: w.anywhere}
	operands := w.operands
	for ; s.at < len(args); s.at++ {
		arg := args[s.at]
		switch {
		case arg.Text == "--":
			s.at++
			s.at += min(operands, len(args)-s.at)
			return s
		case !arg.Known && !strings.HasPrefix(arg.Text, "-"): // it may be an option, an operand or the command
			s.unsure = true
			return s
		case w.assigns && strings.Contains(arg.Text, "=") && !strings.HasPrefix(arg.Text, "-"):
		case strings.HasPrefix(arg.Text, "-"):
			w.option(args, &s)
		case operands > 0:
			operands--
			if operands == 0 && w.script == "" {
				s.at++
				return s // the next word is the command, even if it looks like an option
			}
		default:
			return s
		}
	}
	return s
}

// option reads the option at s.at and steps over its value.
func (w wrapper) option(args []Word, s *start) {
	text := args[s.at].Text
	if name, isLong := strings.CutPrefix(text, "--"); isLong {
		w.longOption(args, s, name)
		return
	}
	if w.digits && strings.Trim(text[1:], "0123456789") == "" {
		return
	}
	for i := 1; i < len(text); i++ {
		letter := text[i]
		switch {
		case strings.IndexByte(w.flags, letter) >= 0:
			continue
		case strings.IndexByte(w.quiet, letter) >= 0:
			s.nothing = true
			continue
		case strings.IndexByte(w.valued, letter) >= 0:
			if i+1 == len(text) {
				s.at++
			}
		case strings.IndexByte(w.script, letter) >= 0:
			s.takeScript(args, text[i+1:])
		default:
			s.unsure = true
		}
		return
	}
}

// longOption reads an option that begins with two dashes. name is the option without the dashes.
func (w wrapper) longOption(args []Word, s *start, name string) {
	name, value, hasValue := strings.Cut(name, "=")
	switch {
	case name == "command" || name == "session-command" || name == "split-string" || name == "call":
		s.takeScript(args, value)
	case contains(w.long, name+"="):
		if !hasValue {
			s.at++
		}
	case contains(w.long, name):
	default:
		s.unsure = true
	}
}

// takeScript takes the value of a script option: the attached text or the next word.
func (s *start) takeScript(args []Word, attached string) {
	switch {
	case attached != "":
		s.scripts = append(s.scripts, Word{attached, args[s.at].Known})
	case s.at+1 < len(args):
		s.at++
		s.scripts = append(s.scripts, args[s.at])
	}
}

// contains reports whether a list separated by spaces has a word.
func contains(list, word string) bool {
	return strings.Contains(" "+list+" ", " "+word+" ")
}

// scriptOption returns the script among a shell's arguments: the first operand after -c.
func scriptOption(args []Word) (script Word, ok bool) {
	given := false // -c was found
	for i := 0; i < len(args); i++ {
		text := args[i].Text
		isOption := len(text) > 1 && (text[0] == '-' || text[0] == '+')
		switch {
		case text == "--" || text == "-":
			if given && i+1 < len(args) {
				return args[i+1], true
			}
			return Word{}, false
		case text == "--rcfile" || text == "--init-file":
			i++
		case strings.HasPrefix(text, "--"):
		case isOption:
			given = given || text[0] == '-' && strings.Contains(text, "c")
			if strings.ContainsAny(text, "oO") { // options with a value
				i++
			}
		case given:
			return args[i], true
		default:
			return Word{}, false
		}
	}
	return Word{}, false
}
