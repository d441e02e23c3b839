package worktree

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
	"github.com/agent-ci/agent-ci/gitops/internal/repository"
	"github.com/agent-ci/agent-ci/gitops/rules"
)

// CheckFilters makes sure, without touching a file, that what the attributes of
// the index ask for can be done: that git is there, that filters which are
// required can be started, and that none is a program out of the checkout,
// which the agent could change.
func (w *Worktree) CheckFilters(ctx context.Context, ix *index.File) error {
	lists, err := w.indexedAttributes(ix)
	if err != nil {
		return err
	}
	started := map[string]bool{}
	for _, list := range lists {
		for name, value := range list.Names {
			one := rules.Resolved{name: value}
			why, needs := w.repo.Settings.NeedsGit(one)
			if !needs {
				continue
			}
			if !w.repo.Git.There() {
				return noGitFor(why)
			}
			if name == "filter" {
				if err := w.filterOutside(value.Text()); err != nil {
					return err
				}
				if err := w.filterStarts(ctx, value.Text(), started); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// Filtered is the first filter that attributes of the index ask for and that runs a
// program; empty for none.
func (w *Worktree) Filtered(ix *index.File) (string, error) {
	lists, err := w.indexedAttributes(ix)
	if err != nil {
		return "", err
	}
	for _, list := range lists {
		for name, value := range list.Names {
			if name == "filter" && w.repo.Settings.Filters[value.Text()].Active() {
				return value.Text(), nil
			}
		}
	}
	return "", nil
}

// filterStarts refuses a required filter whose program is not there: git would
// fail on each of its files, and only when the work is done. started has the
// filters that were looked at.
func (w *Worktree) filterStarts(ctx context.Context, name string, started map[string]bool) error {
	driver := w.repo.Settings.Filters[name]
	if started[name] || !driver.Required() {
		return nil
	}
	started[name] = true
	program, _, _ := strings.Cut(cmp.Or(driver["process"], driver["clean"]), " ")
	if program == "" || strings.Trim(program, programLetters) != "" {
		return nil // only a shell can tell what it starts
	}
	// git looks in a folder of its own, too, and takes the shell's own commands.
	_, err := w.repo.Git.Run(ctx, w.repo.Root, nil, "-c", "alias.agent-ci-find=!command -v "+program, "agent-ci-find")
	if err == nil || ctx.Err() != nil {
		return err
	}
	return &repository.UnsupportedError{
		Feature: fmt.Sprintf("filter %q without its program %s", name, program),
		Remedy:  fmt.Sprintf("install it, or take filter.%s out of git's configuration", name),
	}
}

// programLetters are those of a program's name that mean nothing to a shell.
const programLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-"

func noGitFor(why string) error {
	return &repository.UnsupportedError{Feature: "the attribute " + why + " without the git program", Remedy: "install git"}
}

// indexedAttributes reads all attribute files that the index names.
func (w *Worktree) indexedAttributes(ix *index.File) ([]rules.Attributes, error) {
	outer := w.attributesBy(nil)
	lists := append(outer.weaker, outer.strongest)
	for i := range ix.Len() {
		raw := ix.Path(i)
		if !bytes.HasSuffix(raw, []byte(".gitattributes")) {
			continue
		}
		path := string(raw)
		data, err := regularfile.ReadIn(w.dir, path)
		if err != nil {
			data, err = w.objects.BlobBytes(ix.Entry(i).ID, regularfile.Small)
		}
		if errors.Is(err, plumbing.ErrObjectNotFound) {
			continue // a submodule of that name
		}
		if err != nil {
			return nil, fmt.Errorf("read %q: %w", path, err)
		}
		lists = append(lists, rules.ParseAttributes(data, ""))
	}
	return lists, nil
}

// filterOutside refuses a filter whose command names a file of the checkout.
func (w *Worktree) filterOutside(name string) error {
	for _, option := range [...]string{"clean", "smudge", "process"} {
		words := strings.FieldsFunc(w.repo.Settings.Filters[name][option], func(r rune) bool { return strings.ContainsRune(" \t\n\"';|&()<>=", r) })
		for i, word := range words {
			if !w.isProgramInside(word, i == 0) {
				continue
			}
			return &repository.UnsupportedError{
				Feature: fmt.Sprintf("filter %q, which runs %q out of the checkout, where the agent could change it", name, word),
				Remedy:  "install the filter's program outside of the checkout",
			}
		}
	}
	return nil
}

// isProgramInside says whether a word of a command may be a program or script
// in the checkout. A first word without a slash is looked for in PATH, and
// other words without one are mostly no paths ("git-lfs clean"): only a file
// of that name counts.
func (w *Worktree) isProgramInside(word string, first bool) bool {
	path := filepath.Clean(word)
	if !filepath.IsAbs(word) {
		path = filepath.Join(w.repo.Root, word)
	}
	rel, err := filepath.Rel(w.repo.Root, path)
	if err != nil || !filepath.IsLocal(rel) || rel == "." {
		return false
	}
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	if strings.Contains(word, "/") {
		return true
	}
	return !first && info.Mode().IsRegular()
}
