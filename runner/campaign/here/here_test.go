package here

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/runner/campaign"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/transcript"
)

// hangs is a program that ignores being told to end, where the job says so, and leaves nothing.
const hangs = `#!/bin/sh
case "$*" in
*hangs*) trap '' TERM; exec sleep 1000;;
esac
echo "it cannot start" >&2
exit 1
`

const campaignFile = `version: 1
name: bump
targets: {command: "true"}
rollout: {at_once: 2}
job: {version: 1, task: {prompt: x}, limits: {time: 10s}}
`

// hanging is a campaign over repositories whose runs are that program.
func hanging(t *testing.T, names ...string) (Options, *string) {
	t.Helper()
	dir, ends := t.TempDir(), ""
	program := filepath.Join(dir, "program")
	if err := os.WriteFile(program, []byte(hangs), 0o700); err != nil {
		t.Fatal(err)
	}
	c, err := job.LoadCampaign("bump.yml", []byte(campaignFile), nil)
	if err != nil {
		t.Fatal(err)
	}
	ledger, err := campaign.Open(filepath.Join(dir, "ledger"), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ledger.Close() })
	plan := &campaign.Plan{Version: campaign.PlanVersion, Campaign: "bump", Template: "0123456789", Claim: campaign.Claim{USD: 2, Tokens: 5_000_000}}
	for _, name := range names {
		target := campaign.Target{Repository: "octo/" + name, Base: "main", SHA: strings.Repeat("0", 40)}
		target.Key = campaign.KeyOf("bump", target)
		plan.Targets = append(plan.Targets, target)
	}
	if err := ledger.Plan(plan); err != nil {
		t.Fatal(err)
	}
	return Options{
		Ledger: ledger, Campaign: c, Plan: plan, Folder: campaign.Folder(filepath.Join(dir, "ledger"), "bump"), Program: program, Environ: os.Environ(),
		Now: time.Now, Farewell: 100 * time.Millisecond, Resumable: func(*record.Directory) error { return errors.New("it cannot") },
		Tell: func(s Step) {
			if s.Report != nil {
				ends += fmt.Sprintf("%s %s ", s.Target.Repository, s.Report.Reason)
			}
		},
	}, &ends
}

func TestAProcessThatHangsHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	o, ends := hanging(t, "hangs", "one", "two", "three")
	if _, err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if want := "octo/hangs no_result "; !strings.HasSuffix(*ends, want) || strings.Count(*ends, "no_result") != 4 {
		t.Errorf("ended: %s", *ends)
	}
	hung := o.Ledger.Of("bump").Entry(o.Plan.Targets[0].Key).Last
	if hung.CostUSD == nil || *hung.CostUSD != 0 || !strings.Contains(hung.Message, errHung.Error()) {
		t.Errorf("the report of the hung one is %+v", hung)
	}
}

// The input of a lost request is what the provider counted of the conversation, and what was added.
func TestTheInputOfALostRequestIsKnown(t *testing.T) {
	t.Parallel()
	event := func(kind transcript.Type, data any) transcript.Event {
		raw, err := json.Marshal(data)
		if err != nil {
			t.Fatal(err)
		}
		return transcript.Event{Type: kind, Data: raw}
	}
	request := func(model string, bytes int) transcript.Event {
		return event(transcript.TypeModelRequest, transcript.ModelRequest{Model: model, Bytes: bytes})
	}
	first, answer := request("m", 50_000), event(transcript.TypeModelResponse, transcript.ModelResponse{Usage: transcript.Usage{Input: 9000, Output: 100}})
	for _, test := range []struct {
		name   string
		events []transcript.Event
		want   []campaign.Request
	}{
		{"the first", []transcript.Event{first}, []campaign.Request{{Model: "m", Input: 50_000}}},
		{"one that was answered", []transcript.Event{first, answer}, nil},
		{"one that failed", []transcript.Event{first, event(transcript.TypeModelFailure, transcript.ModelFailure{})}, nil},
		{"the second", []transcript.Event{first, answer, request("m", 50_400)}, []campaign.Request{{Model: "m", Input: 9500}}},
		{"asked again after a kill", []transcript.Event{first, answer, request("m", 50_400), request("m", 50_400)}, []campaign.Request{{Model: "m", Input: 9500}, {Model: "m", Input: 9500}}},
		{"another model", []transcript.Event{first, answer, request("n", 50_400)}, []campaign.Request{{Model: "n", Input: 50_400}}},
		{"a conversation that was made shorter", []transcript.Event{first, answer, event(transcript.TypeCompaction, transcript.Compaction{}), request("m", 40_000)}, []campaign.Request{{Model: "m", Input: 40_000}}},
		{"a provider that counts nothing", []transcript.Event{first, event(transcript.TypeModelResponse, transcript.ModelResponse{}), request("m", 50_400)}, []campaign.Request{{Model: "m", Input: 50_400}}},
	} {
		var c conversation
		var got []campaign.Request
		for _, e := range test.events {
			lost, err := c.take(e)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, lost...)
		}
		if got = append(got, c.waiting...); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

// A process that an earlier start left and that hangs is ended, where it is certain which one it is.
func TestAProcessThatAnEarlierStartLeftIsEnded(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/fd/1"); err != nil {
		t.Skip("this system does not tell what a process writes to")
	}
	for _, test := range []struct {
		name  string
		other bool // another process has the id that was noted
		want  string
	}{
		{"noted", false, "agent-ci ended with exit status 1"},
		{"another was noted", true, errStays.Error()},
	} {
		t.Run(test.name, func(t *testing.T) {
			o, _ := hanging(t, "one")
			claimed, err := o.Ledger.Claim(o.Campaign, o.Plan, o.Plan.Targets)
			if err != nil {
				t.Fatal(err)
			}
			w := &work{Options: o, target: o.Plan.Targets[0], claimed: claimed[0]}
			log, err := w.lock(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			left, other := exec.Command(o.Program, "hangs"), exec.Command("sleep", "1000")
			left.Stdout = log
			for _, command := range []*exec.Cmd{left, other} {
				if err := command.Start(); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
			}
			noted := left
			if test.other {
				noted = other
			}
			if err := errors.Join(w.note(noted.Process), log.Close()); err != nil {
				t.Fatal(err)
			}
			if _, err := Run(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			if r := o.Ledger.Of("bump").Entry(o.Plan.Targets[0].Key).Last; r == nil || !strings.Contains(r.Message, test.want) {
				t.Errorf("it ended in %+v", r)
			}
			_ = other.Process.Kill()
			_ = other.Wait()
			if status, ok := other.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL { // that of this test
				t.Errorf("another process was ended: %v", other.ProcessState)
			}
		})
	}
}

// What a terminal shows is bounded, and what strangers wrote does nothing there.
func TestProgressOnATerminal(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	p := NewProgress(&out, 40)
	for n := range 20 {
		p.Tell(Step{Target: campaign.Target{Key: fmt.Sprintf("bump-%02d", n)}})
	}
	out.Reset()
	report := &campaign.Report{Outcome: "changed", Reason: "pull_request", Message: "\x1b[2J\x07" + strings.Repeat("long ", 40)}
	p.Tell(Step{Target: campaign.Target{Key: "bump-03"}, Report: report})
	want := "\x1b[18A\x1b[Jbump-03 changed/pull_request: "
	if !strings.HasPrefix(out.String(), want) || strings.Count(out.String(), "\x1b") != 2 || strings.Contains(out.String(), "\x07") {
		t.Errorf("the screen gets %q", out.String())
	}
	for line := range strings.Lines(strings.TrimPrefix(out.String(), "\x1b[18A\x1b[J")) {
		if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > 40 {
			t.Errorf("a line of %d characters: %q", n, line)
		}
	}
	if !strings.Contains(out.String(), "1 ended, 19 running\n") || !strings.Contains(out.String(), "and 3 more") {
		t.Errorf("the screen gets %q", out.String())
	}
}

func TestProgressInALog(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	p := NewProgress(&out, 0)
	target := campaign.Target{Key: "bump-one"}
	p.Tell(Step{Target: target})
	p.Tell(Step{Target: target, Report: &campaign.Report{Outcome: "changed", Reason: "pull_request", Message: "a\nb"}})
	p.Tell(Step{Target: target, Taken: true})
	p.Tell(Step{Target: target, Report: &campaign.Report{}, Left: true})
	p.End()
	want := "bump-one starts\nbump-one changed/pull_request: a b\nbump-one goes on\nbump-one is left as it is, and goes on with the next start\n"
	if out.String() != want {
		t.Errorf("the log is\n%s", out.String())
	}
}
