package intake

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/agent-ci/agent-ci/gitops/forge"
)

// BranchPrefix begins the names of the branches of runs, unless a job names
// another.
const BranchPrefix = "agent-ci/"

// OfRun says whether a branch is named like those of runs.
func OfRun(branch string) bool { return strings.HasPrefix(branch, BranchPrefix) }

// issueKey is the key of a task that an event brings as an issue.
func issueKey(jobName string, number int) string {
	return strings.TrimPrefix(fmt.Sprintf("%s-issue-%d", jobName, number), "-")
}

var endOfIssueKey = regexp.MustCompile(`(?:^|-)issue-([1-9][0-9]{0,8})$`)

// IssueOfKey gives the issue that a key was made for, 0 for none, and the name of
// the job in the key.
func IssueOfKey(key string) (jobName string, number int) {
	m := endOfIssueKey.FindStringSubmatchIndex(key)
	if m == nil {
		return "", 0
	}
	number, _ = strconv.Atoi(key[m[2]:m[3]]) // digits alone match
	return key[:m[0]], number
}

// IssueOfBranch is the issue that a run's branch was made for; 0 for none.
func IssueOfBranch(branch string) int {
	_, number := IssueOfKey(strings.TrimPrefix(branch, BranchPrefix))
	return number
}

// The marks that begin comments of runs. No page shows them. A later run knows by
// them that no person wrote the comment.
const (
	ProgressMark  = "<!-- agent-ci: progress -->\n"  // how far a run is
	QuestionsMark = "<!-- agent-ci: questions -->\n" // what an agent asks
	JoinMark      = "<!-- agent-ci: commit -->\n"    // a commit on a person's branch
)

// The marks in the body of a run's pull request that is not finished, in the
// place of FinishedMark.
const (
	UnfinishedMark  = "<!-- agent-ci: commit unfinished -->\n"
	UncommentedMark = "<!-- agent-ci: commit uncommented -->\n" // what is missing are comments, or that it is ready
)

const feedbackStart = "<!-- agent-ci: feedback "

// FeedbackMark begins what a run of a task said on an issue or pull request, in a
// review or a comment. input names what it was said of.
func FeedbackMark(key, input, run string) string {
	sum := sha256.Sum256([]byte(key)) // a key may hold what ends a comment of HTML
	return feedbackStart + hex.EncodeToString(sum[:4]) + " " + input + " " + run + " -->\n"
}

// FeedbackOf says of a text whether a run of the task said it; of what, and which run,
// are told then.
func FeedbackOf(text, key string) (input, run string, is bool) {
	first, _, _ := strings.Cut(text, "\n")
	first = strings.TrimSpace(first)
	fields := strings.Fields(strings.TrimSuffix(first, "-->"))
	if len(fields) != 6 || first+"\n" != FeedbackMark(key, fields[4], fields[5]) {
		return "", "", false
	}
	return fields[4], fields[5], true
}

// IsFeedback says whether a text looks like what a run of some task said.
func IsFeedback(text string) bool { return strings.HasPrefix(text, feedbackStart) }

// FindingMark begins a finding on lines of a pull request's diff.
const FindingMark = "<!-- agent-ci: finding -->\n"

// InputTrailer names in a commit the digest of what people wrote for its task.
const InputTrailer = "Agent-CI-Input"

const finishedStart = "<!-- agent-ci: commit "

// FinishedMark tells in the body of a pull request for which commit the body and
// its comments were finished.
func FinishedMark(commit string) string { return finishedStart + commit + " -->\n" }

// IsFinished says whether a body tells of the commit with all that goes with it.
// A body without a mark is a person's, which stays while nothing changes.
func IsFinished(body, commit string) bool {
	_, rest, marked := strings.Cut(body, finishedStart)
	return !marked || strings.HasPrefix(rest, commit+" -->")
}

// FruitlessMark ends the progress comment of a run whose input came to nothing on
// its base: no branch tells a later run of it.
func FruitlessMark(snapshot, baseSHA string) string {
	return fmt.Sprintf("\n<!-- agent-ci: no change came of %s on %s -->\n", snapshot, baseSHA)
}

// ownMarks matches every mark that agent-ci writes, and no other comment: a free text between the
// same signs may be somebody's hidden order.
var ownMarks = sync.OnceValue(func() *regexp.Regexp {
	const commit, run = `[0-9a-f]{40,64}`, `[0-9]{8}T[0-9]{6}Z-[0-9a-f]{8}`
	return regexp.MustCompile(`<!-- agent-ci(?:: (?:` + strings.Join([]string{
		`progress|questions|finding|draft|transcript|template|end of template`,
		`commit(?: unfinished| uncommented| ` + commit + `)?`,
		`repair(?: of ` + commit + ` by ` + run + ` attempts=[0-9]{1,10} spent=[0-9]{1,9}\.[0-9]{4} rerun=(?:true|false))?`,
		`feedback [0-9a-f]{8} ` + commit + ` ` + run,
		`no change came of ` + commit + ` on ` + commit,
		`requests [0-9A-Za-z+/]+={0,2}`, // base64
	}, "|") + `)|-setup: [0-9A-Z_]+ ` + commit + `) -->`)
})

// withoutMarks returns a text without agent-ci's own marks, so that no warning calls them hidden.
func withoutMarks(text string) string { return ownMarks().ReplaceAllString(text, "") }

// IsProgress says whether a comment looks like a run's progress.
func IsProgress(c forge.Comment) bool { return strings.HasPrefix(c.Body, ProgressMark) }
