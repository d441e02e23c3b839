package intake

import (
	"context"
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/task/intake/clean"
)

// How much of a pull request's diff an agent is shown, in bytes: the files themselves
// are in its checkout.
const (
	maxDiffBytes     = 200_000
	maxFileDiffBytes = 40_000
)

// maxDiffReads limits the attempts to read a diff while its pull request gets new commits.
const maxDiffReads = 3

// ReadDiff reads a pull request and its changed files, both at the same commit.
func ReadDiff(ctx context.Context, repository forge.Repository, number int) (pull *forge.PullRequest, files []forge.PullFile, err error) {
	pull, err = ReadPullRequest(ctx, repository, number)
	if err != nil {
		return nil, nil, err
	}
	for range maxDiffReads {
		files, err = repository.PullRequestFiles(ctx, number)
		if err != nil {
			return nil, nil, ForgeFailure(fmt.Sprintf("The diff of pull request #%d cannot be read", number), err)
		}
		newest, err := ReadPullRequest(ctx, repository, number)
		if err != nil {
			return nil, nil, err
		}
		if newest.HeadSHA == pull.HeadSHA {
			return pull, files, nil
		}
		pull = newest
	}
	return nil, nil, outcome.Stopf(outcome.Conflict, "pull_request_moved",
		"Pull request #%d got new commits each time its diff was read; run again later.", number)
}

// partOfDiff formats the diff for an agent: the hunks of each file with new line numbers, and hidden
// characters made visible.
func partOfDiff(pull *forge.PullRequest, files []forge.PullFile) clean.Part {
	var b strings.Builder
	fmt.Fprintf(&b, "%d files changed.\n", len(files))
	for _, file := range files {
		text := fileDiff(file)
		if b.Len()+len(text) > maxDiffBytes {
			text = fmt.Sprintf("\n%s (%s): its diff is left out here; look at the file.\n", markdown.FileName(file.Path), file.Status)
		}
		if b.Len()+len(text) > 2*maxDiffBytes {
			b.WriteString("\n… and more files.\n")
			break
		}
		b.WriteString(text)
	}
	return clean.Part{Kind: "diff", Author: pull.Author.Login, Text: b.String(), Shown: true}
}

// fileDiff returns a file's diff with the numbers of new lines, cut at maxFileDiffBytes.
func fileDiff(file forge.PullFile) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s (%s)", markdown.FileName(file.Path), file.Status)
	if file.From != "" {
		fmt.Fprintf(&b, ", from %s", markdown.FileName(file.From))
	}
	b.WriteString("\n")
	if file.Patch == "" {
		b.WriteString("No diff of it is shown: it is binary, too large, or only moved.\n")
	}
	for _, hunk := range file.Hunks() {
		b.WriteString(markdown.Show(hunk.Head) + "\n")
		number := hunk.First
		for _, line := range hunk.Lines {
			if b.Len() > maxFileDiffBytes {
				b.WriteString("… the rest of its diff is left out here; look at the file.\n")
				return b.String()
			}
			if strings.HasPrefix(line, "+") || strings.HasPrefix(line, " ") {
				fmt.Fprintf(&b, "%6d %s\n", number, markdown.Show(line))
				number++
				continue
			}
			fmt.Fprintf(&b, "%6s %s\n", "", markdown.Show(line))
		}
	}
	return b.String()
}
