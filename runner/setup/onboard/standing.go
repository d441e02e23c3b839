package onboard

import (
	"context"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/github"
)

// existingFiles maps the paths of existing workflows and defaults to the ids of their blobs.
type existingFiles map[string]string

// readExisting returns a tree's defaults and workflows. It fails if a link or folder has the path of a file to add.
func readExisting(ctx context.Context, r github.Setup, tree string) (existingFiles, error) {
	existing := existingFiles{}
	for _, folder := range []string{".github", ".github/workflows"} {
		entries, err := r.Entries(ctx, tree, folder)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			isFile := strings.HasPrefix(e.Mode, "100")
			if isSetupFile(e.Path) && !isFile {
				return nil, fmt.Errorf("%s has a %s that is no file (mode %s): remove it first", r.Name(), e.Path, e.Mode)
			}
			if isFile && (e.Path == DefaultsPath || folder != ".github") {
				existing[e.Path] = e.ID
			}
		}
	}
	return existing, nil
}

// isSetupFile reports whether a setup may add a file at this path.
func isSetupFile(path string) bool {
	return path == DefaultsPath || regexp.MustCompile(`^\.github/workflows/agent-ci-[a-z-]+\.yml$`).MatchString(path)
}

func isWorkflow(at string) bool {
	return at != DefaultsPath && (path.Ext(at) == ".yml" || path.Ext(at) == ".yaml")
}

// checkProvider fails if the existing files together with the new ones would send a key to the wrong
// provider. model is the model in the existing defaults, or "". It sets s.Provider.KeyEnv to that of the
// defaults.
func (s *Setup) checkProvider(ctx context.Context, r github.Setup, existing existingFiles) (model string, err error) {
	id, hasDefaults := existing[DefaultsPath]
	if !hasDefaults {
		redirectsAll := s.Provider.BaseURL != "" // new defaults apply to all workflows
		return "", s.checkWorkflows(ctx, r, existing, redirectsAll)
	}
	content, err := r.Blob(ctx, id)
	if err != nil {
		return "", err
	}
	found, model, err := parseDefaults(content)
	if err != nil {
		return "", err
	}
	if !found.sharesKey(s.Provider) {
		return "", fmt.Errorf("%s exists already and is for %s, not for %s: change it or delete it first, or choose that provider", DefaultsPath, found, s.Provider)
	}
	s.Provider.KeyEnv = found.KeyEnv
	const redirectsAll = false
	return model, s.checkWorkflows(ctx, r, existing, redirectsAll)
}

// checkWorkflows fails if an existing workflow does not suit the provider. Only the wanted one counts, unless the set-up
// redirects all workflows to the provider.
func (s *Setup) checkWorkflows(ctx context.Context, r github.Setup, existing existingFiles, redirectsAll bool) error {
	for _, path := range slices.Sorted(maps.Keys(existing)) {
		isWanted := path == WorkflowPath(s.Workflow)
		usesProvider := isWanted || redirectsAll
		if !usesProvider || !isWorkflow(path) {
			continue
		}
		content, err := r.Blob(ctx, existing[path])
		if err != nil {
			return err
		}
		if why := s.Provider.whyUnsuitable(content, isWanted); why != "" {
			return fmt.Errorf("%s exists already and %s, while the key for %s would be used: change it or delete it first, or choose the provider that it is for", path, why, s.Provider)
		}
	}
	return nil
}

// whyUnsuitable returns why a workflow must not run with the provider's key, such as "passes no openai-api-key",
// or "". wanted means that the workflow is the one to set up, so it must pass a key.
func (p Provider) whyUnsuitable(workflow []byte, wanted bool) string {
	if !wanted && !strings.Contains(string(workflow), "agent-ci") {
		return ""
	}
	var document yaml.Node
	if err := yaml.Unmarshal(workflow, &document); err != nil {
		return "is no YAML"
	}
	keys := modelKeyValues(&document)
	if wanted && len(keys) == 0 {
		return "passes no openai-api-key"
	}
	isReference := regexp.MustCompile(`^\$\{\{ *secrets\.\w+ *\}\}$`).MatchString
	for _, key := range keys {
		isOwn := strings.Join(strings.Fields(key), "") == "${{secrets."+p.Secret+"}}"
		switch {
		case isOwn: // as it should be
		case isReference(key):
			return "passes the key " + key
		default: // key is not shown, because it may be the secret itself
			return "passes the key of another form"
		}
	}
	if len(keys) > 0 && regexp.MustCompile(`(?i)openai[-_]base[-_]url|model[._]base_url`).Match(workflow) {
		return "says itself where the model's API is"
	}
	return ""
}

// modelKeyValues returns the values that a workflow passes as the model's key.
func modelKeyValues(n *yaml.Node) (values []string) {
	for i, each := range n.Content {
		isMapValue := n.Kind == yaml.MappingNode && i%2 == 1 // keys and values alternate
		if isMapValue && slices.Contains([]string{"openai-api-key", actionKey}, n.Content[i-1].Value) {
			values = append(values, each.Value)
		}
		values = append(values, modelKeyValues(each)...)
	}
	return values
}

// state describes the repository before a setup.
type state struct {
	base    string // the default branch
	head    *forge.Commit
	open    *forge.PullRequest // of a setup; nil for none
	missing []File
	kept    []string // paths of existing files
	model   string   // in the existing defaults
}

// readState reads the repository's state before the setup. It fails if the setup could not be completed.
func (s *Setup) readState(ctx context.Context, r github.Setup) (found state, err error) {
	if found.base, found.head, err = defaultBranchTip(ctx, r); err != nil {
		return found, err
	}
	if found.open, err = openSetup(ctx, r); err != nil {
		return found, err
	}
	branch, err := r.Branch(ctx, setupBranch)
	if err != nil {
		return found, err
	}
	tree := found.head.Tree
	if found.open != nil && branch != nil {
		tree = branch.Tree // it has the files of the open pull request
	}
	existing, err := readExisting(ctx, r, tree)
	if err != nil {
		return found, err
	}
	model, providerErr := s.checkProvider(ctx, r, existing)
	found.model = model
	files, err := s.filesToAdd()
	if err != nil {
		return found, err
	}
	for _, file := range files {
		if _, exists := existing[file.Path]; exists {
			found.kept = append(found.kept, file.Path)
		} else {
			found.missing = append(found.missing, file)
		}
	}
	switch {
	case found.open != nil:
		difference, err := s.differenceToOpenPull(ctx, r, found, providerErr)
		if difference != "" {
			err = fmt.Errorf("the pull request %s of another setup is open (%s): merge it, or close it and delete its branch, first", found.open.URL, difference)
		}
		return found, err
	case providerErr != nil:
		return found, providerErr
	case branch != nil && len(found.missing) > 0:
		return found, fmt.Errorf("%s has a branch %s without an open pull request: delete it and run this again", r.Name(), setupBranch)
	}
	return found, nil
}

// openSetup returns the open pull request of a setup, or nil.
func openSetup(ctx context.Context, r github.Setup) (*forge.PullRequest, error) {
	pull, err := r.FindPullRequest(ctx, setupBranch, "")
	if err != nil || pull == nil || pull.State != "open" {
		return nil, err
	}
	return pull, nil
}

// differenceToOpenPull returns how the open pull request differs from this setup, or "". providerErr says why the
// provider does not suit its files; nil if it does.
func (s *Setup) differenceToOpenPull(ctx context.Context, r github.Setup, g state, providerErr error) (string, error) {
	switch {
	case len(g.missing) > 0:
		return "it has no " + g.missing[len(g.missing)-1].Path, nil
	case providerErr != nil:
		return providerErr.Error(), nil
	case g.model == s.Model:
		return "", nil
	}
	merged, err := readExisting(ctx, r, g.head.Tree)
	if err != nil {
		return "", err
	}
	if merged[DefaultsPath] != "" { // the default branch names the model, not the pull request
		return "", nil
	}
	return "its model is " + g.model, nil
}
