package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/campaign"
	"github.com/agent-ci/agent-ci/runner/campaign/spec"
	"github.com/agent-ci/agent-ci/runner/record/golden"
	"github.com/agent-ci/agent-ci/runner/record/outcome"

	"gopkg.in/yaml.v3"
)

const file = `version: 1
name: bump
targets: {file: targets.txt}
job: {version: 1, task: {prompt: "Bump ${{ target.name }}."}}
kubernetes: {image: "registry.example/agent-ci@sha256:0123", volume: runs, namespace: bots}
`

// newWave is a wave of so many targets.
func newWave(t *testing.T, file string, targets int) Wave {
	t.Helper()
	c := must.Get(spec.Load("bump.yml", []byte(file), func(string) ([]byte, error) {
		return []byte("version: 1\ntask: {prompt: x}\n"), nil
	}))(t)
	w := Wave{Campaign: c, File: []byte(file), Variables: map[string]string{"GITHUB_API_URL": "https://ghe.example:8443/api/v3"}, Ports: []int{8443, 443}}
	for n := range targets {
		target := campaign.Target{Repository: fmt.Sprintf("octo/r%03d", n), Base: "main", SHA: strings.Repeat("a", 40)}
		target.Key = campaign.KeyOf(c.Name, target)
		w.Runs = append(w.Runs, campaign.Claimed{
			Campaign: c.Name, Target: target, Template: strings.Repeat("0", 64), Wave: 3, Attempt: 1, Host: campaign.Kubernetes, Claim: campaign.Claim{USD: 5.72, Tokens: 1_000_000},
		})
	}
	return w
}

func manifest(t *testing.T, w Wave) []byte {
	t.Helper()
	return must.Get(Manifest(w))(t)
}

// documents are those of a manifest, as kubectl would read them.
func documents(t *testing.T, raw []byte) (all []object) {
	t.Helper()
	decoder := yaml.NewDecoder(bytes.NewReader(raw))
	for {
		var document object
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			break
		}
		must.Do(t, err, raw)
		plain := must.Get(json.Marshal(document))(t)
		document = nil
		must.Do(t, json.Unmarshal(plain, &document))
		all = append(all, document)
	}
	return all
}

// find is the document of a kind.
func find(t *testing.T, all []object, kind string) object {
	t.Helper()
	i := slices.IndexFunc(all, func(o object) bool { return o["kind"] == kind })
	if i < 0 || len(all) != 4 {
		t.Fatalf("%d documents, and %s is number %d", len(all), kind, i)
	}
	return all[i]
}

func TestManifestMatchesGolden(t *testing.T) {
	golden.Compare(t, "testdata/manifest.yaml", manifest(t, newWave(t, file, 2)))
}

// forms are campaign files whose manifests have different keys.
func forms() map[string]string {
	bare := "version: 1\nname: Bump_it.all\ntargets: {file: targets.txt}\n"
	inline := "job: {version: 1, task: {prompt: x}}\n"
	return map[string]string{
		"all":           file,
		"image alone":   bare + inline + "kubernetes: {image: agent-ci}\n",
		"no volume":     bare + inline + "kubernetes: {image: agent-ci, namespace: n, cpu: 500m, memory: 512Mi}\n",
		"volume":        bare + inline + "kubernetes: {image: agent-ci, volume: v}\n",
		"a job beside":  bare + "job_file: jobs/deep/./bump.yml\nkubernetes: {image: agent-ci}\n",
		"numbers alone": bare + inline + "kubernetes: {image: agent-ci, cpu: \"2\", memory: \"1073741824\", volume: \"1\", secret: \"2\", namespace: \"4\"}\n",
	}
}

// The API asks things that no schema says (https://kubernetes.io/docs/concepts/workloads/controllers/job/);
// make e2e-cluster has a real one check the form.
func TestJobSatisfiesKubernetesRules(t *testing.T) {
	for name, file := range forms() {
		w := newWave(t, file, 40)
		o := find(t, documents(t, manifest(t, w)), "Job")
		spec := o["spec"].(object)
		pod := spec["template"].(object)["spec"].(object)
		volume := w.Campaign.Kubernetes.Volume != ""
		if got := spec["backoffLimitPerIndex"]; (got == 2.0) != volume || (got == 0.0) == volume {
			t.Errorf("%s: an index is tried %v times again", name, got)
		}
		if pod["restartPolicy"] != "Never" || spec["podReplacementPolicy"] != "Failed" || spec["completionMode"] != "Indexed" {
			t.Errorf("%s: podFailurePolicy asks for restartPolicy Never, podReplacementPolicy Failed, and backoffLimitPerIndex for Indexed: %v", name, spec)
		}
		if pod["automountServiceAccountToken"] != false || pod["serviceAccountName"] != Name(w.Campaign.Name) {
			t.Errorf("%s: the pod gets %v, %v", name, pod["serviceAccountName"], pod["automountServiceAccountToken"])
		}
		if spec["completions"] != 40.0 || spec["parallelism"] != 4.0 {
			t.Errorf("%s: %v completions, %v at once", name, spec["completions"], spec["parallelism"])
		}
		mounted := map[any]bool{}
		for _, m := range pod["containers"].([]any)[0].(object)["volumeMounts"].([]any) {
			mounted[m.(object)["name"]] = true
		}
		for _, v := range pod["volumes"].([]any) {
			if !mounted[v.(object)["name"]] {
				t.Errorf("%s: the volume %v is mounted nowhere", name, v)
			}
		}
	}
}

// Each status with which a run ends is sorted: its index is over, or is tried again.
func TestFailurePolicyCoversEveryOutcome(t *testing.T) {
	actions := map[int]string{}
	for _, rule := range (Wave{Campaign: &spec.Campaign{}}).failureRules() {
		on, is := rule["onExitCodes"].(object)
		if !is {
			t.Fatalf("without a volume there is a rule %v", rule)
		}
		for _, code := range on["values"].([]int) {
			must.Same(t, "", actions[code], code, "has two rules")
			actions[code] = rule["action"].(string)
		}
		if !slices.IsSorted(on["values"].([]int)) {
			t.Errorf("the API wants the statuses in their order: %v", on["values"])
		}
	}
	want := map[outcome.Outcome]string{
		outcome.InvalidInput: "FailIndex", outcome.SandboxUnavailable: "FailIndex",
		outcome.InternalError: "FailIndex", outcome.NeedsInput: "FailIndex", outcome.BudgetExceeded: "FailIndex", outcome.VerifyFailed: "FailIndex",
		outcome.PolicyViolation: "FailIndex", outcome.Conflict: "FailIndex", outcome.ExtensionFailed: "FailIndex",
		outcome.ModelFailed: "", outcome.ForgeFailed: "", outcome.Cancelled: "", // tried again
		outcome.Changed: "", outcome.NoChanges: "", outcome.Skipped: "", // with 0
	}
	for o, code := range outcome.ExitCodes() {
		action, sorted := want[o]
		if !sorted || actions[code] != action {
			t.Errorf("%s ends with %d, for which the policy says %q: say in this test and in failureRules what a cluster does then", o, code, actions[code])
		}
		delete(actions, code)
	}
	if len(actions) > 0 {
		t.Errorf("nothing ends so: %v", actions)
	}
}

// What stands in the campaign file, the job and the values of targets comes into the pod as it is, and
// nowhere else.
func TestManifestKeepsHostileTexts(t *testing.T) {
	for _, text := range []string{
		"---\napiVersion: v1\nkind: Secret\n---\n", "...\n", "'\"\n  - {a: &b !!binary x}\n", "\ttab\n tab \n\n", "a: 1\r\nb: 2\r\n", "\rlone\r", "\x00nul", "\xff\xfe not UTF-8", "\ufeffmark", "\u0085\u2028\u2029", " \n", "\n", "\n\n  deep\n", "#",
		"${{ secrets.X }} {{ .Values }} $(POD_NAME)", "\x1b[2J", "\U0001F600\n", "end without newline \\",
	} {
		w := newWave(t, "version: 1\nname: bump\ntargets: {file: targets.txt}\njob_file: jobs/bump.yml\nkubernetes: {image: agent-ci}\n", 1)
		w.File, w.JobFile = []byte(text), []byte("x\n"+text)
		w.Runs[0].Target.Values = map[string]string{"part": text}
		w.Variables = map[string]string{"OPENAI_BASE_URL": text}
		all := documents(t, manifest(t, w))
		data := find(t, all, "ConfigMap")["data"].(object)
		must.Same(t, []string{campaignFile, jobFile, waveFile}, slices.Sorted(maps.Keys(data)), text, "the files")
		h, err := campaign.DecodeWave([]byte(data[waveFile].(string)))
		if err != nil || h[0].Target.Values["part"] != strings.ToValidUTF8(text, "\ufffd") && !strings.Contains(text, "\xff") {
			t.Errorf("%q: the wave comes as %v, %v", text, h, err)
		}
		if got := data[campaignFile]; got != text && !strings.Contains(text, "\xff") {
			t.Errorf("%q comes as %q", text, got)
		}
		if got := data[jobFile]; got != "x\n"+text && !strings.Contains(text, "\xff") {
			t.Errorf("the job %q comes as %q", "x\n"+text, got)
		}
	}
}

// Whatever a file begins with, YAML gives it back.
func TestYAMLPreservesFileText(t *testing.T) {
	letters, random := []rune("\n\n\n  \t\r#:-'\"{}[]|>&*!%@`,ab\u0085\u2028\ufeff\u00a0\u00e9\U0001F600\x00\x1b\\?"), rand.New(rand.NewPCG(1, 1))
	for range 5000 {
		var file strings.Builder
		for range random.IntN(9) {
			file.WriteRune(letters[random.IntN(len(letters))])
		}
		raw := must.Get(yaml.Marshal(object{"data": object{"file": yamlText([]byte(file.String())), "next": "x"}}))(t)
		var got map[string]map[string]string
		if err := yaml.Unmarshal(raw, &got); err != nil || got["data"]["file"] != file.String() || got["data"]["next"] != "x" {
			t.Errorf("%q comes as %q, %v", file.String(), got, err)
		}
	}
}

func TestMountsJobFileAtNamedPath(t *testing.T) {
	w := newWave(t, forms()["a job beside"], 1)
	w.JobFile = []byte("version: 1\n")
	pod := find(t, documents(t, manifest(t, w)), "Job")["spec"].(object)["template"].(object)["spec"].(object)
	items := fmt.Sprint(pod["volumes"].([]any)[0].(object)["configMap"].(object)["items"])
	must.Contain(t, items, "map[key:job.yml path:jobs/deep/bump.yml]")
}

var label = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)

func TestNamesAreLabels(t *testing.T) {
	const first, rest = "abzABZ019", "abzABZ019.-_"
	random := rand.New(rand.NewPCG(1, 2))
	named := map[string]string{}
	check := func(name string) {
		got := Name(name)
		if other, taken := named[got]; taken && other != name {
			t.Errorf("%q and %q are both %s", name, other, got)
		}
		named[got] = name
		pod := jobName([]campaign.Claimed{{Campaign: name, Wave: 999_999}}) + "-255-xxxxx" // as the pods of an index are called
		for _, made := range []string{got, pod} {
			if len(made) > 63 || !label.MatchString(made) {
				t.Errorf("%q makes %s, of %d characters", name, made, len(made))
			}
		}
	}
	for _, name := range []string{"a", "0", "A", "a-", "a.", "a_b", "a-b", "a.b", "a--", strings.Repeat("a", 40), strings.Repeat("-", 40), strings.Repeat("a", 30), strings.Repeat("a", 31), strings.Repeat("a", 23) + strings.Repeat("-", 17)} {
		check(name)
	}
	for range 20_000 {
		name := []byte{first[random.IntN(len(first))]}
		for range random.IntN(40) {
			name = append(name, rest[random.IntN(len(rest))])
		}
		check(string(name))
	}
}

// What fits is as much as a ConfigMap takes, and not much less.
func TestWaveFitsConfigMap(t *testing.T) {
	w := newWave(t, file, 256)
	targets := make([]campaign.Target, len(w.Runs))
	for i, run := range w.Runs {
		targets[i] = run.Target
		targets[i].Values = map[string]string{"text": strings.Repeat("\u2028<\"", 100)} // long as JSON
	}
	n := CountFitting("bump", targets, w.File, w.JobFile)
	if n <= 0 || n >= 256 {
		t.Fatalf("%d targets fit", n)
	}
	take := func(n int) error {
		w.Runs = nil
		for _, target := range targets[:n] {
			w.Runs = append(w.Runs, campaign.Claimed{Campaign: "bump", Target: target, Template: strings.Repeat("0", 64), Wave: 1 << 30, Attempt: 1 << 30, Host: campaign.Kubernetes, Claim: campaign.Claim{USD: 1e9 + 0.000001, Tokens: 1 << 60}})
		}
		_, err := Manifest(w)
		return err
	}
	must.Do(t, take(n), n, "fit")
	applied, err := json.Marshal(find(t, documents(t, manifest(t, w)), "ConfigMap")) // as kubectl apply annotates it
	if err != nil || len(applied) > 262144 || len(applied) < 200_000 {
		t.Errorf("the ConfigMap of %d has %d bytes of JSON, %v", n, len(applied), err)
	}
	must.Fail(t, "and kubectl apply takes 262144", take(n+2), n+2, "are too many")
	must.Same(t, 0, CountFitting("bump", targets[:3], bytes.Repeat([]byte("x"), maxSettingsBytes), nil), "beside a file of 256 KiB there is room for")
	must.Same(t, 3, CountFitting("bump", make([]campaign.Target, 3), w.File, w.JobFile), "of 3 short ones")
}

func TestReadyNeedsImageAndFreeName(t *testing.T) {
	must.Fail(t, "", CheckSettings(&spec.Campaign{}, unset), "a manifest without an image is ready")
	for _, name := range []string{"campaign.yml", "./wave.json"} {
		c := &spec.Campaign{JobFile: name, Kubernetes: spec.Kubernetes{Image: "agent-ci"}}
		must.Fail(t, "give the job another name", CheckSettings(c, unset), "the job may be called", name)
	}
	must.Do(t, CheckSettings(newWave(t, file, 1).Campaign, unset))
}

func unset(string) string { return "" }
