package policy

import (
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

func TestJudge(t *testing.T) {
	usual := map[Concern]Treatment{ConcernSymlink: Warn, ConcernExecutable: Warn, ConcernLockfile: Allow}
	file := func(path, oldMode, newMode string, found ...Concern) ChangedFile {
		return ChangedFile{Path: path, OldMode: oldMode, NewMode: newMode, Found: found}
	}
	for _, test := range []struct {
		name  string
		treat map[Concern]Treatment
		file  ChangedFile
		want  Verdict
	}{
		{"ordinary file", usual, file("a.go", "100644", "100644"), Verdict{}},
		{"new file", usual, file("a.go", "", "100644"), Verdict{}},
		{"deleted file", usual, file("a.go", "100644", ""), Verdict{}},
		{"protected", usual, file("ci/x.yml", "", "100644"), Verdict{Fail: []Finding{{"ci/x.yml", ConcernProtected}}}},
		{"protected, deleted", usual, file("ci/x.yml", "100644", ""), Verdict{Fail: []Finding{{"ci/x.yml", ConcernProtected}}}},
		{"protected, warned of", map[Concern]Treatment{ConcernProtected: Warn}, file("ci/x", "", "100644"), Verdict{Warn: []Finding{{"ci/x", ConcernProtected}}}},
		{"submodule", usual, file("sub", "160000", "160000"), Verdict{Fail: []Finding{{"sub", ConcernSubmodule}}}},
		{"submodule removed", usual, file("sub", "160000", ""), Verdict{Fail: []Finding{{"sub", ConcernSubmodule}}}},
		{"submodule, found and seen", usual, file("sub", "", "160000", ConcernSubmodule), Verdict{Fail: []Finding{{"sub", ConcernSubmodule}}}},
		{"nested repository", usual, file("x", "", "", ConcernNestedGit), Verdict{Fail: []Finding{{"x", ConcernNestedGit}}}},
		{"link out", usual, file("l", "", "120000", ConcernSymlinkOut), Verdict{Fail: []Finding{{"l", ConcernSymlinkOut}}}},
		{"link", usual, file("l", "", "120000"), Verdict{Warn: []Finding{{"l", ConcernSymlink}}}},
		{"link removed", usual, file("l", "120000", ""), Verdict{}},
		{"new executable", usual, file("x.sh", "", "100755"), Verdict{Warn: []Finding{{"x.sh", ConcernExecutable}}}},
		{"made executable", usual, file("x.sh", "100644", "100755"), Verdict{Warn: []Finding{{"x.sh", ConcernExecutable}}}},
		{"executable before", usual, file("x.sh", "100755", "100755"), Verdict{}},
		{"lockfile", usual, file("web/package-lock.json", "100644", "100644"), Verdict{}},
		{"lockfile, refused", map[Concern]Treatment{ConcernLockfile: Fail}, file("go.sum", "100644", "100644"), Verdict{Fail: []Finding{{"go.sum", ConcernLockfile}}}},
		{"two concerns", usual, file("ci/run.sh", "", "100755"), Verdict{
			Fail: []Finding{{"ci/run.sh", ConcernProtected}}, Warn: []Finding{{"ci/run.sh", ConcernExecutable}},
		}},
		{"what cannot be read cannot be allowed", map[Concern]Treatment{ConcernUnreadable: Allow}, file("a", "", "", ConcernUnreadable), Verdict{Fail: []Finding{{"a", ConcernUnreadable}}}},
		{"a name like .git cannot be allowed", map[Concern]Treatment{ConcernName: Allow}, file(".GIT/x", "", "100644", ConcernName), Verdict{Fail: []Finding{{".GIT/x", ConcernName}}}},
		{"nothing said", nil, file("x.sh", "", "100755"), Verdict{Fail: []Finding{{"x.sh", ConcernExecutable}}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := must.Get(Changes{Protect: []string{"ci/**"}, Treat: test.treat}.Judge([]ChangedFile{test.file}))(t)
			must.Same(t, test.want, got)
		})
	}
}

func TestDropLeavesProtectedPathsOut(t *testing.T) {
	files := []ChangedFile{{Path: "ci/x", NewMode: "100755"}, {Path: "a", NewMode: "100644"}, {Path: "sub", NewMode: "160000"}}
	got := must.Get(Changes{Protect: []string{"ci/**"}, Treat: map[Concern]Treatment{ConcernProtected: Drop}}.Judge(files))(t)
	must.Same(t, Verdict{Drop: []string{"ci/x"}, Fail: []Finding{{"sub", ConcernSubmodule}}}, got)
	must.Fail(t, "", must.Err((Changes{Protect: []string{"[x"}}).Judge(files)), "a pattern that cannot be read is no error")
}

func TestEveryConcernHasWords(t *testing.T) {
	for concern, words := range concernWords {
		got := Finding{"a b", concern}.String()
		if !strings.HasPrefix(got, `"a b" `+words) || strings.Contains(got, "policy.change.") != concern.hasKey() {
			t.Error(got)
		}
	}
	must.Same(t, 12, len(concernWords), "concerns have words")
}
