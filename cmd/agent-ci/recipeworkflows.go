package main

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// watched is how a recipe names the workflows on whose end it starts, before those of the
// repository are known.
const watched = "workflows: [CI]"

// watchThose has a recipe start on the end of the workflows of the repository that check
// pull requests, where there are any.
func watchThose(p process, root *os.Root, to string, content []byte) []byte {
	if !bytes.Contains(content, []byte(watched)) {
		return content
	}
	names := checkingWorkflows(root)
	if len(names) == 0 {
		fmt.Fprintf(p.stdout, "%s: no workflow that checks pull requests was found; name yours in the place of CI.\n", to)
		return content
	}
	for i, name := range names {
		names[i] = strconv.Quote(name) // which YAML reads too
	}
	return bytes.Replace(content, []byte(watched), []byte("workflows: ["+strings.Join(names, ", ")+"]"), 1)
}

const workflowsFolder = ".github/workflows"

// checkingWorkflows are the names of the workflows that run on pull requests, but for those
// of agent-ci itself.
func checkingWorkflows(root *os.Root) []string {
	var names []string
	entries, _ := fs.ReadDir(root.FS(), workflowsFolder) // none where there is none
	for _, entry := range entries {
		file := path.Join(workflowsFolder, entry.Name())
		if ext := path.Ext(file); ext != ".yml" && ext != ".yaml" || strings.HasPrefix(entry.Name(), "agent-ci-") || !entry.Type().IsRegular() {
			continue
		}
		if name := checking(root, file); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// checking is the name of a workflow that runs on pull requests, which is its path where it
// has none; empty for another file.
func checking(root *os.Root, file string) string {
	f, err := root.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	const longest = 1 << 20
	content, err := io.ReadAll(io.LimitReader(f, longest))
	var workflow struct {
		Name string
		On   yaml.Node
	}
	if err != nil || yaml.Unmarshal(content, &workflow) != nil {
		return ""
	}
	for _, node := range append([]*yaml.Node{&workflow.On}, workflow.On.Content...) {
		if node.Kind == yaml.ScalarNode && node.Value == "pull_request" {
			if workflow.Name == "" {
				return file
			}
			return workflow.Name
		}
	}
	return ""
}
