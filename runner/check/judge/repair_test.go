package judge

import (
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/changeset"
)

// TestRefusesRepairOfItsJudges changes .github in each way that a change set knows.
func TestRefusesRepairOfItsJudges(t *testing.T) {
	file := func(path, mode, id string) changeset.File {
		return changeset.File{Path: path, NewMode: mode, NewID: id}
	}
	workflow, greet := file(".github/workflows/ci.yml", "100644", "1"), file("greet.sh", "100644", "2")
	for name, c := range map[string]struct {
		before, change []changeset.File
		names          string // what is refused; empty for nothing
	}{
		"nothing of it":                  {nil, []changeset.File{greet}, ""},
		"as the pull request had it":     {[]changeset.File{workflow}, []changeset.File{workflow, greet}, ""},
		"another path of that beginning": {nil, []changeset.File{file(".github.md", "100644", "1"), file("docs/.github/x", "100644", "1")}, ""},
		"a workflow":                     {nil, []changeset.File{workflow}, "ci.yml"},
		"otherwise than before":          {[]changeset.File{workflow}, []changeset.File{file(workflow.Path, "100644", "3")}, "ci.yml"},
		"another mode":                   {[]changeset.File{workflow}, []changeset.File{file(workflow.Path, "100755", "1")}, "ci.yml"},
		"taken back":                     {[]changeset.File{workflow, greet}, []changeset.File{greet}, "ci.yml"},
		"gone":                           {nil, []changeset.File{{Path: workflow.Path, OldMode: "100644", OldID: "1"}}, "ci.yml"},
		"renamed out of it":              {nil, []changeset.File{{Path: workflow.Path, OldMode: "100644", OldID: "1"}, file("ci.yml", "100644", "1")}, ".github"},
		"renamed into it":                {nil, []changeset.File{{Path: "x.yml", OldMode: "100644", OldID: "1"}, file(".github/x.yml", "100644", "1")}, "x.yml"},
		"in capitals":                    {nil, []changeset.File{file(".GitHub/workflows/ci.yml", "100644", "1")}, "ci.yml"},
		"a link in its place":            {nil, []changeset.File{{Path: workflow.Path, OldMode: "100644", OldID: "1"}, file(".github", "120000", "4")}, ".github"},
		"a submodule in it":              {nil, []changeset.File{file(".github/actions", "160000", "5")}, "actions"},
		"a submodule in its place":       {nil, []changeset.File{file(".github", "160000", "5")}, ".github"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Case{RepairedChange: &gitops.ChangeSet{Files: c.before}, Change: &gitops.ChangeSet{Files: c.change}}.refuseChangedWorkflows()
			if (err != nil) != (c.names != "") || err != nil && !strings.Contains(err.Error(), c.names) {
				t.Errorf("%v", err)
			}
		})
	}
}
