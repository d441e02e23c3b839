// Package catalog owns what is known of models before one is asked: their limits and prices, and
// how each family of them takes its tools.
package catalog

import (
	"bytes"
	_ "embed"
	"fmt"
	"path"
	"regexp"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"

	"github.com/agent-ci/agent-ci/runner/record/price"
)

// Profile describes a model. profiles.yml has the hand-kept facts of its family; catalog.tsv, made
// by internal/tabulate, has its limits and prices.
type Profile struct {
	Models        []string `yaml:"models"` // patterns of names; none: the default
	ContextWindow int64    `yaml:"context_window"`
	// Commands names the model's tool for commands: exec_command, shell or shell_command.
	Commands   string `yaml:"commands"`
	Shell      string `yaml:"shell"`       // form of shell: function or local_shell
	Patch      string `yaml:"patch"`       // form of apply_patch: freeform or function
	Reasoning  bool   `yaml:"reasoning"`   // it takes a reasoning effort
	ToolSearch bool   `yaml:"tool_search"` // it looks for tools by the API's own tool_search
	Images     bool   `yaml:"images"`      // it sees
	// Code marks a model trained to call tools from scripts, not one by one.
	Code bool `yaml:"code"`
	// InputLimit and OutputLimit are the API's limits in tokens, whatever the window; 0 if unknown.
	InputLimit  int64 `yaml:"input_limit"`
	OutputLimit int64 `yaml:"output_limit"`
	// Efforts are the accepted reasoning efforts, and DefaultEffort the model's own; empty if
	// unknown.
	Efforts       []string `yaml:"efforts"`
	DefaultEffort string   `yaml:"default_effort"`
	// CacheWrite is the price of cache writes as a multiple of the input price, if the price list
	// has none; 0 for the same price.
	CacheWrite float64     `yaml:"cache_write"`
	Price      *price.List `yaml:"-"`      // nil where it is not known
	Source     string      `yaml:"source"` // where this can be read
}

// Known reports whether the model is known; otherwise the profile is the default.
func (p Profile) Known() bool { return p.Source != "" }

//go:embed profiles.yml
var profilesYAML []byte

// profileFile is the form of profiles.yml. Each model has the default merged in.
type profileFile struct {
	Version int       `yaml:"version"`
	Default Profile   `yaml:"default"`
	Models  []Profile `yaml:"models"`
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
	for _, p := range file.Models {
		if err := p.check(); err != nil {
			return file, fmt.Errorf("read model profiles: %w", err)
		}
	}
	for _, p := range append(file.Models, file.Default) {
		if p.ContextWindow == 0 || p.Commands == "" || p.Shell == "" || p.Patch == "" {
			return file, fmt.Errorf("read model profiles: that of %v is not complete", p.Models)
		}
	}
	return file, nil
}

func (p Profile) check() error {
	if len(p.Models) == 0 || p.Source == "" {
		return fmt.Errorf("an entry needs models and source: %v", p.Models)
	}
	for _, pattern := range p.Models {
		if _, err := path.Match(pattern, ""); err != nil {
			return fmt.Errorf("%q: %w", pattern, err)
		}
	}
	return nil
}

// Of returns the profile of a model at OpenAI's own API.
func Of(name string) Profile { return At(name, "") }

// At returns the profile of a model at an API, OpenAI's own for an empty address: the
// family's facts, how tools are offered, and the limits and prices of its row in the table.
func At(name, baseURL string) Profile {
	p := family(plainName(name))
	if e, found := find(name, baseURL); found {
		return e.over(p)
	}
	return p
}

func family(name string) Profile {
	file := profiles()
	for _, p := range file.Models {
		if p.names(name) {
			return p
		}
	}
	return file.Default
}

// names says whether a pattern matches name from its start or from one of its
// words on, whatever deployment is named before them.
func (p Profile) names(name string) bool {
	for _, pattern := range p.Models {
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

var dateAtEnd = regexp.MustCompile(`-\d{4}-\d{2}-\d{2}$`)

// bareName is a model's name without a provider's prefix.
func bareName(name string) string {
	return strings.ToLower(name[strings.LastIndexByte(name, '/')+1:])
}

// plainName is a model's name without a provider's prefix and a date.
func plainName(name string) string { return dateAtEnd.ReplaceAllString(bareName(name), "") }
