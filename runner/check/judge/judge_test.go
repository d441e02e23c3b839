package judge

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/changeset"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/secrets"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome/outcometest"
	"github.com/agent-ci/agent-ci/runner/record/recordtest"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

const token = "tops3cretvalue"

// caseOf is a case with a record that has the patch of the change.
func caseOf(t *testing.T, j job.Job, change *gitops.ChangeSet, patch string) Case {
	t.Helper()
	rec := recordtest.New(t, "", secrets.Value{Name: "TOKEN", Secret: token})
	must.Do(t, rec.Write(record.PatchFile, []byte(patch)))
	return Case{
		Record: rec, Job: &j, Change: change, Checkout: &store{blobs: map[string]string{"": ""}}, // changed makes files without an ID
		RunnerPaths: func(*gitops.ChangeSet) ([]string, error) { return nil, nil },
	}
}

// store is a Checkout with contents by their blob's id. With Git LFS files, it has all blobs.
type store struct {
	blobs, lfs map[string]string
	open       int // number of contents that are open
}

func (s *store) Blob(id string) (io.ReadCloser, int64, error) {
	content, known := s.blobs[id]
	if !known && s.lfs == nil {
		return nil, 0, fmt.Errorf("no %s", id)
	}
	return s.opened(content)
}

func (s *store) OpenLFS(_ context.Context, id string) (io.ReadCloser, int64, error) {
	if content, known := s.lfs[id]; known {
		return s.opened(content)
	}
	return nil, 0, nil
}

func (s *store) opened(content string) (io.ReadCloser, int64, error) {
	s.open++
	return blob{strings.NewReader(content), &s.open}, int64(len(content)), nil
}

func (*store) Unfiltered(context.Context, *gitops.ChangeSet) ([]gitops.Unfiltered, error) {
	return nil, nil
}

func changed(paths ...string) *gitops.ChangeSet {
	change := &gitops.ChangeSet{}
	for _, path := range paths {
		change.Files = append(change.Files, changeset.File{Path: path, Status: changeset.Added, NewMode: "100644"})
	}
	return change
}

func TestLimitsSize(t *testing.T) {
	two := changed("a", "b")
	two.Insertions, two.Deletions = 3, 4
	for name, c := range map[string]struct {
		change *gitops.ChangeSet
		limits job.Limits
		want   string
	}{
		"no limits":             {two, job.Limits{}, ""},
		"no change":             {nil, job.Limits{DiffFiles: 1, DiffLines: 1}, ""},
		"as many as allowed":    {two, job.Limits{DiffFiles: 2, DiffLines: 7}, ""},
		"one file more":         {two, job.Limits{DiffFiles: 1, DiffLines: 7}, "diff_files"},
		"one line more":         {two, job.Limits{DiffFiles: 2, DiffLines: 6}, "diff_lines"},
		"files come before":     {two, job.Limits{DiffFiles: 1, DiffLines: 1}, "diff_files"},
		"lines without a file":  {&gitops.ChangeSet{Insertions: 9}, job.Limits{DiffLines: 1}, ""},
		"problems are no files": {&gitops.ChangeSet{Problems: make([]gitops.Problem, 9)}, job.Limits{DiffFiles: 1}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			must.Same(t, c.want, outcometest.Reason(Case{Job: &job.Job{Limits: c.limits}, Change: c.change}.limitSize(t.Context())))
		})
	}
}

func TestRefusesLargeFiles(t *testing.T) {
	contents := &store{blobs: map[string]string{"six": "123456", "five": "12345"}}
	file := func(path, old, now string) changeset.File {
		return changeset.File{Path: path, OldID: old, NewID: now, NewMode: "100644"}
	}
	for name, c := range map[string]struct {
		files []changeset.File
		want  string
	}{
		"as large as allowed": {[]changeset.File{file("a", "", "five")}, ""},
		"larger":              {[]changeset.File{file("a", "", "five"), {Path: "b", NewID: "six", NewMode: "100755", Binary: true}}, "file_size"},
		"gone":                {[]changeset.File{{Path: "a", OldID: "six", OldMode: "100644"}}, ""},
		"moved":               {[]changeset.File{{Path: "a", OldID: "six", OldMode: "100644"}, file("b", "", "six")}, ""},
		"another mode":        {[]changeset.File{file("a", "six", "six")}, ""},
		"a submodule":         {[]changeset.File{{Path: "a", NewID: "commit", NewMode: "160000"}}, ""},
		"lost":                {[]changeset.File{file("a", "", "lost")}, `measure "a": no lost`},
	} {
		t.Run(name, func(t *testing.T) {
			judged := Case{Job: &job.Job{Limits: job.Limits{FileSize: 5}}, Change: &gitops.ChangeSet{Files: c.files}, Checkout: contents}
			must.Same(t, c.want, outcometest.Reason(judged.limitSize(t.Context())))
		})
	}
}

func TestSearchesNoLargeFile(t *testing.T) {
	c := caseOf(t, job.Job{Limits: job.Limits{DiffFiles: 1}}, changed("a", "b"), "+"+token)
	c.Record.Remove(record.PatchFile)
	must.Same(t, "diff_files", outcometest.Reason(c.Judge(t.Context())))
	c.Job.Limits.DiffFiles = 2
	if err := c.Judge(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "read "+record.PatchFile+": ") {
		t.Errorf("without a patch: %v", err)
	}
}

func TestJudgesPaths(t *testing.T) {
	protect := job.Policy{Protect: []string{"locked/**"}}
	protect.Change.Protected = "fail"
	for name, c := range map[string]struct {
		policy  func(*job.Policy)
		change  *gitops.ChangeSet
		refused []string // parts of the message; none: it is not refused
		warned  string
	}{
		"nothing about it": {change: changed("src/a.go")},
		"protected":        {change: changed("a", "locked/b", "locked/c"), refused: []string{`"locked/b" is protected`, `; "locked/c" is`}},
		"a submodule, of which nothing is read": {
			policy: func(p *job.Policy) { p.Change.Submodules = "allow" },
			change: &gitops.ChangeSet{Files: []changeset.File{{Path: "sub", NewMode: "160000", NewID: "commit"}}},
		},
		"protected, to be warned of": {
			policy: func(p *job.Policy) { p.Change.Protected = "warn" },
			change: changed("locked/b"), warned: `"locked/b" is protected by policy.protect (policy.change.protected).`,
		},
		"protected, to be dropped, and dropped by nobody": {
			policy: func(p *job.Policy) { p.Change.Protected = "drop" },
			change: changed("locked/b"), refused: []string{`"locked/b" is protected by policy.protect.`},
		},
		"a problem with what cannot be part of it": {
			change:  &gitops.ChangeSet{Problems: []gitops.Problem{{Kind: gitops.ProblemLarge, Path: "big", Detail: "It has 9 bytes."}}},
			refused: []string{`"big" is too large to be part of a change (It has 9 bytes)`},
		},
		"a detail that says no more": {
			change: &gitops.ChangeSet{
				Files:    []changeset.File{{Path: "link", NewMode: "120000"}},
				Problems: []gitops.Problem{{Kind: gitops.ProblemLink, Path: "link", Detail: "it leads to /etc"}},
			},
			policy:  func(p *job.Policy) { p.Change.SymlinksOut = "fail" },
			refused: []string{`"link" is a symbolic link that leads out of the repository (policy.change.symlinks_out).`},
		},
		"two problems of one path, which is told of each once": {
			change: &gitops.ChangeSet{Problems: []gitops.Problem{
				{Kind: gitops.ProblemName, Path: "GIT~1"}, {Kind: gitops.ProblemRepository, Path: "GIT~1"},
			}},
			policy:  func(p *job.Policy) { p.Change.NestedGit = "fail" },
			refused: []string{`published: "GIT~1" has a name that some systems take for .git; "GIT~1" is a repository of its own`},
		},
		"what nobody may allow": {
			change:  &gitops.ChangeSet{Problems: []gitops.Problem{{Kind: gitops.ProblemUnreadable, Path: "x", Detail: "permission denied"}}},
			refused: []string{"(permission denied)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			j := job.Job{Policy: protect}
			if c.policy != nil {
				c.policy(&j.Policy)
			}
			judged := caseOf(t, j, c.change, "")
			err := judged.Judge(t.Context())
			for _, part := range c.refused {
				if err == nil || outcometest.Reason(err) != "change" || !strings.Contains(err.Error(), part) {
					t.Errorf("got %v, want %s in it", err, part)
				}
			}
			if len(c.refused) == 0 && err != nil {
				t.Error(err)
			}
			warned := ""
			for _, w := range judged.Record.Warnings() {
				warned += w.Message
			}
			must.Same(t, c.warned, warned, "warned")
		})
	}
}

func TestBoundsWarnings(t *testing.T) {
	var paths []string
	for i := range 23 {
		paths = append(paths, fmt.Sprintf("locked/%d", i))
	}
	j := job.Job{Policy: job.Policy{Protect: []string{"locked/**"}}}
	j.Policy.Change.Protected = "warn"
	c := caseOf(t, j, changed(paths...), "")
	must.Do(t, c.Judge(t.Context()))
	warned := c.Record.Warnings()
	if len(warned) != 21 || !strings.HasPrefix(warned[20].Message, "3 more files") {
		t.Errorf("%d warnings, the last %v", len(warned), warned[len(warned)-1])
	}
}

func TestRefusesInvalidPattern(t *testing.T) {
	c := caseOf(t, job.Job{Policy: job.Policy{Protect: []string{"["}}}, changed("a"), "")
	must.Fail(t, "", c.Judge(t.Context()), "it was judged")
}

func TestRefusesExcludedWork(t *testing.T) {
	large := []gitops.Problem{{Kind: gitops.ProblemLarge, Path: "big"}}
	for name, c := range map[string]struct {
		change *gitops.ChangeSet
		want   string
	}{
		"no change set": {nil, ""},
		"no work":       {&gitops.ChangeSet{}, ""},
		"left out":      {&gitops.ChangeSet{Problems: large}, "change"},
	} {
		t.Run(name, func(t *testing.T) {
			must.Same(t, c.want, outcometest.Reason(caseOf(t, job.Job{}, c.change, "").RefuseExcludedOnly()))
		})
	}
}
