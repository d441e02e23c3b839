package campaigncmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/agent-ci/agent-ci/cmd/agent-ci/internal/cli"
	"github.com/agent-ci/agent-ci/runner/campaign"
	"github.com/agent-ci/agent-ci/runner/campaign/cluster"
	"github.com/agent-ci/agent-ci/runner/campaign/here"
	"github.com/agent-ci/agent-ci/runner/campaign/pulls"
	"github.com/agent-ci/agent-ci/runner/record/boundedfile"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

const (
	// maxWaveRuns is the most runs in a wave for another host, since GitHub limits a matrix to 256
	// jobs (https://docs.github.com/en/actions/reference/limits).
	maxWaveRuns = 256
	// defaultPerHour is the default of rollout.per_hour for runs on other hosts. They cannot
	// coordinate their requests, and GitHub permits 500 creations an hour for all together.
	defaultPerHour = 100
	// maxKubectlOutput is how much of kubectl's output is read, in bytes.
	maxKubectlOutput = 256 << 20
)

// handoutHosts maps values of --format to the hosts that receive waves.
var handoutHosts = map[string]string{"matrix": campaign.Actions, "kubernetes": campaign.Kubernetes}

// handOut claims the next wave of targets and writes it for a host. If an unsettled wave has the same job and is on
// Kubernetes, which recognises a wave, handOut writes that wave again. Any other unsettled wave is an error.
func (c *openedCampaign) handOut(ctx context.Context, ledger *campaign.Ledger, host string) error {
	write, onKubernetes := c.writeMatrix, host == campaign.Kubernetes
	if onKubernetes {
		write = c.writeManifest
		if err := cluster.CheckSettings(c.Campaign, c.Variable); err != nil {
			return err
		}
	}
	plan, err := c.currentPlan(ctx, ledger)
	if err != nil {
		return showProblems(c.Process, c.file, err)
	}
	if open := ledger.Of(c.Name).UnsettledWave(); open != nil {
		sameWave := open[0].Host == host && open[0].Template == plan.Template
		if !onKubernetes || !sameWave {
			return campaign.UnsettledWaveError(open)
		}
		c.Note("Wave %d is out already; here it is again.", open[0].Wave)
		return write(open, campaign.Wait{})
	}
	next, wait, err := c.nextWave(ctx, ledger, plan)
	if err != nil {
		return err
	}
	if onKubernetes && len(next) > 0 {
		if next = next[:cluster.CountFitting(c.Name, next, c.raw, c.jobBeside())]; len(next) == 0 {
			return errors.New("the campaign file and its job leave no room for a target in what the cluster takes; make them shorter")
		}
	}
	wave, err := ledger.Claim(c.Campaign, plan, next, host)
	if err != nil {
		return err
	}
	if len(wave) > 0 {
		if err := ledger.WriteWaveFile(wave); err != nil {
			return err
		}
	}
	c.Note("%s to start.", transcript.CountNoun(len(wave), "target"))
	if wait.Why != "" {
		c.Note("The rest waits: %s.", wait.Words)
	}
	return write(wave, wait)
}

// currentPlan returns the plan of the campaign's current job. It creates a missing one.
func (c *openedCampaign) currentPlan(ctx context.Context, ledger *campaign.Ledger) (*campaign.Plan, error) {
	template, err := campaign.JobDigest(c.Campaign)
	if err != nil {
		return nil, err
	}
	if recorded := ledger.Of(c.Name); recorded.Plan == "" || recorded.Template != template {
		return c.makePlan(ctx, ledger)
	}
	return campaign.ReadPlan(c.ledger, c.Name, ledger.State)
}

// nextWave returns the targets that may start on another host. It first updates the states of pull requests.
func (c *openedCampaign) nextWave(ctx context.Context, ledger *campaign.Ledger, plan *campaign.Plan) ([]campaign.Target, campaign.Wait, error) {
	client, _, err := c.newForgeClient()
	if err == nil {
		err = pulls.Refresh(ctx, client, ledger, c.Campaign, plan)
	}
	if err != nil {
		return nil, campaign.Wait{}, err
	}
	c.Rollout.PerHour = cmp.Or(c.Rollout.PerHour, defaultPerHour)
	next, wait, skipped, err := pulls.Choose(ctx, client, ledger, c.Campaign, plan, time.Now(), maxWaveRuns)
	for _, r := range skipped {
		here.PrintReport(c.Stderr, r)
	}
	return next, wait, err
}

// writeMatrix writes the wave as one line of JSON, because an output of a step is one line.
func (c *openedCampaign) writeMatrix(wave []campaign.Claimed, wait campaign.Wait) error {
	number, file := 0, ""
	if len(wave) > 0 {
		number, file = wave[0].Wave, filepath.ToSlash(campaign.WaveFile(wave))
	}
	return json.NewEncoder(c.Stdout).Encode(map[string]any{
		"wave": number, "file": file, "targets": len(wave), "at_once": c.Rollout.AtOnce, "matrix": campaign.Matrix(wave), "wait": wait,
	})
}

// jobBeside returns the content of the campaign's separate job file, or nil if there is none.
func (c *openedCampaign) jobBeside() []byte {
	if c.JobFile == "" {
		return nil
	}
	raw, _ := ReaderBeside(c.file)(c.JobFile) // openCampaign has read the file, so an error is unlikely
	return raw
}

// writeManifest writes the wave's Kubernetes manifest for kubectl apply. It writes nothing for an empty wave.
func (c *openedCampaign) writeManifest(wave []campaign.Claimed, _ campaign.Wait) error {
	if len(wave) == 0 {
		return nil
	}
	j, err := SampleJob(c.Process, c.Campaign, c.file)
	if err != nil {
		return err
	}
	w := cluster.Wave{Campaign: c.Campaign, Runs: wave, File: c.raw, JobFile: c.jobBeside(), Publish: c.publish}
	w.SetEndpoints(j.Model.BaseURL, c.Variable)
	raw, err := cluster.Manifest(w)
	if err != nil {
		return err
	}
	_, err = c.Stdout.Write(raw)
	return err
}

// workOnTarget performs one run of a wave. It also reports a run that may not start.
func workOnTarget(ctx context.Context, c *openedCampaign) error {
	claimed, err := c.claimedRun(ctx)
	if err != nil {
		return cli.Exit(cli.ExitInvalid, err)
	}
	o, err := c.runOptions()
	if err != nil {
		return err
	}
	if o.Folder, err = filepath.Abs(c.out); err != nil {
		return fmt.Errorf("find the folder of run directories: %w", err)
	}
	o.Environ, o.Template, o.Output = withCampaignFolder(c.Environ, o.Folder), claimed.Template, c.Stderr
	o.MayStartAgain = true // on any host
	if err := c.checkClaim(claimed); err != nil {
		return cli.Exit(cli.ExitInvalid, errors.Join(err, c.writeReport(o.RefusedReport(claimed, err))))
	}
	report, _, err := here.Work(ctx, o, claimed, time.Now())
	if err != nil {
		return err
	}
	if report == nil { // interrupted
		return cli.Exit(exitSignalled, nil)
	}
	if err := c.writeReport(report); err != nil {
		return err
	}
	here.PrintReport(c.Stdout, *report)
	return cli.Exit(report.ExitCode(), nil)
}

// writeReport writes the report to the file of --report. It does nothing without that flag.
func (c *openedCampaign) writeReport(r *campaign.Report) error {
	if c.report == "" {
		return nil
	}
	raw, err := r.Encode()
	if err == nil {
		err = os.WriteFile(c.report, raw, 0o600)
	}
	if err != nil {
		return fmt.Errorf("write the report of the run: %w", err)
	}
	return nil
}

// exitSignalled is the exit status if a signal interrupts the run before it has a report (128 + SIGTERM).
const exitSignalled = 143

// claimedRun returns the run of --wave and --index. The default of --index is JOB_COMPLETION_INDEX, as in
// Kubernetes.
func (c *openedCampaign) claimedRun(ctx context.Context) (claimed campaign.Claimed, err error) {
	if c.wave == "" || c.out == "" {
		return claimed, errors.New("it takes --wave and --out: the file of the wave, and a folder for the run")
	}
	raw, err := boundedfile.Read(ctx, c.wave, campaign.MaxWaveBytes)
	if err != nil {
		return claimed, fmt.Errorf("read the wave: %w", err)
	}
	wave, err := campaign.DecodeWave(raw)
	if err != nil {
		return claimed, err
	}
	text := cmp.Or(c.index, c.Variable("JOB_COMPLETION_INDEX"))
	index, err := strconv.Atoi(text)
	if err != nil || index < 0 || index >= len(wave) {
		return claimed, fmt.Errorf("there is no run %q in the wave; give --index, from 0 to %d", text, len(wave)-1)
	}
	return wave[index], nil
}

// checkClaim returns an error if the claim was made for another campaign file or job. It also returns
// one if variables could exceed the claim.
func (c *openedCampaign) checkClaim(claimed campaign.Claimed) error {
	template, err := campaign.JobDigest(c.Campaign)
	if err != nil {
		return err
	}
	if claimed.Campaign != c.Name || claimed.Template != template {
		return fmt.Errorf("wave %d is not of this campaign file: the file or its job was changed since; take those with which the wave was handed out", claimed.Wave)
	}
	return c.checkClaimVariables()
}

// settleCampaign books the results of an open wave.
func settleCampaign(ctx context.Context, c *openedCampaign) error {
	return c.withLedger(func(l *campaign.Ledger, plan *campaign.Plan) error {
		wave := l.Of(c.Name).UnsettledWave()
		if wave == nil {
			c.Print("No wave is out.")
			return nil
		}
		reports, endedKeys, err := c.readResults(ctx, wave)
		if err != nil {
			return err
		}
		hasEnded := func(claimed campaign.Claimed) bool {
			return c.over || slices.Contains(endedKeys, claimed.Target.Key)
		}
		booked, err := l.BookReturned(c.Campaign, reports, hasEnded)
		if err != nil {
			return err
		}
		for _, r := range booked {
			here.PrintReport(c.Stderr, r)
		}
		return c.printStatus(c.status(l.State, plan))
	})
}

// readResults reads the results that the command line names: folders with reports, and outputs of kubectl. endedKeys
// lists the targets whose runs have ended for good by kubectl. A report that cannot be read is skipped with a note.
func (c *openedCampaign) readResults(ctx context.Context, wave []campaign.Claimed) (reports []campaign.Report, endedKeys []string, err error) {
	for _, name := range c.results {
		if info, err := os.Stat(name); err == nil && info.IsDir() {
			found, err := campaign.ReadReports(name, func(err error) {
				c.Note("agent-ci: %v; it is left alone.", err)
			})
			if err != nil {
				return nil, nil, err
			}
			reports = append(reports, found...)
			continue
		}
		raw, err := c.readInput(ctx, name)
		if err != nil {
			return nil, nil, fmt.Errorf("read what kubectl says: %w", err)
		}
		seen, err := cluster.ParseState(raw, wave)
		if err != nil {
			return nil, nil, err
		}
		reports, endedKeys = append(reports, seen.Reports...), append(endedKeys, seen.Ended...)
	}
	return reports, endedKeys, nil
}

// readInput reads a file, or standard input if name is -.
func (c *openedCampaign) readInput(ctx context.Context, name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(io.LimitReader(cli.CancellableInput(ctx, c.Stdin), maxKubectlOutput))
	}
	return boundedfile.Read(ctx, name, maxKubectlOutput)
}
