package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// leading is a model that leads others for so many rounds: in each it starts one that writes and one
// that reads, works beside them, waits for both, closes them and looks whether the part is there. It
// and those that it starts know from their conversations alone what is done.
type leading struct {
	rounds int
	copies bool // the one that writes has a copy, of which nothing is there until it is merged
}

var (
	isAgent  = regexp.MustCompile(`You are the agent ([^ ]+)\. The agent `)
	itsTask  = regexp.MustCompile(`(Write|Read) part (\d+)\.`)
	agentIDs = regexp.MustCompile(`"agent_id":"([^"]+)"`)
)

// goneMark begins what the model is told when the runner was killed.
const goneMark = "The agents that you had started are gone"

func (l leading) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	var body struct{ Input []json.RawMessage }
	if err == nil {
		err = json.Unmarshal(raw, &body)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var output []any
	if isAgent.Match(raw) {
		output = l.help(itsTask.FindSubmatch(raw), body.Input)
	} else {
		output = l.lead(body.Input)
	}
	respond(w, 10, output...)
}

func says(text string) any {
	return map[string]any{
		"type": "message", "id": "msg_1", "status": "completed", "role": "assistant",
		"content": []any{map[string]any{"type": "output_text", "text": text, "annotations": []any{}, "logprobs": []any{}}},
	}
}

func asks(id, tool string, arguments map[string]any) any {
	text, _ := json.Marshal(arguments)
	return map[string]any{"type": "function_call", "id": "fc_" + id, "call_id": id, "status": "completed", "name": tool, "arguments": string(text)}
}

func asksToRun(id, command string) any {
	return asks(id, "exec_command", map[string]any{"cmd": command})
}

// help is what an agent does that the other has started. The command of the one that writes is one
// that must not be run twice, where nothing of it stays when it is broken off.
func (l leading) help(task [][]byte, input []json.RawMessage) []any {
	done := 0
	for _, raw := range input {
		if bytes.Contains(raw, []byte("_call_output")) {
			done++
		}
	}
	part := string(task[2])
	id := fmt.Sprintf("own_%d", done)
	steps := []any{
		asks(id, "read_file", map[string]any{"file_path": "log.txt"}), asks(id, "list_dir", map[string]any{"dir_path": "."}), asks(id, "read_file", map[string]any{"file_path": "log.txt"}),
	}
	if string(task[1]) == "Write" {
		write := fmt.Sprintf("mkdir -p new/%[1]s; echo b > new/%[1]s/b.txt", part)
		if l.copies {
			write = fmt.Sprintf("echo %s >> ledger.txt; ", part) + write
		}
		steps = []any{
			asks(id, "exec_command", map[string]any{"cmd": "tail -f /dev/null", "yield_time_ms": 500}),
			asksToRun(id, write), asksToRun(id, fmt.Sprintf("rm -f old-%[1]s.txt; chmod 755 new/%[1]s/b.txt; echo %[1]s > part-%[1]s.txt", part)),
		}
	}
	if done >= len(steps) {
		return []any{says("Part " + part + " is done.")}
	}
	return []any{steps[done]}
}

// lead is what the agent of the run does next.
func (l leading) lead(input []json.RawMessage) []any {
	round, looked := 0, false
	started, ended, closed := map[string]string{}, map[string]bool{}, map[string]bool{}
	for _, raw := range input {
		var item inputItem
		_ = json.Unmarshal(raw, &item)
		kind, _, _ := strings.Cut(item.CallID, "_")
		id := agentIDs.FindStringSubmatch(item.Output)
		switch {
		case bytes.Contains(raw, []byte(goneMark)):
			looked = false
			started, ended, closed = map[string]string{}, map[string]bool{}, map[string]bool{}
		case !strings.HasSuffix(item.Type, "_call_output"):
		case kind == "look" && strings.Contains(item.Output, "part stands"):
			round++
			looked = false
			started, ended, closed = map[string]string{}, map[string]bool{}, map[string]bool{}
		case kind == "look":
			looked = strings.Contains(item.Output, "part lacks")
		case id != nil:
			started[kind] = id[1]
		case kind == "wait":
			for _, other := range started {
				ended[other] = ended[other] || strings.Contains(item.Output, `"`+other+`":{"completed"`)
			}
		case kind == "close" && strings.Contains(item.Output, "previous_status"):
			_, of, _ := strings.Cut(item.CallID, "_")
			closed[started[of[:strings.Index(of, "_")]]] = true
		}
	}
	try := len(input)
	if round == l.rounds {
		return []any{says("Done.")}
	}
	look := []any{asksToRun(fmt.Sprintf("look_%d", try), fmt.Sprintf("test -f part-%[1]d.txt && test -f beside-%[1]d.txt && echo part stands || echo part lacks", round))}
	if !looked {
		return look
	}
	spawn := func(kind, task, role string) any {
		return asks(fmt.Sprintf("%s_%d", kind, try), "spawn_agent", map[string]any{"message": fmt.Sprintf("%s part %d.", task, round), "agent_type": role})
	}
	if started["write"] == "" {
		return []any{spawn("write", "Write", "writer"), asksToRun(fmt.Sprintf("beside_%d", try), fmt.Sprintf("echo beside %d > beside-%d.txt", round, round))}
	}
	if started["read"] == "" { // while the other works
		return []any{spawn("read", "Read", "explorer")}
	}
	var calls []any
	var waited []string
	for _, kind := range []string{"write", "read"} {
		switch id := started[kind]; {
		case !ended[id]:
			waited = append(waited, id)
		case !closed[id]:
			calls = append(calls, asks(fmt.Sprintf("close_%s_%d", kind, try), "close_agent", map[string]any{"target": id}))
		}
	}
	if len(waited) > 0 {
		return []any{asks(fmt.Sprintf("wait_%d", try), "wait_agent", map[string]any{"targets": waited, "timeout_ms": 60000})}
	}
	if len(calls) > 0 {
		return calls
	}
	return look
}

// moment is when a program is killed: so long after its nth event of a kind.
type moment struct {
	kind  string // type of the event, with the tool behind it; empty for any
	nth   int
	delay time.Duration
}

func (m moment) String() string { return fmt.Sprintf("%s after event %d %q", m.delay, m.nth, m.kind) }

// striker reads the events that a program prints, and kills the program at a moment.
type striker struct {
	at      moment
	program chan *os.Process
	line    []byte
	seen    int
	alive   map[string]bool // agents at work
	struck  bool
	timer   *time.Timer
	kinds   map[string]int
}

func (s *striker) Write(p []byte) (int, error) {
	s.line = append(s.line, p...)
	for {
		line, rest, whole := bytes.Cut(s.line, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		s.line = rest
		s.see(line)
	}
}

func (s *striker) see(line []byte) {
	var e struct {
		Type, Agent string
		Data        struct{ Tool string }
	}
	if json.Unmarshal(line, &e) != nil || e.Type == "" || s.struck {
		return
	}
	kind := strings.TrimSpace(e.Type + " " + e.Data.Tool)
	s.kinds[kind]++
	switch e.Type {
	case "agent.started":
		s.alive[e.Agent] = true
	case "agent.finished":
		delete(s.alive, e.Agent)
	}
	if s.at.nth == 0 || s.at.kind != "" && s.at.kind != kind {
		return
	}
	if s.seen++; s.seen < s.at.nth {
		return
	}
	s.struck = true
	program := <-s.program
	s.timer = time.AfterFunc(s.at.delay, func() { _ = program.Kill() })
}

// struckBy runs agent-ci with its events on standard output, and kills it at a moment; never at one
// without an event.
func (w *killWorld) struckBy(at moment, args ...string) (s *striker, text string, ended bool) {
	w.t.Helper()
	s = &striker{at: at, program: make(chan *os.Process, 1), alive: map[string]bool{}, kinds: map[string]int{}}
	text, ended = w.read(s, func(program *os.Process) func() {
		s.program <- program
		return func() {
			if s.timer != nil {
				s.timer.Stop()
			}
		}
	}, append(args, "--json")...)
	return s, text, ended
}

// newTeamWorld is a world whose model leads others, and the job for that.
func newTeamWorld(t *testing.T) (w *killWorld, arguments func(repo, out string) []string) {
	t.Helper()
	w = newKillWorld(t)
	server := httptest.NewServer(leading{rounds: 2, copies: overlaid()})
	t.Cleanup(server.Close)
	w.env = append(w.env, "OPENAI_BASE_URL="+server.URL+"/v1")
	writes := "shared"
	if overlaid() {
		writes = "own"
	}
	return w, func(repo, out string) []string {
		return []string{
			"run", "--prompt", "x", "--repo", repo, "--out", out, "--publish", "local", "--quiet", "--set", "model.name=gpt-5.4",
			"--set", "model.price={input: 1000, output: 5000}", "--set", "limits.cost_usd=1000", "--set", "limits.turns=2000",
			"--set", "agents={enabled: true, roles: {writer: {writes: " + writes + "}}}",
		}
	}
}

// teamCheckout is a checkout with a file that each part removes.
func (w *killWorld) teamCheckout(name string) string {
	w.t.Helper()
	repo := w.checkout(name)
	for _, file := range []string{"old-0.txt", "old-1.txt", "ledger.txt"} {
		w.write(filepath.Join(repo, file), "begin\n")
	}
	w.git(repo, "add", "old-0.txt", "old-1.txt", "ledger.txt")
	w.git(repo, "commit", "--quiet", "--amend", "--no-edit")
	return repo
}

// TestKilledWhileAgentsWork kills runs whose agent has started others, and what goes on with them: right
// after events of each kind, while changes are merged, and at random moments, until an eighth of the kills hit
// two agents at work. With AGENT_CI_KILLS=100 each kind of event has its turn.
func TestKilledWhileAgentsWork(t *testing.T) {
	w, arguments := newTeamWorld(t)
	undisturbed := w.teamCheckout("undisturbed")
	s, text, ended := w.struckBy(moment{}, arguments(undisturbed, "whole")...)
	if result := w.resultOf("whole"); !ended || result.Outcome != "changed" {
		t.Fatalf("an undisturbed run ended in %s\n%s", result.Message, text)
	}
	want := w.git(undisturbed, "rev-parse", "HEAD^{tree}")

	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	all := momentsOf(s.kinds, random)
	t.Logf("seed %d, %d moments", seed, len(all))
	killed, beside, runs, further := 0, 0, 0, 0
	for ; len(all) > 0 || 8*beside < killed; runs++ {
		if runs > 3*kills()+20 {
			t.Fatalf("%d runs did not come to %v; %d of %d kills hit two agents at work, and an eighth must", runs, all, beside, killed)
		}
		if len(all) == 0 {
			further++
			all = []moment{{"agent.started", 2, time.Duration(random.Int64N(int64(20 * time.Millisecond)))}}
		}
		repo, out := w.teamCheckout(fmt.Sprintf("repo%d", runs)), fmt.Sprintf("run%d", runs)
		var hits []moment
		again := arguments(repo, out)
		for ended = false; !ended; {
			var next moment
			if len(all) > 0 && len(hits) < 4 {
				next = all[0]
			}
			if s, text, ended = w.struckBy(next, again...); !ended {
				all, hits = all[1:], append(hits, next)
				if killed++; len(s.alive) >= 2 {
					beside++
				}
			}
			if strings.Contains(text, "before it had begun") || strings.Contains(text, "has no transcript") || strings.Contains(text, "is not a run directory") {
				w.git(repo, "checkout", "--quiet", "main")
				out += "again"
				again, ended = arguments(repo, out), false
				continue
			}
			again = []string{"resume", out, "--quiet"}
		}
		if len(hits) == 0 && len(all) > 0 { // such a moment does not come in each run
			all = append(all[1:], moment{kind: all[0].kind, nth: 1, delay: all[0].delay})
		}
		if result := w.resultOf(out); result.Outcome != "changed" {
			t.Fatalf("killed at %v, run %d ended in %s: %s\n%s", hits, runs, result.Outcome, result.Message, text)
		}
		w.asUndisturbed(runs, repo, out, want)
		if wrong := w.teamWrongs(out); len(wrong) > 0 {
			t.Fatalf("killed at %v, run %d has left\n%s", hits, runs, strings.Join(wrong, "\n"))
		}
	}
	t.Logf("killed %d times in %d runs, %d times with two agents or more at work, which took %d further moments", killed, runs, beside, further)
}

// momentsOf are moments to kill at: in merges, after events of other agents, and at random.
func momentsOf(kinds map[string]int, random *rand.Rand) (all []moment) {
	total := 0
	for _, n := range kinds {
		total += n
	}
	later := func(most time.Duration) time.Duration { return time.Duration(random.Int64N(int64(most))) }
	for range max(2, kills()/10) {
		if kinds["tool.started merge_agent"] > 0 {
			all = append(all, moment{"tool.started merge_agent", 1, later(30 * time.Millisecond)})
		}
		all = append(all, moment{"tool.started spawn_agent", 1, later(40 * time.Millisecond)}, moment{"agent.started", 2, later(100 * time.Millisecond)})
	}
	for range max(2, kills()/3) {
		all = append(all, moment{"", 1 + random.IntN(total), later(20 * time.Millisecond)})
	}
	if kills() < 100 {
		return all
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		all = append(all, moment{kind, 1, 0}, moment{kind, 1 + random.IntN(kinds[kind]), 0})
	}
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// resultOf is the result of a run.
func (w *killWorld) resultOf(out string) (result record.Result) {
	w.t.Helper()
	readJSON(w.t, filepath.Join(w.dir, out, record.ResultFile), &result)
	return result
}

// teamWrongs says what is not as it must be with the agents of a run that has ended: each has a
// status, nothing was done twice, what all used counts once, and nothing of them is left.
func (w *killWorld) teamWrongs(out string) (wrong []string) {
	w.t.Helper()
	complain := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	var used transcript.Usage
	open, times := map[string]int{}, map[string]int{}
	for _, e := range readEvents(w.t, filepath.Join(w.dir, out, record.TranscriptFile)) {
		switch e.Type {
		case transcript.TypeAgentStarted:
			open[e.Agent]++
		case transcript.TypeAgentFinished:
			open[e.Agent]--
		case transcript.TypeModelResponse:
			d := dataOf[transcript.ModelResponse](w.t, e)
			used.Input, used.Output = used.Input+d.Usage.Input, used.Output+d.Usage.Output
		case transcript.TypeToolStarted:
			d := dataOf[transcript.ToolStarted](w.t, e)
			times[fmt.Sprintf("call %d of %d of %s was begun", d.Number, d.Caller, e.Agent)]++
		case transcript.TypeToolFinished:
			d := dataOf[transcript.ToolFinished](w.t, e)
			times[fmt.Sprintf("call %d of %d of %s came to an end", d.Number, d.Caller, e.Agent)]++
			if files, _ := d.Detail["files"].([]any); d.Tool == "merge_agent" && !d.Failed && len(files) > 0 {
				times[fmt.Sprintf("the change of %v was taken over", d.Detail["agent"])]++
			}
		}
	}
	for what, n := range times {
		if n > 1 {
			complain("%s %d times", what, n)
		}
	}
	for id, n := range open {
		if n != 0 {
			complain("the agent %s has %d ends too few", id, n)
		}
	}
	result := w.resultOf(out)
	if result.Usage.Input != used.Input || result.Usage.Output != used.Output {
		complain("the result has %+v, and the answers took %+v", result.Usage, used)
	}
	cost := float64(used.Input)*1000/1e6 + float64(used.Output)*5000/1e6
	if result.CostUSD == nil || *result.CostUSD < cost-1e-6 || *result.CostUSD > cost+1e-6 {
		complain("the answers cost %f, and the result says otherwise", cost)
	}
	for _, a := range result.Subagents {
		if !slices.Contains([]string{"completed", "shutdown"}, a.Status) {
			complain("the agent %s is %s (%s)", a.Name, a.Status, a.Reason)
		}
	}
	return append(wrong, w.leftOf(out)...)
}

func dataOf[T any](t *testing.T, e transcript.Event) (data T) {
	t.Helper()
	must.Do(t, json.Unmarshal(e.Data, &data))
	return data
}

// leftOf is what is left of a run on the machine: processes, mounts, and copies of its tree.
func (w *killWorld) leftOf(out string) (left []string) {
	w.t.Helper()
	dir := must.Get(filepath.EvalSymlinks(filepath.Join(w.dir, out)))(w.t)
	copies, _ := filepath.Glob(filepath.Join(dir, "state", "sandboxes", "agent-*"))
	for _, each := range copies {
		left = append(left, "folder "+each)
	}
	if mounts, err := os.ReadFile("/proc/self/mountinfo"); err == nil && bytes.Contains(mounts, []byte(dir)) {
		left = append(left, "mounts:\n"+string(mounts))
	}
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, each := range processes {
		line, _ := os.ReadFile(filepath.Join(each, "cmdline"))
		environment, _ := os.ReadFile(filepath.Join(each, "environ"))
		if bytes.Contains(line, []byte(dir)) || bytes.Contains(environment, []byte(dir)) {
			left = append(left, "process "+each+" "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return left
}
