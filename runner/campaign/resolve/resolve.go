package resolve

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/agent-ci/agent-ci/runner/campaign/spec"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/campaign"
)

// Forge is the part of a forge's client that resolving uses.
type Forge interface {
	Survey(ctx context.Context, questions []forge.Question) ([]forge.Finding, error)
	Search(ctx context.Context, s forge.Search, most int) ([]forge.Hit, error)
}

// Options describes the targets to resolve.
type Options struct {
	Campaign     *spec.Campaign
	File         string // the campaign file, as messages show it
	Folder       string // folder of the campaign file
	Forge        Forge
	Server       string // address of the forge's pages
	FeedbackOnly bool   // runs only post feedback, so they need no push permission
}

// candidate is a target before it is looked up on the forge.
type candidate struct {
	campaign.Target
	commit  string // required commit; "" for the newest
	byQuery bool   // found by a query; archived repositories are then left out
	server  string // server in the issue's address; "" if the address names none
	finding *forge.Finding
	open    map[string]string
}

// Targets returns the frozen targets in the order of the campaign file. The error may be config.Problems.
func Targets(ctx context.Context, o Options) ([]campaign.Target, error) {
	all, err := o.gatherCandidates(ctx)
	if err != nil {
		return nil, err
	}
	all = setKeysAndDeduplicate(o.Campaign.Name, all)
	if most := o.Campaign.Targets.Most; len(all) > most {
		return nil, fmt.Errorf("the campaign comes to %d targets, more than the %d of targets.most; name less, or raise it", len(all), most)
	}
	if err := o.lookUp(ctx, all); err != nil {
		return nil, err
	}
	return freezeTargets(o, all), nil
}

// setKeysAndDeduplicate sets the keys of candidates and drops duplicates. Keys depend only on the campaign
// file, so that they do not change with a repository's default branch.
func setKeysAndDeduplicate(name string, all []*candidate) (unique []*candidate) {
	seen := map[string]bool{}
	for _, c := range all {
		c.Key = campaign.KeyOf(name, c.Target)
		if !seen[c.Key] {
			seen[c.Key] = true
			unique = append(unique, c)
		}
	}
	return unique
}

// lookUp sets the findings of the candidates from the forge. Those from a query have theirs already, unless
// the job names the branch of the change.
func (o Options) lookUp(ctx context.Context, all []*candidate) error {
	var unknown []*candidate
	var questions []forge.Question
	for _, c := range all {
		o.nameBranch(c)
		isFound := c.finding != nil && c.JobBranch == ""
		if isFound {
			continue
		}
		unknown = append(unknown, c)
		questions = append(questions, forge.Question{Repository: c.Repository, Branch: c.Base, Commit: c.commit, Issue: c.Issue, Head: c.Branch()})
	}
	if len(questions) == 0 {
		return nil
	}
	findings, err := o.Forge.Survey(ctx, questions)
	if err != nil {
		return err
	}
	for i, c := range unknown {
		c.finding = &findings[i]
	}
	return nil
}

// nameBranch sets the branch of the target's change if the job names one.
func (o Options) nameBranch(c *candidate) {
	const key = "pull_request.branch"
	if o.Campaign.Job.Sets(key) {
		c.JobBranch = o.Campaign.Job.Text(key, c.PlaceholderValues())
	}
}

// freezeTargets returns the frozen targets, equal ones (such as a repository's old and new name) once.
func freezeTargets(o Options, all []*candidate) []campaign.Target {
	targets := []campaign.Target{}
	seen := map[string]bool{}
	for _, c := range all {
		f := *c.finding
		if c.byQuery && f.Archived {
			continue
		}
		if f.Found {
			c.Repository, c.Base = f.Repository, cmp.Or(f.Branch, c.Base)
		}
		c.SHA = cmp.Or(c.commit, f.Tip)
		o.nameBranch(c)
		currentKey := campaign.KeyOf("", c.Target) // compares the current names on the forge
		if seen[currentKey] {
			continue
		}
		seen[currentKey] = true
		c.Existing = cmp.Or(c.open[c.Branch()], f.Open, c.Existing)
		c.Blocker = findBlocker(o, c, f)
		targets = append(targets, c.Target)
	}
	return targets
}

// findBlocker returns why a target cannot run, or "".
func findBlocker(o Options, c *candidate, f forge.Finding) string {
	switch {
	case c.server != "" && !strings.EqualFold(c.server, o.Server):
		return fmt.Sprintf("the issue is of %s, and the forge that is asked is %s", clip.Bytes(c.server, 60), o.Server)
	case !f.Found && o.Campaign.Targets.Folder != "":
		return "the repository is not in the folder of targets.folder"
	case c.Issue > 0 && o.Campaign.Targets.Folder != "":
		return "it is an issue, and repositories of targets.folder have none"
	case !f.Found:
		return "the repository is not there, or the token may not see it"
	case f.Archived:
		return "the repository is archived"
	case !f.CanWrite && !o.FeedbackOnly:
		return "the token may not push to the repository"
	case f.Tip == "" && c.Base == "":
		return "the repository has no commit"
	case f.Tip == "":
		return fmt.Sprintf("there is no branch %s", clip.Bytes(c.Base, 60))
	case c.commit != "" && !f.HasCommit:
		return fmt.Sprintf("the branch %s does not have the commit %s", clip.Bytes(c.Base, 60), c.commit)
	case c.Issue > 0 && f.IssueState == "":
		return fmt.Sprintf("there is no issue #%d", c.Issue)
	case c.Issue > 0 && f.IssueState != "open":
		return fmt.Sprintf("the issue #%d is closed", c.Issue)
	}
	if problems := o.Campaign.Job.ValueProblems(c.PlaceholderValues()); len(problems) > 0 {
		return fmt.Sprintf("the job's %s %s", problems[0].Key, problems[0].Message)
	}
	return ""
}

// cleanPath returns a target's path in canonical form; "" for the root.
func cleanPath(p string) string {
	if p = path.Clean(p); p == "." {
		return ""
	}
	return p
}
