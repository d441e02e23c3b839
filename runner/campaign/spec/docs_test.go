package spec

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/runner/record/golden"
	"github.com/agent-ci/agent-ci/runner/task/config"
	"github.com/agent-ci/agent-ci/runner/task/job"

	"github.com/google/go-cmp/cmp"
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

// TestDocumentedKeys compares the tables of documents with the keys; with -update it
// rewrites the tables and leaves the text around them alone.
func TestDocumentedKeys(t *testing.T) {
	for file, of := range map[string]struct {
		root    *config.Key
		folders []string
	}{
		docFile:         {job.Format().Root, []string{"../../../examples/jobs"}},
		campaignDocFile: {Format().Root, []string{"../../../examples/campaigns"}},
	} {
		document, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		before, rest, begun := strings.Cut(string(document), tablesBegin)
		_, after, ended := strings.Cut(rest, tablesEnd)
		if !begun || !ended {
			t.Fatalf("%s lacks the lines between which the tables stand", file)
		}
		tables := keyTables{examples: exampleValues(t, of.root, of.folders)}
		golden.Compare(t, file, before+tablesBegin+tables.write(of.root)+tablesEnd+after)
		if file == docFile && len(tables.without) > 0 {
			t.Errorf("examples/jobs has no value of at most %d characters for %s", longestExample, strings.Join(tables.without, ", "))
		}
	}
}

// longestExample is the number of characters that an example may have in its cell.
const longestExample = 70

// exampleValues returns for each key the shortest value that files of the folders give it, other
// than its default.
func exampleValues(t *testing.T, of *config.Key, folders []string) map[string]string {
	t.Helper()
	values := map[string]string{}
	var collect func(k *config.Key, node *yaml.Node)
	collect = func(k *config.Key, node *yaml.Node) {
		flow(node)
		raw, err := yaml.Marshal(node)
		if err != nil {
			t.Fatal(err)
		}
		value := strings.TrimSpace(string(raw))
		plain := k.HasDefault() && value == defaultText(k)
		if had := values[k.Path]; !plain && len(value) <= longestExample && !strings.Contains(value, "\n") && (had == "" || len(value) < len(had)) {
			values[k.Path] = value
		}
		for i, below := range node.Content {
			switch {
			case node.Kind == yaml.SequenceNode && k.Elem != nil:
				collect(k.Elem, below)
			case node.Kind != yaml.MappingNode || i%2 == 0:
			case k.Elem != nil:
				collect(k.Elem, below)
			case k.Key(node.Content[i-1].Value) != nil:
				collect(k.Key(node.Content[i-1].Value), below)
			}
		}
	}
	for _, folder := range folders {
		files, err := filepath.Glob(folder + "/*.yml")
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", folder, len(files), err)
		}
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var node yaml.Node
			if err := yaml.Unmarshal(raw, &node); err != nil {
				t.Fatal(err)
			}
			collect(of, node.Content[0])
		}
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
		fmt.Fprintf(&groups, "\n### %s\n\n%s\n\n%s", k.Path, escapeCell(k.About), tableHead)
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
	fmt.Fprintf(s, "| `%s` | %s | %s | %s%s |\n", k.Path, documentedDefault(k), w.example(k), strings.TrimSpace(escapeCell(k.About)+" "+documentedType(k)), link)
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

// TestDocumentSchemaAndDefaultsAgree reads the three from outside: the text of
// docs/reference/job.md, the JSON of Schema, and what a job is that sets a key to the
// default that the document names.
func TestDocumentSchemaAndDefaultsAgree(t *testing.T) {
	document, err := os.ReadFile(docFile)
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(job.Format().Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	described := make(map[string]map[string]any)
	schemaKeys(schema, "", described)
	documented := make(map[string]string)
	for _, row := range documentedRow.FindAllStringSubmatch(string(document), -1) {
		path, inDocument := row[1], row[3]
		if _, twice := documented[path]; twice {
			t.Errorf("%s: two rows", path)
		}
		documented[path] = inDocument
		inSchema, hasDefault := described[path]["default"]
		if hasDefault != (inDocument != "") {
			t.Errorf("%s: default %q in the document, %v in the schema", path, inDocument, inSchema)
		}
		if hasDefault {
			checkDefault(t, path, inDocument, inSchema)
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(described)), slices.Sorted(maps.Keys(documented))); diff != "" {
		t.Errorf("keys (-schema +document):\n%s", diff)
	}
}

// checkDefault sets the key at path to what the document and the schema say is
// its default, which must make no difference.
func checkDefault(t *testing.T, path, inDocument string, inSchema any) {
	t.Helper()
	asYAML, err := json.Marshal(inSchema)
	if err != nil {
		t.Fatal(err)
	}
	before, key, inList := strings.Cut(path, "[].")
	group, inMap, isInMap := strings.Cut(path, ".*.")
	var plain, fromSchema, fromDocument string
	if isInMap {
		base := map[string]string{
			"services": "at: 'localhost:1'", "mcp_servers": "command: x, tools: [a]", "hooks": "on: PreToolUse, run: [x]", "agents.roles": "model: x",
		}[group]
		switch path {
		case "services.*.at":
			base = "run: x, port: 1"
		case "agents.roles.*.model":
			base = "effort: low"
		case "mcp_servers.*.command":
			base = "url: 'https://example.com', tools: [a]"
		}
		inMap = nested(inMap, "%s")
		set := func(value string) string {
			return "version: 1\n" + nested(group, fmt.Sprintf("{x: {%s, %s}}", base, strings.TrimSpace(fmt.Sprintf(inMap, value))))
		}
		plain = "version: 1\n" + nested(group, "{x: {"+base+"}}")
		fromSchema, fromDocument = set(string(asYAML)), set(inDocument)
	} else if inList {
		base := map[string]string{
			"setup": "run: x", "verify": "run: x", "git.filters": "name: X", "policy.secrets": "name: X, hosts: [example.com]",
			"tools.dynamic": "name: x, description: y, input_schema: {type: object}, run: z",
		}[before]
		plain = "version: 1\n" + nested(before, "[{"+base+"}]")
		fromSchema = "version: 1\n" + nested(before, fmt.Sprintf("[{%s, %s: %s}]", base, key, asYAML))
		fromDocument = "version: 1\n" + nested(before, fmt.Sprintf("[{%s, %s: %s}]", base, key, inDocument))
	} else {
		plain = "version: 1\n"
		fromSchema = plain + nested(path, string(asYAML))
		fromDocument = plain + nested(path, inDocument)
	}
	want := mustLoadTemplate(t, plain)
	if got := mustLoadTemplate(t, fromSchema); !reflect.DeepEqual(want, got) {
		t.Errorf("%s: the default %s of the schema is another:\n%s", path, asYAML, cmp.Diff(want, got))
	}
	if got := mustLoadTemplate(t, fromDocument); !reflect.DeepEqual(want, got) {
		t.Errorf("%s: the default %s of the document is another:\n%s", path, inDocument, cmp.Diff(want, got))
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
	if err != nil {
		t.Fatalf("%v\n%s", err, yaml)
	}
	return job
}

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// TestDocumentedExamplesLoad keeps the jobs true that people copy.
func TestDocumentedExamplesLoad(t *testing.T) {
	for _, file := range []string{docFile, "../../../docs/how-to/feedback.md", "../../../docs/reference/policy.md", "../../../examples/demo/job.yml"} {
		t.Run(file, func(t *testing.T) {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			jobs := jobsIn(file, string(content))
			if len(jobs) == 0 {
				t.Fatal("no job in it")
			}
			for _, text := range jobs {
				if _, err := job.Load(jobFile(text)); err != nil {
					t.Errorf("%v\n%s", err, text)
				}
			}
		})
	}
}

// jobsIn are the jobs in a document's blocks of YAML, or a file that is one.
func jobsIn(file, content string) []string {
	if strings.HasSuffix(file, ".yml") {
		return []string{content}
	}
	var jobs []string
	for _, block := range yamlBlock.FindAllStringSubmatch(content, -1) {
		if strings.HasPrefix(block[1], "version: ") {
			jobs = append(jobs, block[1])
		}
	}
	return jobs
}

// docPages returns the paths of all pages below docs.
func docPages(t testing.TB) (pages []string) {
	t.Helper()
	err := filepath.WalkDir("../../../docs", func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" {
			pages = append(pages, path)
		}
		return err
	})
	if err != nil || len(pages) < 20 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	return pages
}

// TestDocumentedFragmentsLoad loads each block of YAML in the documents that has keys of a job
// at its top, and no others.
func TestDocumentedFragmentsLoad(t *testing.T) {
	loaded := 0
	for _, name := range docPages(t) {
		document, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range yamlBlock.FindAllStringSubmatch(string(document), -1) {
			if !ofAJob(block[1]) {
				continue
			}
			loaded++
			example := block[1]
			if !strings.Contains(example, "version: ") {
				example = "version: 1\n" + example
			}
			kind := config.File
			if strings.Contains(example, "trusted: operator") {
				kind = config.Operator
			}
			if _, err := job.LoadTemplate(config.Layer{Name: name, Kind: kind, Data: []byte(example)}); err != nil {
				t.Errorf("%v\n%s", err, block[1])
			}
		}
	}
	if loaded < 40 {
		t.Errorf("only %d blocks are of jobs", loaded)
	}
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
