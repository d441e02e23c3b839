package forgetest_test

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// published is GitHub's description of its REST API (OpenAPI 3.0, version
// 23.0.2), reduced to the answers of the calls that the forge knows.
//
//go:embed spec/github.openapi.json
var published []byte

// description says what an answer has to look like.
type description struct {
	mu       sync.Mutex // of the compiler
	compiler *jsonschema.Compiler
	paths    map[string]map[string]struct {
		Responses map[string]any
	}
}

func readDescription(t *testing.T) *description {
	t.Helper()
	d := &description{compiler: jsonschema.NewCompiler()}
	var document struct{ Paths json.RawMessage }
	if err := json.Unmarshal(published, &document); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(document.Paths, &d.paths); err != nil {
		t.Fatal(err)
	}
	schemas, err := jsonschema.UnmarshalJSON(bytes.NewReader(published))
	if err != nil {
		t.Fatal(err)
	}
	d.compiler.AssertFormat()
	if err := d.compiler.AddResource("github.json", translate(schemas)); err != nil {
		t.Fatal(err)
	}
	return d
}

// translate makes JSON Schema of OpenAPI 3.0, whose "nullable" it does not
// know, and lets no object have fields that are not described: those of an
// answer are then at least spelled right.
func translate(value any) any {
	switch v := value.(type) {
	case []any:
		for i, element := range v {
			v[i] = translate(element)
		}
	case map[string]any:
		for name, element := range v {
			v[name] = translate(element)
		}
		if _, described := v["properties"].(map[string]any); described && v["type"] == "object" && v["additionalProperties"] == nil {
			v["additionalProperties"] = false
		}
		for _, part := range list(v["allOf"]) {
			delete(part.(map[string]any), "additionalProperties")
		}
		if v["nullable"] == true {
			return nullable(v)
		}
	}
	return value
}

func nullable(schema map[string]any) any {
	rest := maps.Clone(schema)
	delete(rest, "nullable")
	return map[string]any{"anyOf": []any{rest, map[string]any{"type": "null"}}}
}

func list(value any) []any {
	elements, _ := value.([]any)
	return elements
}

// check compares an answer with the description of its call.
func (d *description) check(method, path string, status int, body []byte) error {
	location, err := d.locate(method, path, status)
	if err != nil {
		return err
	}
	return d.checkBy(location, body)
}

func (d *description) checkBy(location string, body []byte) error {
	d.mu.Lock()
	schema, err := d.compiler.Compile("github.json#" + location)
	d.mu.Unlock()
	if err != nil {
		return err
	}
	answer, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("the answer is not JSON: %w", err)
	}
	return schema.Validate(answer)
}

const basicError = "/components/schemas/basic-error"

// locate finds the schema of an answer. Errors that the description does not
// have for a call look as they do for the others.
func (d *description) locate(method, path string, status int) (string, error) {
	for _, template := range slices.Sorted(maps.Keys(d.paths)) { // names come before {…}
		calls := d.paths[template]
		call, found := calls[strings.ToLower(method)]
		if !found || !fits(template, path) {
			continue
		}
		code := strconv.Itoa(status)
		response, described := call.Responses[code].(map[string]any)
		if described && response["$ref"] != nil {
			return strings.TrimPrefix(response["$ref"].(string), "#") + "/content/application~1json/schema", nil
		}
		if described && response["content"] != nil {
			return pointer("paths", template, strings.ToLower(method), "responses", code, "content", "application/json", "schema"), nil
		}
		if status >= 400 {
			return basicError, nil
		}
		return "", fmt.Errorf("%s %s has no answer with status %d", method, template, status)
	}
	return "", fmt.Errorf("%s %s is not described", method, path)
}

func pointer(names ...string) string {
	var text strings.Builder
	for _, name := range names {
		escaped := strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(name)
		text.WriteString("/" + escaped)
	}
	return text.String()
}

// fits compares a path with a template. The {ref} of one for refs takes several parts.
func fits(template, path string) bool {
	want, got := strings.Split(template, "/"), strings.Split(path, "/")
	if last := len(want) - 1; want[last] == "{ref}" && want[last-1] != "commits" && len(got) > len(want) {
		got = got[:len(want)]
	}
	if len(want) != len(got) {
		return false
	}
	for i, part := range want {
		if part != got[i] && !strings.HasPrefix(part, "{") {
			return false
		}
	}
	return true
}

func TestDescriptionTellsWrongAnswers(t *testing.T) {
	t.Parallel()
	d := readDescription(t)
	const path = "/repos/octo/widgets/git/ref/heads/main"
	right := `{"ref":"refs/heads/main","node_id":"x","url":"https://example.invalid/r","object":` +
		`{"type":"commit","sha":"0123456789012345678901234567890123456789","url":"https://example.invalid/c"}}`
	if err := d.check("GET", path, 200, []byte(right)); err != nil {
		t.Fatalf("a right answer: %v", err)
	}
	for name, body := range map[string]string{
		"missing field": strings.Replace(right, `"node_id":"x",`, ``, 1),
		"unknown field": strings.Replace(right, `"node_id"`, `"nodeid":1,"node_id"`, 1),
		"wrong type":    strings.Replace(right, `"x"`, `1`, 1),
		"null":          strings.Replace(right, `"x"`, `null`, 1),
		"no URL":        strings.Replace(right, `https://example.invalid/r`, `not a URL`, 1),
	} {
		if d.check("GET", path, 200, []byte(body)) == nil {
			t.Errorf("%s passes", name)
		}
	}
	if d.check("GET", path, 204, []byte(right)) == nil {
		t.Error("a status that is not described passes")
	}
}
