package workspace

import (
	"slices"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
	"github.com/agent-ci/agent-ci/runner/record/outcome/outcometest"
)

// secretAt is a secret of the checkout, named as its path.
func secretAt(w *Workspace, path, by string) grants.Secret {
	return grants.Secret{Path: w.WorkDir(path), By: by, Named: w.WorkDir(path), Existed: true}
}

func TestExcludesHiddenFiles(t *testing.T) {
	repo := gittest.Seeded(t)
	repo.Write("key.pem", "secret")
	w, tree := working(t, repo.Dir)
	outside := grants.Secret{Path: "/elsewhere/key", By: grants.DeniedBy, Named: "~/key"}
	hidden := must.Get(w.ExcludeSecrets(&grants.Secrets{Within: []string{w.Root()}, Found: []grants.Secret{
		secretAt(w, "made.pem", grants.DeniedBy), outside, secretAt(w, "README", ""), // known by its place alone
	}}))(t)
	must.Same(t, []string{w.WorkDir("made.pem"), outside.Path}, hidden.Paths(), "hidden")
	must.Same(t, true, w.HiddenFiles() == hidden, "others are hidden")
	tree.Write("made.pem", "secret")
	tree.Write("README", "changed\n")
	if taken := change(t, w); len(taken.Files) != 1 || taken.Files[0].Path != "README" {
		t.Errorf("the change has %+v", taken.Files)
	}
}

func TestRefusesToHideTrackedFiles(t *testing.T) {
	for name, test := range map[string]struct {
		secret func(*Workspace) grants.Secret
		words  []string
	}{
		"named":      {func(w *Workspace) grants.Secret { return secretAt(w, "src/main.go", grants.DeniedBy) }, []string{grants.DeniedBy + " names src/main.go,", "else take it out of the list"}},
		"a folder":   {func(w *Workspace) grants.Secret { return secretAt(w, "src", grants.DeniedBy) }, []string{"names src,"}},
		"a variable": {func(w *Workspace) grants.Secret { return secretAt(w, "README", "KUBECONFIG") }, []string{"KUBECONFIG names", "unset the variable"}},
		"a secret":   {func(w *Workspace) grants.Secret { return secretAt(w, "README", grants.SecretBy+"TOKEN") }, []string{"policy.secrets: TOKEN names README,", "else take the secret out of the job"}},
		"a link": {func(w *Workspace) grants.Secret {
			return grants.Secret{Path: w.WorkDir("README"), By: grants.DeniedBy, Named: "/link"}
		}, []string{"README (as /link)"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := opened(t, gittest.Seeded(t).Dir)
			outcometest.Want(t, must.Err(w.ExcludeSecrets(&grants.Secrets{Found: []grants.Secret{test.secret(w)}})), "deny_read_tracked", test.words...)
			if w.HiddenFiles() != nil || w.rec.Has(hiddenFile) {
				t.Error("it counts as hidden")
			}
		})
	}
}

func TestResumeKeepsHiddenFiles(t *testing.T) {
	repo := gittest.Seeded(t)
	w := opened(t, repo.Dir)
	must.Do(t, w.restoreHidden())
	must.Same(t, nil, w.HiddenFiles(), "something is hidden")
	found := &grants.Secrets{Within: []string{w.Root()}, Found: []grants.Secret{secretAt(w, "key.pem", grants.DeniedBy)}}
	must.Get(w.ExcludeSecrets(found))(t)
	other := opened(t, gittest.Seeded(t).Dir)
	for _, later := range []*Workspace{{rec: w.rec, root: w.root, checkout: w.checkout}, {rec: w.rec, root: other.root, checkout: other.checkout}} {
		must.Do(t, later.restoreHidden())
		must.Same(t, later.root == w.root, slices.Contains(later.HiddenFiles().Paths(), w.WorkDir("key.pem")), later.root, later.HiddenFiles().Paths())
	}
	must.Do(t, w.rec.Write(hiddenFile, []byte("[")))
	must.Fail(t, "", w.restoreHidden(), "what can't be read counts as nothing")
}
