package onboard

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/github"
)

const (
	// Label requests work, as in the workflow.
	Label            = "agent-ci"
	labelColor       = "5319e7"
	labelDescription = "Ask agent-ci to work on this issue"
	title            = "Run agent-ci on issues with the label " + Label

	setupBranch = "agent-ci-setup"
)

// Setup describes what to set up in a repository on GitHub.
type Setup struct {
	Provider  Provider
	Model     string
	Key       string    // of the provider
	Replace   bool      // replace an existing secret
	Workflow  string    // name of the workflow to add
	Toolchain Toolchain // the repository's; empty if unknown
	Build     Build
	Server    string // root of GitHub's pages
}

// Report lists what a setup did, and what is left, in sentences.
type Report struct {
	Done []string
	Left []string // what the person has to do
	URL  string   // of the pull request; empty for none
}

// Apply sets up the repository. Steps that the token may not do are left to a person. If the files cannot
// be added, it returns an error and the report so far. It checks first whether the setup can succeed. It
// sets the secret last, because other workflows may use it.
func (s Setup) Apply(ctx context.Context, r github.Setup) (report Report, err error) {
	found, err := s.readState(ctx, r)
	if err != nil {
		return report, err
	}
	if err := s.applySettings(ctx, r, &report); err != nil {
		return report, err
	}
	if !s.Build.isKnown() {
		report.Left = append(report.Left, s.Build.whyUnknown())
	}
	if found.open == nil {
		for _, kept := range found.kept {
			report.Done = append(report.Done, kept+" exists and stays as it is")
		}
	}
	if slices.Contains(found.kept, DefaultsPath) && found.model != s.Model {
		report.Left = append(report.Left, "write the model "+s.Model+" as model.name into "+DefaultsPath+" if it is to be asked: that file names "+cmp.Or(found.model, "none"))
	}
	if len(found.missing) > 0 {
		if err := pushSetupBranch(ctx, r, found.head, found.missing); err != nil {
			return report, err
		}
	}
	if err := s.setSecret(ctx, r, &report); err != nil {
		return report, err
	}
	switch {
	case found.open != nil:
		report.URL = found.open.URL
		report.Done = append(report.Done, "the pull request is open already")
	case len(found.missing) > 0:
		pull, err := r.CreatePullRequest(ctx, forge.NewPullRequest{Title: title, Head: setupBranch, Base: found.base, Body: s.pullRequestBody(found.missing, report)})
		if err != nil {
			return report, err
		}
		report.URL = pull.URL
	}
	return report, nil
}

// filesToAdd returns the defaults and the workflow of the setup.
func (s Setup) filesToAdd() ([]File, error) {
	defaults, err := withModel(starterFile(defaultsName), s.Provider, s.Model)
	if err != nil {
		return nil, err
	}
	return []File{{DefaultsPath, withChecks(defaults, s.Toolchain)}, {WorkflowPath(s.Workflow), s.Provider.adaptWorkflow(s.Build.PinAction(starterFile(s.Workflow)))}}, nil
}

// defaultBranchTip returns the default branch and its last commit.
func defaultBranchTip(ctx context.Context, r github.Setup) (branch string, head *forge.Commit, err error) {
	if branch, err = r.DefaultBranch(ctx); err != nil {
		return "", nil, err
	}
	if head, err = r.Branch(ctx, branch); err != nil {
		return "", nil, err
	}
	if head == nil {
		return "", nil, fmt.Errorf("%s has no commit: push a first one", r.Name())
	}
	return branch, head, nil
}

// setSecret sets the secret with the key, unless it exists and s.Replace is false.
func (s Setup) setSecret(ctx context.Context, r github.Setup, report *Report) error {
	page, name := s.Server+"/"+r.Name()+"/settings/secrets/actions", s.Provider.Secret
	exists, err := r.HasSecret(ctx, name)
	if exists && !s.Replace {
		report.Left = append(report.Left, "the secret "+name+" exists already and was not replaced: if it is not the key that was given, run this again with --replace-secret: "+page)
		return nil
	}
	done := "the secret " + name + " is set"
	if exists {
		done = "the secret " + name + " is replaced"
	}
	if err == nil { // else it is not known whether something would be replaced
		err = r.PutSecret(ctx, name, s.Key)
	}
	return report.addStep(ctx, err, done, "add the secret "+name+" with the key: "+page+"/new")
}

// addStep adds a step: done if err is nil, else click, the instruction for a person. It returns err only if
// the remaining steps would fail too.
func (report *Report) addStep(ctx context.Context, err error, done, click string) error {
	switch {
	case err == nil:
		report.Done = append(report.Done, done)
	case ctx.Err() != nil || forge.KindOf(err) == forge.Unauthorized || forge.KindOf(err) == forge.Unavailable:
		return err
	default:
		report.Left = append(report.Left, click+" ("+failureMessage(err)+")")
	}
	return nil
}

// applySettings lets workflows open pull requests and creates the label. Failed steps are left to a person.
func (s Setup) applySettings(ctx context.Context, r github.Setup, report *Report) error {
	page := s.Server + "/" + r.Name()
	err := report.addStep(ctx, r.LetWorkflowsOpenPullRequests(ctx), "workflows may open pull requests",
		"turn on \"Allow GitHub Actions to create and approve pull requests\" under Workflow permissions: "+page+"/settings/actions")
	if err != nil {
		return err
	}
	return report.addStep(ctx, r.CreateLabel(ctx, Label, labelColor, labelDescription), "the label "+Label+" is there", "make the label "+Label+": "+page+"/labels")
}

// failureMessage returns the message of a failed request without the name of the request.
func failureMessage(err error) string {
	if failed, ok := errors.AsType[*forge.Error](err); ok {
		return failed.Message
	}
	return err.Error()
}

// pullRequestBody returns the text of the pull request that adds the files.
func (s Setup) pullRequestBody(added []File, report Report) string {
	var b strings.Builder
	b.WriteString("`agent-ci init --github` made this. After the merge, put the label `" + Label + "` on an issue to get a pull request. You need write permission.\n\nIt adds\n\n")
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
	todo := "Write what proves a change to be good as `verify` in `%s`."
	if checks := s.Toolchain.checkNames(); len(checks) > 0 {
		todo = "A change must pass the checks in `%s`, which come from the files of this repository: " + strings.Join(checks, ", ") + ". Look at them."
	}
	fmt.Fprintf(&b, "\n"+todo+"\n\nTo undo all this, delete these files, the secret `%s` and the label, and turn the setting off.\n", DefaultsPath, s.Provider.Secret)
	return b.String()
}

// pushSetupBranch creates the setup's branch with one commit that adds the files.
func pushSetupBranch(ctx context.Context, r github.Setup, head *forge.Commit, files []File) error {
	var edits []forge.TreeEdit
	for _, file := range files {
		id, err := r.CreateBlob(ctx, bytes.NewReader(file.Content))
		if err != nil {
			return err
		}
		edits = append(edits, forge.TreeEdit{Path: file.Path, Mode: "100644", ID: id})
	}
	tree, err := r.CreateTree(ctx, head.Tree, edits)
	if err != nil {
		return err
	}
	newCommit, err := r.CreateCommit(ctx, title, tree, head.SHA)
	if err != nil {
		return err
	}
	if err := r.CreateBranch(ctx, setupBranch, newCommit.SHA); err != nil {
		if forge.KindOf(err) == forge.Invalid {
			return fmt.Errorf("%s has a branch %s without an open pull request: delete it and run this again (%s)", r.Name(), setupBranch, failureMessage(err))
		}
		return fmt.Errorf("%w; files below .github/workflows need a token with the permission workflows: write (classic: the scope workflow)", err)
	}
	return nil
}
