package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/agent-ci/agent-ci/runner/given"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/outcome"
)

// defaultsFile holds a repository's defaults, in its base commit.
const defaultsFile = ".github/agent-ci.yml"

// configLimit is how long a configuration file or a prompt may be, in bytes.
const configLimit = job.MaxSize

// configFile is a file that configures the run, from where it was taken.
type configFile struct {
	name    string // as messages show it
	path    string // on disk, absolute
	inside  string // slash-separated path in the checkout; empty when outside of it
	content []byte
}

// readJob merges the layers of configuration. Files in the checkout are read
// from the base commit: the job may name another base than the one that the
// checkout stands on, and then they are read again from there.
func (r *run) readJob(ctx context.Context) error {
	if err := r.loadJob(ctx); err != nil {
		return err
	}
	if r.checkout == nil || r.job.Repository.Base == "" || r.job.Repository.Base == r.base.Branch {
		return nil
	}
	if err := r.chooseBase(ctx, r.job.Repository.Base); err != nil {
		return checkoutFailure(err)
	}
	wanted := r.job.Repository.Base
	if err := r.loadJob(ctx); err != nil {
		return err
	}
	if r.job.Repository.Base != "" && r.job.Repository.Base != wanted {
		return outcome.Stopf(outcome.InvalidInput, "base",
			"The configuration on %s names another base, %s; give the one that holds with --set repository.base=….", wanted, r.job.Repository.Base)
	}
	return nil
}

func (r *run) loadJob(ctx context.Context) error { return r.mergeJob(ctx, job.Load) }

// loadTemplate takes the configuration for a change that is there already: it
// needs no task.
func (r *run) loadTemplate(ctx context.Context) error { return r.mergeJob(ctx, job.LoadTemplate) }

func (r *run) mergeJob(ctx context.Context, load func(...job.Layer) (*job.Job, error)) error {
	layers, err := r.layers(ctx)
	if err != nil {
		return err
	}
	merged, err := load(layers...)
	if err != nil {
		return invalidJob(err)
	}
	r.job = merged
	r.redact()
	return nil
}

func invalidJob(err error) error {
	var problems job.Problems
	if !errors.As(err, &problems) {
		return err
	}
	count := "a mistake"
	if len(problems) > 1 {
		count = fmt.Sprintf("%d mistakes, the first", len(problems))
	}
	return outcome.Stopf(outcome.InvalidInput, "job", "The job has %s: %s", count, problems[0]).Because(err)
}

// layers are the sources of the job, the lowest first.
func (r *run) layers(ctx context.Context) ([]job.Layer, error) {
	layers := r.eventLayer()
	if defaults, found, err := r.readDefaults(); err != nil {
		return nil, err
	} else if found {
		layers = append(layers, job.Layer{Name: defaultsFile, Kind: job.Defaults, Data: defaults})
	}
	if r.options.JobFile != "" {
		file, err := r.readConfig(ctx, r.options.JobFile)
		if err != nil {
			return nil, err
		}
		r.jobFile = file
		layers = append(layers, job.Layer{Name: file.name, Kind: job.File, Data: file.content})
	}
	fromCaller, err := r.givenLayers(ctx)
	return append(layers, fromCaller...), err
}

// givenLayers are what the environment and the flags say about the job.
func (r *run) givenLayers(ctx context.Context) ([]job.Layer, error) {
	variables, warnings := job.Environment(r.options.Environ, r.options.Reserved)
	for _, warning := range warnings {
		r.warn("environment", "%s", warning)
	}
	set, err := job.Set(r.options.Set)
	if err != nil {
		return nil, invalidJob(err)
	}
	flags, err := r.flagLayer(ctx)
	if err != nil {
		return nil, err
	}
	return []job.Layer{variables, set, flags}, nil
}

// flagLayer is what the flags of `run` say about the job.
func (r *run) flagLayer(ctx context.Context) (job.Layer, error) {
	layer := job.Layer{Name: "flags", Kind: job.Values}
	add := func(key, value, flag string) {
		if value != "" {
			layer.Values = append(layer.Values, job.Assignment{Key: key, Value: value, Origin: flag})
		}
	}
	o := r.options
	prompt, err := r.promptOf(ctx, o)
	if err != nil {
		return layer, err
	}
	add("task.issue", o.Issue, "--issue")
	add("task.prompt", prompt, "--prompt")
	add("model.name", o.Model, "--model")
	return layer, nil
}

// promptOf is the prompt that --prompt or --prompt-file gives.
func (r *run) promptOf(ctx context.Context, o Options) (string, error) {
	switch o.PromptFile {
	case "":
		return o.Prompt, nil
	case "-":
		return r.promptFromInput(o.Stdin)
	}
	file, err := r.readConfig(ctx, o.PromptFile)
	if err != nil {
		return "", err
	}
	return promptText(file.name, file.content)
}

// promptFromInput reads standard input, once: the job may be merged again on
// another base.
func (r *run) promptFromInput(stdin io.Reader) (string, error) {
	if r.prompt != "" {
		return r.prompt, nil
	}
	raw, err := io.ReadAll(io.LimitReader(stdin, configLimit+1))
	if err != nil {
		return "", fmt.Errorf("read prompt from standard input: %w", err)
	}
	r.prompt, err = promptText("standard input", raw)
	return r.prompt, err
}

func promptText(name string, raw []byte) (string, error) {
	switch text := strings.TrimSpace(string(raw)); {
	case len(raw) > configLimit:
		return "", outcome.Stopf(outcome.InvalidInput, "prompt", "The prompt in %s is longer than %d bytes; give a shorter one.", name, configLimit)
	case text == "":
		return "", outcome.Stopf(outcome.InvalidInput, "prompt", "The prompt in %s is empty; say what to do.", name)
	default:
		return text, nil
	}
}

// readDefaults reads the repository's defaults from the base commit.
func (r *run) readDefaults() ([]byte, bool, error) {
	if r.checkout == nil {
		return nil, false, nil
	}
	raw, err := r.checkout.ReadBase(defaultsFile, configLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	return raw, err == nil, err
}

// readConfig reads a file that the user named. Inside the checkout its base
// commit counts, so that nothing that an agent or a pull request wrote can
// configure a run; a person's own machine may use a file that is not committed
// yet, and is told so.
func (r *run) readConfig(ctx context.Context, name string) (configFile, error) {
	return r.readWithin(ctx, name, configLimit)
}

func (r *run) readWithin(ctx context.Context, name string, limit int64) (configFile, error) {
	file, err := r.locate(name)
	if err != nil {
		return file, err
	}
	if file.inside == "" {
		file.content, err = given.Read(ctx, file.path, limit)
		return file, notReadable(name, err)
	}
	base, err := r.checkout.ReadBase(file.inside, limit)
	switch {
	case err == nil && r.env.inActions():
		file.content = base
		return file, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return file, notReadable(name, err)
	case err != nil && r.env.inActions():
		return file, outcome.Stopf(outcome.InvalidInput, "job_not_in_base",
			"%s is not in the base commit %s; in Actions configuration is read from there alone: commit the file first.", name, short(r.base.SHA))
	}
	disk, diskErr := given.Read(ctx, file.path, limit)
	switch {
	case diskErr != nil && err == nil: // deleted here: the commit counts
		file.content = base
	case diskErr != nil:
		return file, notReadable(name, diskErr)
	default:
		file.content = disk
	}
	if diskErr == nil && (err != nil || string(disk) != string(base)) {
		r.warn("job_not_committed", "%s differs from the base commit %s; the file on disk is used, which Actions would not do.", name, short(r.base.SHA))
	}
	return file, nil
}

func (r *run) locate(name string) (configFile, error) {
	file := configFile{name: name}
	path, err := filepath.Abs(name)
	if err != nil {
		return file, fmt.Errorf("find %s: %w", name, err)
	}
	file.path = path
	if r.checkout == nil {
		return file, nil
	}
	real, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return file, notReadable(name, err)
	}
	if rel, err := filepath.Rel(r.checkout.Root(), filepath.Join(real, filepath.Base(path))); err == nil && filepath.IsLocal(rel) {
		file.inside = filepath.ToSlash(rel)
	}
	return file, nil
}

func notReadable(name string, err error) error {
	var ended *outcome.Stop
	if err == nil || errors.As(err, &ended) {
		return err
	}
	return outcome.Stopf(outcome.InvalidInput, "file", "%s cannot be read (%v); check the path.", name, rootCause(err)).Because(err)
}

// rootCause is an error's own words without the path that the sentence names.
func rootCause(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

func short(sha string) string {
	if len(sha) > 12 {
		return sha[:12]
	}
	return sha
}
