package start

import (
	"cmp"
	"context"
	"path/filepath"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/sshsig"
	"github.com/agent-ci/agent-ci/runner/agent/assembly"
	"github.com/agent-ci/agent-ci/runner/agent/extensions"
	"github.com/agent-ci/agent-ci/runner/agent/hooks"
	"github.com/agent-ci/agent-ci/runner/agent/team"
	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/place/egress"
	"github.com/agent-ci/agent-ci/runner/place/enclosure"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/publish/feedback"
	"github.com/agent-ci/agent-ci/runner/publish/progress"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/compare"
	"github.com/agent-ci/agent-ci/runner/task/intake"
)

// Open prepares publishing, opens the sandboxes and finds the hooks. It writes the first events, or
// run.resumed for a resumed run. Then it runs the hooks for the start and makes the agent. If the place
// is open and only the agent is missing, it returns both the place and an error.
func (s *Start) Open(ctx context.Context, p *Place) (_ *Opened, err error) {
	o := Opened{Place: p}
	if o.Key, err = s.preparePublishing(ctx, p); err != nil {
		return nil, err
	}
	if o.Sandboxes, err = s.openSandboxes(ctx, p); err != nil {
		return nil, err
	}
	if o.Hooks, err = s.findHooks(ctx, p, o.Sandboxes); err != nil {
		return nil, err
	}
	s.Hooks = o.Hooks
	if p.ResumedRun != nil {
		err = s.recordResumed(ctx, &o)
	} else {
		err = s.recordNewRun(ctx, &o)
	}
	if err != nil {
		return nil, err
	}
	if o.Hooks != nil {
		base, t := o.Workspace.Base(), o.Task
		o.HookText, err = o.Hooks.RunStart(ctx, hooks.Start{Source: t.Name, Title: t.Title, Text: t.Text, URL: t.URL, Base: base.Branch, SHA: base.SHA, Branch: t.Branch})
		if err = cmp.Or(err, o.Hooks.StopReason()); err != nil {
			return nil, err
		}
	}
	o.Agent, err = s.makeAgent(ctx, &o)
	s.Agent = o.Agent
	return &o, err
}

// makeAgent makes the agent, with its earlier agents in a resumed run. In a replay, the recording
// answers for servers and people. Otherwise questions go to the issue, if the job allows them.
func (s *Start) makeAgent(ctx context.Context, o *Opened) (*assembly.Agent, error) {
	var earlier []*transcript.Subagent
	if o.ResumedRun != nil {
		earlier = o.ResumedRun.Subagents
		if err := team.Resume(s.Record, o.Sandboxes, earlier); err != nil { // also removes what an unrecorded agent left
			return nil, err
		}
	}
	if err := extensions.KeepEmbedded(s.Record, o.Job(), o.Tools); err != nil {
		return nil, err
	}
	options := assembly.Options{
		Shared: assembly.Shared{Record: s.Record, Workspace: o.Workspace, Sandboxes: o.Sandboxes, Began: s.Began, Hooks: o.Hooks, Skills: o.Skills, Memory: o.Lessons.FromBase},
		Job:    o.Job(), Model: o.Model, Tools: o.Tools, ScriptEngine: o.ScriptEngine, TakeLesson: o.Lessons.LessonTaker(),
	}
	var order *team.RecordedOrder
	switch rec := o.Recording; {
	case rec != nil:
		options.Recorded, options.ReplayCommand, options.Ask, order = &rec.Calls, rec.Ending, rec.AskNobody(), rec.Order
	case o.Job().Task.Questions == "ask" && o.Task.Issue != nil && s.Env.Token() != "":
		options.Ask = (&assembly.IssuePeople{Forge: o.Project.Forge, Issue: *o.Task.Issue, Redact: s.Record.Redact}).Ask
	}
	return team.NewAgent(ctx, options, earlier, order)
}

// preparePublishing checks that a change can be published, before the first turn costs anything. It
// returns the key that signs the commit, or nil.
func (s *Start) preparePublishing(ctx context.Context, p *Place) (*sshsig.Key, error) {
	if p.Task.Subject != nil {
		switch p.Project.Mode {
		case publish.Nowhere:
			return nil, nil
		case publish.ToLocal:
			return nil, outcome.Stopf(outcome.InvalidInput, "no_token",
				"publish.as is %s, which needs GitHub: set GITHUB_TOKEN, or use --publish none, which writes the findings to output.json.", p.Job().Publish.As)
		}
		return nil, s.Poster(p.Assignment).RequireNotPosted(ctx)
	}
	to := s.Publisher(p.Project, p.Workspace).Destination()
	if to == nil {
		return nil, nil
	}
	return publish.Prepare(ctx, to, p.Task, p.Workspace.Base(), p.Job(), p.Publish != "")
}

// Poster returns the feedback.Poster for the issue or pull request that the run comments on.
func (s *Start) Poster(a *Assignment) feedback.Poster {
	return feedback.Poster{
		Record: s.Record, Server: a.Project.Forge, Publish: a.Job().Publish, Subject: *a.Task.Subject, Key: a.Task.Key, RunID: s.Record.ID,
		Snapshot: a.Task.InputDigest, Commanded: a.Source == nil || a.Source.IsExplicitRequest(), Link: s.Env.RunLink(), // a resumed run (source is nil) was admitted at its start
	}
}

// openSandboxes settles the confinement of commands, before any command runs or the model is asked.
// Afterwards it lets other runs use the checkout too, unless this run writes to the checkout or its branch
// is checked out there.
func (s *Start) openSandboxes(ctx context.Context, p *Place) (*confine.Sandboxes, error) {
	boxes := &confine.Sandboxes{
		Control: egress.Control{Record: s.Record, Environ: s.Env, Job: p.Job(), Rules: p.rules, Authorities: p.authorities},
		Dir:     p.Dir, BaseTree: p.baseTree(), HasHooks: len(p.Job().Hooks) > 0 || p.Operator != "",
	}
	if p.ResumedRun != nil {
		boxes.EarlierUses, boxes.Earlier.Backing = p.ResumedRun.Secrets, p.ResumedRun.WorkTreeKind()
	}
	s.Sandboxes = boxes
	if err := enclosure.Open(ctx, boxes, p.Workspace, s.Watch.Mask); err != nil {
		return boxes, err
	}
	switch {
	case p.Project.Mode == publish.Nowhere:
		return boxes, nil
	case p.Workspace.CheckedOut(p.Task.Branch): // moving the branch would change the files of other runs
		return boxes, p.Workspace.RequireAlone()
	}
	return boxes, p.Workspace.AdmitOthers(ctx)
}

// findHooks returns the run's hooks, or nil without any. A resumed run must have the operator's hooks of
// its start.
func (s *Start) findHooks(ctx context.Context, p *Place, boxes *confine.Sandboxes) (*hooks.Hooks, error) {
	if p.Recording != nil {
		return p.Recording.Answers.Hooks, nil
	}
	all, err := hooks.Find(ctx, p.Operator, p.Job(), p.Workspace.Commit(), s.Env.Home())
	if err == nil && p.ResumedRun != nil {
		err = p.ResumedRun.RequireSameOperatorHooks(all)
	}
	if err != nil {
		return nil, err
	}
	found := hooks.New(all, boxes, p.Workspace.SandboxPath())
	if found != nil && p.ResumedRun != nil {
		found.Answers = p.ResumedRun.HookAnswers
	}
	return found, nil
}

// recordNewRun writes the first events of a new run. It starts the progress comment and, for a repair, the
// comment about the attempt.
func (s *Start) recordNewRun(ctx context.Context, o *Opened) error {
	s.Watch.InitStatus(nil, o.Job().Limits.CostUSD, o.Job().Limits.Tokens)
	if err := s.RecordStart(o.Assignment); err != nil {
		return err
	}
	if err := o.Skills.Write(s.Record); err != nil { // before the events that make the run resumable
		return err
	}
	ws := o.Workspace
	if err := cmp.Or(
		s.Record.Append(o.Task.TranscriptEvent()),
		s.Record.Append(ws.Event(o.Project.Name(), o.Task.Branch, o.Job().Repository.Path)),
		s.Record.Append(o.Sandboxes.Event(ws.SandboxPathElsewhere())),
		o.Hooks.RecordList(), o.Lessons.RecordFromBase(),
	); err != nil {
		return err
	}
	s.startProgressComment(ctx, o.Place, o.Task.ProgressOn, o.Task.ProgressLike)
	if o.Repair == nil {
		return nil
	}
	err := o.Repair.Begin(ctx)
	s.beganRepair = err == nil
	return err
}

// ReportEnd reports the run's end in the comments that it began.
func (s *Start) ReportEnd(ctx context.Context, stop *outcome.Stop, done publish.Publication) {
	if s.beganComment {
		s.concludeProgress(ctx, stop, done)
	}
	if !s.beganRepair {
		return
	}
	pushed := ""
	if done.Remote != "" {
		pushed = done.Commit
	}
	s.Assignment.Repair.Conclude(ctx, stop, s.Record.Cost(), pushed)
}

// startProgressComment starts a progress comment on the issue or pull request with a number. It does nothing for
// number 0. like has the comments that look like progress comments. If one of them is an earlier run's,
// startProgressComment continues it.
func (s *Start) startProgressComment(ctx context.Context, p *Place, number int, like []forge.Comment) {
	if number == 0 || p.Project.Mode != publish.ToForge {
		return
	}
	on := progress.Thread{
		Repository: p.Project.Forge.Repository(s.Env.Get("GITHUB_REPOSITORY")), Number: number, Run: s.Env.RunLink(), Artifacts: s.Env.Artifacts(),
	}
	if earlier := intake.OwnProgress(ctx, p.Project.Forge, like); earlier != nil {
		on.Earlier = earlier.ID
	}
	s.Watch.Comment(ctx, on)
	s.beganComment = true
}

// concludeProgress adds the run's end to the progress comment.
func (s *Start) concludeProgress(ctx context.Context, stop *outcome.Stop, done publish.Publication) {
	a := s.Assignment
	end := progress.End{Stop: stop, Site: a.Project.Site(), Draft: done.Draft}
	if view, err := s.Record.View(); err == nil { // without a view the comment still has the outcome
		end.View = view
	}
	if stop.Outcome == outcome.NoChanges && done.Commit == "" && a.Task.InputDigest != "" {
		end.Trace = intake.FruitlessMark(a.Task.InputDigest, done.Base.SHA)
	}
	if err := s.Watch.Conclude(ctx, end); err != nil {
		s.Record.Warn("comment_not_written", "The progress could not be shown in a comment: %v", err)
	}
}

// RecordStart writes run.started with the warnings so far. A second call does nothing.
func (s *Start) RecordStart(a *Assignment) error {
	if s.Record.Started() {
		return nil
	}
	event := transcript.RunStarted{
		RunID: s.Record.ID, Version: s.Version, Key: a.Task.Key, Publish: cmp.Or(a.Project.Mode, a.Publish, publish.ToLocal), RunPage: s.Env.RunLink(), Artifacts: s.Env.Artifacts(), Price: a.Model.Profile.Price, OutputSchema: a.OutputSchema.Source,
	}
	if a.Script != "" {
		event.Scripted = filepath.Base(a.Script)
	}
	if a.Settings != nil {
		var err error
		if event.Job, event.ChangedSettings, err = compare.RecordJob(a.Job()); err != nil {
			return err
		}
	}
	return s.Record.Begin(event)
}

// recordResumed writes run.resumed and deletes the old result. From then on the run writes a new one.
func (s *Start) recordResumed(ctx context.Context, o *Opened) error {
	h := o.ResumedRun
	if err := o.Workspace.BeginMove(h.WorkPlace); err != nil {
		return err
	}
	if err := s.Record.Append(h.ResumeEvent(s.Version, o.Sandboxes.Confinement().WorkTree)); err != nil {
		return err
	}
	s.Resumed = true
	s.Record.StartHeartbeat()
	if err := s.Record.SyncLog(); err != nil {
		return err
	}
	s.Record.Remove(record.ResultFile)
	s.SetRecord(s.Record)
	if err := o.Hooks.RecordList(); err != nil {
		return err
	}
	s.resumeProgressComment(ctx, o.Place)
	return nil
}

// resumeProgressComment continues the progress comment of a resumed run that an event requested.
func (s *Start) resumeProgressComment(ctx context.Context, p *Place) {
	requestedOn, currentRepository := p.ResumedRun.RequestSubject(), s.Env.Get("GITHUB_REPOSITORY")
	if requestedOn.Number == 0 || !strings.EqualFold(currentRepository, requestedOn.Repository) {
		return
	}
	var comments []forge.Comment
	if on, err := p.Project.Forge.Repository(currentRepository).Issue(ctx, requestedOn.Number); err == nil {
		comments = on.Comments
	}
	s.startProgressComment(ctx, p, requestedOn.Number, comments)
}
