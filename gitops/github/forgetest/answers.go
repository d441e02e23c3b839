package forgetest

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// published is GitHub's description of its REST API (OpenAPI 3.0, version 23.0.2), reduced to the
// replies of the calls that the forge knows.
//
//go:embed spec/github.openapi.json
var published []byte

// description holds the schemas of replies.
type description struct {
	mu       sync.Mutex // protects compiler
	compiler *jsonschema.Compiler
	paths    map[string]map[string]struct {
		Responses map[string]any
	}
}

// answersByCall returns the description. It is parsed only once, because it is large.
var answersByCall = sync.OnceValue(readDescription)

// readDescription parses the published description. It panics on invalid input.
func readDescription() *description {
	d := &description{compiler: jsonschema.NewCompiler()}
	var document struct{ Paths json.RawMessage }
	if err := json.Unmarshal(published, &document); err != nil {
		panic(err)
	}
	if err := json.Unmarshal(document.Paths, &d.paths); err != nil {
		panic(err)
	}
	schemas, err := jsonschema.UnmarshalJSON(bytes.NewReader(published))
	if err != nil {
		panic(err)
	}
	d.compiler.AssertFormat()
	if err := d.compiler.AddResource("github.json", translate(schemas)); err != nil {
		panic(err)
	}
	return d
}

// translate converts OpenAPI 3.0 to JSON Schema. It replaces "nullable" and forbids fields that are
// not described, so that misspelled fields are found.
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

// addRequiredFields adds the fields that the description requires to a reply, and validates the result. It
// skips redirects, and calls outside the reduced description.
func (d *description) addRequiredFields(method, path string, status int, body []byte) ([]byte, error) {
	location, err := d.locate(method, path, status)
	if err != nil || location == "" || status == http.StatusFound {
		return body, err
	}
	d.mu.Lock()
	schema, err := d.compiler.Compile("github.json#" + location)
	d.mu.Unlock()
	if err != nil {
		return body, err
	}
	answer, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return body, fmt.Errorf("the answer is not JSON: %w", err)
	}
	fill(schema, answer)
	if body, err = json.Marshal(answer); err != nil {
		return nil, err
	}
	return body, schema.Validate(answer)
}

// fill adds required fields to the objects of a value.
func fill(schema *jsonschema.Schema, value any) {
	if schema == nil {
		return
	}
	fill(schema.Ref, value)
	for _, part := range schema.AllOf {
		fill(part, value)
	}
	fill(choice(schema, value), value)
	switch v := value.(type) {
	case []any:
		for _, element := range v {
			fill(schema.Items2020, element)
		}
	case map[string]any:
		for _, name := range schema.Required {
			if _, found := v[name]; !found {
				v[name] = smallest(schema.Properties[name])
			}
		}
		for name, element := range v {
			fill(schema.Properties[name], element)
		}
	}
}

// choice returns the first alternative that describes values of the same type, or nil.
func choice(schema *jsonschema.Schema, value any) *jsonschema.Schema {
	for _, each := range slices.Concat(schema.AnyOf, schema.OneOf) {
		if has := reflect.TypeOf(smallest(each)); has == reflect.TypeOf(value) {
			return each
		}
	}
	return nil
}

// smallest returns a value that the schema permits: null, zero, or an object without fields.
func smallest(schema *jsonschema.Schema) any {
	if schema == nil {
		return nil
	}
	all := slices.Concat(schema.AnyOf, schema.OneOf, schema.AllOf)
	for _, each := range all {
		if smallest(each) == nil {
			return nil
		}
	}
	switch {
	case schema.Ref != nil:
		return smallest(schema.Ref)
	case schema.Enum != nil:
		return schema.Enum.Values[0]
	case len(all) > 0:
		return smallest(all[0])
	case schema.Format != nil && schema.Format.Name == "uri":
		return "https://forge.invalid/"
	case schema.Format != nil && schema.Format.Name == "date-time":
		return "2026-01-05T09:00:00Z"
	case schema.Types == nil:
		return map[string]any{}
	}
	return map[string]any{"null": nil, "boolean": false, "number": 0, "integer": 0, "string": "", "array": []any{}, "object": map[string]any{}}[schema.Types.ToStrings()[0]]
}

const basicError = "/components/schemas/basic-error"

// locate returns the place of the schema for a reply, or "". For an error that is not described, it
// is the schema that other calls use for errors.
func (d *description) locate(method, path string, status int) (string, error) {
	for _, template := range slices.Sorted(maps.Keys(d.paths)) { // sorted, so that a fixed name comes before a parameter
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
	return "", nil
}

func pointer(names ...string) string {
	var text strings.Builder
	for _, name := range names {
		escaped := strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(name)
		text.WriteString("/" + escaped)
	}
	return text.String()
}

// fits reports whether a path matches a template. In templates of refs, {ref} matches several
// parts.
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
