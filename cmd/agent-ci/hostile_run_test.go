package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

// TestFollowsNoLinksInRunDirectory has each command that writes to a run directory work in one of a stranger,
// whose files are links to what is dear to the user.
func TestFollowsNoLinksInRunDirectory(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	repo := filepath.Join(w.dir, "repo")
	w.write("repo/greet.sh", "echo hello\n")
	w.repository(repo)
	const first = "version: 1\nturns:\n  - output: [{call: exec_command, arguments: {cmd: 'echo more >>greet.sh'}}]\n"
	w.write("first.yml", first+"  - fail: {status: 429, code: insufficient_quota, message: pay}\n")
	w.write("again.yml", first+"  - fail: {status: 429, code: insufficient_quota, message: pay}\n  - output: [{call: exec_command, arguments: {cmd: 'cat greet.sh; echo more >>greet.sh'}}]\n  - output: [{say: Done.}]\n")
	if told, err := w.agent("run", "--prompt", "x", "--repo", repo, "--out", "run", "--publish", "local", "--quiet", "--replay", "first.yml", "--set", "model.outage=1us"); !strings.Contains(told, "model_failed/quota") {
		t.Fatalf("%v\n%s", err, told)
	}
	for name, c := range map[string]struct {
		links []string
		want  string // of resume
	}{
		"files":   {[]string{"report.html", "pull_request.md", "result.json", "leftover", "changes", "checkout", "files", "resume.lock"}, "changed/"},
		"outputs": {[]string{"outputs"}, "path escapes from parent"},
		"state":   {[]string{"state"}, "path escapes from parent"},
		"a patch": {[]string{"changes.patch"}, "path escapes from parent"},
		"a pack":  {[]string{"changes.pack"}, "path escapes from parent"},
		"a chain": {[]string{"transcript.jsonl"}, "is not a run directory"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			hostile, dear := filepath.Join(dir, "run"), filepath.Join(dir, "dear")
			must.Do(t, os.CopyFS(hostile, os.DirFS(filepath.Join(w.dir, "run"))))
			w.write(filepath.Join(dear, "folder", "kept"), "dear")
			w.write(filepath.Join(dear, "file"), "dear")
			for _, link := range c.links {
				at, to := filepath.Join(hostile, link), filepath.Join(dear, "file")
				if info, err := os.Stat(at); err == nil && info.IsDir() || !strings.Contains(link, ".") {
					to = filepath.Join(dear, "folder")
				}
				must.Do(t, os.RemoveAll(at))
				must.Do(t, os.Symlink(to, at))
			}
			told, _ := w.agent("resume", hostile, "--quiet", "--repo", repo, "--replay", "again.yml")
			must.Contain(t, told, c.want)
			for _, command := range []string{"report", "replay", "publish"} {
				_, _ = w.agent(command, hostile, "--repo", repo)
			}
			var left []string
			err := filepath.WalkDir(dear, func(path string, entry os.DirEntry, err error) error {
				if err == nil && !entry.IsDir() {
					left = append(left, strings.TrimPrefix(path, dear+"/")+": "+read(t, path))
				}
				return err
			})
			if all := strings.Join(left, ", "); err != nil || all != "file: dear, folder/kept: dear" {
				t.Errorf("what is dear is %s, %v", all, err)
			}
			w.git(repo, "checkout", "--quiet", "--force", "main")
		})
	}
}
