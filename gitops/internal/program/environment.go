package program

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/outside"
)

// AsUser returns a git that reads the configuration of the user of this process.
func AsUser(path string, environ []string, gitDir, workTree string) Program {
	env := append(quietEnvironment(environ, workTree), "GIT_DIR="+gitDir, "GIT_WORK_TREE="+workTree)
	for _, v := range environ {
		if strings.HasPrefix(v, "GIT_CONFIG") {
			env = append(env, v)
		}
	}
	return Program{path, outside.GitConfig, env}
}

// Isolated returns a git that reads only gitDir's configuration. Its PATH omits folders in root,
// where commands work. git does not verify the hashes of objects that it reads, so gitDir should
// contain verified copies.
func Isolated(path string, environ []string, root, gitDir, workTree string) Program {
	return Program{path, outside.GitPrivate, append(quietEnvironment(environ, root),
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_SYSTEM="+os.DevNull, "GIT_CONFIG_GLOBAL="+os.DevNull,
		"GIT_DIR="+gitDir, "GIT_WORK_TREE="+workTree)}
}

// Remote returns a git for exchanging data with other repositories. It reads the user's
// configuration and trusts the same certificate authorities as Go programs. git and its helper
// programs are found in pathEnv.
func Remote(pathEnv string, environ []string) Program {
	pathEnv = SearchPathOutside(pathEnv, "")
	env := []string{"LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=", "GIT_NO_REPLACE_OBJECTS=1"}
	for _, v := range environ {
		name, value, _ := strings.Cut(v, "=")
		value, _, _ = strings.Cut(value, ":") // git takes one folder, Go a list
		if gitName := map[string]string{"SSL_CERT_FILE": "GIT_SSL_CAINFO", "SSL_CERT_DIR": "GIT_SSL_CAPATH"}[name]; gitName != "" && value != "" {
			env = append(env, gitName+"="+value)
		}
	}
	return Program{outside.Find("git", pathEnv), outside.GitRemote, append(append(env, inheritedVariables(outside.GitRemote, environ, "")...), "PATH="+pathEnv)}
}

// quietEnvironment returns the environment for a git on the work tree at root. Its PATH has no
// folders in root.
func quietEnvironment(environ []string, root string) []string {
	return append([]string{
		"GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "GIT_NO_REPLACE_OBJECTS=1", "GIT_NO_LAZY_FETCH=1",
		"GIT_LITERAL_PATHSPECS=1", "LC_ALL=C", "GIT_PAGER=cat",
	}, inheritedVariables(outside.GitPrivate, environ, root)...)
}

// inheritedVariables returns the variables of this process that a use permits. It removes folders in root
// from PATH. root may be "".
func inheritedVariables(use *outside.Use, environ []string, root string) (env []string) {
	for _, v := range environ {
		name, value, _ := strings.Cut(v, "=")
		if name == "PATH" {
			if value = SearchPathOutside(value, root); value == "" {
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

// SearchPathOutside returns a PATH without the folders in which commands in root may have put programs.
// It removes relative folders, and folders in root or reached through root, even missing ones. root
// may be "".
func SearchPathOutside(pathEnv, root string) string {
	if real, err := filepath.EvalSymlinks(root); err == nil && root != "" {
		root = real
	}
	dirs := slices.DeleteFunc(filepath.SplitList(pathEnv), func(dir string) bool {
		return !filepath.IsAbs(dir) || root != "" && passesThrough(dir, root)
	})
	return strings.Join(dirs, string(filepath.ListSeparator))
}

// LeadsThrough reports whether a path is in a folder, or reaches its target through the folder. It reports true
// for a relative path if the current folder is unknown, and for a path with too many links.
func LeadsThrough(path, folder string) bool {
	if !filepath.IsAbs(path) { // Abs would remove a link before ".." from others
		var err error
		if path, err = filepath.Abs(path); err != nil {
			return true
		}
	}
	if real, err := filepath.EvalSymlinks(folder); err == nil {
		folder = real
	}
	return passesThrough(path, folder)
}

// maxLinks is the largest number of links in one path, as on Linux (path_resolution(7)).
const maxLinks = 40

// passesThrough reports whether a path goes through root, or has too many links.
func passesThrough(path, root string) bool {
	places, all := Trail(path)
	return !all || slices.ContainsFunc(places, func(at string) bool {
		within, err := filepath.Rel(root, at)
		return err != nil || filepath.IsLocal(within)
	})
}

// Trail returns all places that a path goes through, including the place of each link. all is false
// if there are too many links.
func Trail(path string) (places []string, all bool) {
	at, links := "/", 0
	for rest := strings.Split(path, "/"); len(rest) > 0; {
		before := at
		at, rest = filepath.Join(at, rest[0]), rest[1:] // at has no links, so Join handles ".." correctly
		places = append(places, at)
		if at == before {
			continue
		}
		to, err := os.Readlink(at)
		if err != nil {
			continue
		}
		if links++; links > maxLinks {
			return places, false
		}
		rest = append(strings.Split(to, "/"), rest...)
		if at = filepath.Dir(at); filepath.IsAbs(to) {
			at = "/"
		}
	}
	return places, true
}
