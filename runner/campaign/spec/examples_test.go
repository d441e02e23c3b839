package spec

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/runner/task/config"
	"github.com/agent-ci/agent-ci/runner/task/job"

	"gopkg.in/yaml.v3"
)

// mostKeys is how many keys a job may have. A new one takes the place of one that nobody sets.
const mostKeys = 175

// TestEveryKeyHasAnExample loads the jobs of the examples and recipes, and fails for each key that neither
// these nor a block of YAML in the documents set.
func TestEveryKeyHasAnExample(t *testing.T) {
	set := map[string]bool{}
	for _, folder := range []string{"../../../examples/jobs", "../../../examples/demo", "../../../runner/setup/onboard/recipes"} {
		err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".yml" {
				return err
			}
			raw, err := os.ReadFile(path)
			if err != nil || !ofAJob(string(raw)) {
				return err
			}
			if _, err := job.LoadTemplate(config.Layer{Name: path, Kind: config.File, Data: raw}); err != nil {
				t.Error(err)
			}
			return collect(job.Format().Root, raw, set)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range docPages(t) { // TestDocumentedFragmentsLoad loads these
		document, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range yamlBlock.FindAllStringSubmatch(string(document), -1) {
			if ofAJob(block[1]) {
				if err := collect(job.Format().Root, []byte(block[1]), set); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	leaves := map[string]bool{}
	leavesBelow(job.Format().Root, leaves)
	missing := slices.DeleteFunc(slices.Sorted(maps.Keys(leaves)), func(path string) bool { return set[path] })
	if len(leaves) < 100 || len(missing) > 0 {
		t.Errorf("of %d keys these have no example in examples/, a recipe or a document: %s", len(leaves), strings.Join(missing, ", "))
	}
	if len(leaves) > mostKeys {
		t.Errorf("a job has %d keys, more than %d: see which of them a good default can replace", len(leaves), mostKeys)
	}
}

// TestEveryKeyOfACampaignHasAnExample does that for campaign files, whose examples TestCampaignExamplesLoad loads.
func TestEveryKeyOfACampaignHasAnExample(t *testing.T) {
	set, leaves := map[string]bool{}, map[string]bool{}
	for _, example := range campaignExamples(t) {
		if err := collect(Format().Root, []byte(example), set); err != nil {
			t.Fatal(err)
		}
	}
	leavesBelow(Format().Root, leaves)
	missing := slices.DeleteFunc(slices.Sorted(maps.Keys(leaves)), func(path string) bool { return set[path] })
	if len(leaves) < 20 || len(missing) > 0 {
		t.Errorf("of %d keys these have no example in examples/campaigns or the document: %s", len(leaves), strings.Join(missing, ", "))
	}
}

// collect notes the keys that a job sets.
func collect(k *config.Key, raw []byte, set map[string]bool) error {
	var node yaml.Node
	if err := yaml.Unmarshal(raw, &node); err != nil {
		return err
	}
	collectFrom(k, node.Content[0], set)
	return nil
}

func collectFrom(k *config.Key, node *yaml.Node, set map[string]bool) {
	set[k.Path] = true
	for i, below := range node.Content {
		switch {
		case node.Kind == yaml.SequenceNode && k.Elem != nil:
			collectFrom(k.Elem, below, set)
		case node.Kind != yaml.MappingNode || i%2 == 0:
		case k.Elem != nil:
			collectFrom(k.Elem, below, set)
		case k.Key(node.Content[i-1].Value) != nil:
			collectFrom(k.Key(node.Content[i-1].Value), below, set)
		}
	}
}

// leavesBelow notes the keys below k that have no keys below themselves.
func leavesBelow(k *config.Key, leaves map[string]bool) {
	below := k.Keys
	if k.Elem != nil {
		below = k.Elem.Keys
	}
	if len(below) == 0 {
		leaves[k.Path] = true
	}
	for _, inner := range below {
		leavesBelow(inner, leaves)
	}
}
