package spec

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/golden"
	"github.com/agent-ci/agent-ci/runner/task/config"
	"github.com/agent-ci/agent-ci/runner/task/job"

	"gopkg.in/yaml.v3"
)

const (
	docFile         = "../../../docs/reference/job.md"
	campaignDocFile = "../../../docs/reference/campaign.md"
)

const (
	tablesBegin = "<!-- The tables below are written by go test ./runner/campaign/spec -update. -->\n"
	tablesEnd   = "<!-- End of the tables. -->\n"
)

// TestDocumentedKeysMatchFormat compares the tables of documents with the keys; with -update it
// rewrites the tables and leaves the text around them alone.
func TestDocumentedKeysMatchFormat(t *testing.T) {
	for file, of := range map[string]struct {
		root     *config.Key
		examples string
	}{
		docFile:         {job.Format().Root, "../../../examples/jobs/*.yml"},
		campaignDocFile: {Format().Root, "../../../examples/campaigns/*.yml"},
	} {
		document := must.Get(os.ReadFile(file))(t)
		before, rest, begun := strings.Cut(string(document), tablesBegin)
		_, after, ended := strings.Cut(rest, tablesEnd)
		if !begun || !ended {
			t.Fatalf("%s lacks the lines between which the tables stand", file)
		}
		tables := keyTables{examples: exampleValues(t, of.root, of.examples)}
		golden.Compare(t, file, before+tablesBegin+tables.write(of.root)+tablesEnd+after)
		if file == docFile && len(tables.without) > 0 {
			t.Errorf("examples/jobs has no value of at most %d characters for %s", longestExample, strings.Join(tables.without, ", "))
		}
	}
}

// longestExample is the number of characters that an example may have in its cell.
const longestExample = 70

// exampleValues returns for each key the shortest value that files give it, other than its default.
func exampleValues(t *testing.T, of *config.Key, files string) map[string]string {
	t.Helper()
	values := map[string]string{}
	texts := yamlTexts(t, files)
	for _, file := range slices.Sorted(maps.Keys(texts)) {
		visitKeys(t, of, texts[file], func(k *config.Key, node *yaml.Node) {
			flow(node)
			raw := must.Get(yaml.Marshal(node))(t)
			value := strings.TrimSpace(string(raw))
			plain := k.HasDefault() && value == defaultText(k)
			if had := values[k.Path]; !plain && len(value) <= longestExample && !strings.Contains(value, "\n") && (had == "" || len(value) < len(had)) {
				values[k.Path] = value
			}
		})
	}
	return values
}

// flow sets the style of a node so that it is written on one line, without comments.
func flow(node *yaml.Node) {
	node.HeadComment, node.LineComment, node.FootComment = "", "", ""
	if node.Kind == yaml.SequenceNode || node.Kind == yaml.MappingNode {
		node.Style = yaml.FlowStyle
	}
	for _, below := range node.Content {
		flow(below)
	}
}

// keyTables writes the tables of a document.
type keyTables struct {
	examples map[string]string
	without  []string // keys without an example
}

// write returns one table for the keys at the top and one for each group.
func (w *keyTables) write(of *config.Key) string {
	var top, groups strings.Builder
	top.WriteString("\n### Keys at the top\n\n" + tableHead)
	for _, k := range of.Keys {
		below := keysWithin(k)
		if len(below) == 0 {
			w.writeRow(&top, k, "")
			continue
		}
		w.writeRow(&top, k, fmt.Sprintf(" [Keys](#%s)", strings.ToLower(k.Path)))
		fmt.Fprintf(&groups, "\n### %s\n\n%s\n\n%s", k.Path, escapeCell(k.Meaning), tableHead)
		for _, inner := range below {
			w.writeRows(&groups, inner)
		}
	}
	return top.String() + groups.String() + "\n"
}

const tableHead = "| key | default | example | meaning |\n|---|---|---|---|\n"

// keysWithin returns the keys below k, or below each element of k.
func keysWithin(k *config.Key) []*config.Key {
	if k.Elem != nil {
		return k.Elem.Keys
	}
	return k.Keys
}

// writeRows writes the rows of a key and of all below it.
func (w *keyTables) writeRows(s *strings.Builder, k *config.Key) {
	w.writeRow(s, k, "")
	for _, inner := range keysWithin(k) {
		w.writeRows(s, inner)
	}
}

func (w *keyTables) writeRow(s *strings.Builder, k *config.Key, link string) {
	fmt.Fprintf(s, "| `%s` | %s | %s | %s%s |\n", k.Path, documentedDefault(k), w.example(k), strings.TrimSpace(escapeCell(k.Meaning)+" "+documentedType(k)), link)
}

// example returns the example of a key as code, or nothing for a mapping, whose keys have examples.
func (w *keyTables) example(k *config.Key) string {
	example := k.Example
	if own := w.examples[k.Path]; example == "" || example == "[a, b]" && own != "" { // what each list of texts has
		example = own
	}
	if i := slices.IndexFunc(k.Values, func(value string) bool { return value != "" && value != defaultText(k) }); example == "" && i >= 0 {
		example = k.Values[i]
	}
	if value, isTruth := k.Default().Interface().(bool); example == "" && isTruth {
		example = strconv.FormatBool(!value)
	}
	if example == "" {
		if len(keysWithin(k)) == 0 {
			w.without = append(w.without, k.Path)
		}
		return ""
	}
	if len(keysWithin(k)) > 0 && k.Example == "" {
		return ""
	}
	name := k.Path[strings.LastIndexAny(k.Path, ".")+1:]
	return "`" + strings.ReplaceAll(name+": "+example, "|", `\|`) + "`"
}

// documentedType returns a key's limits as a sentence, where the example does not show them.
func documentedType(k *config.Key) string {
	switch {
	case k.Shape == config.Either && k.Values != nil:
		return "One of " + asCode(k.Values) + ", or `{allow: [HOST, …]}`."
	case len(k.Values) == 1 || k.Span != nil && k.Span.Min == k.Span.Max:
		return ""
	case k.Shape == config.List && k.Values != nil:
		return "Some of " + asCode(k.Values) + "."
	case k.Values != nil:
		return "One of " + asCode(k.Values) + "."
	case k.Shape == config.Integer && k.Span.Max == config.Unlimited:
		return fmt.Sprintf("%d or more.", k.Span.Min)
	case k.Shape == config.Integer:
		return fmt.Sprintf("%d to %d.", k.Span.Min, k.Span.Max)
	}
	return ""
}

func documentedDefault(k *config.Key) string {
	switch {
	case k.Required:
		return "required"
	case !k.HasDefault():
		return ""
	}
	return "`" + strings.ReplaceAll(defaultText(k), "|", `\|`) + "`"
}

// defaultText is a default as it is written in a job file.
func defaultText(k *config.Key) string {
	value := k.Default().Interface()
	if s, isText := value.(string); isText && s != "" {
		return s
	}
	if n, isNetwork := value.(job.Network); isNetwork && n.Mode != "" {
		return n.Mode
	}
	if d, isLength := value.(job.Duration); isLength {
		return strings.NewReplacer("h0m0s", "h", "m0s", "m").Replace(d.String())
	}
	written, err := json.Marshal(value)
	if err != nil {
		panic(err) // defaults are texts, numbers, and lists and mappings of them
	}
	return strings.ReplaceAll(string(written), ",", ", ")
}

func asCode(values []string) string {
	quoted := make([]string, len(values))
	for i, value := range values {
		if value == "" {
			value = `""`
		}
		quoted[i] = "`" + value + "`"
	}
	return strings.Join(quoted, ", ")
}

// escapeCell keeps a text from ending its table cell or becoming markup.
func escapeCell(text string) string {
	return strings.NewReplacer("|", `\|`, "*", `\*`, "<", "&lt;", "_", `\_`, "[", `\[`).Replace(text)
}

var documentedRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (required|`([^`]*)`|) \\| (?:`.*?`|) \\| ")

// TestDocumentSchemaAndDefaultsAgree reads the text of the document and the JSON of the schema from outside. A job
// that sets a key to the default that both name is the same job.
func TestDocumentSchemaAndDefaultsAgree(t *testing.T) {
	for file, format := range map[string]*config.Format{docFile: job.Format(), campaignDocFile: Format()} {
		document := must.Get(os.ReadFile(file))(t)
		var schema map[string]any
		must.Do(t, json.Unmarshal(format.Schema(), &schema))
		if file == campaignDocFile {
			delete(schema["properties"].(map[string]any)["job"].(map[string]any), "properties") // those of docs/reference/job.md
		}
		described, documented := map[string]map[string]any{}, map[string]bool{}
		schemaKeys(schema, "", described)
		for _, row := range documentedRow.FindAllStringSubmatch(string(document), -1) {
			path, inDocument := row[1], row[3]
			if documented[path] {
				t.Errorf("%s: two rows", path)
			}
			documented[path] = true
			inSchema, hasDefault := described[path]["default"]
			must.Same(t, inDocument != "", hasDefault, path, "default", inDocument, "in the document", inSchema, "in the schema")
			if hasDefault && file == docFile {
				checkDefault(t, path, inDocument, inSchema)
			}
		}
		must.Same(t, slices.Sorted(maps.Keys(described)), slices.Sorted(maps.Keys(documented)), file, "keys (-schema +document")
	}
}

// entryBases are the keys that an entry of a list or mapping needs, or a key of an entry.
var entryBases = map[string]string{
	"services": "at: 'localhost:1'", "mcp_servers": "command: x, tools: [a]", "hooks": "on: PreToolUse, run: [x]", "agents.roles": "model: x",
	"services.*.at": "run: x, port: 1", "agents.roles.*.model": "effort: low", "mcp_servers.*.command": "url: 'https://example.com', tools: [a]",
	"setup": "run: x", "verify": "run: x", "git.filters": "name: X", "policy.secrets": "name: X, hosts: [example.com]",
	"tools.dynamic": "name: x, description: y, input_schema: {type: object}, run: z",
}

var entryKey = regexp.MustCompile(`^(.*?)(\[\]|\.\*)\.(.*)$`)

// setting is the job that sets the key at path, or no more than what its entry needs for an empty value.
func setting(path, value string) string {
	entry := entryKey.FindStringSubmatch(path)
	switch {
	case entry == nil && value == "":
		return "version: 1\n"
	case entry == nil:
		return "version: 1\n" + nested(path, value)
	}
	keys, special := entryBases[path]
	if !special {
		keys = entryBases[entry[1]]
	}
	if value != "" {
		keys += ", " + strings.TrimSpace(nested(entry[3], value))
	}
	return "version: 1\n" + nested(entry[1], fmt.Sprintf(map[string]string{"[]": "[{%s}]", ".*": "{x: {%s}}"}[entry[2]], keys))
}

// checkDefault sets the key at path to what the document and the schema say is
// its default, which must make no difference.
func checkDefault(t *testing.T, path, inDocument string, inSchema any) {
	t.Helper()
	asYAML := must.Get(json.Marshal(inSchema))(t)
	want := mustLoadTemplate(t, setting(path, ""))
	for from, value := range map[string]string{"schema": string(asYAML), "document": inDocument} {
		must.Same(t, want, mustLoadTemplate(t, setting(path, value)), path, "has another default than", value, "of the", from)
	}
}

// nested is the YAML that sets the key at path.
func nested(path, value string) string {
	parts := strings.Split(path, ".")
	return strings.Join(parts, ": {") + ": " + value + strings.Repeat("}", len(parts)-1) + "\n"
}

func mustLoadTemplate(t *testing.T, yaml string) *job.Job {
	t.Helper()
	job, err := job.LoadTemplate(jobFile(yaml))
	must.Do(t, err, yaml)
	return job
}
