package job

import (
	"fmt"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/task/config/schematest"
)

func TestValidNetworksLoadAndFitSchema(t *testing.T) {
	schema := schematest.Compile(t, Format().Schema())
	for _, network := range []string{
		"none", "{proxy: inherit}", "{allow: [a.example.com], proxy: ''}", "{allow: [{preset: npm}, a.example.com:8443]}",
		"{allow: [{host: a.example.com, private: false}, {host: '*.example.org', private: false, ca: a.pem}, {host: '*.example.org', ca: /etc/ssl/a.pem}]}",
		"{allow: [{host: 10.0.0.5, private: true}, {host: 'db.example.org:5432', private: true, ca: .certs/a.pem}, {host: '[fd12::1]:443', private: true}]}",
		"{allow: [{host: a.example.com, ca: ..a/...}, {host: a.example.com, ca: a../.b/c}, {host: a.example.com, ca: /a}, {host: a.example.com, ca: 'a b/ä'}]}",
	} {
		file := "version: 1\npolicy: {network: " + network + ", secrets: [{name: X, hosts: [s.example.com]}]}\n"
		if network == "none" {
			file = "version: 1\npolicy: {network: none}\n"
		}
		must.Get(LoadTemplate(jobFile(file)))(t)
		must.Do(t, schema.Validate(t, file), network)
	}
}

func TestLoadAndSchemaRefuseInvalidFiles(t *testing.T) {
	schema := schematest.Compile(t, Format().Schema())
	rows := []string{
		"limits: {turn: 5}",
		"limits: {turns: 0}",
		"limits: {turns: '5'}",
		"limits: {time: 10}",
		"limits: {time: soon}",
		"limits: {cost_usd: -5}",
		"version: 2",
		"name: 5",
		"task: {issue: seven}",
		"task: {from: schedule}",
		"trust: {roles: [wirte]}",
		"trigger: {command: agent-ci}",
		"model: {state: sever}",
		"model: {name: ''}",
		"model: {headers: {'a b': c}}",
		"model: {base_url: 'ftp://x'}",
		"tools: {deny: ['']}",
		"tools: {hosted: [file_search]}",
		"tools: {hosted: [{type: computer_use_preview}]}",
		"tools: {hosted: [{vector_store_ids: [a]}]}",
		"tools: {hosted: web_search}",
		"policy: {sandbox: workspace}",
		"policy: {network: {allow: []}}",
		"policy: {network: {allow: a.example.com}}",
		"policy: {network: {allow: [a.example.com, 'https://x']}}",
		"policy: {network: {deny: [a.example.com]}}",
		"policy: {network: {}}",
		"policy: {network: {allow: [a.example.com], proxy: direct}}",
		"policy: {network: {allow: [{}]}}",
		"policy: {network: {allow: [{preset: later}]}}",
		"policy: {network: {allow: [{preset: npm, host: a.example.com}]}}",
		"policy: {network: {allow: [{host: a.example.com, private: 'true'}]}}",
		"policy: {network: {allow: [{host: 'https://a.example.com'}]}}",
		"policy: {network: {allow: [{host: a.example.com, zebra: 1}]}}",
		"policy: {network: {allow: [{preset: npm, private: true}]}}",
		"policy: {network: {allow: [{preset: npm, ca: a.pem}]}}",
		"policy: {network: {allow: [{private: true}]}}",
		"policy: {rules: [/etc/../x]}",
		"policy: {secrets: [{name: X, hosts: [a.example.com], ca: ../x}]}",
		"policy: {network: [a.example.com]}",
		"policy: {network: ''}",
		"setup: [{run: x, network: {allow: ['']}}]",
		"policy: {env: {pass: [1A]}}",
		"policy: {secrets: [{name: X}]}",
		"policy: {secrets: [{name: X-Y, hosts: [a.example.com]}]}",
		"policy: {secrets: [{name: X, hosts: ['https://a.example.com']}]}",
		"policy: {secrets: [{name: X, hosts: [a.example.com], preset: yarn}]}",
		"policy: {secrets: [{name: X, hosts: [a.example.com], methods: [get]}]}",
		"policy: {secrets: [{name: X, hosts: [a.example.com], commands: [all]}]}",
		"policy: {secrets: [{name: X, from: a/b, hosts: [a.example.com]}]}",
		"services: {Db: {run: x, port: 1}}",
		"services: {db: {run: x, port: 70000}}",
		"services: {db: {at: here}}",
		"services: {db: {run: x, port: 1, user: root x}}",
		"services: {db: {run: x, port: 1, ready: 5s}}",
		"services: {db: {run: x, port: 1, init: ['']}}",
		"services: [db]",
		"verify: [{name: a}]",
		"verify: [make test]",
		"verify_attempts: 11",
		"pull_request: {draft: 'true'}",
		"pull_request: {labels: bug}",
		"pull_request: {assignees: ['@octo']}",
		"mcp_servers: {a: b}",
		"zebra: 1",
	}
	for _, path := range []string{"../x", "a/../x", "a/./x", "a//x", "a/", ".", "/", "/.", "//x", `a\x`, "a\tx"} {
		rows = append(rows, fmt.Sprintf("policy: {network: {allow: [{host: a.example.com, ca: %q}]}}", path))
	}
	for _, yaml := range rows {
		t.Run(yaml, func(t *testing.T) {
			file := "version: 1\n" + yaml
			if yaml == "version: 2" {
				file = yaml
			}
			must.Fail(t, "", must.Err(LoadTemplate(jobFile(file))), "it loads")
			must.Fail(t, "", schema.Validate(t, file), "the schema takes it")
		})
	}
}
