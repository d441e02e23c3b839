package model

import (
	"bytes"
	_ "embed"
	"fmt"
	"path"
	"regexp"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"
)

// Profile is what is known of a model.
type Profile struct {
	Known         bool  // an entry names the model; else the profile is the default
	ContextWindow int64 // tokens of a request and its answer together
	// Commands names the tool by which the model runs commands: exec_command,
	// shell or shell_command.
	Commands      string
	Shell         string // form of shell: function or local_shell
	Patch         string // form of apply_patch: freeform or function
	ParallelCalls bool
	Reasoning     bool // it takes a reasoning effort
	Price         Price
	Source        string // where this can be read
}

// Price is what a model costs, in US dollars for a million tokens.
type Price struct {
	Input  float64 `yaml:"input"`
	Cached float64 `yaml:"cached"` // of the input; 0 for the same
	Output float64 `yaml:"output"`
}

// Known says whether there is a price.
func (p Price) Known() bool { return p.Input > 0 || p.Output > 0 }

//go:embed profiles.yml
var profilesYAML []byte

// profileFile is the form of profiles.yml.
type profileFile struct {
	Version int            `yaml:"version"`
	Default profileEntry   `yaml:"default"`
	Models  []profileEntry `yaml:"models"`
}

// profileEntry has nil for what is left out.
type profileEntry struct {
	Models        []string `yaml:"models"`
	ContextWindow *int64   `yaml:"context_window"`
	Commands      *string  `yaml:"commands"`
	Shell         *string  `yaml:"shell"`
	Patch         *string  `yaml:"patch"`
	ParallelCalls *bool    `yaml:"parallel_calls"`
	Reasoning     *bool    `yaml:"reasoning"`
	Price         *Price   `yaml:"price"`
	Source        string   `yaml:"source"`
}

var profiles = sync.OnceValue(func() profileFile {
	file, err := readProfiles(profilesYAML)
	if err != nil {
		panic(err) // the file is part of the program; a test reads it
	}
	return file
})

func readProfiles(raw []byte) (profileFile, error) {
	var file profileFile
	dec := yaml.NewDecoder(bytes.NewReader(raw))
	dec.KnownFields(true)
	if err := dec.Decode(&file); err != nil {
		return file, fmt.Errorf("read model profiles: %w", err)
	}
	if d := file.Default; d.ContextWindow == nil || d.Commands == nil || d.Shell == nil || d.Patch == nil || d.ParallelCalls == nil || d.Reasoning == nil {
		return file, fmt.Errorf("read model profiles: default is not complete")
	}
	for _, entry := range file.Models {
		if err := entry.check(); err != nil {
			return file, fmt.Errorf("read model profiles: %w", err)
		}
	}
	return file, nil
}

func (e profileEntry) check() error {
	if len(e.Models) == 0 || e.Source == "" {
		return fmt.Errorf("an entry needs models and source: %v", e.Models)
	}
	for _, pattern := range e.Models {
		if _, err := path.Match(pattern, ""); err != nil {
			return fmt.Errorf("%q: %w", pattern, err)
		}
	}
	return nil
}

// ProfileOf is what is known of the model of that name.
func ProfileOf(name string) Profile {
	file := profiles()
	p := Profile{}
	file.Default.fill(&p)
	name = plainName(name)
	for _, entry := range file.Models {
		if entry.names(name) {
			entry.fill(&p)
			p.Known = true
			return p
		}
	}
	return p
}

// names says whether a pattern matches name from its start or from one of its
// words on, whatever deployment is named before them.
func (e profileEntry) names(name string) bool {
	for _, pattern := range e.Models {
		for rest, more := name, true; more; rest, more = nextWord(rest) {
			if ok, err := path.Match(pattern, rest); ok && err == nil {
				return true
			}
		}
	}
	return false
}

func nextWord(name string) (rest string, more bool) {
	i := strings.IndexAny(name, "-_.: ")
	return name[i+1:], i >= 0
}

func (e profileEntry) fill(p *Profile) {
	set(&p.ContextWindow, e.ContextWindow)
	set(&p.Commands, e.Commands)
	set(&p.Shell, e.Shell)
	set(&p.Patch, e.Patch)
	set(&p.ParallelCalls, e.ParallelCalls)
	set(&p.Reasoning, e.Reasoning)
	set(&p.Price, e.Price)
	p.Source = e.Source
}

func set[T any](into *T, given *T) {
	if given != nil {
		*into = *given
	}
}

var dateAtEnd = regexp.MustCompile(`-\d{4}-\d{2}-\d{2}$`)

// plainName is a model's name without a provider's prefix and a date.
func plainName(name string) string {
	name = name[strings.LastIndexByte(name, '/')+1:]
	return strings.ToLower(dateAtEnd.ReplaceAllString(name, ""))
}
