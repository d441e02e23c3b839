package bench

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
	"github.com/agent-ci/agent-ci/runner/model/modeltest"
)

// mostOverhead is what a target of a campaign may cost more than a run that is started alone.
const mostOverhead = 20 * time.Millisecond

// BenchmarkTargetsAtOnce has the model answer nobody before all runs of a campaign have asked it.
func BenchmarkTargetsAtOnce(b *testing.B) {
	const atOnce, mostOfAll = 64, 2 << 30
	repositories := make([]string, atOnce)
	for i := range repositories {
		repositories[i] = fmt.Sprintf("octo/r%03d", i)
	}
	var waiting, most int64
	for b.Loop() {
		waiting, most = newCampaign(b, smallRepository(b), repositories, atOnce).memory(b)
	}
	results.memoryOf(fmt.Sprintf("%d targets of a campaign at once, the memory of all processes (sum of PSS) while all wait for the model", atOnce), waiting, mostOfAll)
	results.memoryOf("  the most that was seen from start to exit", most, mostOfAll)
}

// BenchmarkTarget compares targets of a campaign, one after the other, with the same runs started alone.
func BenchmarkTarget(b *testing.B) {
	const targets, rounds = 20, 5
	repositories := make([]string, targets)
	for i := range targets {
		repositories[i] = fmt.Sprintf("octo/r%03d", i)
	}
	var together, alone []sighting
	for b.Loop() {
		together, alone = nil, nil
		for range rounds {
			c := newCampaign(b, smallRepository(b), repositories, 1)
			together = append(together, c.run(b)) // writes the jobs of the others
			alone = append(alone, c.alone(b))
		}
	}
	results.overhead("a target of a campaign, over the run alone with its clone, processor time", lowest(together, sighting.cpu)/targets, lowest(alone, sighting.cpu)/targets)
	results.overhead("  start to exit", lowest(together, sighting.total)/targets, lowest(alone, sighting.total)/targets)
}

func (t *table) overhead(figure string, together, alone time.Duration) {
	t.time(fmt.Sprintf("%s (of %s)", figure, milliseconds(together)), together-alone, mostOverhead)
}

// lowest is how long it takes where nothing else works on the machine, or next to nothing: a difference
// of a few percent would be lost in medians.
func lowest(seen []sighting, of func(sighting) time.Duration) time.Duration {
	return of(slices.MinFunc(seen, func(a, b sighting) int { return cmp.Compare(of(a), of(b)) }))
}

// campaignRun is a campaign that was not run yet, over targets of a forge.
type campaignRun struct {
	program      string
	dir          string // of the campaign file and the ledger
	environ      []string
	forge        *forgetest.Forge
	repositories []string // of the targets
	model        *sessions
}

// newCampaign plans a campaign whose targets each change a file of these repositories, which are copies
// of one.
func newCampaign(b *testing.B, of string, repositories []string, atOnce int) *campaignRun {
	b.Helper()
	program, err := filepath.Abs(*binary)
	if err == nil {
		_, err = os.Stat(program)
	}
	if err != nil {
		b.Skipf("there is no program to measure (%v); make bench builds it", err)
	}
	c := &campaignRun{program: program, dir: b.TempDir(), forge: forgetest.New(b, forgetest.Options{}), repositories: repositories, model: &sessions{}}
	c.model.begin(b, len(repositories))
	listed := ""
	for i, repository := range repositories {
		if !slices.Contains(repositories[:i], repository) {
			owner, name, _ := strings.Cut(repository, "/")
			git(b, of, "push", "--quiet", c.forge.AddRepository(owner, name).Dir, "main")
		}
		listed += fmt.Sprintf("{\"repository\": %q, \"values\": {\"number\": %q}}\n", repository, numberOf(i))
	}
	model := httptest.NewServer(c.model)
	b.Cleanup(model.Close)
	c.environ = append(gitEnvironment(), "PATH="+os.Getenv("PATH"), "HOME="+c.dir, "GITHUB_API_URL="+c.forge.APIURL, "GITHUB_SERVER_URL="+c.forge.URL, "GITHUB_TOKEN="+c.forge.Token,
		"OPENAI_BASE_URL="+model.URL+"/v1", "OPENAI_API_KEY=a-key-for-the-scripted-server")
	text := fmt.Sprintf(`version: 1
name: bump
targets: {file: targets.txt}
rollout: {at_once: %d}
job:
  version: 1
  task: {prompt: "This is target ${{ values.number }}."}
  verify: [{name: there, run: test -f %s}]
  limits: {time: 5m}
`, atOnce, changedFile)
	for name, content := range map[string]string{"campaign.yml": text, "targets.txt": listed} {
		if err := os.WriteFile(filepath.Join(c.dir, name), []byte(content), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	plan := exec.CommandContext(b.Context(), program, "campaign", "plan", "campaign.yml", "--ledger", "ledger")
	plan.Dir, plan.Env = c.dir, c.environ
	if out, err := plan.CombinedOutput(); err != nil {
		b.Fatalf("agent-ci campaign plan: %v\n%s", err, out)
	}
	return c
}

// runTargets are the arguments that run the campaign.
var runTargets = []string{"campaign", "run", "campaign.yml", "--ledger", "ledger", "--publish", "local"}

func (c *campaignRun) run(b *testing.B) sighting {
	b.Helper()
	seen := c.start(b, runTargets...).wait(b)
	c.model.complain(b)
	return seen
}

// alone has the jobs of the campaign run one by one, and adds up what they took.
func (c *campaignRun) alone(b *testing.B) (all sighting) {
	b.Helper()
	jobs, err := filepath.Glob(filepath.Join(c.dir, "ledger", "bump", "runs", "*.yml"))
	if err != nil || len(jobs) != len(c.repositories) {
		b.Fatalf("the campaign had %d jobs, want %d: %v", len(jobs), len(c.repositories), err)
	}
	c.model.begin(b, len(jobs))
	for i, job := range jobs {
		seen := c.start(b, "run", "--job", job, "--quiet", "--publish", "local", "--out", "run"+numberOf(i)).wait(b)
		all.Wall, all.CPU = all.Wall+seen.Wall, all.CPU+seen.CPU
	}
	c.model.complain(b)
	return all
}

// memory runs the campaign with a model that answers when all targets have asked it, and says what all
// processes take then, and the most that they took.
func (c *campaignRun) memory(b *testing.B) (waiting, most int64) {
	b.Helper()
	asked, answer := make(chan struct{}), make(chan struct{})
	c.model.asked, c.model.answer = asked, answer
	run := c.start(b, runTargets...)
	ended := make(chan error, 1)
	go func() { ended <- run.watch.Wait() }()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for asking := 0; ; {
		select {
		case <-asked:
			if asking++; asking == len(c.repositories) {
				waiting = memoryBelow(b, run.watch.Process.Pid)
				close(answer)
			}
		case <-look.C:
			most = max(most, memoryBelow(b, run.watch.Process.Pid))
		case err := <-ended:
			run.check(b, err)
			c.model.complain(b)
			return waiting, max(most, waiting)
		}
	}
}

// watchedRun is agent-ci below a process that watches it.
type watchedRun struct {
	watch  *exec.Cmd
	answer bytes.Buffer
	said   bytes.Buffer
}

func (c *campaignRun) start(b *testing.B, args ...string) *watchedRun {
	b.Helper()
	r := &watchedRun{watch: exec.CommandContext(b.Context(), os.Args[0], append([]string{c.program}, args...)...)}
	r.watch.Dir, r.watch.Env, r.watch.Stdout, r.watch.Stderr = c.dir, append(slices.Clone(c.environ), watchVariable+"=1"), &r.answer, &r.said
	if err := r.watch.Start(); err != nil {
		b.Fatal(err)
	}
	return r
}

func (r *watchedRun) wait(b *testing.B) sighting {
	b.Helper()
	return r.check(b, r.watch.Wait())
}

// check makes sure that all went well.
func (r *watchedRun) check(b *testing.B, err error) (seen sighting) {
	b.Helper()
	if err == nil {
		err = json.Unmarshal(r.answer.Bytes(), &seen)
	}
	if err != nil || seen.Status != 0 {
		b.Fatalf("%q ended with status %d: %v\n%s", r.watch.Args[1:], seen.Status, err, r.said.Bytes())
	}
	return seen
}

// sessions answer each target by a session of its own.
type sessions struct {
	asked  chan<- struct{} // is told of the first request of each; nil where nobody waits for it
	answer <-chan struct{} // holds these back until it is closed

	mu  sync.Mutex
	of  map[string]*modeltest.Server // by numbers of targets
	met map[string]bool
}

func numberOf(target int) string { return fmt.Sprintf("%03d", target) }

// begin forgets the sessions that went before.
func (s *sessions) begin(b *testing.B, targets int) {
	b.Helper()
	of := map[string]*modeltest.Server{}
	for i := range targets {
		of[numberOf(i)] = startServer(b, patchSession(i))
		b.Cleanup(of[numberOf(i)].Close)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of, s.met = of, map[string]bool{}
}

var ofTarget = regexp.MustCompile(`This is target ([0-9]{3})\.`)

func (s *sessions) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	named := ofTarget.FindSubmatch(raw)
	if err != nil || named == nil {
		http.Error(w, "which target is it?", http.StatusBadRequest)
		return
	}
	server, first := s.meet(string(named[1]))
	if first && s.asked != nil && !s.held(r.Context()) {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(raw))
	server.Config.Handler.ServeHTTP(w, r)
}

// held waits until all have asked; false where this one gave up before.
func (s *sessions) held(ctx context.Context) bool {
	select {
	case s.asked <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	select {
	case <-s.answer:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *sessions) meet(number string) (server *modeltest.Server, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first = !s.met[number]
	s.met[number] = true
	return s.of[number], first
}

func (s *sessions) complain(b *testing.B) {
	b.Helper()
	for number, server := range s.of {
		if faults := server.Faults(); len(faults) > 0 {
			b.Errorf("the server of target %s complains: %q", number, faults)
		}
	}
}
