package campaign

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/campaign/spec"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
)

func TestExitCodeMatchesOutcome(t *testing.T) {
	for o, code := range outcome.ExitCodes() {
		must.Same(t, code, (Report{Outcome: string(o), Reason: "x"}).ExitCode(), o)
	}
	for reason, want := range map[string]int{"sigterm": 143, "sigint": 130, "replanned": 130} {
		must.Same(t, want, (Report{Outcome: string(outcome.Cancelled), Reason: reason}).ExitCode(), reason)
	}
}

func TestEncodeBoundsReport(t *testing.T) {
	full := func(message string) Report {
		usd, tokens := 1234567.123456789, int64(1)<<40
		return Report{
			Target: strings.Repeat("k", 100), Template: strings.Repeat("0", 64), Attempt: 1 << 30, RunID: strings.Repeat("r", 60), Outcome: "changed", Reason: "pull_request", Message: message,
			CostUSD: &usd, Tokens: &tokens, Commit: strings.Repeat("c", 64), Branch: strings.Repeat("b", 255), PullRequest: record.PullRequest{Number: 1 << 30, URL: "https://ghe.example/" + strings.Repeat("u", 300), Operation: "created"},
			Transcript: strings.Repeat("t", 64), Host: strings.Repeat("h", 64), Seconds: 0.001,
		}
	}
	for _, one := range []string{"a", "<", "\x00", "\xff", "\u2028", "\U0001F600", "\"\\"} {
		for _, times := range []int{0, 1, 500, 1000, 4096, 100_000} {
			r := full(strings.Repeat(one, times))
			raw, err := r.Encode()
			if err != nil || len(raw) > MaxReportBytes {
				t.Fatalf("%d × %q: %d bytes, %v", times, one, len(raw), err)
			}
			got := must.Get(DecodeReport(raw))(t)
			kept := strings.TrimSuffix(got.Message, "…")
			if !strings.HasPrefix(strings.ToValidUTF8(r.Message, "\ufffd"), kept) && one != "\xff" || times > 0 && kept == "" {
				t.Errorf("%d × %q: the message is %q", times, one, got.Message)
			}
			if got.Message = r.Message; !reflect.DeepEqual(got, r) {
				t.Errorf("%+v comes back as %+v", r, got)
			}
		}
	}
	must.Fail(t, "", must.Err((Report{Branch: strings.Repeat("b", MaxReportBytes)}).Encode()), "a report")
}

func TestRefusesInvalidReports(t *testing.T) {
	for text, want := range map[string]string{
		"": "is empty", "{": "without its end", "[]": "it is a list, not an object", "{}": `there is no outcome ""`, `{"outcome":"CHANGED"}`: "there is no outcome",
		`{"outcome":"changed","cost_usd":-1}`: "below 0", `{"outcome":"changed","tokens":-1}`: "below 0", `{"outcome":"changed","pull_request":{"number":-1}}`: "below 0",
		`{"outcome":"changed","cost_usd":1e999}`: "cost_usd is 1e999, which is out of range", `{"outcome":"changed","cost_usd":1e308}`: "tells of more", `{"outcome":"changed","tokens":9223372036854775807}`: "tells of more", `{"outcome":"changed"} {}`: "after top-level value", strings.Repeat(" ", MaxReportBytes) + "x": "longer than 4096 bytes",
	} {
		must.Fail(t, want, must.Err(DecodeReport([]byte(text))), text)
	}
}

func FuzzDecodeReport(f *testing.F) {
	raw := must.Get(report(Claimed{Target: Target{Key: "bump-a"}, Template: "one", Attempt: 1}, "changed", "pull_request", 1).Encode())(f)
	f.Add(raw)
	f.Add([]byte(`{"outcome":"skipped","message":"\ud800\u0000","cost_usd":null,"seconds":1e308}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := DecodeReport(raw)
		if err != nil {
			return
		}
		again, err := r.Encode()
		if err != nil && len(raw) < MaxReportBytes/8 { // a byte has six in JSON
			t.Fatalf("%q: %v", raw, err)
		}
		if err != nil {
			return
		}
		if got, err := DecodeReport(again); err != nil || got.Target != r.Target || got.Attempt != r.Attempt {
			t.Errorf("%q comes back as %q, %v", raw, again, err)
		}
	})
}

func TestReadsReportsBelowFolder(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) {
		must.Write(t, filepath.Join(folder, filepath.FromSlash(name)), text)
	}
	of := func(key string) string {
		raw := must.Get(report(Claimed{Target: Target{Key: key}, Template: "one", Attempt: 1}, "changed", "pull_request", 1).Encode())(t)
		return string(raw)
	}
	write("top.report.json", of("top"))
	write("job-0/runs/one.report.json", of("one"))
	write("a/b/c/deep.report.json", of("deep"))
	write("a/b/c/d/deeper.report.json", of("deeper"))
	write("job-0/runs/one.json", of("another name"))
	write("job-0/runs/one/transcript.jsonl", "")
	write("job-0/runs/one/forged.report.json", of("forged")) // by the run
	write("bad/empty.report.json", "")
	write("bad/long.report.json", strings.Repeat(" ", MaxReportBytes)+of("long"))
	write("bad/folder.report.json/x", "")
	secret := filepath.Join(t.TempDir(), "secret.report.json")
	must.Do(t, errors.Join(os.WriteFile(secret, []byte(of("linked")), 0o600), os.Symlink(secret, filepath.Join(folder, "link.report.json")), os.Symlink(filepath.Dir(secret), filepath.Join(folder, "linked"))))
	var bad []string
	all := must.Get(ReadReports(folder, func(err error) { bad = append(bad, err.Error()) }))(t)
	var keys []string
	for _, r := range all {
		keys = append(keys, r.Target)
	}
	must.Same(t, []string{"deep", "one", "top"}, keys, "the reports are")
	if len(bad) != 2 || !strings.Contains(bad[0], "empty.report.json") || !strings.Contains(bad[1], "it has ") {
		t.Errorf("told: %q", bad)
	}
	must.Fail(t, "", must.Err(ReadReports(filepath.Join(folder, "none"), nil)), "a folder that is not there")
}

// handOut hands what may start to a cluster.
func (b *book) handOut(most int) []Claimed {
	b.t.Helper()
	next, _ := b.Next(b.clock.at, b.campaign, b.plan, most)
	wave := must.Get(b.Claim(b.campaign, b.plan, next, Kubernetes))(b.t)
	return wave
}

// again is the wave that is out, as a later start finds it.
func (b *book) again() []Claimed {
	b.t.Helper()
	must.Do(b.t, b.Ledger.Close())
	b.open()
	return b.Of("bump").UnsettledWave()
}

// back books reports of a wave, and gives how many of them counted.
func (b *book) back(over bool, reports ...Report) int {
	b.t.Helper()
	booked := must.Get(b.BookReturned(b.campaign, reports, func(Claimed) bool { return over }))(b.t)
	return len(booked)
}

// Whoever hands out a wave may be killed after each claim: the wave is what was claimed.
func TestKilledHandoutKeepsClaimedRuns(t *testing.T) {
	for claimed := range 4 {
		b := newBook(t, 3, func(*spec.Campaign) {})
		whole := b.handOut(3)
		must.Do(b.t, b.Ledger.Close())
		path := filepath.Join(b.dir, LedgerFile)
		raw := must.Get(os.ReadFile(path))(b.t)
		lines := bytes.SplitAfter(raw, []byte("\n"))
		must.Do(b.t, os.WriteFile(path, append(bytes.Join(lines[:1+claimed], nil), `{"v":1,"se`...), 0o600))
		b.open()
		if out := b.Of("bump").UnsettledWave(); len(out) != claimed || claimed > 0 && !reflect.DeepEqual(out, whole[:claimed]) {
			t.Errorf("with %d claims, the wave is %+v", claimed, out)
		}
		b.settle(b.wave(3-claimed, ""), "changed", "pull_request", 1) // the others run here meanwhile
		must.Same(t, claimed, len(b.again()), "with", "claims, the wave changes")
		must.Same(t, claimed, b.back(true), "with")
	}
}

// A report of another attempt or of another job changes nothing, and hides nothing.
func TestIgnoresReportsOfOtherRuns(t *testing.T) {
	b := newBook(t, 2, func(*spec.Campaign) {})
	mine := report(b.handOut(2)[0], "changed", "pull_request", 1)
	earlier, other, stranger := mine, mine, mine
	earlier.Attempt, other.Template, stranger.Target = 0, "two", "bump-nobody"
	for _, reports := range [][]Report{{earlier}, {other}, {stranger}, {earlier, other, stranger}} {
		if n := b.back(false, reports...); n > 0 || len(b.Of("bump").Unsettled()) != 2 {
			t.Errorf("%d are booked", n)
		}
	}
	must.Same(t, 1, b.back(false, mine, earlier, other), "beside reports of other runs")
	must.Same(t, 0, b.back(false, mine), "once more")
	if s := b.Of("bump"); s.Spent.USD != 1 || s.Reserved.USD != 2 {
		t.Errorf("%+v", s)
	}
}

// A run of a wave that was settled goes again on this machine: the wave keeps its places, and books that
// run no second time.
func TestResumedRunLeavesWaveUnchanged(t *testing.T) {
	b := newBook(t, 3, func(*spec.Campaign) {})
	whole := b.handOut(3)
	b.back(false, report(whole[0], "verify_failed", "red", 1))
	must.Get(b.Resume(b.campaign, b.plan, "", "dev"))(b.t)
	b.wave(1, "")
	must.Same(t, whole, b.again(), "the wave")
	if n := b.back(true, report(whole[0], "changed", "pull_request", 1)); n != 2 || len(b.Of("bump").Unsettled()) != 1 || b.again() != nil {
		t.Errorf("%d are booked, and %+v are left", n, b.Of("bump").Unsettled())
	}
}

// A pod may resume what an outage ended, and is paid under the same claim.
func TestBooksOutageAfterRunEnds(t *testing.T) {
	b := newBook(t, 3, func(*spec.Campaign) {})
	wave := b.handOut(3)
	var reports []Report
	for i, end := range []string{"model_failed", "forge_failed", "cancelled"} {
		reports = append(reports, report(wave[i], end, "outage", 1))
	}
	must.Same(t, 0, b.back(false, reports...), "are booked, and may resume")
	if n := b.back(true, reports...); n != 3 || b.Of("bump").Spent.USD != 3 {
		t.Errorf("%d are booked once all is over", n)
	}
}

func TestNewJobWaitsForOpenWave(t *testing.T) {
	b := newBook(t, 2, func(*spec.Campaign) {})
	wave := b.handOut(2)
	b.plan.Template = "two"
	must.Do(b.t, b.Plan(b.plan))
	if next, _ := b.Next(b.clock.at, b.campaign, b.plan, 9); len(next) > 0 {
		t.Errorf("%d targets go out twice", len(next))
	}
	must.Same(t, 2, b.back(false, report(wave[0], "changed", "pull_request", 1), report(wave[1], "changed", "pull_request", 1)))
	if again := b.handOut(9); len(again) != 2 || again[0].Template != "two" || again[0].Attempt != 1 {
		t.Errorf("the new job goes out as %+v", again)
	}
}

func TestDecodeWaveRefusesInvalidWaves(t *testing.T) {
	b := newBook(t, 1, func(*spec.Campaign) {})
	wave := b.handOut(1)
	must.Do(b.t, b.WriteWaveFile(wave))
	raw := must.Get(os.ReadFile(filepath.Join(b.dir, WaveFile(wave))))(b.t)
	must.Same(t, wave, must.Get(DecodeWave(raw))(t))
	for _, text := range []string{strings.Replace(string(raw), `"version":1`, `"version":2`, 1), "{}", "[]", "", string(raw[:len(raw)-1]), strings.Replace(string(raw), `"key":"`, `"key":"../../`, 1)} {
		must.Fail(t, "", must.Err(DecodeWave([]byte(text))), text, "is read")
	}
}
