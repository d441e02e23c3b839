package runner

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
)

// envAt is the environment of commands that work on a tree. Where that is not the
// checkout, what names the checkout names the tree: the agent may have put
// anything there, and a check that looks for its programs in it would judge
// itself.
func (r *run) envAt(tree string) []string {
	env, checkout := r.commandEnv(), r.checkout.Root()
	if tree == checkout {
		return env
	}
	for i, variable := range env {
		name, value, _ := strings.Cut(variable, "=")
		for _, spelled := range r.spellings(checkout) {
			value = renamed(value, spelled, tree)
		}
		if name == "PATH" {
			value = withoutDetours(value, checkout)
		}
		env[i] = name + "=" + value
	}
	return env
}

// spellings are the names of the checkout by which this run was started.
func (r *run) spellings(checkout string) []string {
	names := []string{checkout}
	for _, name := range []string{r.options.Dir, r.env.Get("GITHUB_WORKSPACE"), r.env.Get("PWD")} {
		real, err := filepath.EvalSymlinks(name)
		if err == nil && real == checkout && filepath.IsAbs(name) {
			names = append(names, filepath.Clean(name))
		}
	}
	return names
}

// renamed has the path from, and those below it, at to instead, wherever they
// stand in a text.
func renamed(text, from, to string) string {
	var b strings.Builder
	for {
		at := strings.Index(text, from)
		if at < 0 {
			return b.String() + text
		}
		end := at + len(from)
		b.WriteString(text[:at])
		if at > 0 && (text[at-1] == '/' || inName(text[at-1])) || end < len(text) && inName(text[end]) {
			b.WriteString(from)
		} else {
			b.WriteString(to)
		}
		text = text[end:]
	}
}

func inName(c byte) bool {
	return c == '.' || c == '_' || c == '-' || c >= 0x80 || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// withoutDetours is PATH without the folders that lead to the checkout by links.
func withoutDetours(path, checkout string) string {
	return strings.Join(slices.DeleteFunc(filepath.SplitList(path), func(dir string) bool {
		return filepath.IsAbs(dir) && gitops.PathOutside(dir, checkout) == ""
	}), string(filepath.ListSeparator))
}
