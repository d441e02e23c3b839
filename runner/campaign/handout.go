package campaign

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/agent-ci/agent-ci/runner/campaign/spec"
)

// handoutVersion is the version of a wave's file.
const handoutVersion = 1

// The hosts of waves.
const (
	Actions    = "actions"
	Kubernetes = "kubernetes"
)

// MostWave is the size limit of a wave's file in bytes.
const MostWave = 4 << 20

// handout is the file of a wave.
type handout struct {
	Version int       `json:"version"`
	Runs    []Claimed `json:"runs"`
}

// EncodeWave returns the file of a wave. Runs are called by their places in it.
func EncodeWave(wave []Claimed) ([]byte, error) {
	raw, err := json.Marshal(handout{handoutVersion, wave})
	if err != nil {
		return nil, fmt.Errorf("encode the wave: %w", err)
	}
	return raw, nil
}

// DecodeWave reads the file of a wave.
func DecodeWave(raw []byte) ([]Claimed, error) {
	var h handout
	if err := json.Unmarshal(raw, &h); err != nil {
		return nil, fmt.Errorf("read the wave: %w", err)
	}
	if h.Version != handoutVersion {
		return nil, fmt.Errorf("the wave has version %d, and this agent-ci reads %d; hand it out again", h.Version, handoutVersion)
	}
	for i, r := range h.Runs {
		if err := checkNames(r.run()); err != nil { // they name the run directory
			return nil, fmt.Errorf("read run %d of the wave: %w; take the file as it was handed out", i, err)
		}
	}
	return h.Runs, nil
}

// WaveFile is the path of a wave's file in the folder of the ledger.
func WaveFile(wave []Claimed) string {
	return filepath.Join(wave[0].Campaign, "waves", strconv.Itoa(wave[0].Wave)+".json")
}

// KeepWave writes a claimed wave's file.
func (l *Ledger) KeepWave(wave []Claimed) error {
	raw, err := EncodeWave(wave)
	if err == nil {
		err = l.replace(WaveFile(wave), raw)
	}
	if err != nil {
		return fmt.Errorf("keep wave %d: %w", wave[0].Wave, err)
	}
	return nil
}

// OpenError reports an unsettled wave.
func OpenError(wave []Claimed) error {
	return fmt.Errorf("wave %d was handed to %s and is not settled: book its results with agent-ci campaign settle, with --over once nothing of it runs any more", wave[0].Wave, wave[0].Host)
}

// Out returns the unsettled wave of another host, including its settled runs, or nil.
func (c *Standing) Out() []Claimed {
	for _, claimed := range c.out {
		if now := c.Entry(claimed.Target.Key).Claimed; now != nil && now.Wave == claimed.Wave {
			return c.out
		}
	}
	return nil
}

var errNothingBack = errors.New("nothing came back of it")

// Return books reports of other hosts; the last report of a run counts. over reports that a run has
// ended for good. Only then a missing report is booked at the claim, and an outage counts, because
// the host may resume a run until then.
func (l *Ledger) Return(c *spec.Campaign, reports []Report, over func(Claimed) bool) (booked []Report, err error) {
	for _, claimed := range l.Of(c.Name).Out() {
		r := LostReport(claimed, errNothingBack)
		found := false
		for _, each := range reports {
			if each.of(claimed) {
				r, found = each, true
			}
		}
		if (!found || r.IsResumable()) && !over(claimed) {
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

// of says whether a report is of the run of a claim.
func (r Report) of(c Claimed) bool {
	return r.Target == c.Target.Key && r.Template == c.Template && r.Attempt == c.Attempt
}

// MatrixEntry is a run of a wave, for the strategy of a workflow's job.
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
