// Package catalog holds the facts about models: their limits and prices, and which forms of tools each family uses.
package catalog

import (
	"bytes"
	_ "embed"
	"fmt"
	"path"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
	"github.com/agent-ci/agent-ci/runner/record/price"
)

// Profile describes a model. The facts about its family come from profiles.yml, which is written by hand. Its limits and
// prices come from catalog.json, which internal/tabulate makes.
type Profile struct {
	Models        []string `yaml:"models"` // patterns of model names; empty in the default profile
	ContextWindow int64    `yaml:"context_window"`
	// Commands names the model's tool for commands: exec_command, shell or shell_command.
	Commands   string `yaml:"commands"`
	Shell      string `yaml:"shell"`       // form of shell: function or local_shell
	Patch      string `yaml:"patch"`       // form of apply_patch: freeform or function
	Reasoning  bool   `yaml:"reasoning"`   // the model takes a reasoning effort
	ToolSearch bool   `yaml:"tool_search"` // the model supports the API's own tool_search
	Images     bool   `yaml:"images"`      // the model reads images
	// Code marks a model trained to call tools from scripts, not one by one.
	Code bool `yaml:"code"`
	// InputLimit and OutputLimit are the API's limits in tokens, whatever the window; 0 if unknown.
	InputLimit  int64 `yaml:"input_limit"`
	OutputLimit int64 `yaml:"output_limit"`
	// Efforts are the accepted reasoning efforts, and DefaultEffort the model's own; empty if
	// unknown.
	Efforts       []string `yaml:"efforts"`
	DefaultEffort string   `yaml:"default_effort"`
	// CacheWrite is the price of cache writes as a multiple of the input price, for a price list without one. 0 means
	// the input price.
	CacheWrite float64     `yaml:"cache_write"`
	Price      *price.List `yaml:"-"`      // nil if unknown
	Source     string      `yaml:"source"` // where these facts are published
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

// profiles returns the content of profiles.yml.
var profiles = sync.OnceValue(func() profileFile {
	file, err := readProfiles(profilesYAML)
	if err != nil {
		panic(err) // the file is part of the program; a test reads it
	}
	return file
})

// readProfiles parses profiles.yml and checks that each profile is complete.
func readProfiles(raw []byte) (profileFile, error) {
	var file profileFile
	dec := yaml.NewDecoder(bytes.NewReader(raw))
	dec.KnownFields(true)
	if err := dec.Decode(&file); err != nil {
		return file, fmt.Errorf("read model profiles: %w", err)
	}
	for _, p := range file.Models {
		if err := p.validate(); err != nil {
			return file, fmt.Errorf("read model profiles: %w", err)
		}
	}
	for _, p := range append(file.Models, file.Default) {
		isComplete := p.ContextWindow > 0 && p.Commands != "" && p.Shell != "" && p.Patch != ""
		if !isComplete {
			return file, fmt.Errorf("read model profiles: that of %v is not complete", p.Models)
		}
	}
	return file, nil
}

// validate returns an error for a profile without model patterns or source, or with an invalid pattern.
func (p Profile) validate() error {
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

// ProfileOf returns the profile of a model at OpenAI's own API.
func ProfileOf(name string) Profile { return ProfileAt(name, "") }

// ProfileAt returns the profile of a model at the API at baseURL: the profile of its family with the limits and
// prices in the table. An empty baseURL means OpenAI's own API.
func ProfileAt(name, baseURL string) Profile {
	p := familyProfile(plainName(name))
	if e, found := findEntry(name, baseURL); found {
		return e.applyTo(p)
	}
	return p
}

// familyProfile returns the first profile with a pattern that matches the model's name, or the default profile.
func familyProfile(name string) Profile {
	file := profiles()
	for _, p := range file.Models {
		if p.matchesName(name) {
			return p
		}
	}
	return file.Default
}

// matchesName reports whether a pattern matches name, or the end of name from one of its words on. So the patterns
// for gpt-5 match my-deployment-gpt-5, too.
func (p Profile) matchesName(name string) bool {
	for _, pattern := range p.Models {
		rest, more := name, true
		for more {
			if matches, _ := path.Match(pattern, rest); matches { // patterns are valid, see validate
				return true
			}
			rest, more = nextWord(rest)
		}
	}
	return false
}

// nextWord returns name without its first word. more is false if name has only one word.
func nextWord(name string) (rest string, more bool) {
	i := strings.IndexAny(name, "-_.: ")
	return name[i+1:], i >= 0
}

// dateAtEnd matches the date at the end of a model's name, such as -2026-01-31.
var dateAtEnd = lazyregexp.New(`-\d{4}-\d{2}-\d{2}$`)

// bareName returns a model's name in lower case, without the provider's prefix.
func bareName(name string) string {
	return strings.ToLower(name[strings.LastIndexByte(name, '/')+1:])
}

// plainName returns a model's name in lower case, without the provider's prefix and without a date at its end.
func plainName(name string) string { return dateAtEnd().ReplaceAllString(bareName(name), "") }
