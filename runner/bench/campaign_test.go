package bench

import (
	"bytes"
	"context"
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
	"github.com/agent-ci/agent-ci/runner/agent/model/modeltest"
)

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
	results.bytes(fmt.Sprintf("%d targets of a campaign at once, the memory of all processes (sum of PSS) while all wait for the model", atOnce), waiting, mostOfAll)
	results.bytes("  the most that was seen from start to exit", most, mostOfAll)
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
		noError(b, os.WriteFile(filepath.Join(c.dir, name), []byte(content), 0o600))
	}
	plan := exec.CommandContext(b.Context(), program, "campaign", "plan", "campaign.yml", "--ledger", "ledger")
	plan.Dir, plan.Env = c.dir, c.environ
	if out, err := plan.CombinedOutput(); err != nil {
		b.Fatalf("agent-ci campaign plan: %v\n%s", err, out)
	}
	return c
}

// memory runs the campaign with a model that answers when all targets have asked it, and says what all
// processes take then, and the most that they took.
func (c *campaignRun) memory(b *testing.B) (waiting, most int64) {
	b.Helper()
	asked, answer := make(chan struct{}), make(chan struct{})
	c.model.asked, c.model.answer = asked, answer
	run, said := exec.CommandContext(b.Context(), c.program, "campaign", "run", "campaign.yml", "--ledger", "ledger", "--publish", "local"), bytes.Buffer{}
	run.Dir, run.Env, run.Stderr = c.dir, c.environ, &said
	noError(b, run.Start())
	ended := make(chan error, 1)
	go func() { ended <- run.Wait() }()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for asking := 0; ; {
		select {
		case <-asked:
			if asking++; asking == len(c.repositories) {
				waiting = memoryBelow(b, run.Process.Pid)
				close(answer)
			}
		case <-look.C:
			most = max(most, memoryBelow(b, run.Process.Pid))
		case err := <-ended:
			if err != nil {
				b.Fatalf("agent-ci campaign run: %v\n%s", err, said.Bytes())
			}
			c.model.complain(b)
			return waiting, max(most, waiting)
		}
	}
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
