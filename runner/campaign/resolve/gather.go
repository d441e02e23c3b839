package resolve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/policy/outside"
	"github.com/agent-ci/agent-ci/runner/campaign"
	"github.com/agent-ci/agent-ci/runner/given"
	"github.com/agent-ci/agent-ci/runner/intake"
	"github.com/agent-ci/agent-ci/runner/job"
)

const (
	mostBytes   = 32 << 20        // of a file with targets, or of what a command prints
	commandTime = 5 * time.Minute // that the command may take
	farewell    = 2 * time.Second // until its output is given up after its end
)

// gather names all targets of the campaign.
func (o Options) gather(ctx context.Context) ([]*candidate, error) {
	listed := o.Campaign.Listed()
	for i := range listed {
		listed[i].At.File = o.File
	}
	for _, more := range []func(context.Context) ([]job.Listed, error){o.fromFile, o.fromCommand} {
		found, err := more(ctx)
		if err != nil {
			return nil, err
		}
		listed = append(listed, found...)
	}
	all, err := named(listed)
	if err != nil {
		return nil, err
	}
	for _, q := range o.Campaign.Targets.Queries {
		found, err := o.query(ctx, q)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// named are the targets that the file, or what it names, gives by name.
func named(listed []job.Listed) ([]*candidate, error) {
	var all []*candidate
	var problems job.Problems
	names := map[string]bool{}
	for _, l := range listed {
		repository, commit, issue, err := l.Where()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.At, err)
		}
		c := &candidate{
			Target: campaign.Target{Repository: repository, Base: l.Base, Issue: issue, Path: clean(l.Path), Values: l.Values},
			name:   l.Name, after: l.After, at: l.At, commit: commit, server: job.IssueServer(l.Issue),
		}
		if l.Name != "" && names[l.Name] {
			problems = append(problems, c.mistake(fmt.Sprintf("has the name of another target, %q", short(l.Name))))
		}
		names[l.Name] = true
		all = append(all, c)
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return all, nil
}

// fromFile reads the file of targets, below the folder of the campaign file.
func (o Options) fromFile(context.Context) ([]job.Listed, error) {
	name := o.Campaign.Targets.File
	if name == "" {
		return nil, nil
	}
	root, err := os.OpenRoot(o.Folder)
	if err != nil {
		return nil, fmt.Errorf("read the targets: %w", err)
	}
	defer root.Close()
	raw, err := given.ReadIn(root, name, mostBytes)
	if err != nil {
		return nil, fmt.Errorf("read the targets (targets.file): %w", err)
	}
	return job.ParseTargets(name, raw)
}

// fromCommand has a command print targets. It gets no credential: it runs what stands in the folder
// of the campaign file, without a sandbox.
func (o Options) fromCommand(ctx context.Context) ([]job.Listed, error) {
	command := o.Campaign.Targets.Command
	if command.IsZero() {
		return nil, nil
	}
	home := ""
	for _, variable := range o.Environ {
		if value, is := strings.CutPrefix(variable, "HOME="); is {
			home = value
		}
	}
	argv := make([]string, len(command.Argv))
	for i, word := range command.Argv {
		argv[i] = job.AtHome(word, home)
	}
	if len(argv) == 0 {
		argv = []string{"/bin/sh", "-c", command.Script}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, commandTime, fmt.Errorf("it took longer than %s", commandTime))
	defer cancel()
	ctx, tooMuch := context.WithCancelCause(ctx)
	defer tooMuch(nil)
	printed := &bounded{most: mostBytes, over: func() { tooMuch(fmt.Errorf("it printed more than %d MiB", mostBytes>>20)) }}
	folder, err := filepath.Abs(o.Folder)
	var program string
	if err == nil {
		program, err = outside.Find(argv[0], folder, o.Environ)
	}
	if err == nil {
		cmd := outside.Targets.Command(ctx, program, folder, o.Environ, argv[1:]...)
		cmd.Stdout, cmd.Stderr = printed, o.Said
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // and what it started
		cmd.WaitDelay = farewell
		err = cmd.Run()
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("run the command that prints the targets (targets.command): %w", err)
	}
	return job.ParseTargets("targets.command", printed.kept.Bytes())
}

// bounded keeps what is written, up to a bound.
type bounded struct {
	kept bytes.Buffer
	most int
	over func()
}

var errTooMuch = errors.New("too much output")

func (b *bounded) Write(p []byte) (int, error) {
	if b.kept.Len()+len(p) > b.most {
		b.over()
		return 0, errTooMuch
	}
	return b.kept.Write(p)
}

// query asks the forge for targets.
func (o Options) query(ctx context.Context, q job.Query) ([]*candidate, error) {
	s := forge.Search{Organisation: q.Organisation, Topic: q.Topic, Code: q.Code, Issues: q.Issues, Labels: q.Labels}
	if !o.renames {
		s.Heads = intake.BranchPrefix + o.Campaign.Name + "-"
	}
	hits, err := o.Forge.Search(ctx, s, o.Campaign.Targets.Most)
	if err != nil {
		return nil, err
	}
	var all []*candidate
	for _, h := range hits {
		all = append(all, &candidate{Target: campaign.Target{Repository: h.Repository, Issue: h.Issue}, asked: true, finding: h.Finding, open: h.Open})
	}
	return all, nil
}
