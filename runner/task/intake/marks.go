package intake

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// BranchPrefix is the default prefix for branches of runs. A job may name another branch.
const BranchPrefix = "agent-ci/"

// IsRunBranch reports whether a branch has the name of a run's branch.
func IsRunBranch(branch string) bool { return strings.HasPrefix(branch, BranchPrefix) }

var endOfIssueKey = lazyregexp.New(`(?:^|-)issue-([1-9][0-9]{0,8})$`)

// IssueOfKey splits a task key such as deps-issue-7 into job name and issue number; 0 for no issue.
func IssueOfKey(key string) (jobName string, number int) {
	m := endOfIssueKey().FindStringSubmatch(key)
	if m == nil {
		return "", 0
	}
	end, digits := m[0], m[1]
	number, _ = strconv.Atoi(digits)
	return strings.TrimSuffix(key, end), number
}

// IssueOfBranch returns the issue number in the name of a run's branch, or 0.
func IssueOfBranch(branch string) int {
	_, number := IssueOfKey(strings.TrimPrefix(branch, BranchPrefix))
	return number
}

// The marks at the start of comments by runs. No page shows them. They tell later runs that no
// person wrote the comment.
const (
	ProgressMark  = "<!-- agent-ci: progress -->\n"  // how far a run is
	QuestionsMark = "<!-- agent-ci: questions -->\n" // questions of an agent
	JoinMark      = "<!-- agent-ci: commit -->\n"    // a commit on a person's branch
)

// The marks in the body of a run's unfinished pull request, in place of FinishedMark.
const (
	UnfinishedMark  = "<!-- agent-ci: commit unfinished -->\n"
	UncommentedMark = "<!-- agent-ci: commit uncommented -->\n" // only comments, labels, assignees or the ready state are missing
)

const feedbackStart = "<!-- agent-ci: feedback "

// FeedbackMark returns the first line of a run's feedback on an issue or pull request, in a review
// or a comment. input identifies the text it was given on.
func FeedbackMark(key, input, run string) string {
	return fmt.Sprintf("%s%.4x %s %s -->\n", feedbackStart, sha256.Sum256([]byte(key)), input, run) // a key may contain the end of an HTML comment
}

// FeedbackOf returns the input and the run in the mark of a feedback text, which FeedbackMark wrote. found
// is false if text is no feedback of the task with this key.
func FeedbackOf(text, key string) (input, run string, found bool) {
	first, _, _ := strings.Cut(text, "\n")
	first = strings.TrimSpace(first)
	fields := strings.Fields(strings.TrimSuffix(first, "-->")) // <!-- agent-ci: feedback KEY INPUT RUN
	if len(fields) != 6 || first+"\n" != FeedbackMark(key, fields[4], fields[5]) {
		return "", "", false
	}
	return fields[4], fields[5], true
}

// FindingMark begins a finding on lines of a pull request's diff.
const FindingMark = "<!-- agent-ci: finding -->\n"

// InputTrailer is the commit trailer with the digest of the task's input.
const InputTrailer = "Agent-CI-Input"

const finishedStart = "<!-- agent-ci: commit "

// FinishedMark returns the mark that declares a pull request's body and comments finished for commit.
func FinishedMark(commit string) string { return finishedStart + commit + " -->\n" }

// IsFinished reports whether the body declares commit finished. A body without a mark is a
// person's. It stays unless something changes.
func IsFinished(body, commit string) bool {
	_, rest, marked := strings.Cut(body, finishedStart)
	return !marked || strings.HasPrefix(rest, commit+" -->")
}

// FruitlessMark returns the mark at the end of a progress comment after a run without a change.
// Such a run leaves no branch as evidence for later runs.
func FruitlessMark(snapshot, baseSHA string) string {
	return fmt.Sprintf("\n<!-- agent-ci: no change came of %s on %s -->\n", snapshot, baseSHA)
}

// ownMarks matches every mark written by agent-ci, and no other comment: free text in the same form
// may be a hidden instruction.
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

// IsProgress reports whether a comment looks like a run's progress.
func IsProgress(c forge.Comment) bool { return strings.HasPrefix(c.Body, ProgressMark) }
