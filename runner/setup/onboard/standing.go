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
)

// existingFiles maps the relevant existing files to ids: defaults and workflows.
type existingFiles map[string]string

// readExisting lists the defaults and workflows in a tree. It refuses a link or folder in the place of a file to add.
func readExisting(ctx context.Context, r Repository, tree string) (existingFiles, error) {
	existing := existingFiles{}
	for _, folder := range []string{".github", ".github/workflows"} {
		entries, err := r.Entries(ctx, tree, folder)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			isFile := strings.HasPrefix(e.Mode, "100")
			if isStarter(e.Path) && !isFile {
				return nil, fmt.Errorf("%s has a %s that is no file (mode %s): remove it first", r.Name(), e.Path, e.Mode)
			}
			if isFile && (e.Path == DefaultsPath || folder != ".github") {
				existing[e.Path] = e.ID
			}
		}
	}
	return existing, nil
}

// isStarter reports whether a path can be one of a setup. Somebody may have pushed other
// files to its branch.
func isStarter(path string) bool {
	return path == DefaultsPath || regexp.MustCompile(`^\.github/workflows/agent-ci-[a-z-]+\.yml$`).MatchString(path)
}

func isWorkflow(at string) bool {
	return at != DefaultsPath && (path.Ext(at) == ".yml" || path.Ext(at) == ".yaml")
}

// checkProvider fails if existing and new files would send a key to another provider. It returns the model
// in the existing defaults.
func (s *Setup) checkProvider(ctx context.Context, r Repository, existing existingFiles) (model string, err error) {
	id, hasDefaults := existing[DefaultsPath]
	if hasDefaults {
		content, err := r.Blob(ctx, id)
		if err != nil {
			return "", err
		}
		found, named, err := ofDefaults(content)
		if err != nil {
			return "", err
		}
		if !found.sharesKey(s.Provider) {
			return "", fmt.Errorf("%s exists already and is for %s, not for %s: change it or delete it first, or choose that provider", DefaultsPath, found, s.Provider)
		}
		model, s.Provider.KeyEnv = named, found.KeyEnv
	}
	changesAddress := !hasDefaults && s.Provider.BaseURL != "" // of other workflows' keys, by new defaults
	for _, path := range slices.Sorted(maps.Keys(existing)) {
		isWanted := path == WorkflowPath(s.Workflow)
		if !isWorkflow(path) || !isWanted && !changesAddress {
			continue
		}
		content, err := r.Blob(ctx, existing[path])
		if err != nil {
			return "", err
		}
		if why := s.Provider.objection(content, isWanted); why != "" {
			return "", fmt.Errorf("%s exists already and %s, while the key for %s would be used: change it or delete it first, or choose the provider that it is for", path, why, s.Provider)
		}
	}
	return model, nil
}

// objection explains why a workflow does not suit a provider, or returns "". Only a wanted one must
// pass a key.
func (p Provider) objection(workflow []byte, wanted bool) string {
	if !wanted && !strings.Contains(string(workflow), "agent-ci") {
		return ""
	}
	var document yaml.Node
	if err := yaml.Unmarshal(workflow, &document); err != nil {
		return "is no YAML"
	}
	keys := keyValues(&document)
	if wanted && len(keys) == 0 {
		return "passes no openai-api-key"
	}
	for _, key := range keys {
		if strings.Join(strings.Fields(key), "") == "${{secrets."+p.Secret+"}}" {
			continue
		}
		if !regexp.MustCompile(`^\$\{\{ *secrets\.\w+ *\}\}$`).MatchString(key) {
			return "passes the key of another form" // which may be the key itself
		}
		return "passes the key " + key
	}
	if len(keys) > 0 && regexp.MustCompile(`(?i)openai[-_]base[-_]url|model[._]base_url`).Match(workflow) {
		return "says itself where the model's API is"
	}
	return ""
}

// keyValues returns a workflow's values for the model's key.
func keyValues(n *yaml.Node) (values []string) {
	for i, each := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 1 {
			if name := n.Content[i-1].Value; name == "openai-api-key" || name == actionKey {
				values = append(values, each.Value)
			}
		}
		values = append(values, keyValues(each)...)
	}
	return values
}

// state is the state before a setup.
type state struct {
	base    string // the default branch
	head    *forge.Commit
	open    *forge.PullRequest // of a setup; nil for none
	missing []File
	kept    []string // the paths of those that are there
	model   string   // that the defaults which are there name
}

// readState returns the state before a setup. It fails if the setup would remain incomplete.
func (s *Setup) readState(ctx context.Context, r Repository) (g state, err error) {
	if g.base, g.head, err = tip(ctx, r); err != nil {
		return g, err
	}
	if g.open, err = openSetup(ctx, r); err != nil {
		return g, err
	}
	branch, err := r.Branch(ctx, setupBranch)
	if err != nil {
		return g, err
	}
	tree := g.head.Tree
	if g.open != nil && branch != nil {
		tree = branch.Tree
	}
	existing, err := readExisting(ctx, r, tree)
	if err != nil {
		return g, err
	}
	model, providerErr := s.checkProvider(ctx, r, existing)
	g.model = model
	files, err := s.files()
	if err != nil {
		return g, err
	}
	for _, file := range files {
		if _, exists := existing[file.Path]; exists {
			g.kept = append(g.kept, file.Path)
		} else {
			g.missing = append(g.missing, file)
		}
	}
	if g.open != nil {
		if err := s.requireSame(ctx, r, g, providerErr); err != nil {
			return g, err
		}
	} else if providerErr == nil && branch != nil && len(g.missing) > 0 {
		return g, fmt.Errorf("%s has a branch %s without an open pull request: delete it and run this again", r.Name(), setupBranch)
	}
	return g, providerErr
}

// openSetup returns the open pull request of a setup, or nil.
func openSetup(ctx context.Context, r Repository) (*forge.PullRequest, error) {
	pull, err := r.FindPullRequest(ctx, setupBranch, "")
	if err != nil || pull == nil || pull.State != "open" {
		return nil, err
	}
	return pull, nil
}

// requireSame fails if the open pull request is of another setup. providerErr says why the provider
// does not suit its files, or is nil.
func (s *Setup) requireSame(ctx context.Context, r Repository, g state, providerErr error) error {
	difference, err := s.difference(ctx, r, g, providerErr)
	if err != nil || difference == "" {
		return err
	}
	return fmt.Errorf("the pull request %s of another setup is open (%s): merge it, or close it and delete its branch, first", g.open.URL, difference)
}

// difference returns how the open pull request differs from this setup, or "".
func (s *Setup) difference(ctx context.Context, r Repository, g state, providerErr error) (string, error) {
	switch {
	case len(g.missing) > 0:
		return "it has no " + g.missing[len(g.missing)-1].Path, nil
	case providerErr != nil:
		return providerErr.Error(), nil
	case g.model == s.Model:
		return "", nil
	}
	merged, err := readExisting(ctx, r, g.head.Tree)
	if err != nil || merged[DefaultsPath] != "" { // the default branch names the model, not the pull request
		return "", err
	}
	return "its model is " + g.model, nil
}
