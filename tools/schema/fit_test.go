package schema

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

var fits = []struct{ name, schema, want string }{
	{"nothing", ``, `{"type":"object","properties":{}}`},
	{"null", `null`, `{"type":"object","properties":{}}`},
	{"true", `true`, `{"type":"object","properties":{}}`},
	{"empty", `{}`, `{"type":"object","properties":{}}`},
	{
		"as it should be", `{"type":"object","properties":{"a":{"type":"string","description":"A."}},"required":["a"],"additionalProperties":false}`,
		`{"type":"object","properties":{"a":{"type":"string","description":"A."}},"required":["a"],"additionalProperties":false}`,
	},
	{
		"keywords that models don't know", `{"$schema":"x","$id":"y","type":"object","x-z":1,"properties":{"a":{"type":"string","examples":["b"],"default":"c"}}}`,
		`{"type":"object","properties":{"a":{"type":"string"}}}`,
	},
	{
		"missing types", `{"properties":{"o":{"properties":{"x":{}}},"a":{"items":{"minimum":1}},"s":{"format":"date"},"n":{"multipleOf":2},"e":{"enum":["a"]},"f":{"enum":[1,"a"]},"u":{"description":"Any."}}}`,
		`{"type":"object","properties":{"o":{"type":"object","properties":{"x":{}}},"a":{"type":"array","items":{"type":"number","minimum":1}},"s":{"type":"string","format":"date"},"n":{"type":"number","multipleOf":2},"e":{"type":"string","enum":["a"]},"f":{"type":["number","string"],"enum":[1,"a"]},"u":{"description":"Any."}}}`,
	},
	{
		"booleans", `{"type":"object","properties":{"a":true,"b":{"type":"array","items":false}}}`,
		`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"array","items":{"type":"string"}}}}`,
	},
	{
		"a constant", `{"type":"object","properties":{"a":{"const":"x"},"b":{"const":1}}}`,
		`{"type":"object","properties":{"a":{"type":"string","enum":["x"]},"b":{"type":"number","enum":[1]}}}`,
	},
	{
		"several types", `{"type":["object","null"],"properties":{"a":{"type":["string","null","string","odd"]},"b":{"type":["array","null"]}}}`,
		`{"type":"object","properties":{"a":{"type":["string","null"]},"b":{"type":["array","null"],"items":{"type":"string"}}}}`,
	},
	{
		"definitions that nothing leads to", `{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"type":"array","items":{"$ref":"#/$defs/b"}},"b":{"type":"string"},"c":{"$ref":"#/$defs/c"}}}`,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"type":"array","items":{"$ref":"#/$defs/b"}},"b":{"type":"string"}}}`,
	},
	{
		"references that lead nowhere", `{"type":"object","properties":{"a":{"$ref":"#/$defs/none","description":"A."},"b":{"$ref":"https://x.example/s.json"}}}`,
		`{"type":"object","properties":{"a":{"description":"A."},"b":{}}}`,
	},
	{
		"a root that refers", `{"$ref":"#/definitions/in","definitions":{"in":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}}}`,
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`,
	},
	{"a root that refers to itself", `{"$ref":"#"}`, `{"type":"object","properties":{}}`},
	{"a root that refers to a value", `{"$ref":"#/properties/a/enum/0","properties":{"a":{"type":"object","enum":[{"required":[1],"properties":{"b":7}}]}}}`, `{"type":"object","properties":{"a":{"type":"object","properties":{},"enum":[{"required":[1],"properties":{"b":7}}]},"b":{"type":"string"}}}`},
	{"a root that refers to components", `{"$ref":"#/components/in","components":{"in":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}}}`, `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`},
	{
		"a root of alternatives", `{"type":"object","properties":{"k":{"type":"string"}},"additionalProperties":false,"required":["k"],"oneOf":[{"properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"b":{"type":"string"}},"required":["b"]}]}`,
		`{"type":"object","properties":{"k":{"type":"string"},"a":{"type":"string"},"b":{"type":"string"}},"required":["k"]}`,
	},
	{
		"a root of parts", `{"allOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},{"$ref":"#/$defs/b"}],"$defs":{"b":{"type":"object","properties":{"b":{"type":"integer"}},"required":["b"]}}}`,
		`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}},"required":["a","b"]}`,
	},
	{
		"values of the wrong kind", `{"type":"object","properties":{"a":{"type":"string","minLength":"x","pattern":7,"description":[1],"enum":"a"},"b":5},"required":[1,"a","a","none",{}]}`,
		`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["a"]}`,
	},
	{
		"a tuple", `{"type":"object","properties":{"a":{"items":[{"type":"string"},true]}}}`,
		`{"type":"object","properties":{"a":{"type":"array","prefixItems":[{"type":"string"},{"type":"string"}]}}}`,
	},
	{
		"patterns of names", `{"type":"object","patternProperties":{"^x":{}},"additionalProperties":false}`,
		`{"type":"object","properties":{},"additionalProperties":true}`,
	},
	{"levels that are all referred to", nested(700), `{"type":"object","properties":{}}`},
	{
		"hidden words", `{"type":"object","properties":{"a\u202eb":{"type":"string"},"c":{"type":"string","description":"x\u200b\u0007y"}}}`,
		`{"type":"object","properties":{"c":{"type":"string","description":"xy"}}}`,
	},
}

func TestFitSchema(t *testing.T) {
	for _, test := range fits {
		t.Run(test.name, func(t *testing.T) {
			got := must.Get(Fit(json.RawMessage(test.schema)))(t)
			must.Same(t, decoded(t, test.want), decoded(t, string(got)))
			again := must.Get(Fit(got))(t)
			must.Same(t, decoded(t, string(got)), decoded(t, string(again)), "what is fit changes")
		})
	}
}

func decoded(t *testing.T, text string) any {
	t.Helper()
	var value any
	must.Do(t, json.Unmarshal([]byte(text), &value), text)
	return value
}

func TestFitSchemaRefuses(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"null"}`:            "type null",
		`{"type":["null","string"]}`: "no object",
		`{"type":"string"}`:          "type string",
		`false`:                      "no arguments at all",
		`[]`:                         "no object",
		`"x"`:                        "no object",
		`{`:                          "cannot be read",
	} {
		must.Fail(t, want, must.Err(Fit(json.RawMessage(schema))), schema)
	}
}

// nested is a schema in which each of many levels is referred to by itself.
func nested(levels int) string {
	schema, at, refs := `{"type":"object"}`, "#/$defs/a", []string{}
	for range levels {
		refs = append(refs, `{"$ref":"`+at+`"}`)
		schema, at = `{"allOf":[`+schema+`]}`, at+"/allOf/0"
	}
	return `{"type":"object","allOf":[` + strings.Join(refs, ",") + `],"$defs":{"a":` + schema + `}}`
}

// TestFitDropsAliasedReferences is about a schema that names one place in many ways, each of which would be
// followed.
func TestFitDropsAliasedReferences(t *testing.T) {
	must.Lack(t, string(must.Get(Fit(json.RawMessage(`{"type":"object","properties":{"a":{"$ref":"#/allOf/0"},"b":{"$ref":"#/allOf/00"}},"allOf":[{"type":"object","title":"x"}]}`)))(t)), "/00")
}

func TestFitSchemaShortens(t *testing.T) {
	words := strings.Repeat("word ", 300)
	properties := func(n int, schema string) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`"property_%d":%s`, i, schema))
		}
		return strings.Join(all, ",")
	}
	deep := `{"type":"string"}`
	for range 200 {
		deep = `{"type":"object","properties":{"a_name_of_some_length":` + deep + `}}`
	}
	for _, test := range []struct{ name, schema, has, lacks string }{
		{"descriptions", `{"type":"object","properties":{` + properties(5, `{"type":"string","description":"`+words+`"}`) + `}}`, `"property_4"`, "word"},
		{"definitions", `{"type":"object","properties":{"a":{"$ref":"#/$defs/d"},"b":{"type":"string"}},"$defs":{"d":{"type":"object","properties":{` + properties(300, `{"type":"string"}`) + `}}}}`, `"b":{"type":"string"}`, "$defs"},
		{"depths", `{"type":"object","properties":{"a":` + deep + `}}`, "a_name_of_some_length", strings.Repeat(`a_name_of_some_length":{"properties":{"`, 5)},
		{"alternatives", `{"type":"object","properties":{"a":{"anyOf":[` + strings.Repeat(`{"type":"string","format":"date"},`, 300) + `{"type":"null"}]},"b":{"type":"string"}}}`, `"b":{"type":"string"}`, "anyOf"},
		{"long lists of values", `{"type":"object","properties":{"a":{"type":"string","enum":["` + strings.Repeat(`some value","`, 1000) + `x"]}},"required":["a"]}`, `"a":{"type":"string"}`, "enum"},
		{"thousands of properties", `{"type":"object","properties":{` + properties(3000, `{"type":"string"}`) + `},"required":["property_7"]}`, `"property_7"`, "property_8"},
		{"too much of everything", `{"type":"object","properties":{` + properties(3000, `{"type":"string"}`) + `},"required":["` + strings.Join(strings.Split(strings.Repeat("property_7 ", 3000), " "), `","`) + `"]}`, `"property_7"`, "property_8"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := Fit(json.RawMessage(test.schema))
			if err != nil || len(got) > maxFitted {
				t.Fatalf("%d bytes, %v", len(got), err)
			}
			must.Contain(t, string(got), test.has)
			must.Lack(t, string(got), test.lacks)
		})
	}
}

func TestCheckableSchema(t *testing.T) {
	for _, test := range []struct{ name, schema, want, unchecked string }{
		{"whole", `{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"type":"string"}}}`, "", ""},
		{"recursive below", `{"type":"object","properties":{"child":{"$ref":"#"}}}`, "", ""},
		{"none", `null`, `{"type":"object"}`, ""},
		{"an old version", `{"$schema":"http://json-schema.org/draft-04/schema#","type":"object"}`, `{"type":"object"}`, "$schema"},
		{"a pattern of another language", `{"type":"object","properties":{"a":{"type":"string","pattern":"^(?!x)"}}}`, `{"type":"object","properties":{"a":{"type":"string"}}}`, "pattern"},
		{"a keyword of another version", `{"type":"object","properties":{"a":{"type":"number","minimum":1,"exclusiveMinimum":true}}}`, `{"type":"object","properties":{"a":{"type":"number","minimum":1}}}`, "exclusiveMinimum"},
		{"a reference elsewhere", `{"type":"object","properties":{"a":{"$ref":"https://x.example/a"}}}`, `{"type":"object","properties":{"a":{}}}`, "$ref"},
		{"itself without end", `{"type":"object","allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"}]},"b":{"$ref":"#/$defs/a"}}}`, `{"type":"object"}`, "without end"},
		{"more steps than anybody waits for", doubling(40), `{"type":"object"}`, "more than 10000 steps"},
		{"few steps", doubling(5), "", ""},
		{"nested without end", `{"not":` + strings.Repeat(`{"items":`, 9000) + `{}` + strings.Repeat(`}`, 9001), `{"type":"object"}`, "more than 200 levels"},
		{"no schema", `7`, `{"type":"object"}`, "not checked"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, unchecked := Checkable(json.RawMessage(test.schema))
			want := test.want
			if want == "" {
				want = test.schema
			}
			must.Same(t, decoded(t, want), decoded(t, string(got)))
			if (test.unchecked == "") != (unchecked == "") || !strings.Contains(unchecked, test.unchecked) {
				t.Errorf("got %q, want %q", unchecked, test.unchecked)
			}
		})
	}
}

// doubling is a schema that applies what follows twice, on so many levels.
func doubling(levels int) string {
	var b strings.Builder
	b.WriteString(`{"type":"object","allOf":[{"$ref":"#/$defs/D0"}],"$defs":{`)
	for i := range levels {
		fmt.Fprintf(&b, `"D%d":{"allOf":[{"$ref":"#/$defs/D%d"},{"$ref":"#/$defs/D%d"}]},`, i, i+1, i+1)
	}
	fmt.Fprintf(&b, `"D%d":{"type":"object","properties":{"q":{"type":"string"}}}}}`, levels)
	return b.String()
}

func FuzzFitSchema(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"allOf":[{"$ref":"#"}]}}}`)
	f.Add(`{"items":[{"const":null}],"anyOf":[{"required":["a"]}],"properties":{"a":{"pattern":"("}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		raw := json.RawMessage(text)
		fitted, err := Fit(raw)
		if err == nil && (len(fitted) > maxFitted || !json.Valid(fitted)) {
			t.Errorf("%s became %s", text, fitted)
		}
		checkable, _ := Checkable(raw)
		s := New(checkable)
		must.Do(t, s.compile(), text, checkable)
		for _, value := range []map[string]any{{}, {"a": map[string]any{"a": []any{1.0, "x", nil}}}} {
			if checkIsBounded(s.document, value) {
				_ = s.resolved.Validate(value)
			}
		}
	})
}
