package resolve

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/campaign"
	"github.com/agent-ci/agent-ci/runner/intake"
	"github.com/agent-ci/agent-ci/runner/job"
)

// Forge is what is asked of a forge.
type Forge interface {
	Survey(ctx context.Context, questions []forge.Question) ([]forge.Finding, error)
	Search(ctx context.Context, s forge.Search, most int) ([]forge.Hit, error)
}

// Options say whose targets are resolved, and how.
type Options struct {
	Campaign *job.Campaign
	File     string // the campaign file, as messages show it
	Folder   string // it is in
	Forge    Forge
	Server   string   // of the forge's pages
	Reads    bool     // runs push nothing: they say something alone
	Environ  []string // of the command, which gets no more
	Said     io.Writer

	renames bool // the job names its branches itself
}

// branchKey is where a job gives its branch another name.
const branchKey = "pull_request.branch"

// candidate is a target on its way into the plan.
type candidate struct {
	campaign.Target
	name    string // by which others wait
	after   []string
	at      job.Problem // where it stands
	commit  string      // it is held to; empty for the newest
	asked   bool        // by a query, so that it is left out where it does not fit
	server  string      // of the issue's address; empty where none was given
	finding *forge.Finding
	open    map[string]forge.OpenPull
}

// Targets are the targets of a campaign, frozen, in the order in which the file names them. The error
// may be job.Problems.
func Targets(ctx context.Context, o Options) ([]campaign.Target, error) {
	o.renames = o.Campaign.Job.Text(branchKey, nil) != ""
	all, err := o.gather(ctx)
	if err != nil {
		return nil, err
	}
	all, keys := distinct(o.Campaign.Name, all)
	if problems := wait(all, keys); len(problems) > 0 {
		return nil, problems
	}
	if most := o.Campaign.Targets.Most; len(all) > most {
		return nil, fmt.Errorf("the campaign comes to %d targets, more than the %d of targets.most; name less, or raise it", len(all), most)
	}
	if err := o.survey(ctx, all); err != nil {
		return nil, err
	}
	return settle(o, all), nil
}

// distinct gives each candidate its key, which is made of what stands in the file and so outlives
// another default branch, and leaves out those that are there twice. keys are those of names.
func distinct(name string, all []*candidate) (kept []*candidate, keys map[string]string) {
	keys = map[string]string{}
	seen := map[string]*candidate{}
	for _, c := range all {
		c.Key = campaign.KeyOf(name, c.Target)
		if c.name != "" {
			keys[c.name] = c.Key
		}
		if first := seen[c.Key]; first != nil {
			first.after = append(first.after, c.after...)
			continue
		}
		seen[c.Key] = c
		kept = append(kept, c)
	}
	return kept, keys
}

// wait makes keys of the names that targets wait for, and tells which wait for nobody or in a circle.
func wait(all []*candidate, keys map[string]string) (problems job.Problems) {
	byKey := map[string]*candidate{}
	for _, c := range all {
		byKey[c.Key] = c
		for _, name := range c.after {
			key, known := keys[name]
			if !known {
				problems = append(problems, c.mistake(fmt.Sprintf("waits for %q, and no target has that name", short(name))))
				continue
			}
			c.After = append(c.After, key)
		}
	}
	if len(problems) > 0 {
		return problems
	}
	done := map[string]bool{}
	for _, c := range all {
		if circle := circleFrom(c, byKey, done, map[string]bool{}); circle != nil {
			return job.Problems{circle.mistake("waits for itself, by way of the targets in its after")}
		}
	}
	return nil
}

// circleFrom is a target that waits for itself, among those that one waits for; nil for none.
func circleFrom(c *candidate, byKey map[string]*candidate, done, above map[string]bool) *candidate {
	switch {
	case above[c.Key]:
		return c
	case done[c.Key]:
		return nil
	}
	above[c.Key] = true
	defer delete(above, c.Key)
	for _, key := range c.After {
		if circle := circleFrom(byKey[key], byKey, done, above); circle != nil {
			return circle
		}
	}
	done[c.Key] = true
	return nil
}

func (c *candidate) mistake(message string) job.Problem {
	p := c.at
	p.Message = message
	return p
}

// short is a text for a message.
func short(text string) string {
	const most = 60
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

// survey asks the forge about what it has not told yet.
func (o Options) survey(ctx context.Context, all []*candidate) error {
	var left []*candidate
	var questions []forge.Question
	for _, c := range all {
		if c.finding != nil && !o.renames {
			continue
		}
		left = append(left, c)
		questions = append(questions, forge.Question{Repository: c.Repository, Branch: c.Base, Commit: c.commit, Issue: c.Issue, Head: o.branch(c)})
	}
	if len(questions) == 0 {
		return nil
	}
	findings, err := o.Forge.Survey(ctx, questions)
	if err != nil {
		return err
	}
	for i, c := range left {
		c.finding = &findings[i]
	}
	return nil
}

// branch is the branch of a target's change.
func (o Options) branch(c *candidate) string {
	if o.renames {
		if named := o.Campaign.Job.Text(branchKey, c.Fields()); named != "" {
			return named
		}
	}
	return intake.BranchPrefix + c.Key
}

// settle makes targets of what is known. Two that come to the same, as by the old and the new name of
// a repository, are the first one.
func settle(o Options, all []*candidate) []campaign.Target {
	targets := []campaign.Target{}
	seen := map[string]bool{}
	for _, c := range all {
		f := *c.finding
		if c.asked && f.Archived {
			continue
		}
		if f.Found {
			c.Repository, c.Base = f.Repository, cmp.Or(f.Branch, c.Base)
		}
		c.SHA = cmp.Or(c.commit, f.Tip)
		same := campaign.KeyOf("", c.Target) // places as they are, not as they were named
		if seen[same] {
			continue
		}
		seen[same] = true
		if open, there := c.open[o.branch(c)]; there {
			f.Open = &open
		}
		if f.Open != nil {
			c.Existing = f.Open.URL
		}
		c.Lacks = lacks(o, c, f)
		targets = append(targets, c.Target)
	}
	return inheritLacks(targets)
}

// lacks says why a target cannot run; empty where it can.
func lacks(o Options, c *candidate, f forge.Finding) string {
	switch {
	case c.server != "" && !strings.EqualFold(c.server, o.Server):
		return fmt.Sprintf("the issue is of %s, and the forge that is asked is %s", short(c.server), o.Server)
	case !f.Found && o.Campaign.Targets.Folder != "":
		return "the repository is not in the folder of targets.folder"
	case c.Issue > 0 && o.Campaign.Targets.Folder != "":
		return "it is an issue, and repositories of targets.folder have none"
	case !f.Found:
		return "the repository is not there, or the token may not see it"
	case f.Archived:
		return "the repository is archived"
	case !f.CanWrite && !o.Reads:
		return "the token may not push to the repository"
	case f.Tip == "" && c.Base == "":
		return "the repository has no commit"
	case f.Tip == "":
		return fmt.Sprintf("there is no branch %s", short(c.Base))
	case c.commit != "" && !f.HasCommit:
		return fmt.Sprintf("the branch %s does not have the commit %s", short(c.Base), c.commit)
	case c.Issue > 0 && f.IssueState == "":
		return fmt.Sprintf("there is no issue #%d", c.Issue)
	case c.Issue > 0 && f.IssueState != "open":
		return fmt.Sprintf("the issue #%d is closed", c.Issue)
	}
	if problems := o.Campaign.Job.Unfit(c.Fields()); len(problems) > 0 {
		return fmt.Sprintf("the job's %s %s", problems[0].Key, problems[0].Message)
	}
	return ""
}

// inheritLacks tells of targets that wait for one which cannot run.
func inheritLacks(targets []campaign.Target) []campaign.Target {
	lacking := map[string]bool{}
	for changed := true; changed; {
		changed = false
		for i, t := range targets {
			if t.Lacks == "" {
				for _, key := range t.After {
					if lacking[key] {
						targets[i].Lacks = fmt.Sprintf("it waits for %s, which cannot run", key)
					}
				}
			}
			if targets[i].Lacks != "" && !lacking[t.Key] {
				lacking[t.Key], changed = true, true
			}
		}
	}
	return targets
}

// clean is the path of a target as every spelling of it has it.
func clean(p string) string {
	if p = path.Clean(p); p == "." {
		return ""
	}
	return p
}
