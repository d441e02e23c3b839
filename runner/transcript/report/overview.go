package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/runner/transcript"
)

// mostRows is the most that a list or table of the overview shows.
const mostRows = 200

// overview is what the first reading finds. Its methods are what the page says
// before the timeline.
type overview struct {
	View    *transcript.View
	limit   int
	endless map[int64]bool

	entries   int
	Problems  int
	refused   int                // calls and hosts
	hosts     int                // of these
	Refusals  []reference        // the first ones
	Patches   map[string][]int64 // the events of calls, by path
	thinking  float64            // seconds
	working   float64
	checking  float64
	lastEvent string
}

// reference is an entry named elsewhere on the page.
type reference struct {
	Seq               int64
	Tool, Topic, Rule string
}

// mostPatches is how many calls are named beside a file.
const mostPatches = 5

// note takes from an entry what the overview tells.
func (o *overview) note(e *entry) {
	o.entries++
	if e.Bad {
		o.Problems++
	}
	o.lastEvent = e.At
	if e.refused != "" {
		o.refuse(e)
	}
	switch {
	case e.Kind == "turn":
		o.thinking += e.seconds
	case e.Kind == "call":
		if !e.inCall {
			o.working += e.seconds
		}
		o.call(e)
	case e.Name == "Verification":
		o.checking += e.seconds
	}
}

func (o *overview) refuse(e *entry) {
	o.refused++
	if e.Kind != "call" {
		o.hosts++
	}
	if len(o.Refusals) < mostRows {
		o.Refusals = append(o.Refusals, reference{e.Seq, e.Name, e.Topic, e.refused})
	}
}

func (o *overview) call(e *entry) {
	if e.Bad {
		return
	}
	for _, path := range e.paths {
		if calls := o.Patches[path]; len(calls) < mostPatches && len(o.Patches) < 10*mostRows {
			o.Patches[path] = append(calls, e.Seq)
		}
	}
}

func (o *overview) Confinement() []fact {
	p := o.View.Policy
	if p.Level == "" {
		return nil
	}
	reached := field(p.Level)
	if p.Unconfined() {
		reached = "none: commands ran with all rights of the user"
	}
	all := []fact{
		{Name: "Reached", Value: reached},
		{Name: "Layers", Value: cmp.Or(layerNames(p.Layers), "none")},
		{Name: "Asked for", Value: field(p.Sandbox)},
		{Name: "Network", Value: field(p.Network)},
		{Name: "Approval", Value: field(p.Approval)},
	}
	if tree := p.WorkTreeWords(); tree != "" {
		all = append(all, fact{Name: "Work tree", Value: field(tree)})
	}
	return all
}

// layerNames are the layers whole: each is a short field, all of them are not.
func layerNames(layers []string) string {
	const most = 20
	var names []string
	for _, layer := range layers[:min(len(layers), most)] {
		names = append(names, field(layer))
	}
	return strings.Join(names, ", ")
}

func (o *overview) Refused() string {
	var what []string
	if calls := o.refused - o.hosts; calls > 0 {
		what = append(what, transcript.Count(calls, "call"))
	}
	if o.hosts > 0 {
		what = append(what, transcript.Count(o.hosts, "host"))
	}
	words := "The policy refused " + cmp.Or(strings.Join(what, " and "), "no call")
	if o.refused > len(o.Refusals) {
		words += fmt.Sprintf(", of which the first %d are shown", len(o.Refusals))
	}
	return words + "."
}

func inputOf(u transcript.Usage) string {
	words := fmt.Sprintf("%s tokens, %s of them cached", transcript.Thousands(u.Input), transcript.Thousands(u.Cached))
	if u.CacheWrite > 0 {
		words += ", " + transcript.Thousands(u.CacheWrite) + " written to the cache"
	}
	return words
}

func costOf(v *transcript.View) string {
	cost, known := transcript.CostOf(v.AllModels())
	if !known {
		return "not known: no price is recorded"
	}
	return fmt.Sprintf("$%.4f", cost)
}

// modelNames are the models of a run in the order in which they were asked.
func modelNames(models []transcript.ModelUse) string {
	var names []string
	for _, m := range models {
		names = append(names, m.Model)
	}
	return strings.Join(names, ", then ")
}

func (o *overview) Usage() []fact {
	v := o.View
	model := field(modelNames(v.Models))
	if v.Started.Scripted != "" {
		model = "scripted answers"
	}
	all := []fact{
		{Name: "Model", Value: model},
		{Name: "Input", Value: inputOf(v.Usage)},
		{Name: "Output", Value: fmt.Sprintf("%s tokens, %s of them reasoning", transcript.Thousands(v.Usage.Output), transcript.Thousands(v.Usage.Reasoning))},
		{Name: "Cost", Value: costOf(v)},
		{Name: "Model's time", Value: transcript.Duration(o.thinking)},
		{Name: "Calls' time", Value: transcript.Duration(o.working)},
		{Name: "Checks' time", Value: transcript.Duration(o.checking)},
	}
	for _, a := range v.Agents {
		all = append(all, fact{Name: "Agent", Value: field(a.Words(v))})
	}
	if v.Retries > 0 {
		all = append(all, fact{Name: "Repeated requests", Value: transcript.Thousands(int64(v.Retries))})
	}
	return slices.DeleteFunc(all, func(f fact) bool { return f.Value == "" })
}

func (o *overview) Run() []fact {
	v := o.View
	all := []fact{
		{Name: "Run", Value: field(v.Started.RunID), Link: link(v.Started.Link), Code: true},
		{Name: "agent-ci", Value: field(v.Started.Version)},
		{Name: "Task key", Value: field(v.Started.Key), Code: true},
		{Name: "Repository", Value: field(v.Workspace.Repository), Code: true},
		{Name: "Base", Value: field(v.Workspace.Base + " " + short(v.Workspace.BaseSHA)), Link: o.commit(v.Workspace.BaseSHA), Code: true},
		{Name: "Branch", Value: field(o.branch()), Code: true},
		{Name: "Publish", Value: field(v.Started.Publish)},
		{Name: "Events", Value: transcript.Thousands(v.Events)},
		{Name: "Chain's end", Value: v.Head, Code: true},
	}
	if !v.StartedAt.IsZero() {
		all = slices.Insert(all, 1, fact{Name: "Started", Value: v.StartedAt.UTC().Format("2006-01-02 15:04:05 UTC")})
	}
	return slices.DeleteFunc(all, func(f fact) bool { return f.Value == "" })
}

// branch is the branch that the run committed to; empty where it made none.
func (o *overview) branch() string {
	for _, p := range slices.Backward(o.View.Publish) {
		if p.Branch != "" {
			return p.Branch
		}
	}
	return ""
}

// commit is the page of a commit of a run that a forge knows; empty where there is none.
func (o *overview) commit(sha string) string {
	if o.View.Started.Publish != "github" && o.View.Started.Link == "" {
		return ""
	}
	return o.View.Site().Commit(sha)
}

// published has a link for each value that has a page. A commit has one once it was pushed.
func (o *overview) published(p transcript.Publish) fact {
	f := fact{Name: field(strings.ReplaceAll(p.Step, "_", " "))}
	add := func(value, link string) {
		if value != "" {
			f.Parts = append(f.Parts, fact{Value: field(value), Link: link})
		}
	}
	add(p.Operation, "")
	add(p.URL, link(p.URL))
	add(p.Branch, "")
	add(short(p.HeadSHA), o.pushed(p.HeadSHA))
	remote := ""
	if home := o.View.Site().Home(); home == strings.TrimSuffix(p.Remote, ".git") {
		remote = home
	}
	add(p.Remote, remote)
	return f
}

// pushed is the page of a commit that was pushed; empty for one that was not.
func (o *overview) pushed(sha string) string {
	pushed := slices.ContainsFunc(o.View.Publish, func(p transcript.Publish) bool { return p.Step != "commit" && p.HeadSHA == sha })
	if !pushed || o.View.Started.Publish != "github" {
		return ""
	}
	return o.commit(sha)
}
