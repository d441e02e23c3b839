package campaign

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/runner/campaign/spec"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/price"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

func page(t *testing.T) string {
	t.Helper()
	return string(must.Get(os.ReadFile("../../docs/reference/campaign.md"))(t))
}

// section is the text below a heading, up to the next one.
func section(t *testing.T, heading string) string {
	t.Helper()
	_, text, found := strings.Cut(page(t), "\n"+heading+"\n")
	if !found {
		t.Fatalf("docs/reference/campaign.md has no %s", heading)
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
		must.Same(t, true, strings.Contains(text, "`"+name+"`"), "docs/reference/campaign.md does not tell of", name, "in", where)
	}
}

func TestLedgerEventsAreDocumented(t *testing.T) {
	data := map[transcript.Type]any{
		TypePlanned: Planned{}, TypeApproved: Approved{}, TypeResumed: Resumed{}, TypeStopped: Stopped{}, TypeClaimed: Claimed{}, TypeSettled: Settled{}, TypePull: PullState{},
	}
	for kind := range eventHandlers {
		if data[kind] == nil {
			t.Errorf("%s is not known here", kind)
		}
	}
	for kind, each := range data {
		wantFields(t, string(kind), section(t, "#### "+string(kind)), each)
	}
	settled := section(t, "#### "+string(TypeSettled))
	wantFields(t, "pull_request", settled, Report{}.PullRequest)
	must.Same(t, len(eventHandlers), strings.Count(page(t), "\n#### "))
}

func TestStatusIsDocumented(t *testing.T) {
	text := section(t, "## Status as JSON")
	for _, data := range []any{Status{}, Claim{}, Wait{}, Row{}, spec.Spending{}} {
		wantFields(t, "the status", text, data)
	}
	classes := section(t, "## What is shown")
	for _, class := range Classes() {
		must.Contain(t, classes, "`"+string(class)+"`")
	}
}

// The claim of the page's example is that of the code.
func TestDocumentedClaimMatchesCode(t *testing.T) {
	j := &job.Job{Limits: job.Limits{CostUSD: 5}}
	list := &price.List{Rates: price.Rates{Input: 2, Output: 10}}
	claim, unpriced := ClaimOf(j, []Model{{Name: "a", Price: list, Window: 200_000, Output: 32_000}})
	if price.AddCosts(claim.USD, 0) != 5.72 || unpriced != "" {
		t.Errorf("a run claims %v, %s", claim.USD, unpriced)
	}
	b := newBook(t, 9, func(c *spec.Campaign) { c.Budget.USD = 20 })
	b.plan.Claim = Claim{USD: 5.72}
	must.Do(b.t, b.Plan(b.plan))
	b.settle(b.wave(3, WaitUSD), "changed", "pull_request", 0.9)
	b.wave(3, WaitUSD)
}

// The estimate goes by the runs so far, and a target that ran and is named no more stays in the plan.
func TestEstimatesFromRunsAndKeepsTargets(t *testing.T) {
	b := newBook(t, 5, func(*spec.Campaign) {})
	must.Same(t, nil, b.Status(b.clock.at, b.campaign, b.plan).Estimate, "before the first run, they cost")
	for i, c := range b.wave(4, WaitAtOnce)[:2] {
		r := report(c, "changed", "pull_request", 0.5+float64(i))
		r.RunID = "run"
		b.book(r)
	}
	state := must.Get(Read(b.dir))(b.t)
	if s := state.Status(b.clock.at, b.campaign, b.plan); s.Estimate == nil || *s.Estimate != 1 || s.Ledger != b.log.Head() {
		t.Errorf("the target that is left costs %v, by %s", s.Estimate, s.Ledger)
	}
	next := &Plan{Version: PlanVersion, Campaign: "bump", Template: "one", Targets: slices.Clone(b.plan.Targets[3:])}
	next.CarryOver(b.plan, b.State)
	if len(next.Targets) != 5 || next.Targets[2].Key != b.plan.Targets[0].Key || next.Targets[2].Blocker == "" {
		t.Errorf("kept: %+v", next.Targets)
	}
}
