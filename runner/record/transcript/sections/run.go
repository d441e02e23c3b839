package sections

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/document"
)

// facts collects names with values.
type facts struct{ all document.Facts }

// add adds a fact, unless its value is empty.
func (f *facts) add(name string, value document.Text) {
	if len(value) > 0 && value.String() != "" {
		f.all = append(f.all, document.Fact{Name: name, Value: value})
	}
}

// addWords adds a fact with plain text, unless it is empty.
func (f *facts) addWords(name, value string) { f.add(name, document.Words(value)) }

// runFactsSection returns what the run used, and under which rules it ran.
func runFactsSection(s *Source) document.Section {
	f := &facts{}
	s.addUsage(f)
	s.addIdentity(f)
	for _, fact := range s.Facts {
		f.add("", document.Sentence(fact))
	}
	return section("run", "Run", f.all)
}

// lessonsOriginSection returns the run that lessons come from.
func lessonsOriginSection(s *Source) document.Section {
	f := &facts{}
	s.addIdentity(f)
	return section("run", "Run", f.all)
}

// addIdentity adds the run and its task.
func (s *Source) addIdentity(f *facts) {
	f.add("Task", s.Links.issueLink(s.View.Task.Issue))
	if base := s.View.Workspace; base.BaseSHA != "" {
		f.add("Base", document.Join(" ", document.Words(base.Base), s.Links.commitLink(base.BaseSHA)))
	}
	if started := s.View.Started; started.RunID != "" {
		f.add("agent-ci", document.Format("%s, run %s", started.Version, s.Links.runLink(started.RunID, started.RunPage)))
	}
}

// addUsage adds what the run used.
func (s *Source) addUsage(f *facts) {
	v := s.View
	f.addWords("Work", describeWork(v))
	f.addWords("Tokens", describeTokens(v.Usage))
	if cost, known := transcript.CostOf(v.AllModels()); known {
		f.add("Cost", document.Text{{Text: fmt.Sprintf("$%.4f", cost), Style: document.Amount}})
	}
	for _, a := range v.Subagents {
		f.addWords("Agent", a.Describe(v))
	}
	for _, back := range v.Fallbacks {
		f.addWords("Model", fmt.Sprintf("%s since turn %d, instead of %s (%s)", back.To, back.Turn, back.From, back.Reason))
	}
	if v.Policy.Level != "" {
		f.addWords("Confinement", describeConfinement(v.Policy))
	}
}

// describeWork returns what the run used in words: model, turns, calls, repeated requests, compactions and
// time.
func describeWork(v *transcript.View) string {
	parts := []string{transcript.CountNoun(v.Turns, "turn"), transcript.CountNoun(v.Calls, "tool call")}
	switch {
	case v.Started.Scripted != "":
		parts = append([]string{"scripted answers"}, parts...)
	case v.Model != "":
		parts = append([]string{v.Model}, parts...)
	}
	if v.Retries > 0 {
		parts = append(parts, transcript.CountNoun(v.Retries, "repeated request"))
	}
	if v.Compactions > 0 {
		parts = append(parts, transcript.CountNoun(v.Compactions, "compaction"))
	}
	if v.Finished != nil {
		parts = append(parts, transcript.FormatSeconds(v.Finished.Seconds))
	}
	return strings.Join(parts, ", ")
}

// describeTokens returns the tokens of the run in words, with cached and reasoning tokens.
func describeTokens(u transcript.Usage) string {
	words := fmt.Sprintf("%s in (%s cached", transcript.GroupThousands(u.Input), transcript.GroupThousands(u.Cached))
	if u.CacheWrite > 0 {
		words += ", " + transcript.GroupThousands(u.CacheWrite) + " written to the cache"
	}
	return words + fmt.Sprintf("), %s out (%s reasoning)", transcript.GroupThousands(u.Output), transcript.GroupThousands(u.Reasoning))
}

// describeConfinement returns how commands were confined, in a line.
func describeConfinement(p transcript.Policy) string {
	level := p.Level
	if p.Unconfined() {
		level = "none: commands ran with all rights of the user"
	}
	words := fmt.Sprintf("%s; sandbox %s, network %s", level, p.Sandbox, p.Network)
	if tree := p.DescribeWorkTree(); tree != "" {
		words += ", work tree " + tree
	}
	return words
}

// runDetailsSection returns details about the run for close readers.
func runDetailsSection(s *Source) document.Section {
	v, f := s.View, &facts{}
	if !v.StartedAt.IsZero() {
		f.addWords("Started", v.StartedAt.UTC().Format("2006-01-02 15:04:05 UTC"))
	}
	f.add("Task key", document.Mono(v.Started.Key))
	f.add("Repository", document.Mono(v.Workspace.Repository))
	f.addWords("Publish", v.Started.Publish)
	if layers := v.Policy.Layers; len(layers) > 0 {
		f.add("Layers", document.Sentence(clip.Some(layers, 20)))
	}
	if t := s.Timeline; t != nil {
		f.addWords("Time", fmt.Sprintf("the model %s, calls %s, checks %s", transcript.FormatSeconds(t.ModelSeconds), transcript.FormatSeconds(t.CallSeconds), transcript.FormatSeconds(t.CheckSeconds)))
	}
	if v.EventCount > 0 {
		f.add("Chain", document.Format("%s; SHA-256 of the last line: `%s`", transcript.CountNoun(int(v.EventCount), "event"), v.Head))
	}
	return section("details", "Details", f.all)
}

// jobBytes limits the text with all settings, in bytes.
const jobBytes = 40_000

// settingsSection returns the settings of the job that differ from the defaults, and all settings, folded.
func settingsSection(s *Source) document.Section {
	f := &facts{}
	var set map[string]any
	if json.Unmarshal(s.View.Started.ChangedSettings, &set) == nil {
		f.addSettings("", set)
	}
	var all document.Block
	var job bytes.Buffer
	raw := s.View.Started.Job
	hasJob := len(raw) > 0 && string(raw) != "null"
	if hasJob && json.Indent(&job, raw, "", "  ") == nil {
		text := job.String()
		all = document.Folds{Folds: []document.Fold{{Title: document.Words("All settings of the run"), Blocks: []document.Block{document.Code(text[:min(len(text), jobBytes)])}}}}
	}
	switch {
	case len(f.all) > 0:
		return section("settings", "Settings", paragraph("These differ from the defaults:"), f.all, all)
	case all != nil:
		return section("settings", "Settings", paragraph("All settings have their defaults."), all)
	}
	return document.Section{}
}

// addSettings adds the values of nested settings. path is the prefix of their names.
func (f *facts) addSettings(path string, values map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		switch value := values[key].(type) {
		case map[string]any:
			f.addSettings(path+key+".", value)
		default:
			f.add(path+key, document.Text{{Text: settingText(value), Style: document.Monospace, IsSentence: true}})
		}
	}
}

// settingText returns a value as people write it.
func settingText(value any) string {
	list, isList := value.([]any)
	if !isList {
		return fmt.Sprint(value)
	}
	if len(list) == 0 {
		return "none"
	}
	var parts []string
	for _, entry := range list {
		if text, isText := entry.(string); isText {
			parts = append(parts, text)
			continue
		}
		raw, _ := json.Marshal(entry) // cannot fail: the value was parsed from JSON
		parts = append(parts, string(raw))
	}
	return strings.Join(parts, ", ")
}
