package cluster

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/campaign"
)

// four is a wave of four targets.
func four(t *testing.T) []campaign.Claimed {
	t.Helper()
	return newWave(t, file, 4).Runs
}

// message is what the run of an index says when its container ends.
func message(t *testing.T, h []campaign.Claimed, index int, outcome, reason string) string {
	t.Helper()
	raw := must.Get(campaign.Report{Target: h[index].Target.Key, Template: h[index].Template, Attempt: 1, Outcome: outcome, Reason: reason}.Encode())(t)
	return string(raw)
}

// listing is what kubectl get jobs,pods -o json prints for four: of 0 a change, of 1 a red check, of
// 2 an outage and a pod that runs, of 3 one that was killed, and things of others.
func listing(t *testing.T, h []campaign.Claimed) map[string]any {
	t.Helper()
	raw := must.Get(os.ReadFile("testdata/kubectl.json"))(t)
	text := string(raw)
	for index, end := range [][2]string{{"changed", "pull_request"}, {"verify_failed", "red"}, {"model_failed", "outage"}, {"changed", "pull_request"}} {
		quoted := must.Get(json.Marshal(message(t, h, index, end[0], end[1])))(t)
		text = strings.ReplaceAll(text, fmt.Sprintf(`"MESSAGE-%d"`, index), string(quoted))
	}
	var all map[string]any
	must.Do(t, json.Unmarshal([]byte(text), &all))
	return all
}

func items(all map[string]any) []any { return all["items"].([]any) }

func part(of any, path ...string) map[string]any {
	for _, step := range path {
		of = of.(map[string]any)[step]
	}
	return of.(map[string]any)
}

// ended is the state of a pod's container.
func ended(pod any) map[string]any {
	return part(part(pod, "status")["containerStatuses"].([]any)[0], "state", "terminated")
}

// read says of each index how it ended: - where it goes on, ? where nobody knows.
func read(t *testing.T, h []campaign.Claimed, all any) string {
	t.Helper()
	raw := must.Get(json.Marshal(all))(t)
	s, err := ParseState(raw, h)
	if err != nil {
		return err.Error()
	}
	var words []string
	for _, run := range h {
		word := "-"
		if slices.Contains(s.Ended, run.Target.Key) {
			word = "?"
		}
		if i := slices.IndexFunc(s.Reports, func(r campaign.Report) bool { return r.Target == run.Target.Key }); i >= 0 {
			word = s.Reports[i].Reason
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func TestReadsReportsFromKubectl(t *testing.T) {
	h := four(t)
	const (
		asItIs      = "pull_request red - ?"
		withoutPods = "kubectl shows no pod of the Job agent-ci-bump-3, and the pods have the reports of the runs; ask it with kubectl get jobs,pods -o json, and if they are gone for good, end wave 3 with --over alone"
	)
	for name, test := range map[string]struct {
		change func(all map[string]any)
		want   string
	}{
		"as it is":                {func(map[string]any) {}, asItIs},
		"in another order":        {func(all map[string]any) { slices.Reverse(items(all)) }, asItIs},
		"a Job that failed":       {func(all map[string]any) { condition(all, "Failed", "True") }, "pull_request red ? ?"},
		"a Job that is to fail":   {func(all map[string]any) { condition(all, "FailureTarget", "True") }, asItIs},
		"a Job that did not fail": {func(all map[string]any) { condition(all, "Failed", "False") }, asItIs},
		"a second pod that told": {func(all map[string]any) {
			condition(all, "Complete", "True")
			part(items(all)[4], "status")["containerStatuses"] = []any{map[string]any{"name": "agent-ci", "state": map[string]any{"terminated": map[string]any{"message": message(t, h, 2, "no_changes", "nothing")}}}}
		}, "pull_request red nothing ?"},
		"a range of indexes":     {func(all map[string]any) { indexes(all, "0,2-3", "1") }, "pull_request red ? ?"},
		"a huge range":           {func(all map[string]any) { indexes(all, "0-2147483647", "") }, "pull_request red ? ?"},
		"ranges beside the wave": {func(all map[string]any) { indexes(all, "7,9-12", "3-1") }, "- - - -"},
		"none":                   {func(all map[string]any) { indexes(all, "", "") }, "- - - -"},
		"no numbers":             {func(all map[string]any) { indexes(all, "0,x", "") }, `read the indexes of the Job agent-ci-bump-3: strconv.Atoi: parsing "x": invalid syntax`},
		"no Job":                 {func(all map[string]any) { all["items"] = items(all)[1:] }, "kubectl says nothing of the Job agent-ci-bump-3, in which wave 3 runs; ask it with kubectl get jobs,pods -o json, in its namespace"},
		"no pods":                {func(all map[string]any) { all["items"] = items(all)[:1] }, withoutPods},
		"no pods that ended": {func(all map[string]any) {
			all["items"] = items(all)[:1]
			status := part(items(all)[0], "status")
			status["succeeded"], status["failed"] = 0, 0
			condition(all, "Failed", "True")
		}, "? ? ? ?"},
		"a Job of that name in another namespace": {func(all map[string]any) {
			all["items"] = append(items(all), map[string]any{"kind": "Job", "metadata": map[string]any{"name": "agent-ci-bump-3", "namespace": "elsewhere"}})
		}, "kubectl tells of 2 Jobs agent-ci-bump-3, in which wave 3 runs; ask it with kubectl get jobs,pods -o json, in its namespace"},
		"junk": {func(all map[string]any) { ended(items(all)[1])["message"] = "panic: runtime error" }, "? red - ?"},
		"a report and junk": {func(all map[string]any) {
			ended(items(all)[1])["message"] = ended(items(all)[1])["message"].(string) + "x"
		}, "? red - ?"},
		"no outcome": {func(all map[string]any) { ended(items(all)[1])["message"] = message(t, h, 0, "splendid", "") }, "? red - ?"},
		"a report of another target": {func(all map[string]any) {
			ended(items(all)[1])["message"] = message(t, h, 1, "changed", "pull_request")
		}, "? red - ?"},
		"a sidecar that talks": {func(all map[string]any) {
			status := part(items(all)[1], "status")
			status["containerStatuses"] = append([]any{map[string]any{"name": "proxy", "state": map[string]any{"terminated": map[string]any{"message": message(t, h, 0, "no_changes", "nothing")}}}}, status["containerStatuses"].([]any)...)
		}, asItIs},
		"a pod of another namespace": {func(all map[string]any) { part(items(all)[1], "metadata")["namespace"] = "elsewhere" }, "? red - ?"},
		"a pod of no index":          {func(all map[string]any) { part(items(all)[1], "metadata", "annotations")[annotationIndex] = "4" }, "? red - ?"},
		"a pod of a negative index":  {func(all map[string]any) { part(items(all)[1], "metadata", "annotations")[annotationIndex] = "-1" }, "? red - ?"},
		"a Job of another campaign":  {func(all map[string]any) { part(items(all)[0], "metadata")["name"] = "agent-ci-bump-30" }, "kubectl says nothing of the Job agent-ci-bump-3, in which wave 3 runs; ask it with kubectl get jobs,pods -o json, in its namespace"},
	} {
		all := listing(t, h)
		test.change(all)
		must.Same(t, test.want, read(t, h, all), name)
	}
	must.Same(t, withoutPods, read(t, h, items(listing(t, h))[0]), "of the Job alone")
}

// A pod that was killed may have been paid more than the one before it told.
func TestLatestPodCounts(t *testing.T) {
	h := four(t)
	all := listing(t, h)
	again := items(all)[5] // killed
	part(again, "metadata", "annotations")[annotationIndex] = "1"
	part(again, "metadata")["creationTimestamp"] = "2026-03-02T10:03:00Z"
	must.Same(t, "pull_request ? - ?", read(t, h, all), "the report of the first pod counts")
	part(again, "metadata")["creationTimestamp"] = "2026-03-02T09:03:00Z"
	must.Same(t, "pull_request red - ?", read(t, h, all), "the report of the last pod does not count")
}

func condition(all map[string]any, kind, status string) {
	part(items(all)[0], "status")["conditions"] = []any{map[string]any{"type": kind, "status": status, "lastTransitionTime": "2026-03-02T10:09:00Z"}}
}

func indexes(all map[string]any, completed, failed string) {
	status := part(items(all)[0], "status")
	status["completedIndexes"], status["failedIndexes"] = completed, failed
}

func FuzzRead(f *testing.F) {
	raw := must.Get(os.ReadFile("testdata/kubectl.json"))(f)
	f.Add(raw)
	f.Add([]byte(`{"kind":"Job","metadata":{"name":"agent-ci-bump-3"},"status":{"completedIndexes":"0-9223372036854775807","failedIndexes":"9223372036854775807-0"}}`))
	f.Add([]byte(`{"kind":"List","items":[{"kind":"Job","metadata":{"name":"agent-ci-bump-3"},"status":{"conditions":[{"type":"Complete","status":"True"}]}},{"kind":"Pod"}]}`))
	f.Add([]byte(`{"kind":"List","items":null}`))
	var h []campaign.Claimed
	for n := range 4 {
		h = append(h, campaign.Claimed{Campaign: "bump", Wave: 3, Target: campaign.Target{Key: fmt.Sprint("bump-", n)}})
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, err := ParseState(raw, h)
		if err != nil && (s.Ended != nil || s.Reports != nil) {
			t.Errorf("%v, and %+v", err, s)
		}
		if len(s.Ended) > len(h) || len(s.Reports) > len(s.Ended) {
			t.Errorf("of 4 runs %d are over, and %d told", len(s.Ended), len(s.Reports))
		}
		for _, r := range s.Reports {
			must.Same(t, true, slices.Contains(s.Ended, r.Target), r.Target, "told, and is not over")
		}
	})
}
