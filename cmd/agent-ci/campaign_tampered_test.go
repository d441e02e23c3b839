package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/runner/campaign"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// TestATamperedLedgerReachesNothingElse has two starters at once with a ledger whose chain is whole, and whose
// events or plan name what is in other folders.
func TestATamperedLedgerReachesNothingElse(t *testing.T) {
	t.Parallel()
	append := func(kind transcript.Type, data any) func(*testing.T, *campaigning) {
		return func(t *testing.T, w *campaigning) {
			log, _, err := transcript.Reopen(filepath.Join(w.ledger(), campaign.LedgerFile), transcript.Options{Clock: time.Now})
			if err != nil {
				t.Fatal(err)
			}
			defer log.Close()
			if _, err := log.Append(kind, data); err != nil {
				t.Fatal(err)
			}
		}
	}
	const away = "../../../backup"
	for name, tamper := range map[string]func(*testing.T, *campaigning){
		"a claim":            append(campaign.TypeClaimed, campaign.Claimed{Campaign: "bump", Target: campaign.Target{Key: away}, Wave: 1, Attempt: 1}),
		"a claim's template": append(campaign.TypeClaimed, campaign.Claimed{Campaign: "bump", Target: campaign.Target{Key: "bump-x"}, Template: "/../../b", Wave: 1, Attempt: 1}),
		"an end":             append(campaign.TypeSettled, campaign.Settled{Campaign: "bump", Report: campaign.Report{Target: away, Attempt: 1, Outcome: "changed"}}),
		"the plan": func(t *testing.T, w *campaigning) {
			ledger, err := campaign.Open(w.ledger(), time.Now)
			if err != nil {
				t.Fatal(err)
			}
			defer ledger.Close()
			w.plan.Targets[0].Key = away
			if err := ledger.Plan(w.plan); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newCampaigning(t, 1, cheap, campaignFile)
			for _, victim := range []string{"backup--1/kept", "ledger/bump/b-1/kept"} {
				w.write(victim, "dear")
			}
			tamper(t, w)
			before := w.names(t)
			var starters sync.WaitGroup
			for range 2 {
				starter, out := w.command("run")
				starters.Go(func() {
					if err := starter.Run(); err == nil || !strings.Contains(out.String(), "is no name of a target") && !strings.Contains(out.String(), "somebody else works with this ledger") {
						t.Errorf("a starter ended with %v:\n%s", err, out)
					}
				})
			}
			starters.Wait()
			if after := w.names(t); after != before {
				t.Errorf("the files were\n%sand are\n%s", before, after)
			}
		})
	}
}

// names lists the files of the workshop without those of the ledger's lock.
func (w *campaigning) names(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(w.dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && !strings.HasSuffix(path, ".lock") && !strings.HasSuffix(path, "/lock") && !strings.Contains(path, "/seed/") {
			all.WriteString(path + "\n")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}
