package doctor

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/place/sandboxcommand"
	"github.com/agent-ci/agent-ci/runner/place/services"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
)

type Confinement struct {
	Sandbox   string          `json:"sandbox"` // policy.sandbox as it is configured
	Network   string          `json:"network"`
	Proxy     string          `json:"proxy,omitempty"` // of the machine, by which hosts are reached
	Secrets   []string        `json:"secrets"`         // of the job: what each is for, and whose
	Require   string          `json:"require,omitempty"`
	Level     string          `json:"level"` // that a run reaches
	Layers    []string        `json:"layers"`
	WorkTree  string          `json:"work_tree,omitempty"`  // what commands would work in: overlay, private; empty where there is no checkout
	NoOverlay string          `json:"no_overlay,omitempty"` // why that is not an overlay, though it may be one
	Trials    []sandbox.Trial `json:"trials"`
	Settings  []KernelSetting `json:"settings"`
	Processes string          `json:"processes"` // what limits them
}

// examineConfinement reports how far this machine can confine commands, and tries to break out.
func (d *Diagnosis) examineConfinement(ctx context.Context, prepared *sandboxcommand.Prepared) error {
	boxes, err := prepared.Sandboxes(nil)
	if err != nil {
		return err
	}
	place := boxes.MostConfined()
	options := boxes.Options(place)
	defer boxes.Remove(place)
	p := prepared.Job.Policy
	c := &d.Confinement
	c.Sandbox, c.Network, c.Require, c.Level = p.Sandbox, p.Network.String(), p.Require, string(sandbox.LevelNone)
	c.Proxy, c.Secrets = boxes.DescribeMachineProxy(), boxes.DescribeSecrets()
	c.Settings, c.Layers = kernelSettings(), []string{}
	found, err := sandbox.Probe(ctx, options)
	if err != nil {
		d.addError("confinement", outcome.Sentence(err.Error())+".", "")
	} else {
		c.Level, c.Layers = string(found.Level), found.Layers
		d.examineWorkTree(ctx, boxes)
		d.addErrorOf(ctx, "confinement", services.CheckRunnable(ctx, prepared.Job, found.Level))
	}
	_, err = prepared.Authorities(ctx)
	d.addErrorOf(ctx, "configuration", err)
	d.addErrorOf(ctx, "confinement", boxes.CheckMachineProxy())
	c.Processes = cmp.Or(ProcessLimit(found.Layers), "not limited")
	if options.Mode == grants.DangerFullAccess {
		options.Mode = grants.WorkspaceWrite
		d.addWarning("confinement", confine.UnconfinedNotice, "Set policy.sandbox to workspace-write where the machine can confine.")
	}
	c.Trials = sandbox.Trials(ctx, options)
	d.addConfinementProblems()
	return nil
}

// examineWorkTree finds the backing of a run's work tree.
func (d *Diagnosis) examineWorkTree(ctx context.Context, boxes *confine.Sandboxes) {
	if boxes.Checkout == nil {
		return
	}
	d.addErrorOf(ctx, "confinement", boxes.FindWorkTree(ctx, nil))
	d.Confinement.WorkTree, d.Confinement.NoOverlay = boxes.Confinement().WorkTree, boxes.WhyNoOverlay()
}

// ProcessLimit returns the layer that limits processes, or "". It looks for the word processes.
func ProcessLimit(layers []string) string {
	i := slices.IndexFunc(layers, func(layer string) bool { return strings.Contains(layer, "processes") })
	if i < 0 {
		return ""
	}
	return layers[i]
}

// addConfinementProblems warns about kernel settings that weaken confinement, and about unlimited processes.
func (d *Diagnosis) addConfinementProblems() {
	c := d.Confinement
	for _, s := range c.Settings {
		if s.Remedy != "" && c.Level != string(sandbox.LevelFull) {
			d.addWarning("confinement", s.Name+" is "+s.Value+".", s.Remedy+".")
		}
	}
	if strings.Contains(c.Processes, "not limited") {
		d.addWarning("confinement", "Nothing limits how many processes commands start: "+c.Processes+".",
			"Run as an ordinary user, on Linux 6.14 or newer, or in a cgroup of version 2 that hands pids on to its children.")
	}
}
