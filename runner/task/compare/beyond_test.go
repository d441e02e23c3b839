package compare

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/task/config"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

func TestBeyondNamesExcessKey(t *testing.T) {
	load := func(text string) *job.Job { return recorded(t, template(t, text)) }
	for name, c := range map[string]struct{ made, allowed, key string }{
		"the same":            {"policy: {sandbox: danger-full-access}", "policy: {sandbox: danger-full-access}", ""},
		"less":                {"policy: {sandbox: read-only, network: none}", "policy: {writable: [a]}", ""},
		"another task":        {"name: a\nlimits: {turns: 7}\nmodel: {name: gpt-5.4}", "name: b", ""},
		"more confinement":    {"policy: {require: full}", "policy: {require: landlock}", ""},
		"no sandbox":          {"policy: {sandbox: danger-full-access}", "", "policy.sandbox"},
		"another folder":      {"policy: {writable: [/outside]}", "", "policy.writable"},
		"any network":         {"policy: {network: full}", "", "policy.network"},
		"a variable":          {"policy: {env: {pass: [HELD_TOKEN]}}", "", "policy.env.pass"},
		"a service":           {"services: {evil: {run: 'true', port: 8080}}", "", "services"},
		"a server":            {"mcp_servers: {evil: {command: sh, args: [greet.sh], tools: ['*']}}", "", "mcp_servers"},
		"a tool":              {"tools: {dynamic: [{name: evil, description: x, input_schema: {type: object}, run: sh greet.sh}]}", "", "tools.dynamic"},
		"less confinement":    {"policy: {require: landlock}", "policy: {require: full}", "policy.require"},
		"some of the hosts":   {"policy: {network: {allow: [a.example]}}", "policy: {network: {allow: [a.example, b.example]}}", ""},
		"other hosts":         {"policy: {network: {allow: [c.example]}}", "policy: {network: {allow: [a.example]}}", "policy.network"},
		"hosts of any":        {"policy: {network: {allow: [c.example], proxy: inherit}}", "policy: {network: full}", ""},
		"by a proxy":          {"policy: {network: {allow: [a.example], proxy: inherit}}", "policy: {network: {allow: [a.example]}}", "policy.network"},
		"a setup's network":   {"setup: [{run: x, network: full}]", "setup: [{run: x, network: full}]", ""},
		"of another command":  {"setup: [{run: y, network: full}]", "setup: [{run: x, network: full}]", "setup[].network"},
		"what is hidden":      {"", "policy: {deny_read: [~/notes]}", "policy.deny_read"},
		"fewer folders":       {"policy: {writable: [a]}", "policy: {writable: [a, b]}", ""},
		"the same secret":     {"policy: {secrets: [{name: A, hosts: [a.example]}]}", "policy: {secrets: [{name: A, hosts: [a.example]}]}", ""},
		"a secret to another": {"policy: {secrets: [{name: A, hosts: [b.example]}]}", "policy: {secrets: [{name: A, hosts: [a.example]}]}", "policy.secrets"},
		"without a hook":      {"", "hooks: {gate: {on: pre_publish, run: [./gate]}}", "hooks"},
	} {
		over := FirstExcess(load(c.made), load(c.allowed), false)
		if key := over; key == nil && c.key != "" || key != nil && key.Key != c.key {
			t.Errorf("%s: %+v, want %q", name, over, c.key)
		}
	}
	for key, c := range map[string]struct{ made, allowed string }{ // that a run which goes on may not have, and a replay may
		"verify":            {"verify: []", "verify: [{run: make test}]"},
		"on_verify_failed":  {"on_verify_failed: none", "on_verify_failed: draft"},
		"model.base_url":    {"model: {base_url: 'https://evil.example/v1'}", ""},
		"model.api_key_env": {"model: {api_key_env: HELD_TOKEN}", ""},
	} {
		if over := FirstExcess(load(c.made), load(c.allowed), true); over == nil || over.Key != key {
			t.Errorf("a run that goes on with another %s: %+v", key, over)
		}
		must.Same(t, nil, FirstExcess(load(c.made), load(c.allowed), false), "a replay with another", key)
	}
}

// template is the job of these keys and the version.
func template(t *testing.T, keys string) *job.Job {
	t.Helper()
	return must.Get(job.LoadTemplate(config.Layer{Name: "job.yml", Kind: config.FileLayer, Data: []byte("version: 1\n" + keys)}))(t)
}

// recorded is a job as a record has it, which is checked like a job file.
func recorded(t *testing.T, j *job.Job) *job.Job {
	t.Helper()
	raw := must.Get(json.Marshal(j))(t)
	again, err := job.LoadRecorded(raw)
	must.Do(t, err, raw)
	return again
}

func TestLoadRecordedValidatesLikeFile(t *testing.T) {
	files := must.Get(filepath.Glob("../job/testdata/good/*.yml"))(t)
	taken := 0
	for _, file := range files {
		raw := must.Get(os.ReadFile(file))(t)
		if j, err := job.LoadTemplate(config.Layer{Name: file, Kind: config.FileLayer, Data: raw}); err == nil {
			again := recorded(t, j)
			must.Same(t, nil, FirstExcess(again, j, true), file, "a record has more than its own job")
			taken++
		}
	}
	if taken == 0 {
		t.Error("no job was read")
	}
	must.Fail(t, "", must.Err(job.LoadRecorded([]byte(`{"version":1,"repository":{"path":"../elsewhere"}}`))), "a path that leads out of the checkout is taken")
}
