package onboard

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"
)

// Paths of the added files.
const (
	DefaultsPath = ".github/agent-ci.yml"
	workflowPath = ".github/workflows/agent-ci-%s.yml"
)

// WorkflowPath returns a workflow's path.
func WorkflowPath(name string) string { return fmt.Sprintf(workflowPath, name) }

// File is an added file.
type File struct {
	Path    string
	Content []byte
}

// adaptWorkflow returns a workflow that passes the provider's secret and sets model.api_key_env if needed.
func (p Provider) adaptWorkflow(workflow []byte) []byte {
	workflow = bytes.ReplaceAll(workflow, []byte("${{ secrets.OPENAI_API_KEY }}"), []byte("${{ secrets."+p.Secret+" }}"))
	if p.KeyEnv == "" {
		return workflow
	}
	// As an input: the value of a variable with such a name would be taken for a secret.
	const assignment = "model.api_key_env=" + actionKey
	setLines, setLine, key := regexp.MustCompile(`(?m)^( +)set: \|$`), regexp.MustCompile(`(?m)^( +)set: (.+)$`), regexp.MustCompile(`(?m)^( +)openai-api-key: .+$`)
	switch {
	case setLines.Match(workflow):
		return setLines.ReplaceAll(workflow, []byte("${0}\n${1}  "+assignment))
	case setLine.Match(workflow):
		return setLine.ReplaceAll(workflow, []byte("${1}set: |\n${1}  "+assignment+"\n${1}  ${2}"))
	}
	return key.ReplaceAll(workflow, []byte("${0}\n${1}set: "+assignment))
}

// withModel inserts the model and its provider into the defaults file, after its version.
func withModel(defaults []byte, p Provider, model string) ([]byte, error) {
	type settings struct {
		Name    string `yaml:"name"`
		BaseURL string `yaml:"base_url,omitempty"`
		Wire    string `yaml:"wire,omitempty"`
	}
	block, err := yaml.Marshal(map[string]settings{"model": {model, p.BaseURL, p.Wire}})
	if err != nil {
		return nil, fmt.Errorf("write the model's settings: %w", err)
	}
	head, rest, found := strings.Cut(string(defaults), "version: 1\n")
	if !found {
		return nil, fmt.Errorf("write the model's settings: the defaults have no version")
	}
	return []byte(head + "version: 1\n\n" + string(block) + rest), nil
}
