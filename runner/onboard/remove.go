package onboard

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/forge"
)

// Remove takes away what the pull request of a setup added: it closes one that is open,
// and opens one against what was merged. The secret, the setting and the label are
// named for a person to undo: others may use them by now.
func Remove(ctx context.Context, r Repository, server string) (report Report, err error) {
	pull, err := r.FindPullRequest(ctx, setupBranch, "")
	if err != nil {
		return report, err
	}
	secret, ours := secretOf(pull)
	if !ours {
		return report, fmt.Errorf("%s has no pull request of agent-ci init --github: delete .github/workflows/agent-ci-*.yml and %s by hand", r.Name(), DefaultsPath)
	}
	page := server + "/" + r.Name()
	report.Left = []string{
		"delete the secret " + secret + " if nothing else uses it: " + page + "/settings/secrets/actions",
		"turn off \"Allow GitHub Actions to create and approve pull requests\" if nothing else needs it: " + page + "/settings/actions",
		"delete the label " + Label + " if you want to: " + page + "/labels",
	}
	switch {
	case pull.State == "open":
		err = withdraw(ctx, r, pull, &report)
	case !pull.Merged:
		report.Done = append(report.Done, "the pull request was closed without being merged: it added no file")
	default:
		err = revert(ctx, r, pull, &report)
	}
	return report, err
}

// secretOf reads the mark of a setup's pull request.
func secretOf(pull *forge.PullRequest) (secret string, ours bool) {
	if pull == nil {
		return "", false
	}
	at := regexp.MustCompile(strings.Replace(marker, "%s", `([A-Z][A-Z0-9_]{0,99})`, 1)).FindStringSubmatch(pull.Body)
	if at == nil {
		return "", false
	}
	return at[1], true
}

// withdraw closes a pull request that was not merged, and deletes its branch.
func withdraw(ctx context.Context, r Repository, pull *forge.PullRequest, report *Report) error {
	closed := "closed"
	if _, err := r.UpdatePullRequest(ctx, pull.Number, forge.PullRequestUpdate{State: &closed}); err != nil {
		return err
	}
	report.Done = append(report.Done, "the pull request "+pull.URL+" is closed")
	if err := r.DeleteBranch(ctx, setupBranch); err != nil {
		return err
	}
	report.Done = append(report.Done, "its branch "+setupBranch+" is deleted")
	return nil
}

// revert opens a pull request that deletes what another added and is there still.
func revert(ctx context.Context, r Repository, pull *forge.PullRequest, report *Report) error {
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
	files, err := r.PullRequestFiles(ctx, pull.Number)
	if err != nil {
		return err
	}
	var gone []forge.TreeEdit
	for _, file := range files {
		if file.Status != "added" || !isStarter(file.Path) {
			continue
		}
		there, err := r.Has(ctx, head.Tree, file.Path)
		if err != nil {
			return err
		}
		if there {
			gone = append(gone, forge.TreeEdit{Path: file.Path})
		}
	}
	if len(gone) == 0 {
		report.Done = append(report.Done, "no file of "+pull.URL+" is there any more")
		return nil
	}
	proposal := proposal{branch: removeBranch, title: "Remove agent-ci", body: removal(pull, gone, *report), edits: gone}
	report.URL, err = proposal.open(ctx, r, base, head)
	return err
}

// isStarter says whether a path can be one of a setup. Somebody may have pushed other
// files to its branch.
func isStarter(path string) bool {
	return path == DefaultsPath || regexp.MustCompile(`^\.github/workflows/agent-ci-[a-z-]+\.yml$`).MatchString(path)
}

func removal(pull *forge.PullRequest, gone []forge.TreeEdit, report Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "This removes what #%d added:\n\n", pull.Number)
	for _, edit := range gone {
		fmt.Fprintf(&b, "- `%s`\n", edit.Path)
	}
	fmt.Fprintf(&b, "\nLeft for a person to do:\n\n- %s\n", strings.Join(report.Left, "\n- "))
	return b.String()
}
