package sandbox

import (
	"path/filepath"
	"slices"

	"github.com/agent-ci/agent-ci/policy/sandbox/stage"
)

// confine adds what the sandbox of a level hides and replaces.
func (v *View) confine(o Options, level Level) error {
	if err := makeScratch(o.Scratch); err != nil {
		return err
	}
	p, err := newPlan(o)
	if err != nil {
		return err
	}
	defer func() { v.addSecrets(p.secrets, p.hidden) }()
	if level == LevelLandlock {
		v.withoutNamespaces(p)
		return nil
	}
	for _, m := range p.namespaceMounts() {
		e := viewed{path: m.Path, shown: true, sources: []string{m.Source}}
		switch m.Kind {
		case stage.Hidden:
			e = viewed{path: m.Path, why: whyHidden}
		case stage.Overlay:
			e.sources = nil
			for _, changes := range append([]string{m.Source}, m.Below...) {
				e.sources = append(e.sources, filepath.Join(changes, "upper"))
			}
			e.sources = append(e.sources, m.Path)
		}
		v.add(e)
	}
	return nil
}

// withoutNamespaces is the view where paths are what they are outside.
func (v *View) withoutNamespaces(p *plan) {
	for _, path := range []string{"/tmp", "/var/tmp"} {
		v.add(viewed{path: path, why: whyOthers, walked: true})
	}
	hidden := slices.Clone(p.hidden)
	for file := range p.userGit.cleaned {
		hidden = append(hidden, existingForms(file)...)
	}
	for _, path := range hidden {
		v.add(viewed{path: path, why: whyHidden})
	}
	for _, path := range slices.Concat(p.readable, []string{p.workspace}, p.writable, p.ownFolders()) {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			v.add(viewed{path: real, shown: true, sources: []string{real}})
		}
	}
}
