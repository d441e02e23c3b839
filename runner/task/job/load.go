package job

import (
	"errors"
	"reflect"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"

	"github.com/agent-ci/agent-ci/runner/task/config"
)

// Format describes the job file.
var Format = sync.OnceValue(func() *config.Format {
	return &config.Format{Root: config.NewKey(reflect.TypeFor[Job](), Terms()), Name: "job", Misplaced: checkPlacement}
})

// checkPlacement returns an error for a key that does not belong in a file of that kind: repository defaults or
// an operator's file. path is the key with those above it, such as hooks.lint.run.
func checkPlacement(kind config.LayerKind, path string) error {
	isForOperator := path == "version" || path == "hooks" || strings.Contains(path, ".") // what is below hooks has a dot
	switch {
	case kind == config.DefaultsLayer && (path == "name" || path == "task"):
		return errors.New("belongs in a job, not in a repository's defaults")
	case kind == config.OperatorLayer && !isForOperator:
		return errors.New("does not belong in an operator's file, which may contain only hooks")
	}
	return nil
}

// Load merges layers over the built-in defaults, lowest first: later layers win. Mappings merge by
// name, lists are replaced whole, and null sets nothing. The error is config.Problems with the
// mistakes of all layers. A missing task is a mistake.
func Load(layers ...config.Layer) (*Job, error) { return load(layers, needsTask) }

// LoadTemplate is like Load, but accepts a job without a task.
func LoadTemplate(layers ...config.Layer) (*Job, error) { return load(layers, !needsTask) }

// validator decodes a job and checks its keys against each other.
type validator struct {
	*config.Decoder
	job *Job
}

func newValidator() *validator {
	job := new(Job)
	return &validator{Format().Decoder(job), job}
}

// needsTask makes a missing task a mistake.
const needsTask = true

// load merges the layers.
func load(layers []config.Layer, needsTask bool) (*Job, error) {
	v := newValidator()
	for _, layer := range layers {
		v.Add(layer)
		v.keepNewestTaskSource()
	}
	v.checkRelations(needsTask)
	if err := v.Err(); err != nil {
		return nil, err
	}
	return v.job, nil
}

// LoadRecorded reads the job of a record, which may come from a stranger, with all checks of a job file.
func LoadRecorded(raw []byte) (*Job, error) {
	return LoadTemplate(config.Layer{Name: "the recorded job", Data: raw})
}

// FileProblems returns the mistakes of a parsed job file. lenient lists the paths of provisional texts,
// whose form is not checked. withRelations also checks keys against each other, and a missing task.
func FileProblems(file string, node *yaml.Node, lenient map[string]bool, withRelations bool) config.Problems {
	v := newValidator()
	v.Lenient = lenient
	v.AddNode(file, node)
	v.keepNewestTaskSource()
	if withRelations {
		v.checkRelations(needsTask)
	}
	return v.Problems()
}
