package campaign

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/outcome"
)

// reasons is the text of docs/outcomes.md on an outcome.
func reasons(t *testing.T, o outcome.Outcome) string {
	t.Helper()
	raw, err := os.ReadFile("../../docs/outcomes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(raw), "\n## "+string(o)+"\n")
	if !found {
		t.Fatalf("docs/outcomes.md has no section on %s", o)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

// 2 says that every target would end so, which no other end does: a cluster ends the whole wave by it.
func TestTheStatusOfAReport(t *testing.T) {
	for o, all := range ofAll {
		text := reasons(t, o)
		for _, reason := range all {
			if !strings.Contains(text, "| `"+reason+"` |") {
				t.Errorf("docs/outcomes.md does not know %s/%s", o, reason)
			}
			if code := (Report{Outcome: string(o), Reason: reason}).ExitCode(); code != 2 {
				t.Errorf("%s/%s ends with %d", o, reason, code)
			}
		}
		if !slices.IsSorted(all) {
			t.Errorf("the reasons of %s have no order", o)
		}
	}
	for o, code := range outcome.All() {
		got := Report{Outcome: string(o), Reason: "of_one_repository"}.ExitCode()
		if o == outcome.InvalidInput {
			code = 1
		}
		if got != code {
			t.Errorf("%s ends with %d, want %d", o, got, code)
		}
	}
	for reason, want := range map[string]int{"sigterm": 143, "sigint": 130, "replanned": 130} {
		if code := (Report{Outcome: string(outcome.Cancelled), Reason: reason}).ExitCode(); code != want {
			t.Errorf("cancelled/%s ends with %d, want %d", reason, code, want)
		}
	}
}

func TestAReportIsShort(t *testing.T) {
	full := func(message string) Report {
		usd, tokens := 1234567.123456789, int64(1)<<40
		return Report{
			Target: strings.Repeat("k", 100), Template: strings.Repeat("0", 64), Attempt: 1 << 30, RunID: strings.Repeat("r", 60), Outcome: "changed", Reason: "pull_request", Message: message,
			CostUSD: &usd, Tokens: &tokens, Commit: strings.Repeat("c", 64), Branch: strings.Repeat("b", 255), PullRequest: PullRequest{1 << 30, "https://ghe.example/" + strings.Repeat("u", 300), "created"},
			Transcript: strings.Repeat("t", 64), Host: strings.Repeat("h", 64), Seconds: 0.001,
		}
	}
	for _, one := range []string{"a", "<", "\x00", "\xff", "\u2028", "\U0001F600", "\"\\"} {
		for _, times := range []int{0, 1, 500, 1000, 4096, 100_000} {
			r := full(strings.Repeat(one, times))
			raw, err := r.Encode()
			if err != nil || len(raw) > MostReport {
				t.Fatalf("%d × %q: %d bytes, %v", times, one, len(raw), err)
			}
			got, err := DecodeReport(raw)
			if err != nil {
				t.Fatal(err)
			}
			kept := strings.TrimSuffix(got.Message, "…")
			if !strings.HasPrefix(strings.ToValidUTF8(r.Message, "\ufffd"), kept) && one != "\xff" || times > 0 && kept == "" {
				t.Errorf("%d × %q: the message is %q", times, one, got.Message)
			}
			if got.Message = r.Message; !reflect.DeepEqual(got, r) {
				t.Errorf("%+v comes back as %+v", r, got)
			}
		}
	}
	if raw, err := (Report{Branch: strings.Repeat("b", MostReport)}).Encode(); err == nil {
		t.Errorf("a report of %d bytes", len(raw))
	}
}

func TestReportsThatAreNone(t *testing.T) {
	for text, want := range map[string]string{
		"": "unexpected end", "{": "unexpected end", "[]": "cannot unmarshal", "{}": `there is no outcome ""`, `{"outcome":"CHANGED"}`: "there is no outcome",
		`{"outcome":"changed","cost_usd":-1}`: "below 0", `{"outcome":"changed","tokens":-1}`: "below 0", `{"outcome":"changed","pull_request":{"number":-1}}`: "below 0",
		`{"outcome":"changed","cost_usd":1e999}`: "cannot unmarshal", `{"outcome":"changed","cost_usd":1e308}`: "tells of more", `{"outcome":"changed","tokens":9223372036854775807}`: "tells of more", `{"outcome":"changed"} {}`: "after top-level value", strings.Repeat(" ", MostReport) + "x": "longer than 4096 bytes",
	} {
		if r, err := DecodeReport([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %+v, %v", text, r, err)
		}
	}
}

func FuzzDecodeReport(f *testing.F) {
	raw, err := report(Claimed{Target: "bump-a", Template: "one", Attempt: 1}, "changed", "pull_request", 1).Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Add([]byte(`{"outcome":"skipped","message":"\ud800\u0000","cost_usd":null,"seconds":1e308}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := DecodeReport(raw)
		if err != nil {
			return
		}
		again, err := r.Encode()
		if err != nil && len(raw) < MostReport/8 { // a byte has six in JSON
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

func TestReportsBelowAFolder(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	of := func(key string) string {
		raw, err := report(Claimed{Target: key, Template: "one", Attempt: 1}, "changed", "pull_request", 1).Encode()
		if err != nil {
			t.Fatal(err)
		}
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
	write("bad/long.report.json", strings.Repeat(" ", MostReport)+of("long"))
	write("bad/folder.report.json/x", "")
	secret := filepath.Join(t.TempDir(), "secret.report.json")
	if err := errors.Join(os.WriteFile(secret, []byte(of("linked")), 0o600), os.Symlink(secret, filepath.Join(folder, "link.report.json")), os.Symlink(filepath.Dir(secret), filepath.Join(folder, "linked"))); err != nil {
		t.Fatal(err)
	}
	var bad []string
	all, err := ReadReports(folder, func(err error) { bad = append(bad, err.Error()) })
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, r := range all {
		keys = append(keys, r.Target)
	}
	if want := []string{"deep", "one", "top"}; !slices.Equal(keys, want) {
		t.Errorf("the reports are %v", keys)
	}
	if len(bad) != 2 || !strings.Contains(bad[0], "empty.report.json") || !strings.Contains(bad[1], "it has ") {
		t.Errorf("told: %q", bad)
	}
	if _, err := ReadReports(filepath.Join(folder, "none"), nil); err == nil {
		t.Error("a folder that is not there")
	}
}

// handOut hands what may start to a cluster.
func (b *book) handOut(most int) *Handout {
	b.t.Helper()
	next, _ := b.Next(b.clock.at, b.campaign, b.plan, most)
	h, err := b.HandOut(b.campaign, b.plan, next, Kubernetes)
	b.must(err)
	return h
}

// again is the wave that is out, as a starter after this one finds it.
func (b *book) again() *Handout {
	b.t.Helper()
	b.must(b.Ledger.Close())
	b.open()
	h, err := b.Again(b.campaign, b.plan, Kubernetes)
	b.must(err)
	return h
}

func noneIsOver(Claimed) bool { return false }

func TestAWaveGoesOutOnce(t *testing.T) {
	b := newBook(t, 6, func(*job.Campaign) {})
	if h := b.again(); h != nil {
		t.Fatalf("before anything, %+v is out", h)
	}
	first := b.handOut(4)
	if len(first.Runs) != 4 || first.Wave != 1 || b.Of("bump").Reserved.USD != 8 {
		t.Fatalf("the wave is %+v", first)
	}
	if again := b.again(); !reflect.DeepEqual(again, first) {
		t.Errorf("again it is %+v", again)
	}
	var open *OpenError
	if _, err := b.HandOut(b.campaign, b.plan, b.plan.Targets[4:], Actions); !errors.As(err, &open) || open.Wave != 1 {
		t.Errorf("a second wave goes out: %v", err)
	}
	if _, err := b.Again(b.campaign, b.plan, Actions); !errors.As(err, &open) {
		t.Errorf("another host is given it: %v", err)
	}
	booked, err := b.Return(b.campaign, []Report{report(first.Claimed(1), "changed", "pull_request", 1)}, noneIsOver)
	if b.must(err); len(booked) != 1 {
		t.Errorf("booked: %+v", booked)
	}
	if again := b.again(); !reflect.DeepEqual(again, first) {
		t.Errorf("with one run settled it is %+v: the places of the others are not theirs any more", again)
	}
	booked, err = b.Return(b.campaign, nil, func(Claimed) bool { return true })
	b.must(err)
	for _, r := range booked {
		if r.Outcome != "internal_error" || r.Reason != "no_result" || r.CostUSD != nil {
			t.Errorf("what told nothing is booked as %+v", r)
		}
	}
	if s := b.Of("bump"); len(booked) != 3 || s.Spent.USD != 7 || s.Reserved.USD != 0 || b.again() != nil {
		t.Errorf("%d are booked, %+v", len(booked), s)
	}
	if second := b.handOut(4); second.Wave != 2 || len(second.Runs) != 2 {
		t.Errorf("the next wave is %+v", second)
	}
}

// Who hands out a wave may die after each of its steps: the file, and the claims one by one.
func TestAKillWhileAWaveIsHandedOut(t *testing.T) {
	for claimed := range 4 {
		b := newBook(t, 3, func(*job.Campaign) {})
		whole := b.handOut(3)
		b.must(b.Ledger.Close())
		path := filepath.Join(b.dir, LedgerFile)
		raw, err := os.ReadFile(path)
		b.must(err)
		lines := bytes.SplitAfter(raw, []byte("\n"))
		b.must(os.WriteFile(path, append(bytes.Join(lines[:1+claimed], nil), `{"v":1,"se`...), 0o600))
		b.open()
		h, err := b.Again(b.campaign, b.plan, Kubernetes)
		b.must(err)
		if claimed == 0 {
			if h != nil {
				t.Fatalf("without a claim %+v is out", h)
			}
			h = b.handOut(3)
			claimed = 3
		}
		if h.Wave != whole.Wave || !reflect.DeepEqual(h.Runs, whole.Runs[:claimed]) {
			t.Errorf("with %d claims, the wave is %+v", claimed, h.Runs)
		}
		if !reflect.DeepEqual(b.again(), h) {
			t.Errorf("with %d claims, the wave changes", claimed)
		}
		_, err = b.Return(b.campaign, nil, func(Claimed) bool { return true })
		b.must(err)
		if rest := b.handOut(9); len(rest.Runs) != 3-claimed {
			t.Errorf("with %d claims, %d targets are left", claimed, len(rest.Runs))
		}
	}
}

// What comes back of another attempt or of another job changes nothing, and hides nothing.
func TestReportsOfOtherRunsAreLeftAlone(t *testing.T) {
	b := newBook(t, 2, func(*job.Campaign) {})
	h := b.handOut(2)
	mine := report(h.Claimed(0), "changed", "pull_request", 1)
	earlier, other, stranger := mine, mine, mine
	earlier.Attempt, other.Template, stranger.Target = 0, "two", "bump-nobody"
	for _, reports := range [][]Report{{earlier}, {other}, {stranger}, {earlier, other, stranger}} {
		booked, err := b.Return(b.campaign, reports, noneIsOver)
		if b.must(err); len(booked) > 0 || len(b.Of("bump").Unsettled()) != 2 {
			t.Errorf("%+v are booked", booked)
		}
	}
	booked, err := b.Return(b.campaign, []Report{mine, earlier, other}, noneIsOver)
	if b.must(err); len(booked) != 1 || booked[0].Template != "one" {
		t.Errorf("beside reports of other runs %+v are booked", booked)
	}
	for range 2 {
		if booked, err = b.Return(b.campaign, []Report{mine}, noneIsOver); err != nil || len(booked) > 0 {
			t.Errorf("once more %+v are booked, %v", booked, err)
		}
	}
	if s := b.Of("bump"); s.Spent.USD != 1 || s.Reserved.USD != 2 {
		t.Errorf("%+v", s)
	}
}

// A run of a wave that was settled goes again on this machine, and that is broken off: the wave keeps its
// places. One that the wave had not claimed, and that ran here, does not come back into it.
func TestAWaveThatIsOutKeepsItsPlaces(t *testing.T) {
	b := newBook(t, 3, func(*job.Campaign) {})
	whole := b.handOut(3)
	_, err := b.Return(b.campaign, []Report{report(whole.Claimed(0), "verify_failed", "red", 1)}, noneIsOver)
	b.must(err)
	_, err = b.Resume(b.campaign, b.plan, "", "dev")
	b.must(err)
	b.wave(1, "")
	if again := b.again(); !reflect.DeepEqual(again, whole) {
		t.Errorf("the wave is %+v", again)
	}

	b = newBook(t, 3, func(*job.Campaign) {})
	whole = b.handOut(3)
	b.must(b.Ledger.Close())
	path := filepath.Join(b.dir, LedgerFile)
	raw, err := os.ReadFile(path)
	b.must(err)
	lines := bytes.SplitAfter(raw, []byte("\n"))
	b.must(os.WriteFile(path, bytes.Join(lines[:3], nil), 0o600)) // killed before the third claim
	b.open()
	b.settle(b.wave(1, ""), "changed", "pull_request", 1)
	if again := b.again(); !reflect.DeepEqual(again.Runs, whole.Runs[:2]) {
		t.Errorf("the wave has %+v", again.Runs)
	}
}

// A pod may go on with what an outage ended, and is paid under the same claim.
func TestAnOutageIsBookedOnceItsRunIsOver(t *testing.T) {
	b := newBook(t, 3, func(*job.Campaign) {})
	h := b.handOut(3)
	var reports []Report
	for i, end := range []string{"model_failed", "forge_failed", "cancelled"} {
		reports = append(reports, report(h.Claimed(i), end, "outage", 1))
	}
	booked, err := b.Return(b.campaign, reports, noneIsOver)
	if b.must(err); len(booked) > 0 {
		t.Errorf("%+v are booked, and may go on", booked)
	}
	booked, err = b.Return(b.campaign, reports, func(Claimed) bool { return true })
	if b.must(err); len(booked) != 3 || b.Of("bump").Spent.USD != 3 {
		t.Errorf("%+v are booked once all is over", booked)
	}
}

func TestAnotherJobWhileAWaveIsOut(t *testing.T) {
	b := newBook(t, 2, func(*job.Campaign) {})
	h := b.handOut(2)
	b.plan.Template = "two"
	b.must(b.Plan(b.plan))
	var open *OpenError
	if _, err := b.Again(b.campaign, b.plan, Kubernetes); !errors.As(err, &open) {
		t.Errorf("the wave of the job before is told again: %v", err)
	}
	next, _ := b.Next(b.clock.at, b.campaign, b.plan, 9)
	if _, err := b.HandOut(b.campaign, b.plan, next, Kubernetes); !errors.As(err, &open) || len(next) > 0 {
		t.Errorf("%d targets go out twice: %v", len(next), err)
	}
	booked, err := b.Return(b.campaign, []Report{report(h.Claimed(0), "changed", "pull_request", 1), report(h.Claimed(1), "changed", "pull_request", 1)}, noneIsOver)
	if b.must(err); len(booked) != 2 {
		t.Errorf("%+v are booked", booked)
	}
	if again := b.handOut(9); len(again.Runs) != 2 || again.Template != "two" || again.Runs[0].Attempt != 1 {
		t.Errorf("the new job goes out as %+v", again)
	}
}

func TestWavesOfAnotherVersionAreRefused(t *testing.T) {
	b := newBook(t, 1, func(*job.Campaign) {})
	raw, err := json.Marshal(b.handOut(1))
	b.must(err)
	if h, err := ReadHandout(raw); err != nil || len(h.Runs) != 1 {
		t.Errorf("%+v, %v", h, err)
	}
	for _, text := range []string{strings.Replace(string(raw), `"version":1`, `"version":2`, 1), "{}", "[]", "", string(raw[:len(raw)-1]), strings.Replace(string(raw), `"key":"`, `"key":"../../`, 1)} {
		if _, err := ReadHandout([]byte(text)); err == nil {
			t.Errorf("%.40s is read", text)
		}
	}
}
