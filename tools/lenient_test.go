package tools

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

// TestParsesJSONInStrings has strings with JSON where the schema wants an object or a list, at any place in it.
func TestParsesJSONInStrings(t *testing.T) {
	const object = `"$defs":{"o":{"type":"object","properties":{"n":{"type":"integer"},"deep":{"$ref":"#/$defs/o"}},"required":["n"],"additionalProperties":false}}`
	for _, test := range []struct{ name, schema, input, want string }{
		{"a list", `"a":{"type":"array"}`, `{"a":"[\"us\"]"}`, `{"a":["us"]}`},
		{"each type", `"b":{"type":"boolean"},"i":{"type":"integer"},"n":{"type":"number"},"o":{"type":"object"},"s":{"type":"string"}`, `{"b":"true","i":"-3","n":"1.5","o":"{\"a\":1}","s":"7"}`, `{"b":true,"i":-3,"n":1.5,"o":{"a":1},"s":"7"}`},
		{"an optional list, as FastMCP has it", `"a":{"anyOf":[{"type":"array","items":{"type":"string"}},{"type":"null"}],"default":null}`, `{"a":"[\"us\"]"}`, `{"a":["us"]}`},
		{"null of such a list", `"a":{"anyOf":[{"type":"array"},{"type":"null"}]}`, `{"a":"null"}`, `{"a":null}`},
		{"several types", `"a":{"type":["array","null"]}`, `{"a":"[\"us\"]"}`, `{"a":["us"]}`},
		{"exactly one", `"a":{"oneOf":[{"type":"array"},{"type":"boolean"}]}`, `{"a":"true"}`, `{"a":true}`},
		{"all", `"a":{"allOf":[{"minItems":1},{"type":"array"}]}`, `{"a":"[1]"}`, `{"a":[1]}`},
		{"values", `"a":{"enum":[1,2]}`, `{"a":"2"}`, `{"a":2}`},
		{"a constant", `"a":{"const":true}`, `{"a":"true"}`, `{"a":true}`},
		{"a reference", `"a":{"$ref":"#/$defs/o"}`, `{"a":"{\"n\":1}"}`, `{"a":{"n":1}}`},
		{"a reference that is optional", `"a":{"anyOf":[{"$ref":"#/$defs/o"},{"type":"null"}]}`, `{"a":"{\"n\":1}"}`, `{"a":{"n":1}}`},
		{"below a reference", `"a":{"$ref":"#/$defs/o"}`, `{"a":{"n":"1","deep":"{\"n\":\"2\"}"}}`, `{"a":{"deep":{"n":2},"n":1}}`},
		{"elements", `"a":{"type":"array","items":{"type":"integer"}}`, `{"a":["1",2]}`, `{"a":[1,2]}`},
		{"elements of a text", `"a":{"type":"array","items":{"$ref":"#/$defs/o"}}`, `{"a":"[{\"n\":\"1\"}]"}`, `{"a":[{"n":1}]}`},
		{"a tuple", `"a":{"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}]}`, `{"a":["1","2"]}`, `{"a":["1",2]}`},
		{"other properties", `"a":{"type":"object","additionalProperties":{"type":"number"}}`, `{"a":{"x":"1"}}`, `{"a":{"x":1}}`},
		{"all digits", `"a":{"anyOf":[{"type":"array"},{"type":"null"}]},"n":{"type":"integer"}`, `{"a":"[12345678901234567890]","n":98765432109876543210}`, `{"a":[12345678901234567890],"n":98765432109876543210}`},

		{"a text that may be one", `"a":{"anyOf":[{"type":"array"},{"type":"string"}]}`, `{"a":"[1]"}`, `{"a":"[1]"}`},
		{"a text that may be one, beside one that may not", `"a":{"type":["array","string"]},"b":{"type":["array","null"]}`, `{"a":"[1]","b":"[1]"}`, `{"a":"[1]","b":[1]}`},
		{"a text of any value", `"a":{},"b":{"type":["array","null"]}`, `{"a":"[1]","b":"[1]"}`, `{"a":"[1]","b":[1]}`},
		{"the alternative of another argument", `"a":{"anyOf":[{"properties":{"k":{"const":"text"},"v":{"type":"string"}},"required":["k"]},{"properties":{"k":{"const":"list"},"v":{"type":"array"}},"required":["k"]}]}`, `{"a":{"k":"list","v":"[1]"}}`, `{"a":{"k":"list","v":[1]}}`},
		{"no such JSON", `"a":{"anyOf":[{"type":"array"},{"type":"null"}]}`, `{"a":"{}"}`, "The arguments are: a (array or null)."},
		{"no JSON", `"a":{"anyOf":[{"type":"array"},{"$ref":"#/$defs/o"},{"type":"null"}]}`, `{"a":"[us]"}`, "The arguments are: a (object or array or null)."},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := dispatcher(foreign(`{"type":"object","properties":{` + test.schema + `},` + object + `}`))
			r := d.Dispatch(t.Context(), []Call{{ID: "1", Name: "t", Input: test.input}})[0]
			if !strings.HasPrefix(test.want, "{") {
				if !r.Failed || !strings.Contains(r.Output, test.want) {
					t.Errorf("got %+v", r)
				}
				return
			}
			must.Same(t, test.want, r.Output)
		})
	}
}

// TestExplainsSchemaErrors is about schemas that have no types.
func TestExplainsSchemaErrors(t *testing.T) {
	for _, test := range []struct{ schema, input, want string }{
		{`{"required":["x"],"properties":{"x":{}}}`, `{}`, "The arguments are: x (any value, required)."},
		{`{"required":["x"]}`, `{}`, "It names no arguments."},
		{`{"properties":{"x":{"type":["string","null"]},"y":{"enum":[1,null,"a b"]}}}`, `{"y":2}`, `y: expected one of 1, null, "a b", got "2". The arguments are: x (string or null), y (one of 1, null, "a b").`},
		{`{"properties":{"y":{"not":{"type":"string"}}}}`, `{"y":"a"}`, "y: it fits what the schema excludes (not)."},
		{`{"properties":{"y":{"anyOf":[{"type":"number"},{"type":"boolean"}]}}}`, `{"y":"a"}`, "y: it fits none of the schema's alternatives (anyOf)."},
		{`{"properties":{"y":{"oneOf":[{"type":"string"},{"minLength":1}]}}}`, `{"y":"a"}`, "y: it fits several of the schema's alternatives"},
		{`{"properties":{"y":{"const":"k"}}}`, `{"y":"a"}`, `y: expected "k", got "a".`},
		{`{"properties":{"y":{"type":"number"}}}`, `{"y":"[1]"}`, "t: y: expected number, got string [1]. "},
		{`{"properties":{"y":{"type":"boolean"}}}`, `{"y":"True"}`, "t: y: expected boolean, got string True. "},
		{`{"properties":{"y":{"type":"integer"}}}`, `{"y":"1.5"}`, "t: y: expected integer, got number 1.5. "},
	} {
		r := dispatcher(foreign(test.schema)).Dispatch(t.Context(), []Call{{ID: "1", Name: "t", Input: test.input}})[0]
		if !r.Failed || !strings.Contains(r.Output, test.want) {
			t.Errorf("%s: got %s", test.schema, r.Output)
		}
	}
}

// foreign is a tool from outside, named t.
func foreign(schema string) fake { return fake{name: "t", parameters: schema, foreign: true} }

// TestBoundsSchemaChecking is about schemas whose check would take longer than anybody waits, also of arguments in a text.
func TestBoundsSchemaChecking(t *testing.T) {
	alternatives := func(to string) string {
		return `"type":"object","anyOf":[{"properties":{"a":{"$ref":"` + to + `"},"b":false}},{"properties":{"a":{"$ref":"` + to + `"},"c":false}}]`
	}
	deep := func(levels int) string {
		return strings.Repeat(`{"b":1,"c":1,"a":`, levels) + `{}` + strings.Repeat(`}`, levels)
	}
	text, _ := json.Marshal(deep(60))
	for _, test := range []struct {
		schema, input string
		tooDeep       bool
	}{
		{`{` + alternatives("#") + `}`, deep(3), false},
		{`{` + alternatives("#") + `}`, deep(60), true},
		{`{"type":"object","properties":{"d":{"anyOf":[{"$ref":"#/$defs/d"},{"type":"null"}]}},"required":["d"],"$defs":{"d":{` + alternatives("#/$defs/d") + `}}}`, `{"d":` + string(text) + `}`, true},
	} {
		r := dispatcher(foreign(test.schema)).Dispatch(t.Context(), []Call{{ID: "1", Name: "t", Input: test.input}})[0]
		if !r.Failed || strings.Contains(r.Output, "nested too deep") != test.tooDeep {
			t.Errorf("%s: got %+v", test.input, r)
		}
	}
}

func TestForeignToolHasNoAlias(t *testing.T) {
	d := dispatcher(fake{name: "shell", foreign: true})
	results := d.Dispatch(t.Context(), []Call{{ID: "1", Name: "bash", Input: `{"cmd":"ls"}`}, {ID: "2", Name: "shell", Input: `{"cmd":"ls"}`}})
	if !results[0].Failed || !strings.Contains(results[0].Output, "unsupported call: bash") {
		t.Errorf("got %+v", results[0])
	}
	if results[1].Failed || results[1].Output != `{"cmd":"ls"}` {
		t.Errorf("got %+v", results[1])
	}
}
