package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/secrets"
	"github.com/agent-ci/agent-ci/runner/agent"
	"github.com/agent-ci/agent-ci/runner/confine"
	"github.com/agent-ci/agent-ci/runner/given"
	"github.com/agent-ci/agent-ci/runner/model"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/settings"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/command"
	"github.com/agent-ci/agent-ci/tools/files"
	"github.com/agent-ci/agent-ci/tools/patch"
	"github.com/agent-ci/agent-ci/tools/plan"
)

// meetModel finds out who answers: a scripted session or the API. It asks
// nothing yet.
func (r *run) meetModel(ctx context.Context) error {
	if short := r.rec.Redactor().Short(); len(short) > 0 {
		r.rec.Warn("short_secret", "%s: the value is shorter than %d characters and is not searched for in outputs.", strings.Join(short, ", "), secrets.MinLength)
	}
	if r.options.Replay != "" {
		return r.readScript(ctx)
	}
	m := r.job.Model
	key := r.env.Get(m.APIKeyEnv)
	if key == "" && m.APIKeyEnv != "" {
		return outcome.Stopf(outcome.InvalidInput, "no_api_key",
			"There is no key for the model: set %s, or name another variable with model.api_key_env.", m.APIKeyEnv)
	}
	base := m.BaseURL
	if base == "" {
		base = r.env.Get("OPENAI_BASE_URL")
	}
	api, err := r.speak(model.Endpoint{
		BaseURL: base, APIKey: key, Headers: m.Headers, Query: m.Query, UserAgent: "agent-ci/" + r.options.Version, Idle: time.Duration(m.Idle),
	})
	if err != nil {
		return outcome.Stopf(outcome.InvalidInput, "base_url", "%s; give a URL like https://api.openai.com/v1.", outcome.Sentence(err.Error())).Because(err)
	}
	r.model = r.retrying(api)
	return r.knowModel()
}

// mostScript is how many bytes a scripted session may have.
const mostScript = 64 << 20

func (r *run) readScript(ctx context.Context) error {
	raw, err := given.Read(ctx, r.options.Replay, mostScript)
	if err == nil && len(raw) > mostScript {
		err = fmt.Errorf("it has more than %d bytes", mostScript)
	}
	if err != nil {
		return settings.NotReadable(r.options.Replay, err)
	}
	script, err := model.ReadScript(filepath.Base(r.options.Replay), bytes.NewReader(raw))
	if err != nil {
		return outcome.Stopf(outcome.InvalidInput, "scripted_session", "%s.", outcome.Sentence(err.Error())).Because(err)
	}
	retrying := r.retrying(script)
	retrying.First = time.Millisecond
	r.model = retrying
	return r.knowModel()
}

// toolbox is what the agent works with until its change is taken: the tools,
// and the processes that they started.
type toolbox struct {
	sandbox    *sandbox.Sandbox
	commands   *command.Tools
	root       *os.Root // the working directory
	registry   *tools.Registry
	dispatcher *tools.Dispatcher
}

// equip makes the tools. Each attempt has new ones: those of the last attempt
// died with its processes.
func (r *run) equip(ctx context.Context) error {
	dir := r.workDir()
	root, err := r.openWorkDir(dir)
	if err != nil {
		return err
	}
	suits, ignored := toolsetOf(r.profile, r.job.Model.Tools), r.ignored(ctx)
	outputs := &tools.Outputs{Store: outputStore{r.rec.Directory}, Redact: r.rec.Redact}
	box := sandbox.Later(ctx, r.boxes.Options(confine.Agent()))
	view := r.boxes.View()
	patcher := patch.New(patch.Options{Dir: dir, Root: root, Offer: suits.patch, View: view, Protect: r.whyProtected, Ignored: ignoredFile(ignored, dir), Keep: r.keepPatch, Journal: r.journalPatch(root, view)})
	commands := command.New(command.Options{Sandbox: box, Outputs: outputs, Dir: dir, Env: r.boxes.AgentEnv(), Programs: r.rec.Join(programsFolder), Shell: suits.shell, Patch: r.patchInCommand(patcher), Judge: r.boxes.Judge()})
	var all []tools.Tool
	all = append(all, plan.New(r.takePlan))
	all = append(all, files.New(files.Options{Dir: dir, Root: root, Outputs: r.rec.Join(record.OutputsFolder), Checkout: ignored, View: view})...)
	all = append(all, commands.All()...)
	all = append(all, patcher, r.questionTools())
	registry := tools.New(all...)
	r.tools = &toolbox{sandbox: box, commands: commands, root: root, registry: registry}
	if err := registry.Restrict(tools.Access{Allow: r.job.Tools.Allow, Deny: r.job.Tools.Deny}); err != nil {
		return outcome.Stopf(outcome.InvalidInput, "unknown_tool", "%s.", outcome.Sentence(err.Error())).Because(err)
	}
	if registry.Denial(patchTool) == "" {
		r.linkPatchTool()
	}
	r.tools.dispatcher = &tools.Dispatcher{Registry: registry, Outputs: outputs, Observer: r.conversation, Offered: suits.offered(r.offeredBesides())}
	if r.job.Policy.Network.Listed() {
		r.tools.dispatcher.Hooks = append(r.tools.dispatcher.Hooks, r.boxes.Hosts())
	}
	r.conversation.Tools = r.tools.dispatcher
	return nil
}

// openWorkDir opens the working directory. Before a snapshot was taken no command
// of the agent can have made it unreadable.
func (r *run) openWorkDir(dir string) (*os.Root, error) {
	root, err := os.OpenRoot(dir + "/") // which waits for no pipe
	if errors.Is(err, fs.ErrPermission) && r.snapshot != nil {
		return nil, unreadable(dir, err)
	}
	if err != nil {
		return nil, fmt.Errorf("open the working directory: %w", err)
	}
	return root, nil
}

// ignored says what searches and listings leave out: what git would not commit.
// An index that can't be read ends the run elsewhere; here patterns decide alone.
func (r *run) ignored(ctx context.Context) files.Checkout {
	return files.Checkout{
		Top: r.checkout.Root(), Exclude: r.checkout.Exclude(), IgnoreCase: r.checkout.IgnoresCase(),
		Tracked: sync.OnceValue(func() []string {
			tracked, _ := r.checkout.Tracked(ctx)
			return tracked
		}),
	}
}

// ignoredFile says of a file below dir whether git ignores it. A file of which that
// can't be found out is not said to be.
func ignoredFile(checkout files.Checkout, dir string) func(name string) bool {
	return func(name string) bool {
		ignored, err := checkout.Ignores(dir, name)
		return err == nil && ignored
	}
}

// close ends what the agent's commands left running.
func (t *toolbox) close() error {
	t.commands.Close()
	err := t.sandbox.Close()
	_ = t.root.Close()
	return err
}

// patchTool is the name of the tool that applies patches, and of the program
// that does the same for commands.
const patchTool = "apply_patch"

// patchInCommand applies what a command would have applied, unless the job
// switches the tool off.
func (r *run) patchInCommand(p *patch.Patcher) func(ctx context.Context, dir, text string) (tools.Result, error) {
	return func(ctx context.Context, dir, text string) (tools.Result, error) {
		if words := r.tools.registry.Denial(patchTool); words != "" {
			return tools.Refuse(words), nil
		}
		return p.Apply(ctx, dir, text)
	}
}

// keepPatch is called by one goroutine at a time: a call that mutates runs
// alone.
func (r *run) keepPatch(text string) error {
	r.patches++
	return r.rec.Write(patchName(r.patches), []byte(r.rec.Redact(text)))
}

// keepsProtected says that no change of a protected path is published.
func (r *run) keepsProtected() bool {
	return r.job.Policy.OnProtected == "drop" || r.job.Policy.Change.Protected == "fail"
}

// whyProtected tells the model why a path below the working directory must
// stay as it is: a change of it would not be published.
func (r *run) whyProtected(name string) string {
	if !r.keepsProtected() {
		return ""
	}
	full := path.Join(r.job.Repository.Path, name)
	protected, err := policy.Protected(r.job.Policy.Protect, []string{full})
	if err != nil || len(protected) == 0 { // a bad pattern ends the run when the change is judged
		return ""
	}
	return full + " is protected by the job (policy.protect): a change that touches it is not published. Leave it as it is and say in your last message what should change there."
}

// outputStore keeps whole outputs in the run directory.
type outputStore struct{ dir *record.Directory }

func (s outputStore) Create(name string) (io.WriteCloser, string, error) {
	f, err := s.dir.Create(name)
	if err != nil {
		return nil, "", err
	}
	return f, s.dir.Join(name), nil
}

func (r *run) takePlan(p plan.Plan) error {
	taken := transcript.Plan{Explanation: p.Explanation}
	for _, step := range p.Steps {
		taken.Steps = append(taken.Steps, transcript.PlanStep{Step: step.Step, Status: string(step.Status)})
	}
	r.plan = taken
	return r.rec.Append(transcript.TypePlan, taken)
}

// meetAgent makes the conversation, with what the model is told of its tools.
// Nothing is said yet.
func (r *run) meetAgent(ctx context.Context) error {
	if !r.joins() {
		guides, err := agent.ReadGuides(r.job.Repository.Path, r.readGuide)
		if err != nil {
			return err
		}
		r.guides = guides
	}
	r.conversation = r.newConversation()
	if err := r.equip(ctx); err != nil {
		return err
	}
	definitions, err := r.definitions()
	if err != nil {
		return err
	}
	r.endProcesses()
	r.conversation.Settings = r.modelSettings(definitions)
	return nil
}

// briefAgent begins the conversation: the facts of the run, how the checks are
// before any change among them, the repository's guides, the task.
func (r *run) briefAgent(ctx context.Context) error {
	briefing := r.briefing(r.guides)
	further, err := r.furtherGuides(ctx)
	if err != nil {
		return err
	}
	briefing.Further = further
	briefing.Task.Images, briefing.Task.Missing = r.taskImages(ctx)
	input, err := briefing.Input()
	if err != nil {
		return err
	}
	r.conversation.Begin(input...)
	return nil
}

// definitions are the tools that the model is told of: those that run here, and
// those that the job lets the API run.
func (r *run) definitions() ([]json.RawMessage, error) {
	definitions, err := agent.Definitions(r.tools.registry.Specs(r.tools.dispatcher.Offered))
	if err != nil {
		return nil, err
	}
	for _, tool := range r.job.Tools.Hosted {
		raw, err := json.Marshal(tool)
		if err != nil {
			return nil, fmt.Errorf("encode tools.hosted: %w", err)
		}
		definitions = append(definitions, raw)
	}
	return definitions, nil
}

// furtherGuides are the AGENTS.md files below the working directory, from there.
// Of the checkout of a person's pull request none is named: its guides are those
// of the base.
func (r *run) furtherGuides(ctx context.Context) ([]string, error) {
	if r.joins() {
		return nil, nil
	}
	tracked, err := r.checkout.TrackedNamed(ctx, agent.GuideName)
	if err != nil {
		return nil, err
	}
	folder := strings.TrimPrefix(path.Clean(r.job.Repository.Path)+"/", "./")
	var further []string
	for _, name := range tracked {
		if below, inside := strings.CutPrefix(name, folder); inside && below != agent.GuideName {
			further = append(further, below)
		}
	}
	return further, nil
}

// readGuide reads a file of the base commit. One that no model could read to
// its end is left out.
func (r *run) readGuide(path string) ([]byte, error) {
	raw, err := r.checkout.ReadBase(path, settings.MaxFile)
	var large *gitops.TooLargeError
	if errors.As(err, &large) {
		r.rec.Warn("guide_too_large", "%s.", outcome.Sentence(err.Error()))
		return nil, fs.ErrNotExist
	}
	return raw, err
}

func (r *run) briefing(guides []agent.Guide) agent.Briefing {
	for i := range guides {
		guides[i].Text = r.rec.Redact(guides[i].Text)
	}
	briefing := agent.Briefing{
		Root: r.checkout.Root(), Directory: r.workDir(), Base: strings.TrimSpace(r.base.Branch + " " + r.base.SHA),
		Sandbox: r.confinementWords(), Network: r.networkWords(),
		Verify: r.checkWords(), Guides: slices.Clip(guides),
		Files: r.job.Limits.DiffFiles, Lines: r.job.Limits.DiffLines,
		Task:   agent.Task{Source: r.task.name, Title: r.task.title, Text: r.task.text},
		Answer: r.job.Task.Expects == "answer",
	}
	for _, step := range r.job.Setup {
		briefing.Setup = append(briefing.Setup, step.Run)
	}
	if r.keepsProtected() {
		briefing.Protected = r.job.Policy.Protect
	}
	return briefing
}

// checkWords tell of each check, and of what it says of the base when that is
// not that all is well.
func (r *run) checkWords() []agent.Check {
	checks := make([]agent.Check, 0, len(r.job.Verify))
	for i, check := range r.job.Verify {
		c := agent.Check{Run: check.Run}
		if i < len(r.baseline) && r.baseline[i].Before != "green" {
			row := r.baseline[i]
			c.Note = fmt.Sprintf("before any change: %s, see %s; ", row.Before, r.rec.Join(row.Log))
			if check.Must == "no_worse" {
				c.Note += "it may stay so"
			} else {
				c.Note += "it must become green"
			}
		}
		checks = append(checks, c)
	}
	return checks
}
