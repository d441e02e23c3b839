package campaign

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/price"
	"github.com/agent-ci/agent-ci/runner/transcript"
)

func page(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile("../../docs/campaigns.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// section is the text below a heading, up to the next one.
func section(t *testing.T, heading string) string {
	t.Helper()
	_, text, found := strings.Cut(page(t), "\n"+heading+"\n")
	if !found {
		t.Fatalf("docs/campaigns.md has no %s", heading)
	}
	text, _, _ = strings.Cut(text, "\n#")
	return text
}

// fields are the names in JSON of what is in a struct, those of structs that are not named among them.
func fields(of reflect.Type) (names []string) {
	for field := range of.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-", !field.IsExported():
		case name == "" && field.Anonymous:
			names = append(names, fields(field.Type)...)
		default:
			names = append(names, name)
		}
	}
	return names
}

func wantFields(t *testing.T, where, text string, data any) {
	t.Helper()
	for _, name := range fields(reflect.TypeOf(data)) {
		if !strings.Contains(text, "`"+name+"`") {
			t.Errorf("docs/campaigns.md does not tell of %s in %s", name, where)
		}
	}
}

func TestEventsOfTheLedgerAreDocumented(t *testing.T) {
	data := map[transcript.Type]any{
		TypePlanned: Planned{}, TypeApproved: Approved{}, TypeResumed: Resumed{}, TypeStopped: Stopped{}, TypeClaimed: Claimed{}, TypeSettled: Settled{}, TypePull: PullState{},
	}
	for kind := range takes {
		if data[kind] == nil {
			t.Errorf("%s is not known here", kind)
		}
	}
	for kind, each := range data {
		wantFields(t, string(kind), section(t, "#### "+string(kind)), each)
	}
	settled := section(t, "#### "+string(TypeSettled))
	wantFields(t, "pull_request", settled, PullRequest{})
	if got := strings.Count(page(t), "\n#### "); got != len(takes) {
		t.Errorf("docs/campaigns.md has %d types of events, there are %d", got, len(takes))
	}
}

func TestStatusIsDocumented(t *testing.T) {
	text := section(t, "## Status as JSON")
	for _, data := range []any{Status{}, Claim{}, Wait{}, Moment{}, Row{}, job.Spending{}} {
		wantFields(t, "the status", text, data)
	}
	classes := section(t, "## What is shown")
	for _, class := range Classes() {
		if !strings.Contains(classes, "`"+string(class)+"`") {
			t.Errorf("docs/campaigns.md does not tell of the class %s", class)
		}
	}
}

// The claim of the page's example is that of the code.
func TestTheExampleOfAClaimIsRight(t *testing.T) {
	j := &job.Job{Limits: job.Limits{CostUSD: 5}}
	list := &price.List{Rates: price.Rates{Input: 2, Output: 10}}
	claim, unpriced := ClaimOf(j, []Model{{Name: "a", Price: list, Window: 200_000, Output: 32_000}})
	if price.Sum(claim.USD, 0) != 5.72 || unpriced != "" {
		t.Errorf("a run claims %v, %s", claim.USD, unpriced)
	}
	b := newBook(t, 9, func(c *job.Campaign) { c.Budget.USD = 20 })
	b.plan.Claim = Claim{USD: 5.72}
	b.must(b.Plan(b.plan))
	b.settle(b.wave(3, WaitUSD), "changed", "pull_request", 0.9)
	b.wave(3, WaitUSD)
}

func TestAHistoryTellsOfTheTemplateThatHolds(t *testing.T) {
	b := newBook(t, 5, func(c *job.Campaign) { c.Rollout.AtOnce = 2 })
	settle := func(claimed []Claimed, outcome string) {
		for _, c := range claimed {
			b.clock.at = b.clock.at.Add(60e9)
			b.must(b.Settle(b.campaign, report(c, outcome, "x", 1)))
		}
	}
	counts := func() (all [][2]int) {
		for _, m := range b.Status(b.clock.at, b.campaign, b.plan).History {
			all = append(all, [2]int{m.Targets, m.Settled})
		}
		return all
	}
	want := func(what string, want ...[2]int) {
		t.Helper()
		if got := counts(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	settle(b.wave(2, WaitAtOnce), "model_error")
	want("two failed", [2]int{5, 0}, [2]int{5, 1}, [2]int{5, 2})
	b.clock.at = b.clock.at.Add(60e9)
	_, err := b.Resume(b.campaign, b.plan, "", "dev")
	b.must(err)
	want("they run again", [2]int{5, 0}, [2]int{5, 1}, [2]int{5, 2}, [2]int{5, 0})
	settle(b.wave(2, WaitAtOnce), "changed")
	want("they are settled", [2]int{5, 0}, [2]int{5, 1}, [2]int{5, 2}, [2]int{5, 0}, [2]int{5, 1}, [2]int{5, 2})
	state, err := Read(b.dir)
	b.must(err)
	if got := state.Status(b.clock.at, b.campaign, b.plan); got.Ledger != b.log.Head() || len(got.History) != 6 {
		t.Errorf("who reads the ledger is told %s and %d moments", got.Ledger, len(got.History))
	}
	b.plan.Template = "two"
	b.clock.at = b.clock.at.Add(60e9)
	b.must(b.Plan(b.plan))
	want("another job", [2]int{5, 0})
}

func TestALongHistoryKeepsItsEnds(t *testing.T) {
	history := make([]Moment, 10_001)
	for i := range history {
		history[i].Settled = i
	}
	kept := thinned(history, mostMoments)
	if len(kept) != mostMoments || kept[0].Settled != 0 || kept[len(kept)-1].Settled != 10_000 {
		t.Errorf("%d moments from %d to %d", len(kept), kept[0].Settled, kept[len(kept)-1].Settled)
	}
}
