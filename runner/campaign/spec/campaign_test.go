package spec

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/golden"
	"github.com/agent-ci/agent-ci/runner/task/config"
	"github.com/agent-ci/agent-ci/runner/task/config/schematest"

	"gopkg.in/yaml.v3"
)

// campaignStart is a campaign without mistakes; what is tested comes below it, from line 4.
const campaignStart = "version: 1\nname: bump\njob: {version: 1, task: {prompt: x}}\n"

const oneTarget = "targets: {list: [{repository: octo-org/a}]}\n"

// noFile is for campaigns that name none.
func noFile(string) ([]byte, error) { return nil, errors.New("there is none") }

func mustLoad(t testing.TB, text string) *Campaign {
	t.Helper()
	c, err := Load("campaign.yml", []byte(text), noFile)
	must.Do(t, err, text)
	return c
}

// campaignExamples are the campaigns that people copy, by where they stand.
func campaignExamples(t testing.TB) map[string]string {
	t.Helper()
	all := yamlTexts(t, "../../../examples/campaigns/*.yml", pages, subpages)
	maps.DeleteFunc(all, func(place, text string) bool {
		return !IsCampaign([]byte(text)) || !strings.HasSuffix(place, ".yml") && !strings.HasPrefix(text, "version: ")
	})
	if len(all) < 7 {
		t.Errorf("there are %d examples", len(all))
	}
	return all
}

func besideExamples(name string) ([]byte, error) {
	return os.ReadFile(filepath.Join("../../../examples/campaigns", name))
}

func TestCampaignExamplesLoad(t *testing.T) {
	schema := schematest.Compile(t, Format().Schema())
	for file, example := range campaignExamples(t) {
		must.Do(t, must.Err(Load(file, []byte(example), besideExamples)), example)
		must.Do(t, schema.Validate(t, example), file)
	}
}

// What the schema refuses does not load either.
func TestLoadAndSchemaRefuseInvalidCampaigns(t *testing.T) {
	schema := schematest.Compile(t, Format().Schema())
	for _, text := range []string{
		"zebra: 1", "pilot: -1", "pilot: '1'", "on_existing: close", "budget: {usd: many}", "budget: {usd: -1}", "rollout: {at_once: 0}", "stop_if: {same_reason: often}",
		"recipe: {run: x}", "applies_if: x", "job_file: 5",
		"targets: {list: [octo-org/a]}", "targets: {list: [{repository: octo-org}]}", "targets: {queries: [{topic: Go}]}", "targets: {file: a, most: 0}",
	} {
		if !strings.HasPrefix(text, "targets") {
			text = oneTarget + text
		}
		must.Fail(t, "", must.Err(Load("campaign.yml", []byte(campaignStart+text), noFile)), text, "it loads")
		must.Fail(t, "", schema.Validate(t, campaignStart+text), text, "the schema takes it")
	}
}

func TestReportsAllMistakesOfCampaign(t *testing.T) {
	data := must.Get(os.ReadFile("testdata/bad_campaign.yml"))(t)
	_, err := Load("bad_campaign.yml", data, noFile)
	golden.Compare(t, "testdata/bad_campaign.txt", fmt.Sprintln(err))
}

func TestReportsIncompleteCampaigns(t *testing.T) {
	beside := map[string]string{"job.yml": "version: 1\ntask: {prompt: '${{ target.nmae }}'}\nlimits: {turn: 5}\n", "empty.yml": "\n", "torn.yml": "a: [\n"}
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", "campaign.yml:1:1: is empty; a campaign begins with version: 1"},
		{"a list", "- x", "campaign.yml:1:1: must be a mapping, not a list"},
		{"two documents", campaignStart + oneTarget + "---\nversion: 1\n", "campaign.yml:5:1: holds a second document from here on; a campaign is one document"},
		{"no targets", campaignStart, "campaign.yml:1:1: targets: names nothing: give list, queries or file"},
		{"empty targets", campaignStart + "targets: {list: []}", "campaign.yml:4:10: targets: names nothing: give list, queries or file"},
		{"no job", "version: 1\nname: bump\n" + oneTarget, "campaign.yml:1:1: job: is missing: give job, or job_file"},
		{"no name of the job's file", "version: 1\nname: bump\n" + oneTarget + "job_file: \"\"", "campaign.yml:1:1: job: is missing: give job, or job_file"},
		{"two jobs", campaignStart + oneTarget + "job_file: job.yml", "campaign.yml:5:11: job_file: is given beside job; give only one of them"},
		{"a job that is not there", "version: 1\nname: bump\n" + oneTarget + "job_file: nowhere.yml", "campaign.yml:4:11: job_file: cannot be read: there is none"},
		{"an empty job", "version: 1\nname: bump\n" + oneTarget + "job_file: empty.yml", "empty.yml:1:1: is empty; a job begins with version: 1"},
		{"a job that is not YAML", "version: 1\nname: bump\n" + oneTarget + "job_file: torn.yml", "torn.yml:1:1: is not YAML: did not find expected node content"},
		{"mistakes of the job beside it", "version: 1\nname: bump\n" + oneTarget + "job_file: job.yml", "job.yml:2:16: task.prompt: ${{ target.nmae }} is not a field of a target; did you mean ${{ target.name }}?\njob.yml:3:10: limits.turn: unknown key; did you mean limits.turns?"},
	} {
		_, err := Load("campaign.yml", []byte(c.text), func(name string) ([]byte, error) {
			if text, has := beside[name]; has {
				return []byte(text), nil
			}
			return noFile(name)
		})
		must.Same(t, c.want, fmt.Sprint(err), c.name)
	}
}

// What a shell or a program reads takes no marks, wherever a job has it.
func TestRefusesMarksInCommands(t *testing.T) {
	for _, text := range []string{
		"applies_if: 'x ${{ target.path }}'",
		"recipe: {run: 'x ${{ target.path }}'}",
		"setup: [{run: 'x ${{ target.path }}'}]",
		"verify: [{name: a, run: 'x ${{ values.a }}'}]",
		"services: {db: {run: 'x ${{ target.path }}', port: 1}}",
		"services: {db: {run: x, port: 1, init: ['x ${{ target.path }}']}}",
		"services: {db: {run: x, port: 1, ready: {run: 'x ${{ target.path }}'}}}",
		"mcp_servers: {a: {command: '${{ values.a }}', tools: [b]}}",
		"mcp_servers: {a: {command: c, args: ['${{ values.a }}'], tools: [b]}}",
		"hooks: {a: {on: PreToolUse, run: [x, '${{ values.a }}']}}",
		"tools: {dynamic: [{name: a, description: b, input_schema: {type: object}, run: 'x ${{ values.a }}'}]}",
		"tools: {dynamic: [{name: a, description: b, input_schema: {type: object}, run: [x, '${{ values.a }}']}]}",
	} {
		must.Fail(t, "is a command, and a target's text in it would run as code", must.Err(Load("campaign.yml", []byte("version: 1\nname: bump\n"+oneTarget+"job:\n  version: 1\n  task: {prompt: x}\n  "+text+"\n"), noFile)), text)
	}
}

func TestReportsUnfitTargetValues(t *testing.T) {
	c := mustLoad(t, "version: 1\nname: bump\n"+oneTarget+`job:
  version: 1
  task: {prompt: "${{ target.name }} to ${{ values.to }} in ${{ env.HOME }}"}
  pull_request: {title: "Bump ${{ values.to }}", labels: ["${{ values.label }}"]}
`)
	for _, test := range []struct {
		name   string
		values map[string]string
		want   string
	}{
		{"all there", map[string]string{"target.name": "a", "values.to": "2", "values.label": "x"}, ""},
		{"one missing", map[string]string{"target.name": "a", "values.label": "x"}, "campaign.yml:6:18: task.prompt: needs values.to, which the target lacks\ncampaign.yml:7:25: pull_request.title: needs values.to, which the target lacks"},
		{"two lines for a title", map[string]string{"target.name": "a", "values.to": "1\n2", "values.label": "x"}, "campaign.yml:7:25: pull_request.title: must be one line without control characters"},
	} {
		got := ""
		if problems := c.Job.ValueProblems(test.values); len(problems) > 0 {
			got = problems.Error()
		}
		must.Same(t, test.want, got, test.name)
	}
}

// filledText is a job in whose texts stand marks, in each way of writing a text.
const filledText = `version: 1
name: bump
targets: {list: [{repository: octo-org/a}]}
job:
  version: 1
  name: plain-${{ values.a }}
  task:
    prompt: |
      Do ${{ values.a }}, and ${{values.b}}.
  pull_request: {title: 'T ${{ values.b }}', labels: ["${{ values.a }}", "other"], body: ">${{ values.a }}<${{ env.X }}"}
  policy: {env: {set: {A: "${{ values.a }}", B: "1"}}}
  verify:
    - {name: tests, run: make test}
`

// FuzzFill: whatever the values hold, they are texts of the job that is written, where their marks
// stood; nothing else of it changes.
func FuzzFill(f *testing.F) {
	f.Add("plain", "words")
	for _, hostile := range []string{
		`"`, `'`, "\n", "a: b", "- x", "${{ values.b }}", "${{ target.path }}", "# c", "}]", "&a *a", "!!int 5", "5", "true", "~", "", " lead", "tail ", "\t", "a\nb: c\n", "\u2028", "\x00", "\x1b", "\xff", "<<", "---\nversion: 2", "|", ">-", "%YAML", "é", "\ufeff", "\u0085", "$1 ${0}",
	} {
		f.Add(hostile, "b")
	}
	c := mustLoad(f, strings.ReplaceAll(filledText, ", body: \">${{ values.a }}<${{ env.X }}\"", ""))
	plain := map[string]string{"values.a": "AAAA", "values.b": "BBBB"}
	f.Fuzz(func(t *testing.T, a, b string) {
		got, err := c.Job.Fill(map[string]string{"values.a": a, "values.b": b}, map[string]any{"repository.name": "octo-org/a"})
		if !utf8.ValidString(a) || !utf8.ValidString(b) {
			must.Fail(t, "", err, "a job is written of what is no text")
			return
		}
		must.Do(t, err)
		want := must.Get(c.Job.Fill(plain, map[string]any{"repository.name": "octo-org/a"}))(t)
		replaced := strings.NewReplacer("AAAA", a, "BBBB", b)
		var is, should any
		must.Do(t, yaml.Unmarshal(got, &is), got)
		must.Do(t, yaml.Unmarshal(want, &should))
		must.Same(t, eachString(should, replaced.Replace), is, "the job of", a, b, got)
	})
}

// eachString is a document with its texts changed.
func eachString(v any, change func(string) string) any {
	switch v := v.(type) {
	case string:
		return change(v)
	case []any:
		for i := range v {
			v[i] = eachString(v[i], change)
		}
	case map[string]any:
		for name := range v {
			v[name] = eachString(v[name], change)
		}
	}
	return v
}

// FuzzLoad: whatever a file holds, it is a campaign, or there are problems that stand in it.
func FuzzLoad(f *testing.F) {
	for _, path := range []string{"testdata/bad_campaign.yml", "../../task/job/testdata/bad.yml"} {
		raw := must.Get(os.ReadFile(path))(f)
		f.Add(string(raw))
	}
	f.Add(filledText)
	for _, example := range campaignExamples(f) {
		f.Add(example)
	}
	f.Fuzz(func(t *testing.T, data string) {
		c, err := Load("job.yml", []byte(data), noFile)
		if err != nil {
			var problems config.Problems
			if !errors.As(err, &problems) || strings.ContainsFunc(problems[0].String(), unicode.IsControl) {
				t.Errorf("the error is %T, %q", err, err)
			}
			return
		}
		must.Same(t, true, IsCampaign([]byte(data)), "it is not known for a campaign")
		must.Is(t, nil, must.Err(json.Marshal(c)))
	})
}

func TestRecognisesCampaigns(t *testing.T) {
	for text, want := range map[string]bool{
		campaignStart: true, "targets: {}": true, "pilot: 1": true, "version: 1\nname: x": false, "version: 1\ntask: {prompt: x}\napplies_if: x": false, "": false, "- targets": false, "targets: [": false, "zebra: 1": false,
	} {
		must.Same(t, want, IsCampaign([]byte(text)), text)
	}
}

func TestParsesAndAppliesWindows(t *testing.T) {
	monday := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		window string
		at     time.Duration // after Monday, 0:00 UTC
		want   bool
	}{
		{"Mon-Fri 09:00-17:00", 9 * time.Hour, true},
		{"Mon-Fri 09:00-17:00", 17 * time.Hour, false},
		{"Mon-Fri 09:00-17:00", (5*24 + 10) * time.Hour, false},
		{"Mon-Fri 09:00-17:00 Europe/Berlin", 8 * time.Hour, true},
		{"22:00-02:00", 23 * time.Hour, true},
		{"22:00-02:00", 25 * time.Hour, true},
		{"Mon 22:00-02:00", time.Hour, false},
		{"Mon 22:00-02:00", 25 * time.Hour, true},
		{"Sat,Sun 00:00-24:00", (6*24 + 23) * time.Hour, true},
		{"Fri-Mon 00:00-24:00", 5 * time.Hour, true},
		{"Sun 22:00-02:00 America/Havana", (7*24 + 4) * time.Hour, true}, // its Sunday began at 01:00
	} {
		w, err := parseWindow(test.window)
		must.Do(t, err, test.window)
		must.Same(t, test.want, w.Contains(monday.Add(test.at)), test.window, test.at)
	}
	for _, wrong := range []string{"", "Mon", "always", "9:00-17:00", "09:00", "09:00-09:00", "09:00-24:30", "-1:00-05:00", "Mon-Fry 09:00-10:00", "09:00-10:00 Local", "09:00-10:00 Nowhere/City", "09:00-10:00 UTC x"} {
		must.Fail(t, "", must.Err(parseWindow(wrong)), wrong, "is taken")
	}
}
