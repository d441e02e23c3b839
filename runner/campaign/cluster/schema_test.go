package cluster

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

var openapi = flag.String("openapi", "", "rewrite testdata/kubernetes.json from this file: api/openapi-spec/swagger.json of k8s.io/kubernetes")

// schemaFile holds those definitions of Kubernetes' published API that a manifest may use, without
// their descriptions, and with one thing added: unknown keys are refused, as kubectl apply
// --validate=strict does.
const schemaFile = "testdata/kubernetes.json"

// kinds are the things of a manifest, and how the API calls them.
var kinds = map[string]string{
	"v1/ServiceAccount":                  "io.k8s.api.core.v1.ServiceAccount",
	"networking.k8s.io/v1/NetworkPolicy": "io.k8s.api.networking.v1.NetworkPolicy",
	"v1/ConfigMap":                       "io.k8s.api.core.v1.ConfigMap",
	"batch/v1/Job":                       "io.k8s.api.batch.v1.Job",
}

const definitions = "#/definitions/"

func TestMain(m *testing.M) {
	flag.Parse()
	if *openapi != "" {
		if err := prune(*openapi); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// prune writes the schema.
func prune(published string) error {
	raw, err := os.ReadFile(published)
	if err != nil {
		return err
	}
	var all struct {
		Info        struct{ Version string }
		Definitions map[string]object
	}
	if err := json.Unmarshal(raw, &all); err != nil {
		return err
	}
	kept := object{}
	for _, name := range kinds {
		keep(all.Definitions, kept, name)
	}
	out, err := json.MarshalIndent(object{"$comment": "Kubernetes " + all.Info.Version, "definitions": kept}, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(schemaFile, append(out, '\n'), 0o644)
}

// keep takes a definition over, and all to which it points.
func keep(all map[string]object, kept object, name string) {
	if kept[name] != nil {
		return
	}
	d := all[name]
	kept[name] = d
	if properties, has := d["properties"].(object); has {
		delete(properties, "managedFields") // which the cluster tells, as it does its status
		if status, is := properties["status"].(object); is && status["$ref"] != nil {
			delete(properties, "status")
		}
		d["additionalProperties"] = false
	}
	if d["format"] == "int-or-string" {
		d["type"] = []string{"integer", "string"}
	}
	tidy(d, func(to string) { keep(all, kept, to) })
}

// tidy takes words and what is Kubernetes' own from a schema, and tells to what it points.
func tidy(part any, points func(string)) {
	switch part := part.(type) {
	case object:
		for key, value := range part {
			_, text := value.(string)
			switch {
			case key == "description" && text, strings.HasPrefix(key, "x-kubernetes-"), key == "default":
				delete(part, key)
			case key == "$ref":
				points(strings.TrimPrefix(value.(string), definitions))
			default:
				tidy(value, points)
			}
		}
	case []any:
		for _, each := range part {
			tidy(each, points)
		}
	}
}

// schema is the published one.
type schema struct{ kinds map[string]*jsonschema.Schema }

func readSchema(t *testing.T) schema {
	t.Helper()
	raw, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft4)
	if err := compiler.AddResource("kubernetes.json", document); err != nil {
		t.Fatal(err)
	}
	s := schema{map[string]*jsonschema.Schema{}}
	for kind, name := range kinds {
		if s.kinds[kind], err = compiler.Compile("kubernetes.json" + definitions + name); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// validate says what of a document the API does not know.
func (s schema) validate(t *testing.T, document object) error {
	t.Helper()
	kind := document["apiVersion"].(string) + "/" + document["kind"].(string)
	if s.kinds[kind] == nil {
		t.Fatalf("there is a %s in the manifest", kind)
	}
	raw, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	return s.kinds[kind].Validate(instance)
}

// paths are the places of all mappings in a document.
func paths(part any, path ...any) (all [][]any) {
	switch part := part.(type) {
	case object:
		all = append(all, slices.Clone(path))
		for key, value := range part {
			all = append(all, paths(value, append(slices.Clone(path), key)...)...)
		}
	case []any:
		for i, value := range part {
			all = append(all, paths(value, append(slices.Clone(path), i)...)...)
		}
	}
	return all
}

func at(document object, path []any) object {
	var part any = document
	for _, step := range path {
		switch step := step.(type) {
		case string:
			part = part.(object)[step]
		case int:
			part = part.([]any)[step]
		}
	}
	return part.(object)
}

// free says that a mapping has keys of its own: labels, files, amounts.
func free(path []any) bool {
	if len(path) == 0 {
		return false
	}
	last, _ := path[len(path)-1].(string)
	return slices.Contains([]string{"labels", "matchLabels", "data", "requests", "limits", "nodeSelector"}, last)
}
