package main_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-git/go-git/v5/plumbing"
	"pgregory.net/rapid"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/changeset"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// TestOverlayChangesMatchCopy lets commands and tools of whole runs do things at
// random in an overlay. The change that a run finds is the one that a look at all files
// finds in a copy of what its commands see; the checkout is as it was until the change
// is put there, and then has that and nothing else; and a check sees the same. AGENT_CI_SEED=N
// repeats what was drawn.
func TestOverlayChangesMatchCopy(t *testing.T) {
	t.Parallel()
	if !overlaid() {
		t.Skip("needs overlays")
	}
	w := newCopyWorld(t)
	took, runs, failed := 8*time.Second, 0, false
	if everything() {
		took = time.Minute
	}
	seed, seeded := strconv.ParseUint(os.Getenv("AGENT_CI_SEED"), 10, 64)
	for until := time.Now().Add(took); time.Now().Before(until); seed++ {
		if seeded == nil {
			must.Do(t, flag.Set("rapid.seed", strconv.FormatUint(seed, 10)))
		}
		rapid.Check(t, func(r *rapid.T) {
			if !failed && time.Now().After(until) {
				return
			}
			runs++
			failed = true // what fails is tried over and over
			w.compare(r, drawScribbles(r))
			failed = false
		})
	}
	t.Logf("%d runs", runs)
}

// copyWorld is a checkout that is played in over and over.
type copyWorld struct {
	workshop
	seed  string // the checkout as each run finds it
	model *turning
	runs  int
}

func newCopyWorld(t *testing.T) *copyWorld {
	t.Helper()
	model := new(turning)
	server := httptest.NewServer(model)
	t.Cleanup(server.Close)
	w := &copyWorld{model: model, workshop: newWorkshop(t, "PATH="+besiegers(t)+":"+os.Getenv("PATH"),
		"OPENAI_BASE_URL="+server.URL+"/v1", "OPENAI_API_KEY=sk-test-0123456789abcdef", "AGENT_CI_MODEL_STREAM=false",
	)}
	w.seed = filepath.Join(w.dir, "seed")
	for name, text := range map[string]string{
		".gitignore": "*.log\n/build/*\n!/build/kept\nnode_modules\n", "one": "1\n", "two": "2\n", "a/one": "1\n", "a/two": "2\n", "a/b/one": "deep\n", "a/b/c/two": "deeper\n",
		"build/kept": "kept\n", "c/sp ace": "s\n", "c/-dash": "d\n", "c/new\nline": "n\n", "dïr/é": "e\n", "c/\xff\xfe": "bytes\n", "run.sh": "#!/bin/sh\n",
	} {
		w.write(filepath.Join(w.seed, name), text)
	}
	must.Do(t, errors.Join(os.Symlink("a/one", filepath.Join(w.seed, "link")), os.Symlink("a/b", filepath.Join(w.seed, "c/dirlink")), os.Chmod(filepath.Join(w.seed, "run.sh"), 0o755)))
	w.repository(w.seed)
	for name, text := range map[string]string{"mine": "untracked\n", "a/x.log": "ignored\n", "build/out": "ignored\n", "node_modules/one/two": "ignored\n", "b/one": "untracked\n", "inner/one": "of another repository\n"} {
		w.write(filepath.Join(w.seed, name), text)
	}
	w.git(w.seed, "init", "--quiet", "inner")
	must.Do(t, os.MkdirAll(filepath.Join(w.seed, "a/empty/empty"), 0o755))
	return w
}

// copied copies the tree that a command works in, but for its .git, to a folder.
func copied(to string) string {
	return fmt.Sprintf("rm -rf %[1]s; mkdir -p %[1]s; find . -mindepth 1 -maxdepth 1 ! -name .git -exec cp -a -t %[1]s -- {} +", to)
}

// compare plays a run of scribbles.
func (w *copyWorld) compare(r *rapid.T, s scribbles) {
	w.runs++
	p := &played{copyWorld: w, scribbles: s, r: r, dir: filepath.Join(w.dir, fmt.Sprintf("run%d", w.runs))}
	defer w.forget(p.dir)
	must.Do(r, os.MkdirAll(p.in("seen"), 0o755))
	for _, checkout := range []string{"repo", "twin"} {
		w.copy(r, w.seed, p.in(checkout))
	}
	p.before = statsBelow(r, p.in("repo"))
	p.run()
	p.same("the checkout before the change is put there", map[string]string{}, w.model.ended())
	want := p.inCopy()
	change, found := w.change(p.in("out"))
	if !found {
		r.Fatalf("no change was looked for: %s", p.printed)
	}
	p.same("files", wordsOf(want), wordsOfEvent(change))
	p.same("tree", string(want.Tree), change.TreeSHA)
	kept := p.ended("policy_violation/change") && strings.Contains(p.printed, " The work is in ")
	if p.ended("conflict/not_in_checkout") || kept {
		p.same("the checkout where something of the user's is in the way of the change", map[string]string{}, differing(p.before, statsBelow(r, p.in("repo"))))
		return
	}
	if !p.ended("changed/left_in_checkout", "no_changes/") && !(p.ended("policy_violation/change") && len(want.Problems) > 0) {
		r.Fatalf("with the problems %v the run ended as %s", want.Problems, p.printed)
	}
	p.landed(want)
	if len(s.setup) == 0 && len(want.Files) > 0 && len(want.Problems) == 0 {
		p.same("the tree of a check", filesBelow(r, p.in("repo")), filesBelow(r, p.in("seen/checked")))
	}
}

// played is a run of scribbles. In its folder, repo is the checkout, out is of the run,
// seen has what commands saw, and twin is a checkout in which that is looked at.
type played struct {
	*copyWorld
	scribbles
	r       *rapid.T
	dir     string
	before  map[string]string // the stat data of the checkout
	printed string
}

func (p *played) in(name string) string { return filepath.Join(p.dir, name) }

func (p *played) same(what string, want, got any) {
	must.Same(p.r, want, got, p.printed, what)
}

// ended says whether the run ended in one of these ways.
func (p *played) ended(ways ...string) bool {
	return slices.ContainsFunc(ways, func(way string) bool { return strings.HasPrefix(p.printed, way) })
}

func (p *played) run() {
	seen := p.in("seen")
	job := map[string]any{
		"version": 1, "name": "scribble", "task": map[string]string{"prompt": "Scribble."}, "model": map[string]any{"context_window": 1_000_000_000},
		"verify": []any{map[string]string{"name": "copy", "run": copied(seen + "/checked")}}, "verify_attempts": 0,
		"policy": map[string]any{"writable": []string{seen}, "change": map[string]string{
			"symlinks_out": "allow", "symlinks": "allow", "executables": "allow", "nested_git": "allow", "submodules": "allow", "protected": "allow", "lockfiles": "allow",
		}},
		"limits": map[string]any{"diff_files": 5000, "diff_lines": 100000},
	}
	if len(p.setup) > 0 {
		job["setup"] = []any{map[string]string{"run": strings.Join(p.setup, "\n") + "\n" + copied(seen+"/set-up")}}
	}
	must.Write(p.t, p.in("job.yml"), asJSON(p.t, job))
	p.model.play(append(slices.Clone(p.turns), []any{execCommand(copied(seen + "/tree"))}), func() map[string]string {
		return differing(p.before, statsBelow(p.r, p.in("repo")))
	})
	p.printed, _ = p.agent("run", p.in("job.yml"), "--repo", p.in("repo"), "--out", p.in("out"), "--publish", "none", "--quiet")
}

// inCopy is the change that is found where commands did it all in a copy of the checkout.
func (p *played) inCopy() *gitops.ChangeSet {
	checkout := p.open(p.r, p.in("twin"))
	defer checkout.Close()
	if len(p.setup) > 0 {
		p.replace(p.r, p.in("twin"), p.in("seen/set-up"))
	}
	snapshot := must.Get(checkout.Snapshot(p.t.Context()))(p.r)
	p.replace(p.r, p.in("twin"), p.in("seen/tree"))
	change := must.Get(checkout.Changes(p.t.Context(), snapshot))(p.r)
	return change
}

// landed checks what the run has put into its checkout: the change, and nothing else.
func (p *played) landed(want *gitops.ChangeSet) {
	seed := p.open(p.r, p.seed) // what was not tracked there is what was not in the checkout
	defer seed.Close()
	snapshot := must.Get(seed.Snapshot(p.t.Context()))(p.r)
	checkout := p.open(p.r, p.in("repo"))
	defer checkout.Close()
	got := must.Get(checkout.Changes(p.t.Context(), snapshot))(p.r)
	p.same("the change in the checkout", wordsOf(p.shown(want)), wordsOf(got))
	after := differing(p.before, statsBelow(p.r, p.in("repo")))
	for _, file := range want.Files {
		for name := file.Path; name != "."; name = path.Dir(name) {
			delete(after, name)
		}
	}
	maps.DeleteFunc(after, func(name, _ string) bool {
		return len(want.Files) > 0 && (name == "." || name == ".git/index")
	})
	p.same("what else changed in the checkout", map[string]string{}, after)
}

// shown returns the change without the files that the checkout ignores, and checks the content of those. The change
// has such a file if an ignored .gitignore lets it in: that .gitignore is no part of the change.
func (p *played) shown(change *gitops.ChangeSet) *gitops.ChangeSet {
	var names bytes.Buffer
	for _, file := range change.Files {
		names.WriteString(file.Path + "\x00")
	}
	check := exec.Command("git", "-C", p.in("repo"), "check-ignore", "-z", "--stdin")
	check.Stdin = &names
	ignored, _ := check.Output() // git fails if it ignores none
	shown := *change
	shown.Files = slices.DeleteFunc(slices.Clone(change.Files), func(file changeset.File) bool {
		if !strings.Contains("\x00"+string(ignored), "\x00"+file.Path+"\x00") {
			return false
		}
		name := filepath.Join(p.in("repo"), file.Path)
		info := must.Get(os.Lstat(name))(p.t)
		mode, id := "100644", ""
		if info.Mode()&fs.ModeSymlink != 0 {
			mode, id = "120000", plumbing.ComputeHash(plumbing.BlobObject, []byte(must.Get(os.Readlink(name))(p.t))).String()
		} else if id = p.git(p.in("repo"), "hash-object", "--", file.Path); info.Mode()&0o100 != 0 {
			mode = "100755"
		}
		p.same("the ignored file "+file.Path, file.NewMode+" "+string(file.NewID), mode+" "+id)
		return true
	})
	return &shown
}

func (w *copyWorld) open(r *rapid.T, dir string) *gitops.Checkout {
	state := filepath.Join(w.dir, "state")
	err := os.MkdirAll(state, 0o755)
	git, _ := exec.LookPath("git")
	checkout, opened := gitops.Open(w.t.Context(), gitops.Options{Dir: dir, Git: git, State: state})
	must.Do(r, errors.Join(err, opened))
	return checkout
}

func (w *copyWorld) copy(r *rapid.T, from, to string) {
	if out, err := exec.Command("cp", "-a", "-T", from, to).CombinedOutput(); err != nil {
		r.Fatalf("%v: %s", err, out)
	}
}

// replace puts a tree into the place of the files of a checkout.
func (w *copyWorld) replace(r *rapid.T, checkout, tree string) {
	out, err := exec.Command("find", checkout, "-mindepth", "1", "-maxdepth", "1", "!", "-name", ".git", "-exec", "rm", "-rf", "--", "{}", "+").CombinedOutput()
	if err != nil {
		r.Fatalf("%v: %s", err, out)
	}
	w.copy(r, tree, checkout)
}

func (w *copyWorld) forget(dir string) {
	_ = exec.Command("chmod", "-R", "u+rwX", dir).Run()
	must.Is(w.t, nil, os.RemoveAll(dir))
}

// change is the last change that a run found.
func (w *copyWorld) change(out string) (change transcript.Change, found bool) {
	for _, event := range readEvents(w.t, filepath.Join(out, "transcript.jsonl")) {
		if event.Type == transcript.TypeChange {
			change, found = dataOf[transcript.Change](w.t, event), true
		}
	}
	return change, found
}

func wordsOf(change *gitops.ChangeSet) (words []string) {
	for _, f := range change.Files {
		words = append(words, fmt.Sprintf("%s %q %s→%s %s→%s", f.Status, f.Path, f.OldMode, f.NewMode, f.OldID, f.NewID))
	}
	return words
}

func wordsOfEvent(change transcript.Change) (words []string) {
	for _, f := range change.Files {
		name := f.Path
		if strings.HasPrefix(name, `"`) && strings.Contains(name, `\x`) { // as a transcript has what is not Unicode
			words = append(words, fmt.Sprintf("%s %s %s→%s %s→%s", f.Status, name, f.OldMode, f.NewMode, f.OldID, f.NewID))
			continue
		}
		words = append(words, fmt.Sprintf("%s %q %s→%s %s→%s", f.Status, name, f.OldMode, f.NewMode, f.OldID, f.NewID))
	}
	return words
}

// statsBelow is the stat data of all files of a checkout but what agent-ci itself keeps
// in .git, without the times of access.
func statsBelow(r *rapid.T, dir string) map[string]string {
	stats := map[string]string{}
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, file)
		if name == ".git" || strings.HasPrefix(name, ".git/agent-ci") {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		s := info.Sys().(*syscall.Stat_t)
		stats[name] = fmt.Sprintf("%o %d:%d %d links of %d, %d bytes, written %d.%d, changed %d.%d", s.Mode, s.Uid, s.Gid, s.Nlink, s.Ino, s.Size, s.Mtim.Sec, s.Mtim.Nsec, s.Ctim.Sec, s.Ctim.Nsec)
		return nil
	})
	must.Do(r, err)
	return stats
}

func differing(before, after map[string]string) map[string]string {
	differ := map[string]string{}
	for name, was := range before {
		if is := after[name]; is != was {
			differ[name] = was + " → " + is
		}
	}
	for name, is := range after {
		if _, was := before[name]; !was {
			differ[name] = "→ " + is
		}
	}
	return differ
}

// filesBelow are the files and links below a folder without .git, as git looks at them.
func filesBelow(r *rapid.T, dir string) map[string]string {
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(dir, file)
		switch {
		case err != nil:
			return err
		case d.Name() == ".git" && d.IsDir():
			return fs.SkipDir
		case d.Type()&fs.ModeSymlink != 0:
			files[name], err = os.Readlink(file)
			files[name] = "→ " + files[name]
		case d.Type().IsRegular():
			info, failed := d.Info()
			text, read := os.ReadFile(file)
			if err = errors.Join(failed, read); err == nil {
				files[name] = fmt.Sprintf("%t %q", info.Mode()&0o100 != 0, text)
			}
		case !d.IsDir():
			files[name] = d.Type().String()
		}
		return err
	})
	must.Do(r, err)
	return files
}

// turning is a model that makes the calls of a turn after those of another.
type turning struct {
	mu    sync.Mutex
	turns [][]any
	count int
	end   func() map[string]string // is called before the last word is said
	found map[string]string        // by end
}

func (m *turning) play(turns [][]any, end func() map[string]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turns, m.count, m.end, m.found = turns, 0, end, nil
}

// ended is what was found before the last word was said; nil where it was not said.
func (m *turning) ended() map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.found
}

func (m *turning) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	items := []any{says("Done.")}
	if m.count < len(m.turns) {
		items = nil
		for i, call := range m.turns[m.count] {
			item := maps.Clone(call.(map[string]any))
			id := fmt.Sprintf("call_%d_%d", m.count, i)
			item["id"], item["call_id"], item["status"] = "item_"+id, id, "completed"
			items = append(items, item)
		}
	} else {
		m.found = m.end()
	}
	m.count++
	respond(w, 10, items...)
}

func execCommand(text string) any {
	return asks("", "exec_command", map[string]any{"cmd": text, "yield_time_ms": 30000})
}

// scribbles are what setup commands and the agent of a run do.
type scribbles struct {
	setup []string
	turns [][]any
}

func drawScribbles(r *rapid.T) (s scribbles) {
	s.setup = rapid.SliceOfN(rapid.Custom(drawAddition), 0, 4).Draw(r, "setup")
	for range rapid.IntRange(1, 4).Draw(r, "turns") {
		var calls []any
		for range rapid.IntRange(1, 3).Draw(r, "calls") {
			if rapid.IntRange(0, 2).Draw(r, "tool") > 0 {
				calls = append(calls, execCommand(strings.Join(rapid.SliceOfN(rapid.Custom(drawCommand), 1, 8).Draw(r, "commands"), "\n")))
			} else {
				calls = append(calls, drawPatch(r))
			}
		}
		s.turns = append(s.turns, calls)
	}
	return s
}

var (
	oddNames   = []string{"sp ace", "-dash", "quo'te\"", "new\nline", "back\\slash", "\xff\xfe", "é", "e\u0301", "git~1", "trailing.", "*", "CON", ".gitignore", ".gitattributes", "..."}
	plainNames = []string{"one", "two", "one", "two", "x.log", "kept", "out", "run.sh", "link", "dirlink", "mine", "a", "b", "c"}
	topFolders = []string{"a", "b", "c", "a/b", "a/b/c", "build", "dïr", "node_modules", "node_modules/one", "inner", "a/empty", "a/empty/empty", "c/dirlink", "new", "new/er"}
)

func drawName(r *rapid.T, odd bool) string {
	names := plainNames
	if odd {
		names = append(slices.Clone(plainNames), oddNames...)
	}
	name := rapid.SampledFrom(names).Draw(r, "name")
	if rapid.Bool().Draw(r, "below") {
		name = rapid.SampledFrom(topFolders).Draw(r, "folder") + "/" + name
	}
	return name
}

func drawFolder(r *rapid.T) string { return rapid.SampledFrom(topFolders).Draw(r, "folder") }

// inShell is a name as a word of a shell's command, whatever bytes it has.
func inShell(name string) string {
	name = "./" + name
	if utf8.ValidString(name) {
		return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
	}
	var octal strings.Builder
	for _, b := range []byte(name) {
		fmt.Fprintf(&octal, `\%03o`, b)
	}
	return `"$(printf '` + octal.String() + `')"`
}

// doings are what commands do to A, B and the folders F and G; TEXT is a number. No
// folder becomes one that the command which copies may not read.
var doings = []string{
	"mkdir -p $(dirname A); echo TEXT >A", "echo TEXT >A", "echo TEXT >A", "echo TEXT >>A", ": >A", "truncate -s 3 A", "touch A", "cat A >A.tmp && mv A.tmp A", "sed -i s/1/TEXT/ A",
	"rm -rf A", "rm -rf A", "rm -f A", "rm -rf F", "rmdir F", "find F -type f -delete", "mkdir -p A", "mkdir -p F/G",
	"mv -T A B", "mv -T A B", "mv A F", "mv -T F G", "mv -T F B", "mv -T F .hidden", "cp -a A B", "cp -a F G", "cp -aT F G",
	"ln -s TEXT A", "ln -s B A", "ln -sfn F A", "ln A B", "ln -f A B", "ln A B; echo TEXT >>B",
	"chmod 755 A", "[ -d A ] || chmod 644 A", "[ -d A ] || chmod 600 A", "[ -d A ] || chmod 444 A", "chmod 700 F", "chmod u+x F/*",
	"rm -rf A; mkdir A; echo TEXT >A/one", "rm -rf A; echo TEXT >A", "rm -rf A; ln -s F A", "rm -rf A; mkfifo A", "rm -rf A; mkdir A", "rm -rf A; cp -a F A",
	"rm -rf F; mkdir F; echo TEXT >F/one", "rm -rf F; mkdir -p F/G; echo TEXT >F/new", "rm -rf F; mkdir F", "mv -T F gone; mkdir F; mv gone F/gone", "mv -T F F.x; mv -T F.x F",
	"git init -q F", "git init -q A", "rm -rf F/.git", "mkdir -p F/.git; echo TEXT >F/.git/HEAD", "echo TEXT >F/.git",
	"git status --porcelain >F/status.txt", "git mv A B", "git stash", "git checkout -q -- .", "git clean -fdq",
	"echo '*.log' >F/.gitignore", "echo one >.gitignore", "echo '!x.log' >>F/.gitignore", "rm -f .gitignore", "echo '* text eol=crlf' >F/.gitattributes", "printf '1\\r\\n' >A",
	"for i in 1 2 3 4 5 6 7 8 9; do echo $i >F/n$i; done",
	"intruder disturb once 'exchange F G'", "intruder disturb once 'exchange one F'", "intruder disturb once 'mark F opaque'", "intruder disturb once 'mark F redirect'", "intruder disturb once 'mark one whiteout'", "intruder disturb once 'xattr two'",
}

func fill(r *rapid.T, way string) string {
	if strings.HasPrefix(way, "intruder ") {
		return strings.NewReplacer("F", drawFolder(r), "G", drawFolder(r)).Replace(way) + " >/dev/null"
	}
	a, b := drawName(r, true), drawName(r, true)
	f, g := drawFolder(r), drawFolder(r)
	way = strings.ReplaceAll(way, "F/G", inShell(f)+"/g")
	way = strings.NewReplacer("A.tmp", inShell(a+".tmp"), "A.new", inShell(a+".new"), "F.x", inShell(f+".x"), "F.new", inShell(f+".new"), "A", inShell(a), "B", inShell(b), "F", inShell(f), "G", inShell(g), "TEXT", fmt.Sprint(rapid.IntRange(0, 9).Draw(r, "text"))).Replace(way)
	return "{ " + way + "; } 2>/dev/null || true"
}

func drawCommand(r *rapid.T) string { return fill(r, rapid.SampledFrom(doings).Draw(r, "way")) }

// additions are what setup commands do, which must leave tracked files as they are. They
// take nothing away that is not tracked: it stays in the checkout.
var additions = []string{
	"mkdir -p new/er; echo TEXT >new/er/one", "echo TEXT >new-file", "echo TEXT >mine", "mkdir -p node_modules/two; echo TEXT >node_modules/two/one", "echo TEXT >a/x.log", "echo TEXT >build/out",
	"ln -sfn a/b new-link", "mkdir -p a/empty/empty; echo TEXT >a/empty/empty/one", "git init -q new", "chmod 755 mine", "rm -rf mine; echo TEXT >mine", "echo '*.tmp' >a/b/.gitignore", "touch a/one", "cp -a a a2",
	"echo TEXT >A.new", "mkdir F.new; mkfifo F.new/pipe", "rm -f a/one; echo 1 >a/one", "cat a/b/one >a/b/one.tmp && mv a/b/one.tmp a/b/one",
}

func drawAddition(r *rapid.T) string {
	return fill(r, rapid.SampledFrom(additions).Draw(r, "addition"))
}

// patches are what a patch does to A and B; and to files of which it knows what they
// have.
var patches = []string{
	"*** Add File: A\n+TEXT\n", "*** Add File: A\n+TEXT\n", "*** Delete File: A\n", "*** Delete File: a/two\n", "*** Update File: a/one\n@@\n-1\n+TEXT\n", "*** Update File: a/b/one\n@@\n-deep\n+TEXT\n",
	"*** Update File: two\n*** Move to: A\n@@\n-2\n+TEXT\n", "*** Update File: one\n*** Move to: A\n@@\n 1\n+TEXT\n", "*** Add File: A\n+TEXT\n*** Delete File: B\n",
}

func drawPatch(r *rapid.T) any {
	a, b := drawName(r, false), drawName(r, false)
	text := fmt.Sprint(rapid.IntRange(0, 9).Draw(r, "text"))
	if rapid.IntRange(0, 3).Draw(r, "built in") == 0 {
		operation := map[string]any{"type": "create_file", "path": a, "diff": "+" + text + "\n"}
		if rapid.Bool().Draw(r, "delete") {
			operation = map[string]any{"type": "delete_file", "path": a}
		}
		return map[string]any{"type": "apply_patch_call", "operation": operation}
	}
	body := strings.NewReplacer("A\n", a+"\n", "B\n", b+"\n", "TEXT", text).Replace(rapid.SampledFrom(patches).Draw(r, "patch"))
	return map[string]any{"type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin Patch\n" + body + "*** End Patch"}
}
