package main_test

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/agent-ci/agent-ci/policy/must"
)

// yamlFiles are the files that init writes and those of the examples, by their paths.
func yamlFiles(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, folder := range []string{"../../runner/setup/onboard/starter", "../../runner/setup/onboard/recipes", "../../examples"} {
		must.Do(t, filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
			if err == nil && filepath.Ext(path) == ".yml" {
				files[filepath.ToSlash(path)] = read(t, path)
			}
			return err
		}))
	}
	return files
}

// allYAMLBlocks are the examples in YAML of the pages for people.
func allYAMLBlocks(t *testing.T) map[string]string {
	t.Helper()
	blocks := map[string]string{}
	for page := range documents(t) {
		for _, block := range yamlBlocks(t, page) {
			first, _, _ := strings.Cut(block, "\n")
			blocks[page+", "+first] = block
		}
	}
	return blocks
}

// The plain scalars of YAML 1.2's core schema (10.3.2), and the words and numbers that YAML 1.1 had besides.
var (
	coreTags = []struct {
		tag string
		is  *regexp.Regexp
	}{
		{"!!null", regexp.MustCompile(`^(null|Null|NULL|~|)$`)},
		{"!!bool", regexp.MustCompile(`^(true|True|TRUE|false|False|FALSE)$`)},
		{"!!int", regexp.MustCompile(`^([-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$`)},
		{"!!float", regexp.MustCompile(`^([-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$`)},
	}
	olderValue = regexp.MustCompile(`^((?i:y|n|yes|no|on|off)|[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?)$`)
	octal      = regexp.MustCompile(`^[-+]?0[0-9]+$`)
)

// disagreements are the plain scalars that YAML's versions do not read alike, and merge keys. A key
// may be a word such as on: both versions that read our files take it for text.
func disagreements(node *yaml.Node, isKey bool) (all []string) {
	for i, below := range node.Content {
		all = append(all, disagreements(below, node.Kind == yaml.MappingNode && i%2 == 0)...)
	}
	if node.Kind != yaml.ScalarNode || node.Style != 0 {
		return all
	}
	core := "!!str"
	if i := slices.IndexFunc(coreTags, func(c struct {
		tag string
		is  *regexp.Regexp
	},
	) bool {
		return c.is.MatchString(node.Value)
	}); i >= 0 {
		core = coreTags[i].tag
	}
	if node.ShortTag() != core || octal.MatchString(node.Value) || !isKey && olderValue.MatchString(node.Value) {
		all = append(all, node.Value)
	}
	return all
}

func disagreementsIn(text string) (all []string, err error) {
	decoder := yaml.NewDecoder(strings.NewReader(text))
	for {
		var document yaml.Node
		if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return all, err
		}
		all = append(all, disagreements(&document, false)...)
	}
}

// An editor with YAML 1.2 reads each example as agent-ci does.
func TestExamplesReadAlikeInYAML12(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"a: 1_000": 1, "a: yes": 1, "a: [On, OFF, n]": 3, "a: 010": 1, "a: 0b1": 1, "a: 1:30": 1, "a: 2026-01-02": 1, "a: {<<: {b: 1}}": 1,
		"on: true": 0, "a: ~": 0, "a:": 0, "a: [1, -2, 0x1f, 0o17, 1.5, 1e3, .5, .inf, text, '010', \"yes\"]": 0,
	} {
		if found, err := disagreementsIn(text); err != nil || len(found) != want {
			t.Errorf("%s: %q (%v), want %d", text, found, err, want)
		}
	}
	files, blocks := yamlFiles(t), allYAMLBlocks(t)
	if len(files) < 30 || len(blocks) < 20 {
		t.Errorf("there are %d files and %d blocks in documents", len(files), len(blocks))
	}
	for _, texts := range []map[string]string{files, blocks} {
		for name, text := range texts {
			found, err := disagreementsIn(text)
			if _, whole := files[name]; err != nil && !whole {
				continue // lines of several files
			}
			if err != nil || len(found) > 0 {
				t.Errorf("%s: YAML's versions disagree on %q (%v); write it so that all read the same, numbers without _ and dates in quotes", name, found, err)
			}
		}
	}
}

// The npm packages that read YAML 1.2 and check JSON Schemas, as editors do.
const (
	yamlPackage = "yaml@2.9.1"
	ajvPackage  = "ajv@8.20.0"
)

// checkByAjv prints what the schemas refuse: a list of {schema, path} comes by standard input. The job
// file of a campaign has a sample in place of a target's issue, as agent-ci validate reads it.
const checkByAjv = `
const fs = require("fs"), yaml = require("yaml"), Ajv = require("ajv/dist/2020");
const compiled = {};
let checked = 0;
for (const {schema, path} of JSON.parse(fs.readFileSync(0))) {
  compiled[schema] ??= new Ajv({strict: false, allErrors: true, validateFormats: false}).compile(JSON.parse(fs.readFileSync(schema)));
  const text = fs.readFileSync(path, "utf8").replace(/\$\{\{ *target\.issue *\}\}/g, "octo-org/widgets#1");
  const document = yaml.parseDocument(text, {version: "1.2"});
  for (const mistake of [...document.errors, ...document.warnings]) console.log(path + ": " + mistake.message);
  if (!compiled[schema](document.toJS())) for (const e of compiled[schema].errors) console.log(path + ": " + e.instancePath + " " + e.message);
  checked++;
}
console.error(checked);
`

// TestAjvAcceptsExamples has Ajv check each job and campaign by the schemas that agent-ci prints, with
// a reader of YAML 1.2.
func TestAjvAcceptsExamples(t *testing.T) {
	t.Parallel()
	if !everything() {
		t.Skip("Ajv comes from npm and is run in make e2e only (AGENT_CI_E2E=1)")
	}
	dir := installFromNPM(t, t.TempDir(), yamlPackage, ajvPackage)
	schemas := map[string]string{}
	for name, args := range map[string][]string{"job": {"schema"}, "campaign": {"schema", "campaign"}} {
		out := must.Get(exec.Command(binary, args...).Output())(t)
		schemas[name] = filepath.Join(dir, name+".json")
		must.Write(t, schemas[name], string(out))
	}
	must.Write(t, filepath.Join(dir, "check.js"), checkByAjv)
	type asked struct {
		Schema string `json:"schema"`
		Path   string `json:"path"`
	}
	var all []asked
	for path, text := range yamlFiles(t) {
		file := must.Get(filepath.Abs(path))(t)
		switch {
		case strings.Contains(text, "\ntargets:"):
			all = append(all, asked{schemas["campaign"], file})
		case strings.HasPrefix(text, "version: 1\n") || strings.Contains(text, "\nversion: 1\n"):
			if !strings.HasSuffix(path, "session.yml") {
				all = append(all, asked{schemas["job"], file})
			}
		}
	}
	if len(all) < 14 {
		t.Errorf("only %d files are jobs and campaigns", len(all))
	}
	check := func(of []asked) string {
		t.Helper()
		list := must.Get(json.Marshal(of))(t)
		node := exec.Command("node", "check.js")
		node.Dir, node.Stdin = dir, strings.NewReader(string(list))
		var said strings.Builder
		node.Stdout = &said
		must.Do(t, node.Run(), said.String())
		return said.String()
	}
	must.Same(t, "", check(all), "Ajv with YAML 1.2 refuses examples")
	wrong := filepath.Join(dir, "wrong.yml")
	must.Write(t, wrong, "version: 1\nlimits: {tokens: 500_000}\n")
	must.Contain(t, check([]asked{{schemas["job"], wrong}}), "/limits/tokens must be integer")
}

// installFromNPM installs packages in a folder, which it gives. The test is skipped where there is no
// npm, or no registry.
func installFromNPM(t *testing.T, dir string, packages ...string) string {
	t.Helper()
	required := os.Getenv("CI") != ""
	if _, err := exec.LookPath("npm"); err != nil {
		if required {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	install := exec.Command("npm", append([]string{"install", "--prefix", dir, "--no-audit", "--no-fund", "--no-update-notifier", "--ignore-scripts"}, packages...)...)
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		if required {
			t.Fatalf("npm install: %v\n%s", err, out)
		}
		t.Skipf("the registry of npm can't be reached: %v\n%s", err, out)
	}
	return dir
}
