package intake

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
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

// IssueOfKey is the issue that a key was made for, and what stands before its
// mark, the job's name; 0 for a key of another task.
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
