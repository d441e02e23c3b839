package worktree

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/lfs"
	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
	"github.com/agent-ci/agent-ci/gitops/internal/repository"
	"github.com/agent-ci/agent-ci/policy/shellword"
)

// Filters configures which filters of gitattributes(5) run, and where. The git program itself runs
// none: the private configuration has no filters.
type Filters struct {
	// Open opens a sandbox for a filter's commands. Nil means that no filter can run.
	Open OpenFilter
	// Listed maps permitted filters of the repository's own configuration to readable paths.
	Listed map[string][]string
	// LFS stores the contents of Git LFS files, which need no command.
	LFS lfs.Store
}

// Filter is a filter to run.
type Filter struct {
	Name  string   // NAME in the setting filter.NAME
	Root  string   // the root of the checkout
	Reads []string // paths that its commands may read
}

// OpenFilter opens a sandbox for the commands of a filter.
type OpenFilter func(ctx context.Context, f Filter) (FilterSandbox, error)

// FilterSandbox runs commands of one filter. They see no file of the checkout, and start in an empty
// folder.
type FilterSandbox interface {
	// Run runs a shell command with content as its standard input and result as its standard output.
	// It returns a *CommandError if the command fails. If writing to result fails, Run kills the
	// command and returns that error.
	Run(ctx context.Context, command string, content io.Reader, result io.Writer) error
	Close() error
}

// CommandError reports a failed filter command.
type CommandError struct {
	Status int
	Words  string // the end of its standard error
}

func (e *CommandError) Error() string {
	return fmt.Sprintf("exit status %d: %s", e.Status, cmp.Or(strings.TrimSpace(e.Words), "no words"))
}

// FilterError reports a filter that is not permitted, cannot run, or failed.
type FilterError struct {
	Key    string // the setting in git's configuration
	Why    string
	Remedy string
	Err    error // the command's error; may be nil
}

func (e *FilterError) Error() string {
	text := "git's setting " + e.Key + ": " + e.Why
	if e.Remedy != "" {
		text += "; " + e.Remedy
	}
	return text
}

func (e *FilterError) Unwrap() error { return e.Err }

// FiltersByPath returns the names of the filters in the attributes of a tree, by path. If the attributes cannot be
// loaded, it returns the error and an incomplete result.
func (w *Worktree) FiltersByPath(ctx context.Context, tree plumbing.Hash, paths []string) (map[string]string, error) {
	names := map[string]string{}
	attributes := w.treeAttributes(tree)
	err := attributes.load(ctx, paths)
	for _, path := range paths {
		if name := attributes.of(path).Text("filter"); name != "" {
			names[path] = name
		}
	}
	return names, err
}

// CheckFilters returns a *FilterError if the repository's own configuration has an unlisted filter,
// even an unused one: the agent can add attributes that use it. It also checks that every filter in
// the attributes of the index can run. It touches no file.
func (w *Worktree) CheckFilters(ctx context.Context, ix *index.File) error {
	for _, name := range w.repo.Settings.FilterNames() {
		if err := w.requireListed(name); err != nil {
			return err
		}
	}
	texts, err := w.attributeTexts(ix)
	if err != nil {
		return err
	}
	places := w.newSandboxes()
	looked := map[string]bool{}
	for word := range strings.FieldsSeq(string(bytes.Join(texts, []byte("\n")))) {
		value, is := strings.CutPrefix(word, "filter=")
		name := w.repo.Settings.FilterOf(repository.Attributes{"filter": value})
		if !is || name == "" || looked[name] {
			continue
		}
		looked[name] = true
		if err = places.check(ctx, name); err != nil {
			break
		}
	}
	return errors.Join(err, places.Close())
}

// check verifies that a filter can run. If the filter is required, it also checks that its program
// exists. Otherwise every file would fail, but only after the work.
func (p *sandboxes) check(ctx context.Context, name string) error {
	driver := p.repo.Settings.Filters[name]
	if driver.LFS() {
		return nil
	}
	if !driver.Active() {
		return &FilterError{
			Key: "filter." + name, Why: "the filter is required, and it has no command",
			Remedy: fmt.Sprintf("configure filter.%s.clean and filter.%[1]s.smudge, or take filter.%[1]s.required out of git's configuration", name),
		}
	}
	place, err := p.sandbox(ctx, name)
	if err != nil {
		return err
	}
	starts, _, _ := strings.Cut(cmp.Or(driver["process"], driver["clean"]), " ")
	if !driver.Required() || starts == "" || strings.Trim(starts, programLetters) != "" {
		return nil // the command is more than a program's name, so only a shell could find its program
	}
	err = place.Run(ctx, "command -v "+starts, strings.NewReader(""), io.Discard)
	if errors.As(err, new(*CommandError)) {
		return &FilterError{
			Key: "filter." + name, Why: fmt.Sprintf("its program %s is missing in the sandbox in which filters run", starts),
			Remedy: "install it outside of the checkout, or take the filter out of git's configuration",
		}
	}
	return err
}

// programLetters are the letters that a shell does not interpret in a program's name.
const programLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-"

// requireListed returns a *FilterError for a filter of the repository's own configuration, unless the
// job lists it or it is Git LFS.
func (w *Worktree) requireListed(name string) error {
	key := w.repo.Settings.OwnFilter(name) // "" for a filter of the user's configuration
	if _, listed := w.Filters.Listed[name]; key == "" || listed || w.repo.Settings.Filters[name].LFS() {
		return nil
	}
	return &FilterError{
		Key: key, Why: "the configuration of the repository (.git/config) names a program that git would run",
		Remedy: fmt.Sprintf("list the filter in git.filters of the job (name: %s), or remove it: git config --remove-section %s", name, shellword.Quote("filter."+name)),
	}
}

// sandboxes opens one sandbox per filter, when the first file needs it.
type sandboxes struct {
	*Worktree
	keep bool // stores the contents of cleaned Git LFS files
	open map[string]FilterSandbox
}

func (w *Worktree) newSandboxes() *sandboxes {
	return &sandboxes{Worktree: w, open: map[string]FilterSandbox{}}
}

func (p *sandboxes) Close() (err error) {
	for _, place := range p.open {
		err = errors.Join(err, place.Close())
	}
	p.open = nil
	return err
}

// sandbox returns the open sandbox of a filter, or opens one. It returns a *FilterError for a
// forbidden filter.
func (p *sandboxes) sandbox(ctx context.Context, name string) (FilterSandbox, error) {
	if place, is := p.open[name]; is {
		return place, nil
	}
	if err := p.requireListed(name); err != nil {
		return nil, err
	}
	if p.Filters.Open == nil {
		return nil, &FilterError{Key: "filter." + name, Why: "nothing confines its commands here"}
	}
	place, err := p.Filters.Open(ctx, Filter{Name: name, Root: p.repo.Root, Reads: p.Filters.Listed[name]})
	if err != nil {
		return nil, err
	}
	p.open[name] = place
	return place, nil
}

// direction is the option of a driver: clean (work tree to git) or smudge (git to work tree).
type direction string

const (
	toGit      direction = "clean"
	toWorkTree direction = "smudge"
)

// convert filters a file's content and returns the result as an open file without a name. The
// caller closes it. If an optional filter fails, the result is the unfiltered content.
func (p *sandboxes) convert(ctx context.Context, name string, to direction, path string, content io.ReadSeeker) (*os.File, error) {
	result, err := p.newUnnamedFile()
	if err != nil {
		return nil, err
	}
	driver := p.repo.Settings.Filters[name]
	err = p.run(ctx, name, to, path, content, &limitedWriter{to: result, left: LargestChange})
	if ctx.Err() == nil && err != nil && isOptionalFailure(driver, err) {
		err = restart(ctx, result, content)
	}
	if err == nil {
		_, err = result.Seek(0, io.SeekStart)
	}
	if err == nil {
		return result, nil
	}
	err = errors.Join(result.Close(), err)
	isOfFilter := errors.As(err, new(*CommandError)) || errors.As(err, new(*protocolError)) || errors.As(err, new(*lfs.DamagedError))
	if ctx.Err() == nil && isOfFilter {
		err = &FilterError{Key: "filter." + name, Why: fmt.Sprintf("the filter failed to %s %q: %v", to, path, err), Err: err}
	}
	return nil, err
}

// isOptionalFailure reports whether git would use the content unchanged although this filter
// failed.
func isOptionalFailure(driver repository.FilterDriver, err error) bool {
	if driver.Required() || driver.LFS() {
		return false
	}
	return errors.As(err, new(*CommandError)) || errors.As(err, new(*protocolError))
}

// restart replaces what a failed filter wrote to result by the unfiltered content.
func restart(ctx context.Context, result *os.File, content io.ReadSeeker) error {
	if err := result.Truncate(0); err != nil {
		return err
	}
	for _, seeker := range []io.Seeker{result, content} {
		if _, err := seeker.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
	_, err := io.Copy(result, regularfile.Until(ctx, content))
	return err
}

// run writes the filtered content to result: with Git LFS built in, a process filter, or a command
// per file. Without any of them it copies the content.
func (p *sandboxes) run(ctx context.Context, name string, to direction, path string, content io.ReadSeeker, result io.Writer) error {
	driver := p.repo.Settings.Filters[name]
	switch {
	case driver.LFS() && to == toGit:
		return p.Filters.LFS.Clean(ctx, content, p.keep, result)
	case driver.LFS():
		return p.Filters.LFS.Smudge(ctx, content, result)
	}
	if driver[string(to)] == "" && driver["process"] == "" && driver.Required() {
		return &FilterError{Key: "filter." + name, Why: fmt.Sprintf("%q needs the filter, which is required, and filter.%s.%s is not set", path, name, to)}
	}
	place, err := p.sandbox(ctx, name)
	if err != nil {
		return err
	}
	switch command := driver[string(to)]; {
	case driver["process"] != "":
		return askProcess(ctx, place, driver["process"], to, path, content, result)
	case command != "":
		return place.Run(ctx, expand(command, path), regularfile.Until(ctx, content), result)
	}
	_, err = io.Copy(result, regularfile.Until(ctx, content))
	return err
}

// expand replaces %f in a filter command by the path of the file, quoted if needed.
func expand(command, path string) string {
	return strings.NewReplacer("%%", "%", "%f", shellword.Quote(path)).Replace(command)
}

// newUnnamedFile returns an open, empty file that has no name any more.
func (w *Worktree) newUnnamedFile() (*os.File, error) {
	f, err := os.CreateTemp(w.repo.PrivateDir, "filter-")
	if err != nil {
		return nil, err
	}
	return f, os.Remove(f.Name())
}

// spoolToFile copies a stream into an unnamed file.
func (w *Worktree) spoolToFile(ctx context.Context, content io.Reader) (*os.File, error) {
	f, err := w.newUnnamedFile()
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(f, regularfile.Until(ctx, content))
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// limitedWriter is a writer that fails after left more bytes.
type limitedWriter struct {
	to   io.Writer
	left int64
}

func (b *limitedWriter) Write(p []byte) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, &CommandError{Words: fmt.Sprintf("it wrote more than %d bytes", LargestChange)}
	}
	return b.to.Write(p)
}

// attributeTexts returns the contents of all .gitattributes files in the index, and of the
// attribute files outside the work tree.
func (w *Worktree) attributeTexts(ix *index.File) ([][]byte, error) {
	texts := slices.Clone(w.repo.OuterAttributes())
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
			continue // a submodule of that name: its id is a commit in another repository
		}
		if err != nil {
			return nil, fmt.Errorf("read %q: %w", path, err)
		}
		texts = append(texts, data)
	}
	return texts, nil
}
