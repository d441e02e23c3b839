package spec

import (
	"maps"
	"slices"

	"github.com/agent-ci/agent-ci/runner/task/config"
)

func jobFile(yaml string) config.Layer { return config.Layer{Name: "job.yml", Data: []byte(yaml)} }

// schemaKeys are the keys that a schema describes, by path.
func schemaKeys(schema map[string]any, path string, into map[string]map[string]any) {
	properties, _ := schema["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		below := properties[name].(map[string]any)
		into[config.JoinPath(path, name)] = below
		schemaKeys(below, config.JoinPath(path, name), into)
	}
	if groups, isMap := schema["additionalProperties"].(map[string]any); isMap && groups["properties"] != nil {
		schemaKeys(groups, path+".*", into)
	}
	if items, isList := schema["items"].(map[string]any); isList {
		schemaKeys(items, path+"[]", into)
	}
}
