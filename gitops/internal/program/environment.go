package program

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/outside"
)

// AsUser is git with the configuration of who started this process.
func AsUser(path string, environ []string, gitDir, workTree string) Program {
	env := append(quietEnvironment(environ, workTree), "GIT_DIR="+gitDir, "GIT_WORK_TREE="+workTree)
	for _, v := range environ {
		if strings.HasPrefix(v, "GIT_CONFIG") {
			env = append(env, v)
		}
	}
	return Program{path, outside.GitConfig, env}
}

// Isolated is git with no configuration but that of gitDir. No program of root,
// where commands are at work, is in its PATH. Objects of other folders are for it
// only as verified copies in gitDir: git does not hash what it reads.
func Isolated(path string, environ []string, root, gitDir, workTree string) Program {
	return Program{path, outside.GitPrivate, append(quietEnvironment(environ, root),
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_SYSTEM="+os.DevNull, "GIT_CONFIG_GLOBAL="+os.DevNull,
		"GIT_DIR="+gitDir, "GIT_WORK_TREE="+workTree)}
}

// Remote is git that talks with other repositories, for which it is started in no repository. It has the
// configuration of who started this process, and trusts the authorities that Go programs do. It, and what
// it starts, is looked for on pathEnv.
func Remote(pathEnv string, environ []string) Program {
	pathEnv = PathOutside(pathEnv, "")
	env := []string{"LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=", "GIT_NO_REPLACE_OBJECTS=1"}
	for _, v := range environ {
		name, value, _ := strings.Cut(v, "=")
		value, _, _ = strings.Cut(value, ":")
		if git := map[string]string{"SSL_CERT_FILE": "GIT_SSL_CAINFO", "SSL_CERT_DIR": "GIT_SSL_CAPATH"}[name]; git != "" && value != "" {
			env = append(env, git+"="+value)
		}
	}
	return Program{Find(pathEnv, ""), outside.GitRemote, append(append(env, inherited(outside.GitRemote, environ, "")...), "PATH="+pathEnv)}
}

// quietEnvironment is for the work tree at root, whose programs are none of ours.
func quietEnvironment(environ []string, root string) []string {
	return append([]string{
		"GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "GIT_NO_REPLACE_OBJECTS=1", "GIT_NO_LAZY_FETCH=1",
		"GIT_LITERAL_PATHSPECS=1", "LC_ALL=C", "GIT_PAGER=cat",
	}, inherited(outside.GitPrivate, environ, root)...)
}

// inherited returns the variables of a use that this process has, for the work tree at root, whose programs
// are none of ours; "" for none.
func inherited(use *outside.Use, environ []string, root string) (env []string) {
	for _, v := range environ {
		name, value, _ := strings.Cut(v, "=")
		if name == "PATH" {
			if value = PathOutside(value, root); value == "" {
				continue // an empty list names the current folder
			}
			v = name + "=" + value
		}
		if use.Takes(name) {
			env = append(env, v)
		}
	}
	return env
}

func Find(pathEnv, root string) string {
	for _, dir := range filepath.SplitList(PathOutside(pathEnv, root)) {
		path := filepath.Join(dir, "git")
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
}

// PathOutside is a list as in PATH without the folders in which commands that
// work at root, a work tree, may have put programs: what lies in it or is reached
// through it, whether it is there yet or not, and relative parts. root may be ""
// for none.
func PathOutside(pathEnv, root string) string {
	if real, err := filepath.EvalSymlinks(root); err == nil && root != "" {
		root = real
	}
	dirs := slices.DeleteFunc(filepath.SplitList(pathEnv), func(dir string) bool {
		return !filepath.IsAbs(dir) || root != "" && passes(dir, root)
	})
	return strings.Join(dirs, string(filepath.ListSeparator))
}

func LeadsThrough(path, folder string) bool {
	path, err := filepath.Abs(path)
	if err != nil {
		return true
	}
	if real, err := filepath.EvalSymlinks(folder); err == nil {
		folder = real
	}
	return passes(path, folder)
}

// mostLinks are followed for one path, as Linux does (path_resolution(7)).
const mostLinks = 40

// passes says whether the way that a path leads goes through root.
func passes(path, root string) bool {
	places, all := Trail(path)
	return !all || slices.ContainsFunc(places, func(at string) bool {
		within, err := filepath.Rel(root, at)
		return err != nil || filepath.IsLocal(within)
	})
}

// Trail lists the places, links resolved, that the way of a path leads through,
// each link's own among them; not all where there are too many links.
func Trail(path string) (places []string, all bool) {
	at, links := "/", 0
	for rest := strings.Split(path, "/"); len(rest) > 0; {
		at, rest = filepath.Join(at, rest[0]), rest[1:] // which is real so far, so that ".." is right
		places = append(places, at)
		to, err := os.Readlink(at)
		if err != nil {
			continue
		}
		if links++; links > mostLinks {
			return places, false
		}
		rest = append(strings.Split(to, "/"), rest...)
		if at = filepath.Dir(at); filepath.IsAbs(to) {
			at = "/"
		}
	}
	return places, true
}
