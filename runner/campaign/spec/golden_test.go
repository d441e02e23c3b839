package spec

import (
	"flag"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/agent-ci/agent-ci/runner/task/config"
	"gopkg.in/yaml.v3"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files and the tables of docs/reference/job.md")

// compareGolden fails unless the file at path holds got.
func compareGolden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (-want +got); go test ./runner/campaign/spec -update rewrites it:\n%s", path, diff)
	}
}

func jobFile(yaml string) config.Layer { return config.Layer{Name: "job.yml", Data: []byte(yaml)} }

// asDocument is a YAML file as an editor's schema check sees it.
func asDocument(t *testing.T, data string) any {
	t.Helper()
	var value any
	if err := yaml.Unmarshal([]byte(data), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// schemaKeys are the keys that a schema describes, by path.
func schemaKeys(schema map[string]any, path string, into map[string]map[string]any) {
	properties, _ := schema["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		below := properties[name].(map[string]any)
		into[config.At(path, name)] = below
		schemaKeys(below, config.At(path, name), into)
	}
	if groups, isMap := schema["additionalProperties"].(map[string]any); isMap && groups["properties"] != nil {
		schemaKeys(groups, path+".*", into)
	}
	if items, isList := schema["items"].(map[string]any); isList {
		schemaKeys(items, path+"[]", into)
	}
}
