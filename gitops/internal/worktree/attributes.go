package worktree

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/objects"
	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
	"github.com/agent-ci/agent-ci/gitops/internal/repository"
	"github.com/agent-ci/agent-ci/gitops/rules"
)

// attributes says what .gitattributes files decide for a path. It reads each
// file once.
type attributes struct {
	fold      bool
	weaker    []rules.Attributes // of the system and the user
	strongest rules.Attributes   // .git/info/attributes
	read      func(path string) ([]byte, error)
	folders   map[string][]rules.Attributes // by folder: those of the root down to it
}

// attributesBy reads the attribute files of a tree or a work tree with read,
// which says fs.ErrNotExist for what is not there.
func (w *Worktree) attributesBy(read func(path string) ([]byte, error)) *attributes {
	weaker, strongest := w.repo.OuterAttributes()
	return &attributes{
		fold: w.repo.Settings.IgnoreCase, weaker: weaker, strongest: strongest,
		read: read, folders: map[string][]rules.Attributes{},
	}
}

// workAttributes are the attributes as they stand in the work tree, which s has
// gone through: it knows the folders that have some.
func (s *Scan) workAttributes() *attributes {
	return s.work.attributesBy(func(path string) ([]byte, error) {
		if !s.attributes[strings.TrimSuffix(path, ".gitattributes")] {
			return nil, fs.ErrNotExist
		}
		return regularfile.ReadIn(s.work.dir, path)
	})
}

func (w *Worktree) treeAttributes(tree plumbing.Hash) *attributes {
	folders := treeFolders{w.objects, map[string]plumbing.Hash{"": tree}}
	return w.attributesBy(func(file string) ([]byte, error) {
		folder, name := path.Split(file)
		id, err := folders.id(folder)
		if err != nil {
			return nil, err
		}
		e, err := w.objects.Find(id, name)
		if err != nil {
			return nil, err
		}
		if e.Mode == 0 || e.IsTree() {
			return nil, fs.ErrNotExist
		}
		return w.objects.BlobBytes(e.ID, regularfile.Small)
	})
}

// treeFolders finds the folders of a tree, each by the one above it, which is
// looked up once.
type treeFolders struct {
	store *objects.Store
	ids   map[string]plumbing.Hash // by path, "" or ending with a slash
}

// id is the tree of a folder; the tree of nothing where there is no such folder.
func (t treeFolders) id(folder string) (plumbing.Hash, error) {
	if id, known := t.ids[folder]; known {
		return id, nil
	}
	above, name := path.Split(strings.TrimSuffix(folder, "/"))
	parent, err := t.id(above)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	e, err := t.store.Find(parent, name)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	if !e.IsTree() {
		e.ID = plumbing.ZeroHash
	}
	t.ids[folder] = e.ID
	return e.ID, nil
}

func (a *attributes) of(file string) rules.Resolved {
	folder, _ := path.Split(file)
	return rules.Resolve(file, a.fold, slices.Concat(a.weaker, a.folder(folder), []rules.Attributes{a.strongest})...)
}

// folder returns the lists that count in a folder: "" or ending with a slash.
func (a *attributes) folder(dir string) []rules.Attributes {
	if lists, ok := a.folders[dir]; ok {
		return lists
	}
	var lists []rules.Attributes
	if dir != "" {
		above, _ := path.Split(strings.TrimSuffix(dir, "/"))
		lists = slices.Clip(a.folder(above))
	}
	if data, err := a.read(dir + ".gitattributes"); err == nil {
		lists = append(lists, rules.ParseAttributes(data, dir))
	}
	a.folders[dir] = lists
	return lists
}

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
