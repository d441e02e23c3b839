package forgetest

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// gitEnviron is the environment of git, in addition to PATH.
var gitEnviron = []string{"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "LC_ALL=C"}

func (r *Repository) runGit(args ...string) (string, error) {
	return r.runGitWith(nil, "", args...)
}

// runGitWith runs git in the bare repository and returns its output. env is added to the
// environment, input is the standard input.
func (r *Repository) runGitWith(env []string, input string, args ...string) (string, error) {
	cmd := exec.Command(r.forge.git, append([]string{"-C", r.Dir}, args...)...)
	cmd.Env = append(append([]string{"PATH=" + cmp.Or(os.Getenv("PATH"), "/usr/local/bin:/usr/bin:/bin")}, gitEnviron...), env...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, failed.Stderr)
	}
	return string(out), err
}

// mustGit runs git and fails the test if git fails.
func (r *Repository) mustGit(env []string, input string, args ...string) string {
	out, err := r.runGitWith(env, input, args...)
	if err != nil {
		r.forge.t.Error(err)
	}
	return out
}

// ofCommits runs git with the ids of commits. It keeps the output, because commits never change.
func (r *Repository) ofCommits(args ...string) (string, error) {
	key := strings.Join(args, " ")
	if out, known := r.outputs[key]; known {
		return out, nil
	}
	out, err := r.runGit(args...)
	if err == nil {
		r.outputs[key] = out
	}
	return out, err
}

// branch returns the commit of a branch.
func (r *Repository) branch(name string) (string, bool) {
	raw, err := os.ReadFile(filepath.Join(r.Dir, "refs", "heads", name))
	if sha := strings.TrimSpace(string(raw)); err == nil && objectName.MatchString(sha) {
		return sha, true
	}
	sha, found := r.refs()["refs/heads/"+name]
	return sha, found
}

func (r *Repository) empty() bool {
	if _, found := r.branch(r.DefaultBranch); found {
		return false
	}
	out, err := r.runGit("for-each-ref", "--count=1")
	return err == nil && out == ""
}

var objectName = regexp.MustCompile(`^[0-9a-f]{40}$`)

type commit struct {
	sha, tree         string
	parents           []string
	author, committer signature
	message           string
	changes           changes // since its only parent
}

type signature struct {
	Name  string    `json:"name"`
	Email string    `json:"email"`
	Date  time.Time `json:"date"`
}

const commitFormat = "%H%x00%T%x00%P%x00%an%x00%ae%x00%aI%x00%cn%x00%ce%x00%cI%x00%B%x00"

// commit returns a commit. It returns false for a missing commit.
func (r *Repository) commit(sha string) (commit, bool) {
	if !objectName.MatchString(sha) {
		return commit{}, false
	}
	out, err := r.ofCommits("log", "--max-count=1", "--no-show-signature", "--numstat", "--format="+commitFormat, sha)
	fields := strings.SplitN(out, "\x00", 11)
	if err != nil || len(fields) != 11 {
		return commit{}, false
	}
	return commit{
		sha: fields[0], tree: fields[1], parents: strings.Fields(fields[2]),
		author: signatureFrom(fields[3:6]), committer: signatureFrom(fields[6:9]),
		message: strings.TrimRight(fields[9], "\n"), changes: countChanges(fields[10]),
	}, true
}

// commitOnlyAfter returns the commit head if base is its only parent, as in most pull requests of tests. Then git
// has nothing more to say about the two.
func (r *Repository) commitOnlyAfter(base, head string) (commit, bool) {
	c, found := r.commit(head)
	return c, found && slices.Equal(c.parents, []string{base})
}

func signatureFrom(fields []string) signature {
	date, _ := time.Parse(time.RFC3339, fields[2])
	return signature{fields[0], fields[1], date.UTC()}
}

// commitsBetween returns the number of commits that are in head but not in base.
func (r *Repository) commitsBetween(base, head string) int {
	if _, found := r.commitOnlyAfter(base, head); found {
		return 1
	}
	out, err := r.ofCommits("rev-list", "--count", base+".."+head)
	if err != nil {
		return 0
	}
	count, _ := strconv.Atoi(strings.TrimSpace(out))
	return count
}

// mergeable returns the mergeable state of a pull request: clean or dirty.
func (r *Repository) mergeable(base, head string) string {
	if _, found := r.commitOnlyAfter(base, head); found {
		return "clean"
	}
	if _, err := r.ofCommits("merge-tree", "--write-tree", base, head); err != nil {
		return "dirty"
	}
	return "clean"
}

type changes struct{ files, additions, deletions int }

// changesBetween returns the numbers of files and lines that a pull request changes.
func (r *Repository) changesBetween(base, head string) changes {
	if c, found := r.commitOnlyAfter(base, head); found {
		return c.changes
	}
	out, _ := r.ofCommits("diff", "--numstat", base+"..."+head)
	return countChanges(out)
}

// countChanges returns the sums of what git lists with --numstat.
func countChanges(numstat string) (size changes) {
	for line := range strings.Lines(strings.TrimSpace(numstat)) {
		fields := strings.Fields(line)
		added, _ := strconv.Atoi(fields[0]) // "-" for a binary file
		deleted, _ := strconv.Atoi(fields[1])
		size.files, size.additions, size.deletions = size.files+1, size.additions+added, size.deletions+deleted
	}
	return size
}
