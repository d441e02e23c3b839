package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/agent-ci/agent-ci/runner/campaign"
	"github.com/agent-ci/agent-ci/runner/campaign/cluster"
	"github.com/agent-ci/agent-ci/runner/campaign/here"
	"github.com/agent-ci/agent-ci/runner/campaign/pulls"
	"github.com/agent-ci/agent-ci/runner/campaign/show"
	"github.com/agent-ci/agent-ci/runner/given"
	"github.com/agent-ci/agent-ci/runner/progress"
	"github.com/agent-ci/agent-ci/runner/record"
)

const (
	// mostHandedOut is how many runs a wave has at most that goes elsewhere: so many jobs has a matrix
	// (https://docs.github.com/en/actions/reference/limits).
	mostHandedOut = 256
	// hourElsewhere is how many runs start elsewhere in an hour where rollout.per_hour does not say: they
	// do not see each other, and GitHub takes 500 creations an hour from all of them.
	hourElsewhere = 100
	// mostSeen is how many bytes of what kubectl says are read.
	mostSeen = 256 << 20
)

// handout is a place where waves go.
type handout struct {
	host string
	// again says that a wave which is out may be told once more: whoever gets it sees that it has it.
	again bool
	ready func(p process, c *openedCampaign) error               // what is missing, or may not be told there; nil where nothing can be
	fits  func(c *openedCampaign, targets []campaign.Target) int // of the first ones; nil where all do
	write func(p process, c *openedCampaign, h *campaign.Handout, wait campaign.Wait) error
}

// handouts are those places, by the form in which a wave is told there.
var handouts = map[string]*handout{
	"matrix":     {host: campaign.Actions, write: writeMatrix},
	"kubernetes": {host: campaign.Kubernetes, again: true, ready: readyForCluster, fits: (*openedCampaign).fitsCluster, write: writeManifest},
}

// handOut claims the next wave and writes it for whoever runs it.
func (c *openedCampaign) handOut(ctx context.Context, p process, ledger *campaign.Ledger, to *handout) (int, error) {
	if to.ready != nil {
		if err := to.ready(p, c); err != nil {
			return exitFailed, err
		}
	}
	plan, err := c.planThatHolds(ctx, p, ledger)
	if err != nil {
		return c.unplanned(p, err)
	}
	out, err := ledger.Again(c.Campaign, plan, to.host)
	switch {
	case err != nil:
		return exitFailed, err
	case out != nil && !to.again:
		return exitFailed, &campaign.OpenError{Host: out.Host, Wave: out.Wave}
	case out != nil:
		fmt.Fprintf(p.stderr, "Wave %d is out already; here it is again.\n", out.Wave)
		return exitOK, to.write(p, c, out, campaign.Wait{})
	}
	next, wait, err := c.nextElsewhere(ctx, p, ledger, plan)
	if err != nil {
		return exitFailed, err
	}
	if to.fits != nil && len(next) > 0 {
		if next = next[:to.fits(c, next)]; len(next) == 0 {
			return exitFailed, errors.New("the campaign file and its job leave no room for a target in what the cluster takes; make them shorter")
		}
	}
	if out, err = ledger.HandOut(c.Campaign, plan, next, to.host); err != nil {
		return exitFailed, err
	}
	fmt.Fprintf(p.stderr, "%d targets start.\n", len(out.Runs))
	if wait.Why != "" {
		fmt.Fprintf(p.stderr, "The rest waits: %s.\n", wait.Words)
	}
	return exitOK, to.write(p, c, out, wait)
}

// planThatHolds is the plan of the campaign's job, which is made where there is none.
func (c *openedCampaign) planThatHolds(ctx context.Context, p process, ledger *campaign.Ledger) (*campaign.Plan, error) {
	template, err := campaign.TemplateOf(c.Campaign)
	if err != nil {
		return nil, err
	}
	if standing := ledger.Of(c.Name); standing.Plan == "" || standing.Template != template {
		return c.plan(ctx, p, ledger)
	}
	return campaign.ReadPlan(c.ledger, c.Name, ledger.State)
}

// nextElsewhere are the targets that may start elsewhere, with what the forge says of them now.
func (c *openedCampaign) nextElsewhere(ctx context.Context, p process, ledger *campaign.Ledger, plan *campaign.Plan) ([]campaign.Target, campaign.Wait, error) {
	client, _, err := forgeOf(p)
	if err != nil {
		return nil, campaign.Wait{}, err
	}
	if _, err := pulls.Refresh(ctx, client, ledger, c.Campaign, plan); err != nil {
		return nil, campaign.Wait{}, fmt.Errorf("ask for the states of pull requests: %w", err)
	}
	c.Rollout.PerHour = cmp.Or(c.Rollout.PerHour, hourElsewhere)
	told := here.NewProgress(p.stderr, 0)
	return ledger.Choose(ctx, campaign.Choice{
		Campaign: c.Campaign, Plan: plan, Now: time.Now, Most: mostHandedOut, Existing: c.existing(client),
		Passed: func(t campaign.Target, r *campaign.Report) { told.Tell(here.Step{Target: t, Report: r, Passed: true}) },
	})
}

// handedMatrix is a wave as a workflow takes it.
type handedMatrix struct {
	Wave    int             `json:"wave"` // 0 where nothing may start
	File    string          `json:"file"` // in the ledger's folder
	Targets int             `json:"targets"`
	AtOnce  int             `json:"at_once"`
	Matrix  campaign.Matrix `json:"matrix"`
	Wait    campaign.Wait   `json:"wait"`
}

// writeMatrix writes one line, as the outputs of a step take it.
func writeMatrix(p process, c *openedCampaign, h *campaign.Handout, wait campaign.Wait) error {
	m := handedMatrix{Wave: h.Wave, Targets: len(h.Runs), AtOnce: c.Rollout.AtOnce, Matrix: h.Matrix(), Wait: wait}
	if m.Targets > 0 {
		m.File = filepath.ToSlash(campaign.WaveFile(c.Name, h.Wave))
	}
	return json.NewEncoder(p.stdout).Encode(m)
}

func (c *openedCampaign) fitsCluster(all []campaign.Target) int {
	return cluster.Fit(all, c.raw, c.jobBeside())
}

// jobBeside is the job file that the campaign names; nil where it has the job itself. It was read before.
func (c *openedCampaign) jobBeside() []byte {
	if c.JobFile == "" {
		return nil
	}
	raw, err := beside(c.file)(c.JobFile)
	if err != nil {
		return nil
	}
	return raw
}

// told are the variables that runs in a cluster are told beside those of the secret.
var told = []string{"GITHUB_API_URL", "GITHUB_SERVER_URL", "OPENAI_BASE_URL"}

// readyForCluster says what the campaign file lacks, and which address has a secret that everybody
// could read who may look at a Job.
func readyForCluster(p process, c *openedCampaign) error {
	if err := cluster.Ready(c.Campaign); err != nil {
		return err
	}
	for _, name := range told {
		u, err := url.Parse(p.variable(name))
		if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			return fmt.Errorf("%s is written into the manifest, and has to be an address without a user, a password and a query; set it so, or unset it and put it into the secret %s", name, c.Kubernetes.Secret)
		}
	}
	return nil
}

func writeManifest(p process, c *openedCampaign, h *campaign.Handout, _ campaign.Wait) error {
	if len(h.Runs) == 0 {
		return nil
	}
	j, err := c.sampleJob(p)
	if err != nil {
		return err
	}
	w := cluster.Wave{Campaign: c.Campaign, Handout: h, File: c.raw, JobFile: c.jobBeside(), Variables: map[string]string{}, Publish: c.publish}
	addresses := []string{j.Model.BaseURL}
	for _, name := range told {
		if value := p.variable(name); value != "" {
			w.Variables[name] = value
			addresses = append(addresses, value)
		}
	}
	for _, address := range addresses {
		if u, err := url.Parse(address); err == nil {
			if port, err := strconv.Atoi(cmp.Or(u.Port(), map[string]string{"http": "80"}[u.Scheme])); err == nil {
				w.Ports = append(w.Ports, port)
			}
		}
	}
	raw, err := cluster.Manifest(w)
	if err != nil {
		return err
	}
	_, err = p.stdout.Write(raw)
	return err
}

// workOnTarget makes one run of a wave that was handed out.
func workOnTarget(ctx context.Context, p process, c *openedCampaign) (int, error) {
	if err := heldToClaims(p); err != nil {
		return exitInvalid, err
	}
	h, index, err := c.handed(ctx, p)
	if err != nil {
		return exitInvalid, err
	}
	o, _, err := c.runOptions(p)
	if err != nil {
		return exitFailed, err
	}
	if o.Folder, err = filepath.Abs(c.out); err != nil {
		return exitFailed, fmt.Errorf("find the folder of run directories: %w", err)
	}
	o.Environ = apart(o.Environ, o.Folder)
	o.Plan, o.Said, o.Outages = &campaign.Plan{Template: h.Template}, p.stderr, true
	claimed := h.Claimed(index)
	report, settled := here.Work(ctx, o, h.Runs[index].Target, claimed, time.Now())
	directory := campaign.RunDirectory(o.Folder, claimed)
	if !settled {
		var there bool
		if report, there, err = reportIn(directory, claimed); err != nil || !there {
			return signalled, err
		}
	}
	raw, err := report.Encode()
	if err != nil {
		return exitFailed, err
	}
	for _, path := range []string{directory + campaign.ReportSuffix, c.report} {
		if path == "" {
			continue
		}
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			return exitFailed, fmt.Errorf("write the report of the run: %w", err)
		}
	}
	here.NewProgress(p.stdout, 0).Tell(here.Step{Target: h.Runs[index].Target, Claim: claimed, Report: &report})
	return report.ExitCode(), nil
}

// signalled is the status of what was ended before there was anything to tell.
const signalled = 143

// reportIn is what a run that was told to end has come to.
func reportIn(directory string, claimed campaign.Claimed) (campaign.Report, bool, error) {
	dir, err := record.OpenDirectory(directory)
	if errors.Is(err, fs.ErrNotExist) {
		return campaign.Report{}, false, nil
	}
	if err != nil {
		return campaign.Report{}, false, err
	}
	defer dir.Close()
	return campaign.ReportOf(dir, claimed)
}

// handed is the wave that the command line names, and which of its runs.
func (c *openedCampaign) handed(ctx context.Context, p process) (*campaign.Handout, int, error) {
	if c.wave == "" || c.out == "" {
		return nil, 0, errors.New("it takes --wave and --out: the file of the wave, and a folder for the run")
	}
	raw, err := given.Read(ctx, c.wave, campaign.MostWave)
	if err != nil {
		return nil, 0, fmt.Errorf("read the wave: %w", err)
	}
	h, err := campaign.ReadHandout(raw)
	if err != nil {
		return nil, 0, err
	}
	template, err := campaign.TemplateOf(c.Campaign)
	if err != nil {
		return nil, 0, err
	}
	if h.Campaign != c.Name || h.Template != template {
		return nil, 0, fmt.Errorf("wave %d is not of this campaign file: the file or its job was changed since; take those with which the wave was handed out", h.Wave)
	}
	text := cmp.Or(c.index, p.variable("JOB_COMPLETION_INDEX"))
	index, err := strconv.Atoi(text)
	if err != nil || index < 0 || index >= len(h.Runs) {
		return nil, 0, fmt.Errorf("there is no run %q in wave %d; give --index, from 0 to %d", text, h.Wave, len(h.Runs)-1)
	}
	return h, index, nil
}

// settleCampaign books what runs elsewhere came to.
func settleCampaign(ctx context.Context, p process, c *openedCampaign) (int, error) {
	return exitOK, c.withLedger(func(l *campaign.Ledger, plan *campaign.Plan) error {
		away := l.Of(c.Name).Away()
		if away == nil {
			fmt.Fprintln(p.stdout, "No wave is out.")
			return nil
		}
		reports, over, err := c.cameBack(ctx, p, *away)
		if err != nil {
			return err
		}
		booked, err := l.Return(c.Campaign, reports, func(claimed campaign.Claimed) bool {
			return c.over || slices.Contains(over, claimed.Target)
		})
		if err != nil {
			return err
		}
		told := here.NewProgress(p.stderr, 0)
		for _, r := range booked {
			target, _ := plan.Find(r.Target)
			told.Tell(here.Step{Target: target, Report: &r})
		}
		return show.Table(p.stdout, c.status(l.State, plan))
	})
}

// cameBack reads the results that the command line names: reports, and the targets that are over.
func (c *openedCampaign) cameBack(ctx context.Context, p process, away campaign.Claimed) (reports []campaign.Report, over []string, err error) {
	for _, name := range c.results {
		if info, err := os.Stat(name); err == nil && info.IsDir() {
			found, err := campaign.ReadReports(name, func(err error) {
				fmt.Fprintf(p.stderr, "agent-ci: %s; it is left alone.\n", progress.Printable(err.Error()))
			})
			if err != nil {
				return nil, nil, err
			}
			reports = append(reports, found...)
			continue
		}
		seen, err := c.cluster(ctx, p, name, away)
		if err != nil {
			return nil, nil, err
		}
		reports, over = append(reports, seen.Reports...), append(over, seen.Over...)
	}
	return reports, over, nil
}

// cluster reads what kubectl says of the wave that is out.
func (c *openedCampaign) cluster(ctx context.Context, p process, name string, away campaign.Claimed) (cluster.Seen, error) {
	raw, err := readInput(ctx, p, name)
	if err != nil {
		return cluster.Seen{}, fmt.Errorf("read what kubectl says: %w", err)
	}
	h, err := campaign.ReadWave(c.ledger, c.Name, away.Wave)
	if err != nil {
		return cluster.Seen{}, err
	}
	return cluster.Read(raw, h)
}

// readInput reads a file, or the standard input where that is -.
func readInput(ctx context.Context, p process, name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(io.LimitReader(given.Until(ctx, p.stdin), mostSeen))
	}
	return given.Read(ctx, name, mostSeen)
}
