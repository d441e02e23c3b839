package main_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/runner/campaign/spec"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/github"
	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
	"github.com/agent-ci/agent-ci/runner/campaign"
	"github.com/agent-ci/agent-ci/runner/record"
)

// campaigning is a campaign over repositories of a forge, and a model that is asked over HTTP.
type campaigning struct {
	workshop
	forge    *forgetest.Forge
	repos    []*forgetest.Repository
	asked    atomic.Int64 // requests to the model
	tokens   atomic.Int64 // that an answer says it used
	before   atomic.Pointer[func(*http.Request)]
	script   func(asked string) (steps stepwise, tokens int) // what the model does where a request says so
	start    func(*httptest.Server)                          // of forge and model
	campaign *spec.Campaign
	plan     *campaign.Plan
}

// campaignFile is a campaign whose runs take two steps and cost 0.01 dollars at each answer.
const campaignFile = `version: 1
name: bump
targets: {file: targets.txt}
on_existing: update
rollout: {at_once: 3}
job:
  version: 1
  task: {prompt: "Bump ${{ target.name }}."}
  model: {name: m, stream: false, price: {input: 2.5, output: 2.5}}
  limits: {cost_usd: 0.1, tokens: 100000}
  verify: [{name: log, run: test -f log.txt}]
`

// cheap is the claim of a run by that file, whose dearest request costs 0.02 dollars.
var cheap = campaign.Claim{USD: 0.12, Tokens: 110000}

// paid is what the model was paid.
func (w *campaigning) paid() float64 { return float64(w.asked.Load()*(w.tokens.Load()+1)) * 2.5 / 1e6 }

// kinds are how targets are to end, by a job that tells its model and its commands.
var kinds = []string{"opened", "red", "inapplicable", "unchanged", "dear"}

// newCampaigning has so many targets, two in each repository.
func newCampaigning(t *testing.T, targets int, claim campaign.Claim, file string, set ...func(*campaigning)) *campaigning {
	t.Helper()
	w := &campaigning{start: (*httptest.Server).Start}
	w.script = func(string) (stepwise, int) { return 2, int(w.tokens.Load()) }
	for _, set := range set {
		set(w)
	}
	forge := forgetest.New(t, forgetest.Options{User: forgetest.User{Login: "helper[bot]", ID: 9, Type: "Bot"}, Start: w.start})
	w.forge = forge
	model := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var asked bytes.Buffer
		r.Body = io.NopCloser(io.TeeReader(r.Body, &asked))
		items, err := inputOf(r)
		if err != nil {
			http.Error(rw, err.Error(), http.StatusBadRequest)
			return
		}
		w.asked.Add(1)
		text := asked.String()
		if before := w.before.Load(); before != nil {
			r.Body = io.NopCloser(&asked)
			(*before)(r)
		}
		done, tries, again := stepsDone(items)
		steps, tokens := w.script(text)
		steps.answer(rw, done, tries, again, tokens)
	}))
	w.start(model)
	t.Cleanup(model.Close)
	w.tokens.Store(4000)
	w.workshop = newWorkshop(t, "GITHUB_API_URL="+forge.APIURL, "GITHUB_SERVER_URL="+forge.URL, "GITHUB_TOKEN="+forge.Token,
		"OPENAI_BASE_URL="+model.URL+"/v1", "OPENAI_API_KEY=sk-test-0123456789abcdef", openly)
	w.write("seed/log.txt", "step 0\n")
	seed := filepath.Join(w.dir, "seed")
	w.repository(seed)
	sha := w.git(seed, "rev-parse", "HEAD")
	var all []campaign.Target
	for n := range targets {
		if n%2 == 0 {
			w.repos = append(w.repos, forge.AddRepository("octo", fmt.Sprintf("r%03d", n/2)))
			w.repos[n/2].Receive(seed)
		}
		all = append(all, campaign.Target{Repository: "octo/" + w.repos[n/2].Name, Base: "main", SHA: sha, Values: map[string]string{"part": fmt.Sprint(n % 2), "kind": kinds[n%len(kinds)]}})
	}
	w.write("bump.yml", file)
	var err error
	if w.campaign, err = spec.Load("bump.yml", []byte(file), nil); err != nil {
		t.Fatal(err)
	}
	template := must.Get(campaign.JobDigest(w.campaign))(t)
	for i := range all {
		all[i].Key = campaign.KeyOf("bump", all[i])
	}
	w.plan = &campaign.Plan{Version: campaign.PlanVersion, Campaign: "bump", Template: template, Made: time.Now(), Claim: claim, Targets: all}
	ledger := must.Get(campaign.Open(w.ledger(), time.Now))(t)
	defer ledger.Close()
	must.Do(t, ledger.Plan(w.plan))
	return w
}

func (w *campaigning) ledger() string { return filepath.Join(w.dir, "ledger") }

// command is agent-ci campaign, not started yet.
func (w *campaigning) command(sub string, flags ...string) (*exec.Cmd, *strings.Builder) {
	return w.workshop.command(append([]string{"campaign", sub, "bump.yml", "--ledger", w.ledger()}, flags...)...)
}

func (w *campaigning) run(flags ...string) string {
	w.t.Helper()
	cmd, out := w.command("run", flags...)
	if err := cmd.Run(); err != nil {
		w.t.Fatalf("agent-ci campaign run: %v\n%s%s", err, out, w.logs())
	}
	return out.String()
}

// logs are what the runs said.
func (w *campaigning) logs() string {
	var all strings.Builder
	names, _ := filepath.Glob(filepath.Join(w.ledger(), "bump", "runs", "*.log"))
	for _, name := range names {
		raw, _ := os.ReadFile(name)
		fmt.Fprintf(&all, "%s: %s\n", filepath.Base(name), raw)
	}
	return all.String()
}

func (w *campaigning) status() campaign.Status {
	w.t.Helper()
	state := must.Get(campaign.Read(w.ledger()))(w.t)
	return state.Status(time.Now(), w.campaign, w.plan)
}

// allOpened makes sure that each target has its pull request, and that no clone is left behind.
func (w *campaigning) allOpened() {
	w.t.Helper()
	if s := w.status(); s.Counts[campaign.Opened] != len(w.plan.Targets) {
		w.t.Errorf("the targets are %v\n%s%s", s.Counts, notOpened(s), w.logs())
	}
	must.Same(w.t, len(w.plan.Targets), w.published(), "pull requests")
	if names, _ := filepath.Glob(filepath.Join(w.ledger(), "bump", "runs", "*", record.CheckoutFolder)); len(names) > 0 {
		w.t.Errorf("left behind: %v", names)
	}
}

// notOpened tells how the targets ended that have no open pull request.
func notOpened(s campaign.Status) string {
	var all strings.Builder
	for _, target := range s.Targets {
		if target.Class != campaign.Opened {
			fmt.Fprintf(&all, "%s is %s after %d attempts: %+v\n", target.Key, target.Class, target.Attempts, target.Report)
		}
	}
	return all.String()
}

// published is how many pull requests there are. A branch that has two fails the test.
func (w *campaigning) published() int {
	w.t.Helper()
	all := 0
	for _, repo := range w.repos {
		heads := map[string]bool{}
		for _, pull := range repo.PullRequests() {
			if heads[pull.Head] {
				w.t.Errorf("%s of %s has two pull requests", pull.Head, repo.Name)
			}
			heads[pull.Head] = true
			all++
		}
	}
	return all
}

// Commands of a run see its own checkout and what that borrows, and nothing of other runs, which may
// be of repositories that this one is not to know.
func TestCampaignRunsAreIsolated(t *testing.T) {
	t.Parallel()
	if confines() == sandbox.LevelNone {
		t.Skip("nothing hides folders from commands here")
	}
	alone := `git show HEAD:log.txt && for dir in ledger ledger/bump ledger/bump/runs; do test "$(ls "$HOME/$dir" 2>/dev/null | grep -cvx -e bump -e runs)" -le 2 || exit 1; done`
	w := newCampaigning(t, 4, cheap, campaignFile+"  setup: [{run: "+strconv.Quote(alone)+"}]\n")
	w.env = append(w.env, "AGENT_CI_POLICY_SANDBOX="+string(grants.WorkspaceWrite))
	w.run()
	w.allOpened()
}

// What has an open pull request is left out before anything is claimed, unless it is to be updated.
func TestCampaignSkipsTargetsWithPullRequest(t *testing.T) {
	t.Parallel()
	w := newCampaigning(t, 2, cheap, strings.ReplaceAll(campaignFile, "on_existing: update", "on_existing: skip"))
	client := must.Get(github.New(github.Options{APIURL: w.forge.APIURL, Token: w.forge.Token}))(t)
	to, branch := client.Repository(w.plan.Targets[0].Repository), "agent-ci/"+w.plan.Targets[0].Key
	base := must.Get(to.Branch(t.Context(), "main"))(t)
	made, err := to.CreateCommit(t.Context(), "Made before.", base.Tree, base.SHA)
	if err == nil {
		err = to.CreateBranch(t.Context(), branch, made.SHA)
	}
	if err == nil {
		_, err = to.CreatePullRequest(t.Context(), forge.NewPullRequest{Title: "Made before", Head: branch, Base: "main"})
	}
	must.Do(t, err)
	out := w.run()
	s := w.status()
	if s.Counts[campaign.Existing] != 1 || s.Counts[campaign.Opened] != 1 || s.Runs != 1 {
		t.Errorf("the targets are %v after %d runs\n%s", s.Counts, s.Runs, out)
	}
}

// A signal ends the runs in order; the next start goes on with them, and pays nothing again.
func TestInterruptedCampaignResumes(t *testing.T) {
	t.Parallel()
	w := newCampaigning(t, 2, cheap, campaignFile)
	asked := make(chan struct{}, 10)
	hold := func(r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	}
	w.before.Store(&hold)
	cmd, out := w.command("run")
	must.Do(t, cmd.Start())
	<-asked
	<-asked
	must.Do(t, cmd.Process.Signal(syscall.SIGTERM))
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 143 || !strings.Contains(out.String(), "resume with the next agent-ci campaign run") {
		t.Errorf("it ended with %d\n%s", code, out)
	}
	if s := w.status(); s.Counts[campaign.Running] != 2 {
		t.Errorf("the targets are %v\n%s", s.Counts, w.logs())
	}
	w.before.Store(nil)
	must.Contain(t, w.run(), "goes on")
	w.allOpened()
	if s := w.status(); s.Runs != 2 || s.Spent.USD < w.paid() {
		t.Errorf("%d runs, %.4f dollars booked, %.4f paid", s.Runs, s.Spent.USD, w.paid())
	}
}

// So does one that a scripted session answers.
func TestInterruptedScriptedCampaignResumes(t *testing.T) {
	t.Parallel()
	w := newCampaigning(t, 1, cheap, campaignFile)
	fifo := filepath.Join(w.dir, "begun")
	must.Do(t, syscall.Mkfifo(fifo, 0o600))
	w.write("session.yml", `version: 1
turns:
  - output: [{call: exec_command, arguments: {cmd: "echo >`+fifo+`; sleep 1000"}}]
  - output: [{call: exec_command, arguments: {cmd: "echo step 1 >log.txt"}}]
  - output: [{say: Done.}]
`)
	cmd, out := w.command("run", "--replay", "session.yml")
	must.Do(t, cmd.Start())
	must.Do(t, must.Err(os.ReadFile(fifo)))
	must.Do(t, cmd.Process.Signal(syscall.SIGTERM))
	_ = cmd.Wait()
	if s := w.status(); s.Counts[campaign.Running] != 1 || strings.Contains(out.String(), "agent-ci resume") {
		t.Errorf("the targets are %v\n%s%s", s.Counts, out, w.logs())
	}
	must.Contain(t, w.run("--replay", "session.yml"), "goes on")
	w.allOpened()
}

// A run that was killed between its last event and its result has ended: the next start books that end.
// The ledger is put back as it was when the run was claimed, and the result is taken away.
func TestCampaignBooksEndOfKilledRun(t *testing.T) {
	t.Parallel()
	w := newCampaigning(t, 1, cheap, campaignFile)
	w.run()
	ledger := filepath.Join(w.ledger(), "ledger.jsonl")
	lines := strings.SplitAfter(read(t, ledger), "\n")
	for i, line := range lines {
		if strings.Contains(line, `"target.settled"`) {
			lines = lines[:i]
			break
		}
	}
	results := must.Get(filepath.Glob(filepath.Join(w.ledger(), "bump", "runs", "*", record.ResultFile)))(t)
	if len(results) != 1 {
		t.Fatalf("the results are %q", results)
	}
	must.Do(t, errors.Join(os.Remove(results[0]), os.WriteFile(ledger, []byte(strings.Join(lines, "")), 0o600)))
	if s := w.status(); s.Counts[campaign.Running] != 1 {
		t.Fatalf("the targets are %v", s.Counts)
	}
	before := w.asked.Load()
	w.run()
	w.allOpened()
	must.Same(t, before, w.asked.Load(), "the model was asked again")
}

// The exit status tells of every target that failed, in an earlier start too. The draft of a change
// whose checks are red is no open pull request like others. A plan of another job is refused.
func TestCampaignExitStatusShowsFailures(t *testing.T) {
	t.Parallel()
	w := newCampaigning(t, 2, cheap, strings.ReplaceAll(campaignFile, "run: test -f log.txt", "run: test ! -e new"))
	for _, want := range []string{" verify_failed/red: ", "2 targets: 2 checks red\n"} { // the second start has nothing to run
		cmd, out := w.command("run")
		_ = cmd.Run()
		if code := cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(out.String(), want) {
			t.Errorf("it ended with %d\n%s", code, out)
		}
	}
	if s := w.status(); s.Counts[campaign.Red] != 2 || w.published() != 2 {
		t.Errorf("with %d drafts the targets are %v", w.published(), s.Counts)
	}
	w.write("bump.yml", campaignFile)
	cmd, out := w.command("run")
	if err := cmd.Run(); err == nil || !strings.Contains(out.String(), "make a new plan") {
		t.Errorf("a plan of another job: %v\n%s", err, out)
	}
}
