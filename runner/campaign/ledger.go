package campaign

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/agent-ci/agent-ci/policy/store"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/eventlog"
)

// Files in a ledger's folder. A campaign's folder holds its plan.
const (
	LedgerFile = "ledger.jsonl"
	lockFile   = "ledger.lock"
	PlanFile   = "plan.json"
)

// Event types of a ledger, each with the type of its data.
const (
	TypePlanned  transcript.Type = "campaign.planned"  // Planned
	TypeApproved transcript.Type = "campaign.approved" // Approved
	TypeResumed  transcript.Type = "campaign.resumed"  // Resumed
	TypeStopped  transcript.Type = "campaign.stopped"  // Stopped
	TypeClaimed  transcript.Type = "target.claimed"    // Claimed
	TypeSettled  transcript.Type = "target.settled"    // Settled
	TypePull     transcript.Type = "target.pull"       // PullState
)

// Planned puts a plan into effect.
type Planned struct {
	Campaign string `json:"campaign"`
	Template string `json:"template"`
	Plan     string `json:"plan"` // SHA-256 of plan.json
	Targets  int    `json:"targets"`
}

// Approved permits the targets after the pilot to run.
type Approved struct {
	Campaign string `json:"campaign"`
	Template string `json:"template"`
	By       string `json:"by"`
}

// Resumed continues a stopped campaign and lets settled targets run again.
type Resumed struct {
	Campaign string   `json:"campaign"`
	By       string   `json:"by"`
	Again    []string `json:"again"` // keys
}

// Stopped ends further starts because too many of the last runs failed for one reason.
type Stopped struct {
	Campaign string `json:"campaign"`
	Reason   string `json:"reason"` // outcome/reason of the failed runs
	Failed   int    `json:"failed"`
	Of       int    `json:"of"`
}

// Claimed reserves a run's maximum usage before it starts. Together with the campaign file, it is the complete
// input of the run on any host.
type Claimed struct {
	Campaign string `json:"campaign"`
	Target   Target `json:"target"`
	Template string `json:"template"`
	Wave     int    `json:"wave"`
	Attempt  int    `json:"attempt"` // number of the target's run with this template, from 1
	// Host is the run's host: Actions, Kubernetes, or "" for this machine.
	Host string `json:"host,omitempty"`
	Claim
}

// Settled is a run's result. Its usage replaces the claim.
type Settled struct {
	Campaign string `json:"campaign"`
	Report
}

// PullState is the state of a pull request of the campaign.
type PullState struct {
	Campaign string `json:"campaign"`
	Target   string `json:"target"`
	Number   int    `json:"number"`
	State    string `json:"state"` // open, merged, closed
}

// Report is the result of a target's run, as reported by its host.
type Report struct {
	Target      string             `json:"target"` // key
	Template    string             `json:"template"`
	Attempt     int                `json:"attempt"`
	RunID       string             `json:"run_id,omitempty"`
	Outcome     string             `json:"outcome"`
	Reason      string             `json:"reason"`
	Message     string             `json:"message,omitempty"`
	CostUSD     *float64           `json:"cost_usd"` // null if unknown: the claim counts instead
	Tokens      *int64             `json:"tokens"`   // likewise
	Commit      string             `json:"commit,omitempty"`
	Branch      string             `json:"branch,omitempty"`
	PullRequest record.PullRequest `json:"pull_request"`
	Transcript  string             `json:"transcript,omitempty"` // SHA-256 of its last line
	Host        string             `json:"host,omitempty"`
	Seconds     float64            `json:"seconds,omitempty"`
}

// Ledger is the record of all campaigns. Only one process can have it open for writing.
type Ledger struct {
	*State
	dir  string
	lock *os.File
	log  *eventlog.Log
	now  func() time.Time
}

// Open opens the ledger in a folder for writing, or creates it. The caller closes the ledger.
func Open(dir string, now func() time.Time) (*Ledger, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open the ledger: %w", err)
	}
	lock, err := acquireLock(filepath.Join(dir, lockFile), now())
	if err != nil {
		return nil, err
	}
	l := &Ledger{State: newState(), dir: dir, lock: lock, now: now}
	if err := l.open(); err != nil {
		return nil, errors.Join(err, l.lock.Close())
	}
	return l, nil
}

// acquireLock locks the file at path and writes the owner into it. The system releases the lock when the process
// ends.
func acquireLock(path string, now time.Time) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the ledger: %w", err)
	}
	if held, err := store.Lock(f); err != nil {
		by := make([]byte, 200)
		n, _ := f.ReadAt(by, 0)
		f.Close()
		if held {
			return nil, fmt.Errorf("somebody else works with this ledger (%s); wait for that to end", strings.TrimSpace(string(by[:n])))
		}
		return nil, fmt.Errorf("lock the ledger: %w", err)
	}
	host, _ := os.Hostname()
	words := fmt.Sprintf("process %d on %s since %s\n", os.Getpid(), host, now.UTC().Format(time.RFC3339))
	if err = f.Truncate(0); err == nil {
		_, err = f.WriteAt([]byte(words), 0)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock the ledger: %w", err), f.Close())
	}
	return f, nil
}

// open creates the ledger file, or reads the existing one. It returns an error for an altered ledger.
func (l *Ledger) open() (err error) {
	path, options := filepath.Join(l.dir, LedgerFile), eventlog.Options{Clock: l.now}
	if l.log, err = eventlog.Create(path, options); err == nil {
		return nil
	}
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if l.log, _, err = eventlog.Reopen(path, options); err != nil {
		return ledgerError(path, err)
	}
	if err = l.State.readEvents(path); err != nil {
		return errors.Join(err, l.log.Close())
	}
	l.head = l.log.Head()
	return nil
}

// Read returns a ledger's state, even while another process writes it. A missing ledger is empty. A broken chain is
// an error.
func Read(dir string) (*State, error) {
	s, path := newState(), filepath.Join(dir, LedgerFile)
	err := s.readEvents(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	head, broken := verifyChain(path)
	if broken != nil { // says more than an event that cannot be read
		return s, broken
	}
	s.head = head
	return s, err
}

// verifyChain verifies the digests of a ledger and returns that of its last line. An incomplete last line
// is ignored.
func verifyChain(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read the ledger: %w", err)
	}
	defer f.Close()
	head, err := eventlog.VerifyChain(f)
	if _, torn := errors.AsType[*eventlog.TornError](err); err != nil && !torn {
		return "", ledgerError(path, err)
	}
	return head, nil
}

// ledgerError describes an error of a ledger. It adds what to do about a damaged one.
func ledgerError(path string, err error) error {
	if chain, ok := errors.AsType[*eventlog.ChainError](err); ok {
		return fmt.Errorf("the ledger %s is damaged: %w; restore it from a copy, or plan anew with another --ledger", path, chain)
	}
	return fmt.Errorf("the ledger %s: %w", path, err)
}

// Close closes the ledger and releases its lock.
func (l *Ledger) Close() error { return errors.Join(l.log.Close(), l.lock.Close()) }

// appendEvents appends events of one type to the ledger, syncs them to disk, and applies them to the state.
func (l *Ledger) appendEvents(t transcript.Type, all ...any) error {
	var events []eventlog.Event
	for _, data := range all {
		event, err := l.log.Append(t, data)
		if err != nil {
			return err
		}
		events = append(events, event)
	}
	if err := l.log.Sync(); err != nil {
		return err
	}
	l.head = l.log.Head()
	for _, event := range events {
		if err := l.apply(event); err != nil {
			return err
		}
	}
	return nil
}

// Plan writes a plan to disk and puts it into effect. Nothing changes if the same plan is in effect already.
func (l *Ledger) Plan(p *Plan) error {
	raw, err := json.MarshalIndent(p, "", " ")
	if err != nil {
		return fmt.Errorf("encode the plan: %w", err)
	}
	if err := l.replaceFile(filepath.Join(p.Campaign, PlanFile), raw); err != nil {
		return fmt.Errorf("keep the plan: %w", err)
	}
	digest := record.DigestOf(raw)
	if l.Of(p.Campaign).Plan == digest {
		return nil
	}
	return l.appendEvents(TypePlanned, Planned{p.Campaign, p.Template, digest, len(p.Targets)})
}
