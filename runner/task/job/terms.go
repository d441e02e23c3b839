package job

import (
	"slices"

	"github.com/agent-ci/agent-ci/policy/credential"
	"github.com/agent-ci/agent-ci/policy/reach"
	"github.com/agent-ci/agent-ci/runner/task/config"
	"github.com/agent-ci/agent-ci/runner/task/form"
	"github.com/agent-ci/agent-ci/tools/dialect"
)

// Terms returns the words in the tags of the fields of Job.
func Terms() config.Terms {
	return config.Terms{
		"branch": form.Branch, "folder": form.Folder, "issue": form.IssueRef, "label": form.Label, "login": form.Login, "not_blank": form.NotBlank,
		"filled_line": form.FilledLine, "one_line": form.OneLine, "relative_file": form.RelativeFile, "repository": form.Repository, "value": form.VariableValue, "variable": form.Variable,

		"absolute_file":   &form.Form{Check: checkAbsoluteFile, Pattern: `/.*`},
		"address":         &form.Form{Check: form.ParserCheck(form.ParseAddress), Pattern: `[^\s/@?#,]+:[0-9]{1,5}`},
		"basic_user":      form.Matching("a user's name without a colon", `[!-9;-~]{1,200}`),
		"command_word":    form.Matching("a word that begins with /", `(?:/[A-Za-z0-9_-]{1,50})?`),
		"commit":          form.Matching("a commit's SHA with all digits", `(?:[0-9a-f]{40}|[0-9a-f]{64})`),
		"header_name":     form.Matching("a header's name", "[A-Za-z0-9!#$%&'*+.^_`|~-]+"),
		"header_value":    &form.Form{Check: checkHeaderValue},
		"host":            (&form.Form{Check: form.ParserCheck(reach.ParseEntry), Pattern: hostPattern}).WithMistakenPrefix("https://"),
		"any_host":        &form.Form{Check: form.OneLine.Check, Pattern: hostPattern}, // private: true decides on its form
		"image":           &form.Form{Check: checkImage},
		"method":          &form.Form{Check: checkMethod, Pattern: `[A-Z][A-Z-]{0,31}`},
		"own_tool_name":   form.Matching("a tool's name: letters, digits, - and _, at most 64, the first neither - nor _", `[A-Za-z0-9][A-Za-z0-9_-]{0,63}`),
		"parameter":       form.Matching("a parameter's name: letters, digits, ., _, ~ and -", `[A-Za-z0-9._~-]{1,100}`),
		"path_pattern":    &form.Form{Check: checkPattern},
		"protect_pattern": &form.Form{Check: checkProtect},
		"reviewer":        form.Matching("a login, or a team as ORGANISATION/TEAM, without @", form.OwnerPattern+`(?:\[bot\]|/[A-Za-z0-9._-]{1,100})?`).WithMistakenPrefix("@"),
		"rules_file":      &form.Form{Check: checkRulesFile, Pattern: `/?` + pathPart + `(?:/` + pathPart + `)*`},
		"secret_host":     &form.Form{Check: form.ParserCheck(credential.ParseScope), Pattern: `[^\s@?#,*%/]+(?:/(?:[^/\s?#%][^\s?#%]*)?)?`},
		"secret_source":   &form.Form{Check: checkSecretFrom, Pattern: `[A-Za-z_][A-Za-z0-9_]*|~?/.+`},
		"server_id":       form.Matching("a server's id: letters, digits, ., _ and -", `[A-Za-z0-9._-]{1,100}`),
		"server_name":     form.Matching("a name: letters, digits, - and _", `[A-Za-z0-9][A-Za-z0-9_-]{0,39}`),
		"server_url":      &form.Form{Check: form.WebAddressCheck("https://mcp.example.com/mcp", "bearer_token_env names the variable with the token", form.AllowKeyInQuery), Pattern: `https?://.+`},
		"service_name":    form.Matching("a service's name: small letters, digits, - and _", `[a-z0-9][a-z0-9_-]{0,39}`),
		"skill_folder":    &form.Form{Check: checkSkillFolder},
		"task_key":        &form.Form{Check: form.ValidateKey},
		"title":           &form.Form{Check: form.LineLengthCheck(256)},
		"tool_name":       form.Matching("a tool's name", `[A-Za-z0-9_.-]{1,64}`),
		"user":            &form.Form{Check: checkUser, Pattern: userForm.Pattern},
		"web_address":     &form.Form{Check: form.WebAddressCheck("https://api.example.com/v1", "the key belongs in the variable that api_key_env names", form.RefuseKeyInQuery), Pattern: `https?://.+`},

		"hosted_tool": &config.Foreign{Read: readHostedTool, Schema: map[string]any{"anyOf": []any{
			map[string]any{"type": "string", "enum": []string{"web_search", "web_search_preview", "code_interpreter", "image_generation"}},
			map[string]any{"type": "object", "required": []string{"type"}, "properties": map[string]any{"type": map[string]any{"enum": hostedTypes}}},
		}}},
		"input_schema": &config.Foreign{Read: readInputSchema, Schema: map[string]any{"type": "object", "required": []string{"type"}}},

		"chat_quirks":      chatQuirks,
		"efforts":          []string{"", "none", "minimal", "low", "medium", "high", "xhigh", "max"},
		"found_treatments": findingTreatments,
		"hook_events":      hookEvents,
		"model_tools":      slices.Concat([]string{"auto", "freeform", "function", "builtin", "code"}, dialect.Families(), []string{ToolsAiderDiff, ToolsAiderUdiff, ToolsAiderWhole}),
		"presets":          reach.PresetNames(),
		"treatments":       []string{"fail", "warn", "allow"},

		"cost_usd": DefaultCostUSD, "repair_cost_usd": 2 * DefaultCostUSD, "test_patterns": testPatterns,

		"allow":    func(string) string { return allowKey },
		"env_key":  envKey,
		"hook_key": hookKey,

		"max_dynamic_tools": maxDynamicTools, "max_hooks": maxHooks, "max_hosts": maxHosts, "max_mcp_servers": maxMCPServers,
		"max_roles": maxRoles, "max_scopes": maxScopes, "max_secrets": maxSecrets, "max_services": maxServices,
	}
}

// hostPattern is the pattern of a host, which may have a port.
const hostPattern = `[^\s/@?#,]+`

// chatQuirks lists the endpoint quirks that requests can be adapted to.
var chatQuirks = []string{
	"no_stream_options", "no_stream", "no_reasoning_effort", "no_tool_choice", "no_response_format", "max_tokens", "no_additional_properties", "no_thoughts", "object_arguments",
	"no_null", "single_calls", "no_system", "alternate", "text_calls",
}

// TestPatterns are the default of verify_tests.
func TestPatterns() []string { return slices.Clone(testPatterns) }

// testPatterns match tests and their data in projects of the common languages.
var testPatterns = []string{
	"*_test.*", "test_*.py", "conftest.py", "test_*.rb", "*_spec.rb", "*.test.*", "*.spec.*", "*.bats", "*.t",
	"**/test/**", "**/tests/**", "**/spec/**", "**/__tests__/**", "**/*.Tests/**", "**/testdata/**", "**/__snapshots__/**", "**/__fixtures__/**",
}
