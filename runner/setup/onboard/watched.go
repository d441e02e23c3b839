package onboard

import (
	"bytes"
	"cmp"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/agent-ci/agent-ci/runner/record/boundedfile"
)

// placeholderTrigger is the trigger in recipes that start after other workflows.
const placeholderTrigger = "workflows: [CI]"

// triggerAfterChecks replaces placeholderTrigger by the names of the repository's workflows that run on
// pull requests. Without any, it adds a note for the user.
func (w *Written) triggerAfterChecks(root *os.Root, to string, content []byte) []byte {
	if !bytes.Contains(content, []byte(placeholderTrigger)) {
		return content
	}
	names := pullRequestWorkflowNames(root)
	if len(names) == 0 {
		w.Notes = append(w.Notes, to+": no workflow that checks pull requests was found; name yours in the place of CI.")
		return content
	}
	return bytes.Replace(content, []byte(placeholderTrigger), []byte("workflows: ["+strings.Join(names, ", ")+"]"), 1)
}

// pullRequestWorkflowNames returns the quoted names of the workflows on pull requests, except agent-ci's own.
func pullRequestWorkflowNames(root *os.Root) (names []string) {
	const folder = ".github/workflows"
	entries, _ := fs.ReadDir(root.FS(), folder) // none without a folder
	for _, entry := range entries {
		isOwn := strings.HasPrefix(entry.Name(), "agent-ci-")
		if isOwn || !isWorkflow(entry.Name()) || !entry.Type().IsRegular() {
			continue
		}
		name := pullRequestWorkflowName(root, path.Join(folder, entry.Name()))
		quoted := strconv.Quote(name) // YAML reads it, too
		if name != "" && !slices.Contains(names, quoted) {
			names = append(names, quoted)
		}
	}
	return names
}

// pullRequestWorkflowName returns the name or path of a workflow on pull requests. It returns "" for other files.
func pullRequestWorkflowName(root *os.Root, file string) string {
	const longest = 1 << 20
	content, err := boundedfile.ReadIn(root, file, longest)
	var workflow struct {
		Name string
		On   yaml.Node
	}
	if err != nil || yaml.Unmarshal(content, &workflow) != nil {
		return ""
	}
	triggers := append([]*yaml.Node{&workflow.On}, workflow.On.Content...) // one name, a list or a mapping
	isPullRequest := func(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Value == "pull_request" }
	if !slices.ContainsFunc(triggers, isPullRequest) {
		return ""
	}
	return cmp.Or(workflow.Name, file)
}
