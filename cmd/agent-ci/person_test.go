package main_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// person works in a checkout beside a run. What they write is text that is found again: it has to be in the file
// that they wrote, or in a commit or stash of theirs.
type person struct {
	w      *killWorld
	repo   string
	random *rand.Rand
	wrote  int
	files  map[string]string // what they wrote last and did not commit or stash, by file
	kept   []string          // what they committed or stashed
	did    []string          // for messages
}

// personFiles are the files that a person writes: tracked ones, new ones, ignored ones, and those that the
// agent changes too.
var personFiles = []string{"log.txt", "notes.txt", "lib/code.txt", "new/0/a.txt", "new/0", "command-1.txt", "mine.txt", "made.o", ".gitignore"}

// git runs git as a person does, and says whether it succeeded.
func (p *person) git(args ...string) bool {
	cmd := exec.Command("git", append([]string{"-C", p.repo}, args...)...)
	cmd.Env = p.w.env
	out, err := cmd.CombinedOutput()
	p.did = append(p.did, fmt.Sprintf("git %s: %v %s", strings.Join(args, " "), err, out))
	return err == nil
}

// act does one thing.
func (p *person) act() {
	switch p.random.IntN(8) {
	case 0, 1, 2, 3:
		p.edit(personFiles[p.random.IntN(len(personFiles))])
	case 4:
		p.git("add", "--all")
	case 5:
		if p.git("add", "--all") && p.git("commit", "--quiet", "--message=theirs") {
			p.keep()
		}
	case 6:
		if p.git("stash", "push", "--quiet", "--include-untracked") {
			p.keep()
		}
	case 7:
		branch := fmt.Sprintf("theirs-%d", p.random.IntN(3))
		if !p.git("switch", "--quiet", branch) {
			p.git("switch", "--quiet", "--create", branch)
		}
	}
}

func (p *person) edit(name string) {
	p.wrote++
	text, path := fmt.Sprintf("their text %d of %s.", p.wrote, filepath.Base(p.repo)), filepath.Join(p.repo, name)
	_ = os.MkdirAll(filepath.Dir(path), 0o755) // what is there is a file of theirs
	if os.WriteFile(path, []byte("*.o\n# "+text+"\n"), 0o644) == nil {
		p.files[name] = text
		p.did = append(p.did, "wrote "+name)
	}
}

// keep notes that git has what they wrote, without ignored files.
func (p *person) keep() {
	for name, text := range p.files {
		if !strings.HasSuffix(name, ".o") {
			p.kept = append(p.kept, text)
			delete(p.files, name)
		}
	}
}

// lost names what they wrote and do not find again.
func (p *person) lost() (lost []string) {
	commits := strings.Fields(p.w.git(p.repo, "for-each-ref", "--format=%(objectname)"))
	commits = append(commits, strings.Fields(p.w.git(p.repo, "stash", "list", "--format=%H"))...)
	inGit := p.w.git(p.repo, append([]string{"log", "--format=", "--patch", "-m", "--root"}, commits...)...)
	for name, text := range p.files {
		raw, err := os.ReadFile(filepath.Join(p.repo, name))
		if !strings.Contains(string(raw), text) && !strings.Contains(inGit, text) {
			lost = append(lost, fmt.Sprintf("%s (%q): %v %q", name, text, err, raw))
		}
	}
	for _, text := range p.kept {
		if !strings.Contains(inGit, text) {
			lost = append(lost, fmt.Sprintf("in git: %q", text))
		}
	}
	return lost
}

// TestKilledBesideUserEdits has a person write, stage, commit, stash and switch branches in a checkout at random
// while a run works there, and is killed and resumed, in both backings of the work tree. AGENT_CI_SEQUENCES=200
// makes that many sequences in each, AGENT_CI_SEED=N repeats one.
func TestKilledBesideUserEdits(t *testing.T) {
	t.Parallel()
	sequences := 5
	if n, err := strconv.Atoi(os.Getenv("AGENT_CI_SEQUENCES")); err == nil {
		sequences = n
	}
	seed := uint64(time.Now().UnixNano())
	if n, err := strconv.ParseUint(os.Getenv("AGENT_CI_SEED"), 10, 64); err == nil {
		seed = n
	}
	for _, backing := range []string{"overlay", "private"} {
		t.Run(backing, func(t *testing.T) {
			if backing == "overlay" && !overlaid() {
				t.Skip("needs overlays")
			}
			w := newKillWorld(t)
			w.gate.answer(stepwise(4))
			if backing == "private" {
				w.env = append(w.env, openly)
			}
			took, _ := w.undisturbed(func(repo, out string) []string {
				return []string{"run", "--prompt", "x", "--repo", repo, "--out", out, "--publish", "local", "--quiet"}
			})
			ended := map[string]int{}
			for n := range sequences {
				w.besideAPerson(n, seed+uint64(n), took, ended)
			}
			t.Logf("seed %d, a run takes %s; runs ended as %v", seed, took, ended)
		})
	}
}

// besideAPerson is one sequence.
func (w *killWorld) besideAPerson(n int, seed uint64, took time.Duration, ended map[string]int) {
	w.t.Helper()
	random := rand.New(rand.NewPCG(seed, 0))
	p := &person{w: w, repo: w.checkout(fmt.Sprintf("repo%d", n)), random: rand.New(rand.NewPCG(seed, 1)), files: map[string]string{"untracked.txt": "mine"}}
	w.write(filepath.Join(p.repo, "lib", "code.txt"), "code\n")
	w.write(filepath.Join(p.repo, "notes.txt"), "notes\n")
	w.git(p.repo, "add", "lib", "notes.txt")
	w.git(p.repo, "commit", "--quiet", "--message=more")
	out := fmt.Sprintf("run%d", n)
	args := []string{"run", "--prompt", "x", "--repo", p.repo, "--out", out, "--quiet", "--publish", []string{"none", "local"}[random.IntN(2)]}
	const mostKills = 3
	text := ""
	for round := range mostKills + 1 {
		kill := time.Duration(random.Float64() * float64(took))
		if round == mostKills || random.IntN(3) == 0 {
			kill = 0
		}
		acts, requests, begin, left := 1+random.IntN(10), 1+random.IntN(5), make(chan struct{}), make(chan struct{})
		w.gate.answer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if requests--; requests == 0 {
				close(begin)
			}
			stepwise(4).ServeHTTP(rw, r)
		}))
		over := make(chan struct{})
		go func() {
			defer close(left)
			select {
			case <-begin:
			case <-over:
			}
			for range acts {
				p.act()
			}
		}()
		whole := false
		text, whole = w.agent(kill, args...)
		close(over)
		<-left
		if whole {
			break
		}
		if _, err := os.Stat(filepath.Join(w.dir, out, "transcript.jsonl")); err != nil { // killed before it had begun
			out += "again"
			args[slices.Index(args, "--out")+1] = out
			continue
		}
		args = []string{"resume", out, "--quiet"}
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(text, "agent-ci: "), ":")
	ended[first]++
	if strings.HasPrefix(first, "internal_error") {
		w.t.Errorf("sequence with AGENT_CI_SEED=%d: %s\nthey did:\n%s", seed, text, strings.Join(p.did, "\n"))
	}
	if lost := p.lost(); len(lost) > 0 {
		w.t.Errorf("sequence with AGENT_CI_SEED=%d (n %d): of a person's work is missing:\n%s\nthe run: %v\n%s\nthey did:\n%s", seed, n, strings.Join(lost, "\n"), args, text, strings.Join(p.did, "\n"))
	}
	if out := w.git(p.repo, "fsck", "--strict", "--no-dangling"); strings.Contains(out, "error") {
		w.t.Errorf("sequence with AGENT_CI_SEED=%d: git fsck: %s", seed, out)
	}
	locks, _ := filepath.Glob(filepath.Join(p.repo, ".git", "*.lock"))
	if locks = slices.DeleteFunc(locks, func(lock string) bool { return filepath.Base(lock) == "index.lock" && strings.Contains(text, "resum") }); len(locks) > 0 {
		w.t.Errorf("sequence with AGENT_CI_SEED=%d left %v\n%s", seed, locks, text)
	}
}
