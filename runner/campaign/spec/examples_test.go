package spec

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/task/config"
	"github.com/agent-ci/agent-ci/runner/task/job"

	"gopkg.in/yaml.v3"
)

// mostKeys is how many keys a job may have. A new one takes the place of one that nobody sets.
const mostKeys = 175

const (
	pages    = "../../../docs/*.md"
	subpages = "../../../docs/*/*.md"
)

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// yamlTexts returns the files of YAML that patterns fit, and the blocks of YAML in documents, by place.
func yamlTexts(t testing.TB, patterns ...string) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			raw := must.Get(os.ReadFile(file))(t)
			if filepath.Ext(file) == ".yml" {
				texts[file] = string(raw)
			}
			for i, block := range yamlBlock.FindAllStringSubmatch(string(raw), -1) {
				texts[fmt.Sprintf("%s %d", file, i)] = block[1]
			}
		}
	}
	return texts
}

// visitKeys calls visit for each key that a file sets, with its value.
func visitKeys(t testing.TB, root *config.Key, text string, visit func(*config.Key, *yaml.Node)) {
	t.Helper()
	var walk func(*config.Key, *yaml.Node)
	walk = func(k *config.Key, node *yaml.Node) {
		visit(k, node)
		for i, below := range node.Content {
			inner := k.Elem
			if node.Kind == yaml.MappingNode && i%2 == 0 {
				continue
			}
			if node.Kind == yaml.MappingNode && inner == nil {
				inner = k.Key(node.Content[i-1].Value)
			}
			if inner != nil {
				walk(inner, below)
			}
		}
	}
	var node yaml.Node
	must.Do(t, yaml.Unmarshal([]byte(text), &node))
	walk(root, node.Content[0])
}

// TestEveryJobKeyHasExample loads the jobs, and parts of jobs, of the examples, recipes and documents. It fails
// for each key that none of these sets.
func TestEveryJobKeyHasExample(t *testing.T) {
	set, loaded := map[string]bool{}, 0
	for place, text := range yamlTexts(t, "../../../examples/jobs/*.yml", "../../../examples/demo/*.yml", "../../../runner/setup/onboard/recipes/*/*.yml", pages, subpages) {
		if !ofAJob(text) {
			continue
		}
		loaded++
		layer := config.Layer{Name: place, Data: []byte(text)}
		if !strings.Contains(text, "version: ") {
			layer.Data = []byte("version: 1\n" + text)
		}
		if strings.Contains(text, "trusted: operator") {
			layer.Kind = config.OperatorLayer
		}
		load := job.LoadTemplate
		if page, _, _ := strings.Cut(filepath.Base(place), " "); strings.HasPrefix(text, "version: ") && slices.Contains([]string{"job.md", "feedback.md", "policy.md", "job.yml"}, page) {
			load = job.Load
		}
		must.Do(t, must.Err(load(layer)), text)
		visitKeys(t, job.Format().Root, text, func(k *config.Key, _ *yaml.Node) { set[k.Path] = true })
	}
	if loaded < 60 {
		t.Errorf("only %d texts are of jobs", loaded)
	}
	leaves := withoutExample(t, job.Format().Root, set)
	if len(leaves) < 100 || len(leaves) > mostKeys {
		t.Errorf("a job has %d keys, and may have %d: see which of them a good default can replace", len(leaves), mostKeys)
	}
}

// TestEveryCampaignKeyHasExample does that for campaign files, whose examples TestCampaignExamplesLoad loads.
func TestEveryCampaignKeyHasExample(t *testing.T) {
	set := map[string]bool{}
	for _, example := range campaignExamples(t) {
		visitKeys(t, Format().Root, example, func(k *config.Key, _ *yaml.Node) { set[k.Path] = true })
	}
	if leaves := withoutExample(t, Format().Root, set); len(leaves) < 20 {
		t.Errorf("there are %d keys", len(leaves))
	}
}

// withoutExample fails for the keys below root that have no keys below themselves and are not in set. It returns all of
// the former.
func withoutExample(t *testing.T, root *config.Key, set map[string]bool) map[string]bool {
	t.Helper()
	leaves := map[string]bool{}
	var walk func(*config.Key)
	walk = func(k *config.Key) {
		below := keysWithin(k)
		leaves[k.Path] = len(below) == 0
		for _, inner := range below {
			walk(inner)
		}
	}
	walk(root)
	maps.DeleteFunc(leaves, func(_ string, leaf bool) bool { return !leaf })
	if missing := slices.DeleteFunc(slices.Sorted(maps.Keys(leaves)), func(path string) bool { return set[path] }); len(missing) > 0 {
		t.Errorf("of %d keys these have no example in examples/, a recipe or a document: %s", len(leaves), strings.Join(missing, ", "))
	}
	return leaves
}

// ofAJob says whether all keys at the top are those of a job.
func ofAJob(example string) bool {
	var keys map[string]yaml.Node
	if err := yaml.Unmarshal([]byte(example), &keys); err != nil || len(keys) == 0 {
		return false
	}
	for name := range keys {
		if job.Format().Root.Key(name) == nil {
			return false
		}
	}
	return true
}
