package campaign

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/agent-ci/agent-ci/runner/given"
	"github.com/agent-ci/agent-ci/runner/job"
)

// handoutVersion is the version of a wave's file.
const handoutVersion = 1

// Whom waves are handed to.
const (
	Actions    = "actions"
	Kubernetes = "kubernetes"
)

// Handout is a wave whose runs are made elsewhere. With the campaign file it is all that a run needs.
type Handout struct {
	Version  int      `json:"version"`
	Campaign string   `json:"campaign"`
	Template string   `json:"template"`
	Wave     int      `json:"wave"`
	Host     string   `json:"host"`
	Runs     []Handed `json:"runs"`
}

// Handed is a run of a handout, which is called by its place there.
type Handed struct {
	Target  Target `json:"target"`
	Attempt int    `json:"attempt"`
	Claim   Claim  `json:"claim"`
}

// Claimed is the claim of a run.
func (h *Handout) Claimed(i int) Claimed {
	r := h.Runs[i]
	return Claimed{h.Campaign, r.Target.Key, h.Template, h.Wave, r.Attempt, h.Host, r.Claim}
}

// OpenError says that a wave which was handed out is not settled.
type OpenError struct {
	Host string
	Wave int
}

func (e *OpenError) Error() string {
	return fmt.Sprintf("wave %d was handed to %s and is not settled: book what it came to with agent-ci campaign settle, with --over once nothing of it runs any more", e.Wave, e.Host)
}

// Away is the first claim whose run is elsewhere; nil where none is.
func (c *Standing) Away() *Claimed {
	for _, claimed := range c.Unsettled() {
		if claimed.Host != "" {
			return &claimed
		}
	}
	return nil
}

// HandOut claims a wave for runs elsewhere. Its file is on the disk before the claims are, and so it
// can be read again wherever there is a claim. The error is an *OpenError where one is open.
func (l *Ledger) HandOut(c *job.Campaign, p *Plan, targets []Target, host string) (*Handout, error) {
	if away := l.Of(c.Name).Away(); away != nil {
		return nil, &OpenError{away.Host, away.Wave}
	}
	claims, err := l.claims(c, p, targets, host)
	if err != nil || len(claims) == 0 {
		return &Handout{Runs: []Handed{}}, err
	}
	h := &Handout{Version: handoutVersion, Campaign: c.Name, Template: p.Template, Wave: claims[0].Wave, Host: host}
	for i, claimed := range claims {
		h.Runs = append(h.Runs, Handed{targets[i], claimed.Attempt, claimed.Claim})
	}
	if err := l.keepWave(h); err != nil {
		return nil, err
	}
	return h, l.writeClaims(claims)
}

func (l *Ledger) keepWave(h *Handout) error {
	raw, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("encode wave %d: %w", h.Wave, err)
	}
	if err := replace(filepath.Join(l.dir, WaveFile(h.Campaign, h.Wave)), raw); err != nil {
		return fmt.Errorf("keep wave %d: %w", h.Wave, err)
	}
	return nil
}

// WaveFile is where in a ledger's folder a wave that was handed out is kept.
func WaveFile(campaign string, wave int) string {
	return filepath.Join(campaign, "waves", strconv.Itoa(wave)+".json")
}

// Again is the wave that was handed to a host and is not settled; nil where there is none. The error
// is an *OpenError where another host has it, or where it was of another job.
func (l *Ledger) Again(c *job.Campaign, p *Plan, host string) (*Handout, error) {
	away := l.Of(c.Name).Away()
	if away == nil {
		return nil, nil
	}
	if away.Host != host || away.Template != p.Template {
		return nil, &OpenError{away.Host, away.Wave}
	}
	h, err := ReadWave(l.dir, c.Name, away.Wave)
	if err != nil {
		return nil, err
	}
	all := len(h.Runs)
	h.Runs = slices.DeleteFunc(h.Runs, func(r Handed) bool { return !slices.Contains(l.Of(c.Name).Entry(r.Target.Key).Waves, h.Wave) })
	if len(h.Runs) == all {
		return h, nil
	}
	return h, l.keepWave(h) // who claimed it was killed over that, and told nobody of it
}

// MostWave is how many bytes of the file of a wave are read.
const MostWave = 4 << 20

// ReadWave reads a wave of a campaign in the folder of its ledger.
func ReadWave(dir, campaign string, wave int) (*Handout, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("read wave %d: %w", wave, err)
	}
	defer root.Close()
	raw, err := given.ReadIn(root, WaveFile(campaign, wave), MostWave)
	if err != nil {
		return nil, fmt.Errorf("read wave %d: %w", wave, err)
	}
	return ReadHandout(raw)
}

// ReadHandout reads the file of a wave.
func ReadHandout(raw []byte) (*Handout, error) {
	h := new(Handout)
	if err := json.Unmarshal(raw, h); err != nil {
		return nil, fmt.Errorf("read the wave: %w", err)
	}
	if h.Version != handoutVersion {
		return nil, fmt.Errorf("the wave has version %d, and this agent-ci reads %d; hand it out again", h.Version, handoutVersion)
	}
	for i, r := range h.Runs {
		if filepath.Base(r.Target.Key) != r.Target.Key { // it names the run directory
			return nil, fmt.Errorf("run %d of the wave has the key %q, which no target has; take the file as it was handed out", i, r.Target.Key)
		}
	}
	return h, nil
}

var errNothingBack = errors.New("nothing came back of it")

// Return books what runs elsewhere came to, by the reports that came back; of two for a run the last
// one holds. over says that none goes on, so that what told nothing is booked at its claim, and what an
// outage ended by its report: until then its host may go on with it.
func (l *Ledger) Return(c *job.Campaign, reports []Report, over func(Claimed) bool) (booked []Report, err error) {
	told := map[Claimed]Report{} // by claims without all that a report does not have
	for _, r := range reports {
		told[Claimed{Target: r.Target, Template: r.Template, Attempt: r.Attempt}] = r
	}
	for _, claimed := range l.Of(c.Name).Unsettled() {
		if claimed.Host == "" {
			continue
		}
		r, is := told[Claimed{Target: claimed.Target, Template: claimed.Template, Attempt: claimed.Attempt}]
		switch {
		case is && (!r.MayGoOn() || over(claimed)):
		case !is && over(claimed):
			r = Lost(claimed, errNothingBack)
		default:
			continue
		}
		if err := l.Settle(c, r); err != nil {
			return booked, err
		}
		booked = append(booked, r)
	}
	return booked, nil
}

// Matrix is a wave for the strategy of a workflow's job.
type Matrix struct {
	Include []MatrixEntry `json:"include"`
}

// MatrixEntry is a run of it.
type MatrixEntry struct {
	Index      int    `json:"index"`
	Target     string `json:"target"` // key
	Repository string `json:"repository"`
}

// Matrix tells the runs of a wave.
func (h *Handout) Matrix() Matrix {
	m := Matrix{Include: []MatrixEntry{}}
	for i, r := range h.Runs {
		m.Include = append(m.Include, MatrixEntry{i, r.Target.Key, r.Target.Repository})
	}
	return m
}
