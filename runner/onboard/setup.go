package onboard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/forge"
)

const (
	// Label is the one that asks for work, as the workflow has it.
	Label            = "agent-ci"
	labelColor       = "5319e7"
	labelDescription = "Ask agent-ci to work on this issue"

	setupBranch  = "agent-ci-setup"
	removeBranch = "agent-ci-remove"
)

// Repository is what is asked of a repository on GitHub.
type Repository interface {
	forge.Repository
	PutSecret(ctx context.Context, name, value string) error
	LetWorkflowsOpenPullRequests(ctx context.Context) error
	CreateLabel(ctx context.Context, name, color, description string) error
	Has(ctx context.Context, tree, path string) (bool, error)
	DeleteBranch(ctx context.Context, branch string) error
}

// Setup is what a person wants to be set up.
type Setup struct {
	Provider Provider
	Model    string
	Key      string // of the provider
	Workflow string // the name of one
	// Read gives the content of a file that init writes, by its name: a workflow's or
	// "agent-ci".
	Read   func(name string) ([]byte, error)
	Build  Build
	Server string // root of GitHub's pages
}

// Report is what came of it, in sentences for a person.
type Report struct {
	Done []string
	Left []string // what the person has to do
	URL  string   // of the pull request; empty for none
}

// Do sets a repository up. What the token may not do is left to the person; that the
// files cannot be added is an error, which comes with what was done before.
func (s Setup) Do(ctx context.Context, r Repository) (report Report, err error) {
	files, err := s.files()
	if err != nil {
		return report, err
	}
	base, head, err := tip(ctx, r)
	if err != nil {
		return report, err
	}
	if err := s.settings(ctx, r, &report); err != nil {
		return report, err
	}
	if !s.Build.Known() {
		report.Left = append(report.Left, s.Build.Unknown())
	}
	err = s.propose(ctx, r, files, base, head, &report)
	return report, err
}

func (s Setup) files() ([]File, error) {
	workflow, err := s.Read(s.Workflow)
	if err != nil {
		return nil, err
	}
	defaults, err := s.Read("agent-ci")
	if err != nil {
		return nil, err
	}
	if defaults, err = withModel(defaults, s.Provider, s.Model); err != nil {
		return nil, err
	}
	return []File{{DefaultsPath, defaults}, {WorkflowPath(s.Workflow), ofProvider(s.Build.Pinned(workflow), s.Provider)}}, nil
}

// tip is the default branch and its commit.
func tip(ctx context.Context, r Repository) (branch string, head *forge.Commit, err error) {
	if branch, err = r.DefaultBranch(ctx); err != nil {
		return "", nil, err
	}
	if head, err = r.Branch(ctx, branch); err == nil && head == nil {
		err = fmt.Errorf("%s has no commit: push a first one", r.Name())
	}
	return branch, head, err
}

// settings sets the secret, the setting and the label, or says what to click.
func (s Setup) settings(ctx context.Context, r Repository, report *Report) error {
	page := s.Server + "/" + r.Name()
	for _, step := range []struct {
		do          func() error
		done, click string
	}{
		{
			func() error { return r.PutSecret(ctx, s.Provider.Secret, s.Key) },
			"the secret " + s.Provider.Secret + " is set",
			"add the secret " + s.Provider.Secret + " with the key: " + page + "/settings/secrets/actions/new",
		},
		{
			func() error { return r.LetWorkflowsOpenPullRequests(ctx) },
			"workflows may open pull requests",
			"turn on \"Allow GitHub Actions to create and approve pull requests\" under Workflow permissions: " + page + "/settings/actions",
		},
		{
			func() error { return r.CreateLabel(ctx, Label, labelColor, labelDescription) },
			"the label " + Label + " is there",
			"make the label " + Label + ": " + page + "/labels",
		},
	} {
		err := step.do()
		switch {
		case err == nil:
			report.Done = append(report.Done, step.done)
		case ctx.Err() != nil || forge.KindOf(err) == forge.Unauthorized || forge.KindOf(err) == forge.Unavailable:
			return err
		default:
			report.Left = append(report.Left, step.click+" ("+reason(err)+")")
		}
	}
	return nil
}

// reason is why a call failed, without what it was.
func reason(err error) string {
	if failed, ok := errors.AsType[*forge.Error](err); ok {
		return failed.Message
	}
	return err.Error()
}

// propose opens the pull request that adds the files which are not there.
func (s Setup) propose(ctx context.Context, r Repository, files []File, base string, head *forge.Commit, report *Report) error {
	open, err := openPull(ctx, r, setupBranch)
	if err != nil {
		return err
	}
	if open != nil {
		report.URL = open.URL
		report.Done = append(report.Done, "the pull request is open already")
		return nil
	}
	var added []File
	for _, file := range files {
		there, err := r.Has(ctx, head.Tree, file.Path)
		switch {
		case err != nil:
			return err
		case there:
			report.Done = append(report.Done, file.Path+" is there already and is left as it is")
		default:
			added = append(added, file)
		}
	}
	if len(added) == 0 {
		return nil
	}
	edits, err := edits(ctx, r, added)
	if err != nil {
		return err
	}
	proposal := proposal{branch: setupBranch, title: "Run agent-ci on issues with the label " + Label, body: s.body(added, *report), edits: edits}
	report.URL, err = proposal.open(ctx, r, base, head)
	return err
}

// openPull is the open pull request of a branch of ours; nil for none.
func openPull(ctx context.Context, r Repository, branch string) (*forge.PullRequest, error) {
	pull, err := r.FindPullRequest(ctx, branch, "")
	if err != nil || pull == nil || pull.State != "open" {
		return nil, err
	}
	return pull, nil
}

func edits(ctx context.Context, r Repository, files []File) ([]forge.TreeEdit, error) {
	var edits []forge.TreeEdit
	for _, file := range files {
		id, err := r.CreateBlob(ctx, bytes.NewReader(file.Content))
		if err != nil {
			return nil, err
		}
		edits = append(edits, forge.TreeEdit{Path: file.Path, Mode: "100644", ID: id})
	}
	return edits, nil
}

// marker stands in the body of the pull request, by which remove knows it and the name
// of the secret.
const marker = "<!-- agent-ci-setup: %s -->"

func (s Setup) body(added []File, report Report) string {
	var b strings.Builder
	b.WriteString("`agent-ci init --github` made this. Once it is merged, somebody with write permission puts the label `" + Label + "` on an issue, and a pull request comes of it.\n\nIt adds\n\n")
	for _, file := range added {
		fmt.Fprintf(&b, "- `%s`\n", file.Path)
	}
	list := func(title string, items []string) {
		if len(items) > 0 {
			fmt.Fprintf(&b, "\n%s\n\n- %s\n", title, strings.Join(items, "\n- "))
		}
	}
	list("Set up besides:", report.Done)
	list("Left for a person to do:", report.Left)
	fmt.Fprintf(&b, "\nWrite what proves a change to be good as `verify` in `%s`. `agent-ci init --github --remove` takes all of this away.\n\n"+marker+"\n", DefaultsPath, s.Provider.Secret)
	return b.String()
}

// proposal is a pull request that is to be opened.
type proposal struct {
	branch, title, body string
	edits               []forge.TreeEdit
}

func (p proposal) open(ctx context.Context, r Repository, base string, head *forge.Commit) (url string, err error) {
	tree, err := r.CreateTree(ctx, head.Tree, p.edits)
	if err != nil {
		return "", err
	}
	commit, err := r.CreateCommit(ctx, p.title, tree, head.SHA)
	if err != nil {
		return "", err
	}
	if err := r.CreateBranch(ctx, p.branch, commit.SHA); err != nil {
		if forge.KindOf(err) == forge.Invalid {
			return "", fmt.Errorf("%s has a branch %s without an open pull request: delete it and run this again (%s)", r.Name(), p.branch, reason(err))
		}
		return "", fmt.Errorf("%w; files below .github/workflows need a token with the permission workflows: write (classic: the scope workflow)", err)
	}
	pull, err := r.CreatePullRequest(ctx, forge.NewPullRequest{Title: p.title, Head: p.branch, Base: base, Body: p.body})
	if err != nil {
		return "", err
	}
	return pull.URL, nil
}
