package learn

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/tools"
)

// Kind is what a finding is about.
type Kind string

// The kinds, in the order in which findings are told.
const (
	FlakyCheck     Kind = "flaky_check"
	CheckTime      Kind = "check_time"
	RefusedHost    Kind = "refused_host"
	MissingProgram Kind = "missing_program"
	FailedSetup    Kind = "failed_setup"
)

var kinds = []Kind{FlakyCheck, CheckTime, RefusedHost, MissingProgram, FailedSetup}

// Finding is something that runs show.
type Finding struct {
	Kind    Kind     `json:"kind"`
	Subject string   `json:"subject"` // the check, the host and port, the program, the setup command
	In      []string `json:"in"`      // ids of the runs that show it, in their order
	Of      int      `json:"of"`      // runs that could have: all, or those in which the check ran
	Median  float64  `json:"median_seconds,omitempty"`
	Longest float64  `json:"longest_seconds,omitempty"`
}

// Learnt is what came of looking at runs.
type Learnt struct {
	Runs     []string  `json:"runs"` // ids, the oldest first
	Findings []Finding `json:"findings"`

	newest  time.Time
	renamed map[string]bool // checks that are shown by another name than their own
}

// Day is that of the newest run, as 2006-01-02.
func (l *Learnt) Day() string { return l.newest.UTC().Format(time.DateOnly) }

// Bounds of what is kept of records.
const (
	mostSubjects  = 50 // of each kind
	subjectWidth  = 120
	outputWatched = 64 << 10 // bytes of the output of a call
)

// From looks at the runs in some directories. The same runs give the same, in whatever order they
// are named; one that is named twice counts once.
func From(directories []string) (*Learnt, error) {
	var seen []*seenRun
	for _, path := range directories {
		run, err := look(path)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(seen, func(s *seenRun) bool { return s.id == run.id }) {
			seen = append(seen, run)
		}
	}
	slices.SortFunc(seen, func(a, b *seenRun) int { return cmp.Or(a.began.Compare(b.began), cmp.Compare(a.id, b.id)) })
	return fold(seen), nil
}

// seenRun is what one run shows.
type seenRun struct {
	id    string
	began time.Time
	shows map[Kind]map[string]bool
	took  map[string][]float64 // seconds of each run of a check
	// renamed are checks that are shown by another name than their own.
	renamed map[string]bool
}

func look(path string) (*seenRun, error) {
	dir, err := record.OpenDirectory(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	s := &seenRun{shows: map[Kind]map[string]bool{}, took: map[string][]float64{}, renamed: map[string]bool{}}
	view, err := dir.Survey(func(_ *transcript.View, e transcript.Event) error { return s.take(e) })
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if s.id, s.began = shown(view.Started.RunID), view.StartedAt; s.id == "" {
		return nil, fmt.Errorf("%s: its run had not begun: there is nothing to learn from it", path)
	}
	return s, nil
}

func (s *seenRun) show(kind Kind, subject string) {
	if subject = shown(subject); subject == "" {
		return
	}
	if s.shows[kind] == nil {
		s.shows[kind] = map[string]bool{}
	}
	if len(s.shows[kind]) < mostSubjects {
		s.shows[kind][subject] = true
	}
}

// shown is a name of strangers on one line of bounded length, of characters that can be seen.
func shown(name string) string {
	name = strings.Join(strings.Fields(tools.Visible(name, subjectWidth)), " ")
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return -1
	}, name)
}

// take notes what an event shows. Of types that it does not know it learns nothing.
func (s *seenRun) take(e transcript.Event) error {
	take := map[transcript.Type]func(json.RawMessage) error{
		transcript.TypeVerify: decoded(s.verify), transcript.TypeNetwork: decoded(s.network),
		transcript.TypeSetup: decoded(s.setup), transcript.TypeToolFinished: decoded(s.call),
	}[e.Type]
	if take == nil {
		return nil
	}
	if err := take(e.Data); err != nil {
		return fmt.Errorf("transcript event %d (%s): %w", e.Seq, e.Type, err)
	}
	return nil
}

func decoded[T any](take func(T)) func(json.RawMessage) error {
	return func(raw json.RawMessage) error {
		var data T
		if err := json.Unmarshal(raw, &data); err != nil {
			return err
		}
		take(data)
		return nil
	}
}

func (s *seenRun) verify(d transcript.Verify) {
	for _, row := range d.Rows {
		if row.From != "" { // an earlier run's
			continue
		}
		if row.Before == transcript.Flaky && d.Attempt == 0 || row.After == transcript.Flaky {
			s.show(FlakyCheck, row.Name)
		}
		name := shown(row.Name)
		if name != row.Name {
			s.renamed[name] = true
		}
		for _, run := range row.Runs {
			if _, known := s.took[name]; known || len(s.took) < mostSubjects {
				s.took[name] = append(s.took[name], run.Seconds)
			}
			if run.ExitCode == exitNotFound {
				s.missing(row.Tail)
			}
		}
	}
}

func (s *seenRun) network(d transcript.Network) {
	if !d.Allowed {
		s.show(RefusedHost, d.Target)
	}
}

func (s *seenRun) setup(d transcript.Setup) {
	if d.ExitCode == 0 {
		return
	}
	s.show(FailedSetup, d.Name)
	if d.ExitCode == exitNotFound {
		s.missing(d.Tail)
	}
}

// call notes programs that a command of the agent did not find.
func (s *seenRun) call(d transcript.ToolFinished) {
	if tools.RunsCommands(d.Tool) && d.Failed {
		s.missing(d.Output)
	}
}

// exitNotFound is the status of a shell for a program that is not there.
const exitNotFound = 127

// notFound is how shells say that: bash: line 1: jq: command not found; sh: 1: jq: not found.
var notFound = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^[^\n]{0,200}?: (?:line )?\d+: ([A-Za-z0-9][A-Za-z0-9._+-]{0,63}): (?:command )?not found$|^[^\n: ]{1,200}: ([A-Za-z0-9][A-Za-z0-9._+-]{0,63}): command not found$`)
})

func (s *seenRun) missing(output string) {
	output = output[:min(len(output), outputWatched)]
	for _, match := range notFound().FindAllStringSubmatch(output, mostSubjects) {
		s.show(MissingProgram, cmp.Or(match[1], match[2]))
	}
}

// fold counts what runs show, in a fixed order.
func fold(seen []*seenRun) *Learnt {
	l := &Learnt{Runs: []string{}, Findings: []Finding{}, renamed: map[string]bool{}}
	for _, s := range seen {
		maps.Copy(l.renamed, s.renamed)
		l.Runs = append(l.Runs, s.id)
		if s.began.After(l.newest) {
			l.newest = s.began
		}
	}
	for _, kind := range kinds {
		for _, subject := range subjectsOf(seen, kind) {
			l.Findings = append(l.Findings, finding(seen, kind, subject))
		}
	}
	return l
}

func subjectsOf(seen []*seenRun, kind Kind) []string {
	var all []string
	for _, s := range seen {
		if kind == CheckTime {
			for name := range s.took {
				all = append(all, name)
			}
		}
		for subject := range s.shows[kind] {
			all = append(all, subject)
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	return all[:min(len(all), mostSubjects)]
}

func finding(seen []*seenRun, kind Kind, subject string) Finding {
	f := Finding{Kind: kind, Subject: subject, In: []string{}, Of: len(seen)}
	var took []float64
	ran := 0
	for _, s := range seen {
		took = append(took, s.took[subject]...)
		if len(s.took[subject]) > 0 {
			ran++
		}
		if s.shows[kind][subject] || kind == CheckTime && len(s.took[subject]) > 0 {
			f.In = append(f.In, s.id)
		}
	}
	if kind == FlakyCheck || kind == CheckTime {
		f.Of = max(ran, len(f.In))
	}
	if kind == CheckTime {
		slices.Sort(took)
		f.Median, f.Longest = took[len(took)/2], took[len(took)-1]
	}
	return f
}

// Sentence tells a finding in words.
func (f Finding) Sentence() string {
	runs := transcript.Count(len(f.In), "run")
	of := fmt.Sprintf("%d of %s", len(f.In), transcript.Count(f.Of, "run"))
	return map[Kind]string{
		FlakyCheck:     fmt.Sprintf("The check %q is flaky: in %s it failed and passed on the same tree.", f.Subject, of),
		CheckTime:      fmt.Sprintf("The check %q takes %s in the median of %s, and %s at most.", f.Subject, seconds(f.Median), runs, seconds(f.Longest)),
		RefusedHost:    fmt.Sprintf("Commands asked for %s, which policy.network refuses, in %s.", f.Subject, of),
		MissingProgram: fmt.Sprintf("The program %s was not found in %s: setup does not install it.", f.Subject, of),
		FailedSetup:    fmt.Sprintf("The setup command %q failed in %s.", f.Subject, of),
	}[f.Kind]
}

// seconds rounds a time, so that one run more does not make another sentence.
func seconds(s float64) string {
	if s < 1 {
		return "less than 1 s"
	}
	return fmt.Sprintf("%.0f s", s)
}

// MostEvidence is how many runs a finding names as its evidence: the newest.
const MostEvidence = 5

// evidence names what shows a finding: the check, where it is shown by its own name, or runs.
func (l *Learnt) evidence(f Finding) []string {
	if (f.Kind == FlakyCheck || f.Kind == CheckTime) && !l.renamed[f.Subject] {
		return []string{"check:" + f.Subject}
	}
	var all []string
	for _, id := range f.In[max(0, len(f.In)-MostEvidence):] {
		all = append(all, "run:"+id)
	}
	return all
}
