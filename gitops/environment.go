package gitops

import (
	"os"
	"strings"
)

// passed are the variables that a git of ours, and a filter that it starts, get
// to see. Tokens and keys are not among them, nor what names another
// repository.
var passed = [...]string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TMP", "TEMP", "LANG", "LANGUAGE", "TZ",
	"XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "SYSTEMROOT",
}

// userEnvironment is what git reads the user's configuration with.
func userEnvironment(l layout, environ []string) []string {
	env := append(quietEnvironment(environ, l.root), "GIT_DIR="+l.gitDir, "GIT_WORK_TREE="+l.root)
	for _, v := range environ {
		if strings.HasPrefix(v, "GIT_CONFIG") {
			env = append(env, v)
		}
	}
	return env
}

// shadowEnvironment is what git works on the shadow with, whose configuration
// is all that counts. Objects of the repository it gets as verified copies there:
// git does not hash what it reads.
func shadowEnvironment(l layout, shadow string, environ []string) []string {
	return append(isolatedEnvironment(environ, l.root),
		"GIT_DIR="+shadow, "GIT_WORK_TREE="+l.root)
}

func isolatedEnvironment(environ []string, root string) []string {
	return append(quietEnvironment(environ, root),
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_SYSTEM="+os.DevNull, "GIT_CONFIG_GLOBAL="+os.DevNull)
}

// quietEnvironment is for the work tree at root, whose programs are none of ours.
func quietEnvironment(environ []string, root string) []string {
	env := []string{
		"GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "GIT_NO_REPLACE_OBJECTS=1", "GIT_NO_LAZY_FETCH=1",
		"GIT_LITERAL_PATHSPECS=1", "LC_ALL=C", "GIT_PAGER=cat",
	}
	for _, v := range environ {
		name, value, _ := strings.Cut(v, "=")
		if name == "PATH" {
			if value = PathOutside(value, root); value == "" {
				continue // an empty list names the current folder
			}
			v = name + "=" + value
		}
		for _, p := range passed {
			if name == p {
				env = append(env, v)
			}
		}
	}
	return env
}

// quoteListed quotes a path for a list that is separated by colons.
func quoteListed(path string) string {
	if strings.ContainsAny(path, ":\"\n") {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(path) + `"`
	}
	return path
}

// with returns the program with more variables; later ones count.
func (p program) with(vars ...string) program {
	return program{p.path, append(append([]string(nil), p.env...), vars...)}
}
