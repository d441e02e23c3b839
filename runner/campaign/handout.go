package campaign

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/agent-ci/agent-ci/policy/plainjson"
	"github.com/agent-ci/agent-ci/runner/campaign/spec"
)

// handoutVersion is the version of the wave file format.
const handoutVersion = 1

// Hosts that run waves.
const (
	Actions    = "actions"
	Kubernetes = "kubernetes"
)

// MaxWaveBytes is the size limit of a wave file, in bytes.
const MaxWaveBytes = 4 << 20

// handout is the content of a wave file.
type handout struct {
	Version int       `json:"version"`
	Runs    []Claimed `json:"runs"`
}

// EncodeWave returns the wave file. A run's number is its index in the wave.
func EncodeWave(wave []Claimed) ([]byte, error) {
	raw, err := json.Marshal(handout{handoutVersion, wave})
	if err != nil {
		return nil, fmt.Errorf("encode the wave: %w", err)
	}
	return raw, nil
}

// DecodeWave parses a wave file.
func DecodeWave(raw []byte) ([]Claimed, error) {
	var h handout
	if err := plainjson.Unmarshal(raw, &h); err != nil {
		return nil, fmt.Errorf("read the wave: %w", err)
	}
	if h.Version != handoutVersion {
		return nil, fmt.Errorf("the wave has version %d, and this agent-ci reads %d; hand it out again", h.Version, handoutVersion)
	}
	for i, r := range h.Runs {
		if err := checkNames(r.identity()); err != nil { // names become the name of the run directory
			return nil, fmt.Errorf("read run %d of the wave: %w; take the file as it was handed out", i, err)
		}
	}
	return h.Runs, nil
}

// WaveFile returns the path of a wave file, relative to the ledger's folder.
func WaveFile(wave []Claimed) string {
	return filepath.Join(wave[0].Campaign, "waves", strconv.Itoa(wave[0].Wave)+".json")
}

// WriteWaveFile writes the file of a claimed wave.
func (l *Ledger) WriteWaveFile(wave []Claimed) error {
	raw, err := EncodeWave(wave)
	if err == nil {
		err = l.replaceFile(WaveFile(wave), raw)
	}
	if err != nil {
		return fmt.Errorf("keep wave %d: %w", wave[0].Wave, err)
	}
	return nil
}

// UnsettledWaveError returns the error for a wave whose results are not booked yet.
func UnsettledWaveError(wave []Claimed) error {
	return fmt.Errorf("wave %d was handed to %s and is not settled: book its results with agent-ci campaign settle, with --over once nothing of it runs any more", wave[0].Wave, wave[0].Host)
}

// UnsettledWave returns the wave on another host that has an unsettled run, with its settled runs too. It returns nil if
// there is no such wave.
func (c *CampaignState) UnsettledWave() []Claimed {
	for _, claimed := range c.handedOut {
		if current := c.TargetState(claimed.Target.Key).Claimed; current != nil && current.Wave == claimed.Wave {
			return c.handedOut
		}
	}
	return nil
}

var errNoReport = errors.New("nothing came back of it")

// BookReturned books the reports of the open wave, which ran on another host, and returns those that it
// booked. The last report of a run counts. over reports whether a run has ended for good. Until then the host may
// resume a run that has no report, or a failure that can be resumed, so BookReturned waits. A run that is over
// without a report is booked at its claim.
func (l *Ledger) BookReturned(c *spec.Campaign, reports []Report, over func(Claimed) bool) (booked []Report, err error) {
	for _, claimed := range l.Of(c.Name).UnsettledWave() {
		r := LostReport(claimed, errNoReport)
		found := false
		for _, each := range reports {
			if each.isReportOf(claimed) {
				r, found = each, true
			}
		}
		mayContinue := !found || r.IsResumable()
		if mayContinue && !over(claimed) {
			continue
		}
		settled, err := l.Settle(c, r)
		if err != nil {
			return booked, err
		}
		if settled {
			booked = append(booked, r)
		}
	}
	return booked, nil
}

// isReportOf reports whether r is the report of the run that c claims.
func (r Report) isReportOf(c Claimed) bool {
	return r.Target == c.Target.Key && r.Template == c.Template && r.Attempt == c.Attempt
}

// MatrixEntry is a run of a wave in the matrix of a workflow's job.
type MatrixEntry struct {
	Index      int    `json:"index"`
	Target     string `json:"target"` // key
	Repository string `json:"repository"`
}

// Matrix returns the runs of a wave as the include list of a matrix.
func Matrix(wave []Claimed) map[string][]MatrixEntry {
	include := []MatrixEntry{}
	for i, c := range wave {
		include = append(include, MatrixEntry{i, c.Target.Key, c.Target.Repository})
	}
	return map[string][]MatrixEntry{"include": include}
}
