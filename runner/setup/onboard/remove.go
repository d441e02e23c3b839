package onboard

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/forge"
)

// Remove takes away what the pull requests of setups added: it closes one that is open,
// and opens one against what was merged. The secrets, the setting and the label are
// named for a person to undo: others may use them by now.
func Remove(ctx context.Context, r Repository, server string) (report Report, err error) {
	all, err := r.PullRequestsFrom(ctx, setupBranch)
	if err != nil {
		return report, err
	}
	var open, merged []setupPull
	var secrets []string
	for _, pull := range all {
		each, ours := markOf(pull)
		if !ours {
			continue
		}
		secrets = append(secrets, each.secret)
		switch {
		case pull.State == "open":
			open = append(open, each)
		case pull.Merged:
			merged = append(merged, each)
		}
	}
	if len(secrets) == 0 {
		return report, fmt.Errorf("%s has no pull request of agent-ci init --github: delete .github/workflows/agent-ci-*.yml and %s by hand", r.Name(), DefaultsPath)
	}
	page := server + "/" + r.Name()
	slices.Sort(secrets)
	for _, secret := range slices.Compact(secrets) {
		report.Left = append(report.Left, "delete the secret "+secret+" if nothing else uses it: "+page+"/settings/secrets/actions")
	}
	report.Left = append(report.Left,
		"turn off \"Allow GitHub Actions to create and approve pull requests\" if nothing else needs it: "+page+"/settings/actions",
		"delete the label "+Label+" if you want to: "+page+"/labels")
	for _, each := range open {
		if err := each.withdraw(ctx, r, &report); err != nil {
			return report, err
		}
	}
	switch {
	case len(merged) > 0:
		err = revert(ctx, r, merged, &report)
	case len(open) == 0:
		report.Done = append(report.Done, "the pull request was closed without being merged: it added no file")
	}
	return report, err
}

// setupPull is the pull request of a setup.
type setupPull struct {
	*forge.PullRequest
	secret, commit string
}

// markOf reads the mark of a setup's pull request.
func markOf(pull *forge.PullRequest) (s setupPull, ours bool) {
	at := regexp.MustCompile(fmt.Sprintf(marker, `([A-Za-z_][A-Za-z0-9_]{0,99})`, `([0-9a-f]{40,64})`)).FindStringSubmatch(pull.Body)
	if at == nil {
		return s, false
	}
	return setupPull{pull, at[1], at[2]}, true
}

// withdraw closes a pull request that was not merged, and deletes its branch unless
// others pushed to it.
func (s setupPull) withdraw(ctx context.Context, r Repository, report *Report) error {
	closed := "closed"
	if _, err := r.UpdatePullRequest(ctx, s.Number, forge.PullRequestUpdate{State: &closed}); err != nil {
		return err
	}
	report.Done = append(report.Done, "the pull request "+s.URL+" is closed")
	branch, err := r.Branch(ctx, setupBranch)
	if err != nil || branch == nil {
		return err
	}
	if branch.SHA != s.commit {
		report.Left = append(report.Left, "delete the branch "+setupBranch+" if you want to: it has commits that others pushed, and is left")
		return nil
	}
	if err := r.DeleteBranch(ctx, setupBranch); err != nil {
		return err
	}
	report.Done = append(report.Done, "its branch "+setupBranch+" is deleted")
	return nil
}

// revert opens a pull request that deletes what others added and is there still.
func revert(ctx context.Context, r Repository, merged []setupPull, report *Report) error {
	open, err := openPull(ctx, r, removeBranch)
	if err != nil {
		return err
	}
	if open != nil {
		report.URL = open.URL
		report.Done = append(report.Done, "the pull request is open already")
		return nil
	}
	base, head, err := tip(ctx, r)
	if err != nil {
		return err
	}
	there, err := lookAt(ctx, r, head.Tree)
	if err != nil {
		return err
	}
	added, err := addedBy(ctx, r, merged)
	if err != nil {
		return err
	}
	needs, err := needsDefaults(ctx, r, there, added)
	if err != nil {
		return err
	}
	if needs != "" {
		delete(added, DefaultsPath)
		report.Left = append(report.Left, "delete "+DefaultsPath+" after "+needs+", whose key would go to another provider without it: both are left")
	}
	p := proposal{branch: removeBranch, title: "Remove agent-ci"}
	for _, path := range slices.Sorted(maps.Keys(added)) {
		id, still := there[path]
		if !still {
			continue
		}
		p.gone = append(p.gone, path)
		if id != added[path] {
			report.Left = append(report.Left, "look at "+path+" before the pull request is merged: it was changed since it was added, and is deleted with the changes")
		}
	}
	if len(p.gone) == 0 {
		if needs == "" {
			report.Done = append(report.Done, "no file of a setup is there any more")
		}
		return nil
	}
	if _, err := p.push(ctx, r, head); err != nil {
		return err
	}
	report.URL, err = p.open(ctx, r, base, removal(merged, p.gone, *report))
	return err
}

// needsDefaults is a workflow that stays and whose key would go elsewhere without the
// defaults; empty for none.
func needsDefaults(ctx context.Context, r Repository, there standing, added map[string]string) (string, error) {
	if there[DefaultsPath] == "" || added[DefaultsPath] == "" {
		return "", nil
	}
	openAI, _ := Lookup("openai")
	for _, at := range slices.Sorted(maps.Keys(there)) {
		if added[at] != "" || !isWorkflow(at) {
			continue
		}
		content, err := r.Blob(ctx, there[at])
		if err != nil {
			return "", err
		}
		if openAI.objects(content, false) != "" {
			return at, nil
		}
	}
	return "", nil
}

// addedBy are the files that setups added, the newest ids by path.
func addedBy(ctx context.Context, r Repository, merged []setupPull) (map[string]string, error) {
	added := map[string]string{}
	for _, pull := range merged { // the newest first
		files, err := r.PullRequestFiles(ctx, pull.Number)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			if _, known := added[file.Path]; !known && file.Status == "added" && isStarter(file.Path) {
				added[file.Path] = file.ID
			}
		}
	}
	return added, nil
}

func removal(merged []setupPull, gone []string, report Report) string {
	var b strings.Builder
	b.WriteString("This removes what `agent-ci init --github` added with")
	for _, pull := range merged {
		fmt.Fprintf(&b, " #%d", pull.Number)
	}
	b.WriteString(":\n\n")
	for _, path := range gone {
		fmt.Fprintf(&b, "- `%s`\n", path)
	}
	fmt.Fprintf(&b, "\nLeft for a person to do:\n\n- %s\n", strings.Join(report.Left, "\n- "))
	return b.String()
}
