package doctor

import (
	"context"
	"fmt"
	"runtime"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/guard"
	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/place/sandboxcommand"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
)

type Git struct {
	Path        string   `json:"path,omitempty"`
	Version     string   `json:"version,omitempty"`
	Checkout    string   `json:"checkout,omitempty"`
	Base        string   `json:"base,omitempty"`
	Origin      string   `json:"origin,omitempty"`
	Credentials []string `json:"credentials"` // files of its configuration that hold some
}

// examineGit describes the git program and the checkout, if there is one.
func (d *Diagnosis) examineGit(ctx context.Context, p *sandboxcommand.Prepared) {
	g := &d.Git
	g.Path, g.Credentials = workspace.FindGit(p.Environ.Get("PATH"), p.Dir), []string{}
	var err error
	if g.Version, err = gitops.CheckGit(ctx, g.Path); err != nil {
		d.addError("git", outcome.Sentence(err.Error())+".", "")
		return
	}
	checkout := p.Workspace.Checkout()
	switch {
	case p.NoCheckout != nil:
		d.addWarning("git", outcome.Sentence(outcome.WithoutFullStop(p.NoCheckout))+".", "")
		return
	case checkout == nil:
		return // the configuration in it has a mistake
	}
	base := p.Workspace.Base()
	g.Checkout, g.Base, g.Origin = checkout.Root(), strings.TrimSpace(base.Branch+" "+clip.SHA(base.SHA)), p.Record.Redact(checkout.Origin())
	d.examineCredentials()
}

// examineCredentials adds the files of git's configuration that hold credentials, and warns about them.
func (d *Diagnosis) examineCredentials() {
	if runtime.GOOS != "linux" {
		return // nothing keeps credentials from commands there
	}
	files, err := guard.Credentials(d.Git.Checkout)
	if err != nil {
		d.addError("git", outcome.Sentence(err.Error())+".", "")
		return
	}
	d.Git.Credentials = append(d.Git.Credentials, files...)
	if len(files) > 0 {
		d.addWarning("git", fmt.Sprintf("Git's configuration holds credentials or names files that do: %s.", strings.Join(files, ", ")),
			"With namespaces commands get a copy without them; without, a run refuses to start. Check out without them (actions/checkout: persist-credentials: false).")
	}
}
