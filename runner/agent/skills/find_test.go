package skills

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/policy/must"
)

func TestMain(m *testing.M) { os.Exit(gittest.Run(m)) }

// committed is a checkout whose base commit has files. They are not written to the disk.
func committed(t *testing.T, files map[string]string) *gitops.Checkout {
	t.Helper()
	r := gittest.New(t)
	var commands strings.Builder
	commands.WriteString("commit refs/heads/main\ncommitter a <a@example.com> 0 +0000\ndata 0\n")
	for name, text := range files {
		fmt.Fprintf(&commands, "M 100644 inline %s\ndata %d\n%s\n", name, len(text), text)
	}
	r.GitWith(nil, []byte(commands.String()), "fast-import", "--quiet")
	c := must.Get(gitops.Open(t.Context(), gitops.Options{Dir: r.Dir, Git: gittest.Program(t), State: t.TempDir()}))(t)
	t.Cleanup(func() { _ = c.Close() })
	must.Get(c.SetBase(gitops.BaseSpec{}))(t)
	return c
}

func skillFile(name, description string) string {
	return "---\nname: " + name + "\ndescription: " + description + "\n---\nText.\n"
}

func names(found Found) (names []string) {
	for _, s := range found.Skills {
		names = append(names, s.Name+" "+s.Path)
	}
	return names
}

func TestPrefersSkillsOfEarlierFolder(t *testing.T) {
	c := committed(t, map[string]string{
		"one/a/SKILL.md": skillFile("a", "First."), "two/a/SKILL.md": skillFile("a", "Second."), "two/group/b/SKILL.md": skillFile("b", "B."),
		"two/group/b/inner/SKILL.md": skillFile("inner", "A file of b."), "two/group/b/x.md": "x", "alone/SKILL.md": skillFile("alone", "The folder itself."),
		"beside/c/SKILL.md": skillFile("c", "In no folder that is named."),
	})
	found := must.Get(Find(c, []string{"one", "none", "two", "alone"}))(t)
	must.Same(t, []string{"a one/a/SKILL.md", "b two/group/b/SKILL.md", "alone alone/SKILL.md"}, names(found))
	must.Same(t, []Problem{{"two/a/SKILL.md", `has the name "a", which "one/a/SKILL.md" has already`, true}}, found.Problems, "problems")
	must.Same(t, []string{"inner/SKILL.md", "x.md"}, found.Skills[1].Files, "files")
}

func TestBoundsSkillSearch(t *testing.T) {
	files := map[string]string{}
	for n := range maxFolders {
		files[fmt.Sprintf("empty/%04d/x", n)] = ""
	}
	for n := range maxSkills + 5 {
		files[fmt.Sprintf("many/s%04d/SKILL.md", n)] = skillFile(fmt.Sprintf("s%04d", n), "x")
	}
	for n := range maxFiles + 5 {
		files[fmt.Sprintf("large/a/%04d", n)] = ""
	}
	for n := range 20 {
		files[fmt.Sprintf("long/a/%s%d", strings.Repeat("x", 240), n)] = ""
	}
	for n := range maxProblems + 5 {
		files[fmt.Sprintf("wrong/%03d/SKILL.md", n)] = "No front matter.\n"
	}
	files["large/a/SKILL.md"], files["long/a/SKILL.md"] = skillFile("a", "x"), skillFile("a", "x")
	c := committed(t, files)
	if found, err := Find(c, []string{"wrong", "many"}); err != nil || len(found.Problems) != maxProblems+1 || !strings.Contains(found.Problems[maxProblems].Message, "200 skills") {
		t.Errorf("of many problems: %v, %d, %.300v", err, len(found.Problems), found.Problems[max(0, len(found.Problems)-1):])
	}
	for folder, want := range map[string]struct {
		skills, files, more int
		problems            []Problem
	}{
		"empty": {problems: []Problem{{"empty/1999", "and what comes after it is not looked at: there are more than 2000 folders", true}}},
		"many":  {skills: maxSkills, problems: []Problem{{"many/s0200", "and what comes after it is not looked at: there are more than 200 skills", true}}},
		"large": {skills: 1, files: maxFiles, more: 5},
		"long":  {skills: 1, files: maxFilesText / 241, more: 20 - maxFilesText/241},
	} {
		found := must.Get(Find(c, []string{folder}))(t)
		if len(found.Skills) != want.skills || want.files > 0 && (len(found.Skills[0].Files) != want.files || found.Skills[0].UnlistedFiles != want.more) {
			t.Errorf("%s: %d skills: %.300v", folder, len(found.Skills), found.Skills)
		}
		must.Same(t, want.problems, found.Problems, folder, "problems (-")
	}
}
