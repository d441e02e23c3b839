package settings

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/policy/plainjson"
	"github.com/agent-ci/agent-ci/runner/task/config"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy/pathname"
	"github.com/agent-ci/agent-ci/runner/record/boundedfile"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// defaultsFile holds a repository's defaults, in its base commit.
const defaultsFile = ".github/agent-ci.yml"

// MaxFileBytes is the maximum length of a configuration file or a prompt in bytes.
const MaxFileBytes = config.MaxSize

type File struct {
	Name    string // as messages show it
	Path    string // on disk, absolute
	Content []byte

	pathInCheckout string // slash-separated path in the checkout; empty when outside of it
}

// Settings holds the configuration of a run. It is immutable: methods return stricter copies.
type Settings struct {
	Job  job.Job
	File File // of the job; the zero value is none
}

// WithBranch returns the settings with name as the branch of the change.
func (s *Settings) WithBranch(name string) *Settings {
	copied := *s
	copied.Job.PullRequest.Branch = name
	return &copied
}

// WithoutDrafts returns the settings for a run on a person's branch, or for a repair attempt: it publishes
// only finished work that passes all checks. remainingUSD is the remaining budget in dollars, 0 for no other limit than the job's.
func (s *Settings) WithoutDrafts(remainingUSD float64) *Settings {
	strict := *s
	strict.Job.OnVerifyFailed, strict.Job.Limits.OnBudget = "none", "keep"
	if limit := &strict.Job.Limits.CostUSD; remainingUSD > 0 && (*limit == 0 || remainingUSD < *limit) {
		*limit = remainingUSD
	}
	return &strict
}

// Inputs holds the settings from the environment and the flags of a run.
type Inputs struct {
	JobFile    string // path; empty for none
	JobContent []byte // that of JobFile, if it was read before: a pipe gives it only once
	Defaults   string // path of a file that is taken in place of the base commit's defaults; empty for those
	Issue      string // as form.ParseIssue reads it
	Prompt     string
	PromptFile string // path, or - for Stdin
	Model      string
	Set        []string // KEY=VALUE
	Env        Environment
	Reserved   []string // names of AGENT_CI_ variables that are flags, not job keys
	Stdin      io.Reader
}

// Source reads settings from Inputs and the base commit of a checkout. It is not safe for concurrent
// use.
type Source struct {
	Inputs
	Warn func(code, format string, args ...any)

	stdinPrompt string // from standard input
}

// Commit is the base commit of a checkout; the zero value is none.
type Commit struct {
	*gitops.Checkout
	SHA string
}

// Load merges the layers of configuration. Files in the checkout are read from
// the base commit.
func (s *Source) Load(ctx context.Context, base Commit) (*Settings, error) {
	return s.loadWith(ctx, base, job.Load)
}

// LoadTemplate loads the configuration for an existing change. It needs no task.
func (s *Source) LoadTemplate(ctx context.Context, base Commit) (*Settings, error) {
	return s.loadWith(ctx, base, job.LoadTemplate)
}

// LoadInputs is like LoadTemplate, but reads neither the repository's defaults nor the job file.
func (s *Source) LoadInputs(ctx context.Context, base Commit) (*Settings, error) {
	layers, err := s.inputLayers(ctx, base)
	if err != nil {
		return nil, err
	}
	return mergeLayers(job.LoadTemplate, File{}, append(s.eventLayer(), layers...))
}

// loadWith loads the configuration with load, which is job.Load or job.LoadTemplate.
func (s *Source) loadWith(ctx context.Context, base Commit, load func(...config.Layer) (*job.Job, error)) (*Settings, error) {
	layers, file, err := s.readLayers(ctx, base)
	if err != nil {
		return nil, err
	}
	return mergeLayers(load, file, layers)
}

// mergeLayers merges the layers with load. file is the job file.
func mergeLayers(load func(...config.Layer) (*job.Job, error), file File, layers []config.Layer) (*Settings, error) {
	merged, err := load(layers...)
	if err != nil {
		return nil, invalidJob(err)
	}
	return &Settings{Job: *merged, File: file}, nil
}

// invalidJob converts mistakes in the job to an outcome that shows the first one. It returns any other
// error unchanged.
func invalidJob(err error) error {
	var problems config.Problems
	if !errors.As(err, &problems) {
		return err
	}
	count := "a mistake"
	if len(problems) > 1 {
		count = fmt.Sprintf("%d mistakes, the first", len(problems))
	}
	return outcome.Stopf(outcome.InvalidInput, "job", "The job has %s: %s", count, problems[0]).Because(err)
}

// readLayers returns the layers of the job, lowest first, and the job file. The file is the zero File if
// there is none.
func (s *Source) readLayers(ctx context.Context, base Commit) ([]config.Layer, File, error) {
	var file File
	defaults, err := s.defaultsLayer(ctx, base)
	if err != nil {
		return nil, file, err
	}
	layers := append(s.eventLayer(), defaults...)
	if s.JobFile != "" {
		if file, err = s.ReadFile(ctx, base, s.JobFile, MaxFileBytes); err != nil {
			return nil, file, err
		}
		if len(file.Content) == 0 && file.pathInCheckout == "" {
			file.Content = s.JobContent
		}
		layers = append(layers, config.Layer{Name: file.Name, Kind: config.FileLayer, Data: file.Content})
	}
	inputs, err := s.inputLayers(ctx, base)
	return append(layers, inputs...), file, err
}

// eventLayer sets task.from to the event, for jobs in Actions without a task.
func (s *Source) eventLayer() []config.Layer {
	if !s.Env.InActions() || s.Env.Get("GITHUB_EVENT_NAME") == "" {
		return nil
	}
	return []config.Layer{{Name: "event", Kind: config.ValuesLayer, Values: []config.Assignment{{Key: "task.from", Value: "event", Origin: "GITHUB_EVENT_NAME"}}}}
}

// inputLayers returns the layers of environment variables, --set and flags, lowest first.
func (s *Source) inputLayers(ctx context.Context, base Commit) ([]config.Layer, error) {
	variables, warnings := job.Format().Environment(s.Env, s.Reserved)
	for _, warning := range warnings {
		s.Warn("environment", "%s", warning)
	}
	flags, err := s.flagLayer(ctx, base)
	if err != nil {
		return nil, err
	}
	return []config.Layer{variables, config.SetLayer(s.Set...), flags}, nil
}

// flagLayer returns the layer of the flags --issue, --prompt, --prompt-file and --model.
func (s *Source) flagLayer(ctx context.Context, base Commit) (config.Layer, error) {
	layer := config.Layer{Name: "flags", Kind: config.ValuesLayer}
	add := func(key, value, flag string) {
		if value != "" {
			layer.Values = append(layer.Values, config.Assignment{Key: key, Value: value, Origin: flag})
		}
	}
	prompt, err := s.promptFromFlags(ctx, base)
	if err != nil {
		return layer, err
	}
	add("task.issue", s.Issue, "--issue")
	add("task.prompt", prompt, "--prompt")
	add("model.name", s.Model, "--model")
	return layer, nil
}

// promptFromFlags returns the prompt of --prompt, or the content of --prompt-file.
func (s *Source) promptFromFlags(ctx context.Context, base Commit) (string, error) {
	switch s.PromptFile {
	case "":
		return s.Prompt, nil
	case "-":
		return s.promptFromStdin()
	}
	file, err := s.ReadFile(ctx, base, s.PromptFile, MaxFileBytes)
	if err != nil {
		return "", err
	}
	return promptText(file.Name, file.Content)
}

// promptFromStdin reads the prompt from standard input. It keeps the text, because the settings may be
// loaded again for another base.
func (s *Source) promptFromStdin() (string, error) {
	if s.stdinPrompt != "" {
		return s.stdinPrompt, nil
	}
	raw, err := io.ReadAll(io.LimitReader(s.Stdin, MaxFileBytes+1))
	if stop, stopped := errors.AsType[*outcome.Stop](err); stopped { // by a signal
		return "", stop
	}
	if err != nil {
		return "", outcome.Stopf(outcome.InvalidInput, "file", "The prompt cannot be read from standard input (%v); check where that comes from.", outcome.WithoutPath(err)).Because(err)
	}
	s.stdinPrompt, err = promptText("standard input", raw)
	return s.stdinPrompt, err
}

// ReadPrompt returns task.prompt, or the content of task.prompt_file. That path is relative to the
// job file.
func (s *Source) ReadPrompt(ctx context.Context, base Commit, from *Settings) (string, error) {
	name := from.Job.Task.PromptFile
	if name == "" {
		return strings.TrimSpace(from.Job.Task.Prompt), nil
	}
	content, err := s.ReadBesideJobFile(ctx, base, from, name, MaxFileBytes)
	if err != nil {
		return "", err
	}
	return promptText(name, content)
}

// ReadBesideJobFile is like ReadFile for a path relative to the job file. It returns the content.
func (s *Source) ReadBesideJobFile(ctx context.Context, base Commit, from *Settings, name string, limit int64) ([]byte, error) {
	if from.File.Path != "" && !filepath.IsAbs(name) {
		name = filepath.Join(filepath.Dir(from.File.Path), filepath.FromSlash(name))
	}
	file, err := s.ReadFile(ctx, base, name, limit)
	return file.Content, err
}

// promptText returns a prompt read from a file or standard input. It rejects an empty or overlong
// one.
func promptText(name string, raw []byte) (string, error) {
	switch text := strings.TrimSpace(string(raw)); {
	case len(raw) > MaxFileBytes:
		return "", outcome.Stopf(outcome.InvalidInput, "prompt", "The prompt in %s is longer than %d bytes; give a shorter one.", name, MaxFileBytes)
	case text == "":
		return "", outcome.Stopf(outcome.InvalidInput, "prompt", "The prompt in %s is empty; say what to do.", name)
	default:
		return text, nil
	}
}

// defaultsLayer returns the defaults as a layer: those of the file s.Defaults, else those in the base
// commit. It returns none if neither exists.
func (s *Source) defaultsLayer(ctx context.Context, base Commit) ([]config.Layer, error) {
	if s.Defaults == "" {
		if base.Checkout == nil {
			return nil, nil
		}
		raw, err := base.ReadBase(defaultsFile, MaxFileBytes)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return []config.Layer{{Name: defaultsFile, Kind: config.DefaultsLayer, Data: raw}}, err
	}
	raw, err := boundedfile.Read(ctx, s.Defaults, MaxFileBytes)
	return []config.Layer{{Name: s.Defaults, Kind: config.DefaultsLayer, Data: raw}}, ReadFailure(s.Defaults, err)
}

// ReadFile reads a file named by the user, of up to limit bytes. In Actions, files inside the
// checkout come from the base commit, so an agent or a pull request cannot configure a run.
// Elsewhere the file on disk is used, with a warning if it differs from the commit.
func (s *Source) ReadFile(ctx context.Context, base Commit, name string, limit int64) (File, error) {
	file, err := base.locateFile(name)
	if err != nil {
		return file, err
	}
	if file.pathInCheckout == "" {
		file.Content, err = boundedfile.Read(ctx, file.Path, limit)
		return file, ReadFailure(name, err)
	}
	committed, err := base.ReadBase(file.pathInCheckout, limit)
	missing := errors.Is(err, fs.ErrNotExist)
	switch {
	case err != nil && !missing:
		return file, ReadFailure(name, err)
	case missing && s.Env.InActions():
		return file, outcome.Stopf(outcome.InvalidInput, "job_not_in_base",
			"%s is not in the base commit %s; in Actions, agent-ci reads its configuration only from there: commit the file first.", name, clip.SHA(base.SHA))
	}
	file.Content = committed
	if s.Env.InActions() {
		return file, nil
	}
	disk, err := boundedfile.Read(ctx, file.Path, limit)
	switch {
	case err != nil && missing:
		return file, ReadFailure(name, err)
	case err != nil: // deleted here: the commit counts
		return file, nil
	}
	file.Content = disk
	if missing || string(disk) != string(committed) {
		s.Warn("job_not_committed", "%s differs from the base commit %s; the file on disk is used, but Actions would use the commit.", name, clip.SHA(base.SHA))
	}
	return file, nil
}

// locateFile returns the file's absolute path, and its path in the checkout if its name or the target
// of its links is inside.
func (c Commit) locateFile(name string) (File, error) {
	file := File{Name: name}
	path, err := filepath.Abs(name)
	if err != nil {
		return file, fmt.Errorf("find %s: %w", name, err)
	}
	file.Path = path
	if c.Checkout == nil {
		return file, nil
	}
	real, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return file, ReadFailure(name, err)
	}
	candidates := []string{filepath.Join(real, filepath.Base(path)), path}
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		candidates = append(candidates, resolved)
	}
	for _, candidate := range candidates { // a link may lead into the checkout, or out of it
		if rel, inCheckout := pathname.Below(c.Root(), candidate); inCheckout {
			file.pathInCheckout = filepath.ToSlash(rel)
			break
		}
	}
	return file, nil
}

// ReadFailure wraps the read error of a file named by the user. It is nil without an error.
func ReadFailure(name string, err error) error {
	var ended *outcome.Stop
	if err == nil || errors.As(err, &ended) {
		return err
	}
	return outcome.Stopf(outcome.InvalidInput, "file", "%s cannot be read (%v); check the path.", name, outcome.WithoutPath(err)).Because(err)
}

// OutputSchema is task.output_schema. The zero value is none.
type OutputSchema struct {
	Source   json.RawMessage // nil when the job has none
	resolved *jsonschema.Resolved
}

// ReadOutputSchema reads task.output_schema. The path is relative to the job file.
func (s *Source) ReadOutputSchema(ctx context.Context, base Commit, from *Settings) (OutputSchema, error) {
	name := from.Job.Task.OutputSchema
	if name == "" {
		return OutputSchema{}, nil
	}
	content, err := s.ReadBesideJobFile(ctx, base, from, name, MaxFileBytes)
	if err != nil {
		return OutputSchema{}, err
	}
	schema, err := ParseOutputSchema(content)
	if err != nil {
		return schema, outcome.Stopf(outcome.InvalidInput, "output_schema", "%s is not a usable JSON Schema (%v); correct it.", name, err).Because(err)
	}
	return schema, nil
}

// ParseOutputSchema parses a JSON Schema and resolves its references.
func ParseOutputSchema(content []byte) (s OutputSchema, err error) {
	var schema jsonschema.Schema
	if err := plainjson.Unmarshal(content, &schema); err != nil {
		return s, err
	}
	if s.resolved, err = schema.Resolve(nil); err != nil {
		return s, err
	}
	s.Source, err = json.Marshal(json.RawMessage(content)) // on one line
	return s, err
}

// Check returns an error if raw is not a JSON object that fits the schema.
func (s OutputSchema) Check(raw json.RawMessage) error {
	var value map[string]any
	if err := plainjson.Unmarshal(raw, &value); err != nil {
		return fmt.Errorf("it is not a JSON object: %w", err)
	}
	return s.resolved.Validate(value)
}
