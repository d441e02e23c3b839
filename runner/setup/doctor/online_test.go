package doctor

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/agent/model/chat/chattest"
)

// The model's API and GitHub are asked, and what they say of key and token is told. An API that
// does not let the key in is not tried.
func TestDiagnoseChecksKeyAndToken(t *testing.T) {
	const key, token = "sk-key-of-the-model-0123456789", "github_pat_0123456789abcdef0123456789"
	for _, c := range []struct {
		name           string
		models, github http.HandlerFunc
		want           []string // of the problems
	}{
		{"all is well", answering(200, `{"data": []}`), answering(200, `{"permissions": {"push": true, "pull": true}}`), nil},
		{"an API without a list", answering(404, ``), answering(200, `{"permissions": {"push": true}}`), nil},
		{"a key that is refused", answering(401, ``), answering(200, `{}`), []string{"refuses the key in OPENAI_API_KEY (status 401)"}},
		{"a server that is broken", answering(503, ``), answering(200, `{}`), []string{"answers with status 503"}},
		{"a token that is refused", answering(200, ``), answering(401, `{}`), []string{"GitHub refuses the token"}},
		{"a token for another repository", answering(200, ``), answering(404, `{}`), []string{"octo/widgets can't be read with it"}},
		{"a token that only reads", answering(200, ``), answering(200, `{"permissions": {"push": false, "pull": true}}`), []string{"may not write to octo/widgets"}},
		{"another server", answering(200, ``), answering(200, `<html>`), []string{"GitHub's API: it answers without JSON"}},
		{"a redirection, which would take the token along", answering(302, ``), answering(200, `{}`), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			asked := map[string]string{}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked[r.URL.Path] = r.Header.Get("Authorization")
				switch r.URL.Path {
				case "/v1/models":
					c.models(w, r)
				case "/v1/responses":
					answering(200, calling)(w, r)
				case "/api/repos/octo/widgets":
					c.github(w, r)
				}
			}))
			defer server.Close()
			d := must.Get(Diagnose(t.Context(), Options{Online: true, Dir: t.TempDir(), Environ: surroundings(t,
				"OPENAI_API_KEY="+key, "OPENAI_BASE_URL="+server.URL+"/v1?api-version=1", "GITHUB_TOKEN="+token, "GITHUB_API_URL="+server.URL+"/api", "GITHUB_REPOSITORY=octo/widgets")}))(t)
			let := c.want == nil || strings.Contains(c.want[0], "GitHub") || strings.Contains(c.want[0], "octo")
			if tried := asked["/v1/responses"] == "Bearer "+key; tried != let || tried != (d.Model.Endpoint != nil) {
				t.Errorf("the endpoint was tried: %v", tried)
			}
			delete(asked, "/v1/responses")
			if asked["/v1/models"] != "Bearer "+key || asked["/api/repos/octo/widgets"] != "Bearer "+token || len(asked) != 2 {
				t.Errorf("asked %v", asked)
			}
			must.Same(t, "fine-grained personal access token", d.GitHub.Token, "the token")
			var said []string
			for _, p := range d.Problems {
				if p.About == "model" || p.About == "github" {
					said = append(said, p.Message)
				}
			}
			if !slices.EqualFunc(said, c.want, strings.Contains) {
				t.Errorf("the problems are %q, want %q", said, c.want)
			}
		})
	}
}

// TestSendsNoBrokenKey has a key and a token that no run sends.
func TestSendsNoBrokenKey(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer server.Close()
	d := must.Get(Diagnose(t.Context(), Options{Online: true, Dir: t.TempDir(), Environ: surroundings(t,
		`OPENAI_API_KEY="sk-0123456789"`, "OPENAI_BASE_URL="+server.URL, `GITHUB_TOKEN="abc"`, "GITHUB_API_URL="+server.URL, "GITHUB_REPOSITORY=octo/widgets")}))(t)
	told := string(must.Get(json.Marshal(d.Problems))(t))
	must.Contain(t, told, "the value of OPENAI_API_KEY holds")
	must.Contain(t, told, "the value of GITHUB_TOKEN holds")
	if asked != 0 || d.Model.Asked || d.GitHub.Asked {
		t.Errorf("%d requests: %s", asked, told)
	}
}

func TestStoppedDiagnosisBlamesNoServer(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		stop()
		<-r.Context().Done()
	}))
	defer server.Close()
	_, err := Diagnose(ctx, Options{Online: true, Dir: t.TempDir(), Environ: surroundings(t, "OPENAI_API_KEY=sk-0123456789", "OPENAI_BASE_URL="+server.URL)})
	must.Is(t, context.Canceled, err)
}

// TestTrialsAreBounded asks an endpoint that refuses everything, each time for another reason, and
// repeats the key.
func TestTrialsAreBounded(t *testing.T) {
	const key = "sk-key-of-the-model-0123456789"
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/models" {
			return
		}
		asked++
		w.WriteHeader(400)
		_, _ = w.Write([]byte(`{"error": {"message": "` + key + ` unknown: stream stream_options parallel_tool_calls reasoning_effort max_completion_tokens, System role not supported, roles must alternate"}}`))
	}))
	defer server.Close()
	d := must.Get(Diagnose(t.Context(), Options{Online: true, Dir: t.TempDir(), Environ: surroundings(t, "OPENAI_API_KEY="+key, "OPENAI_BASE_URL="+server.URL+"/v1")}))(t)
	told := must.Get(json.Marshal(d))(t)
	if asked == 0 || asked > mostRequests || d.Model.Endpoint == nil || d.Model.Endpoint.Requests != asked || !d.Broken() {
		t.Errorf("after %d requests the diagnosis is %s", asked, told)
	}
	must.Lack(t, string(told), key)
}

// calling is an answer with two calls.
const calling = `{"id": "resp_1", "object": "response", "status": "completed", "usage": {"input_tokens": 900, "output_tokens": 9}, "output": [` +
	`{"type": "function_call", "id": "fc_1", "call_id": "call_1", "status": "completed", "name": "report", "arguments": "{}"},` +
	`{"type": "function_call", "id": "fc_2", "call_id": "call_2", "status": "completed", "name": "report", "arguments": "{}"}]}`

func answering(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if status == http.StatusFound {
			w.Header().Set("Location", "/elsewhere")
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

// TestDetectsMissingResponsesFeatures has an endpoint refuse what the Responses API alone has, one by one, and what
// no run can do without.
func TestDetectsMissingResponsesFeatures(t *testing.T) {
	for name, c := range map[string]struct {
		refused, message string // a request that holds the first is answered with the second
		cannot           []string
		settings         string
	}{
		"nothing":    {"\x00", "", nil, `{}`},
		"freeform":   {`"type":"custom"`, "Invalid value: 'custom'. Supported values are: 'function'.", []string{"freeform tools"}, `{"tools":"function"}`},
		"namespaces": {`"type":"namespace"`, "Invalid value: 'namespace'.", []string{"namespaces", "tools in the input"}, `{}`},
		"additional": {`"additional_tools"`, "Invalid value: 'additional_tools'.", []string{"tools in the input"}, `{}`},
		"schemas":    {`"json_schema"`, "Unsupported parameter: 'text.format'.", []string{"answers by a schema"}, `{}`},
		"streams":    {`"stream":true`, "Your organization must be verified to stream this model.", []string{"streaming"}, `{"stream":false}`},
		"tools":      {`"name":"report"`, "This model does not support tools.", []string{"tools"}, `{"tools":"aider-diff"}`},
		"all fields": {`"tools":`, "Unsupported parameter: 'tools' is not supported with this model.", nil, `{"tools":"aider-diff"}`},
	} {
		t.Run(name, func(t *testing.T) {
			var after []string // the requests behind the one that was refused
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				raw, _ := io.ReadAll(r.Body)
				switch {
				case r.URL.Path != "/v1/responses":
				case strings.Contains(string(raw), c.refused):
					after = []string{}
					answering(400, `{"error": {"message": "`+c.message+`", "type": "invalid_request_error"}}`)(w, r)
				default:
					if after != nil {
						after = append(after, string(raw))
					}
					answering(200, calling)(w, r)
				}
			}))
			defer server.Close()
			d, err := Diagnose(t.Context(), Options{Online: true, Dir: t.TempDir(), Environ: surroundings(t, "OPENAI_API_KEY=sk-key-of-the-model-0123456789", "OPENAI_BASE_URL="+server.URL+"/v1")})
			if err != nil || d.Model.Endpoint == nil {
				t.Fatalf("%v: %+v", err, d)
			}
			settings, err := json.Marshal(d.Model.Endpoint.Settings)
			if err != nil || string(settings) != c.settings {
				t.Errorf("%v: the settings are %s, want %s", err, settings, c.settings)
			}
			var cannot []string
			for _, capability := range d.Model.Endpoint.Capabilities {
				if !capability.Works {
					cannot = append(cannot, capability.Name)
				}
			}
			must.Same(t, c.cannot, cannot, "it is said that these do not work")
			if strings.Contains(c.settings, "aider") && (len(after) == 0 || strings.Contains(strings.Join(after, ""), `tool`)) {
				t.Errorf("the requests of an endpoint without tools are %q", after)
			}
			for _, p := range d.Problems {
				if p.About == "model" {
					t.Errorf("a problem is told: %s", p.Message)
				}
			}
		})
	}
}

// TestFindsEndpointQuirks finds the settings that docs/reference/model.md names for each endpoint.
func TestFindsEndpointQuirks(t *testing.T) {
	p := prepared(t, t.TempDir(), surroundings(t, "AGENT_CI_MODEL_NAME=some-model"))
	for _, e := range chattest.Endpoints(t, "../../..") {
		t.Run(e.Name, func(t *testing.T) {
			s, want, d := e.Serve(t), map[string]any{"wire": "chat"}, Diagnosis{}
			if e.Tools != "function" {
				want["tools"] = e.Tools
			}
			if len(e.Quirks) > 0 {
				want["chat"] = e.Quirks
			}
			d.examineEndpoint(t.Context(), p, model.Endpoint{BaseURL: s.URL})
			if found, is := d.Model.Endpoint.Settings["chat"].([]model.Quirk); is {
				slices.Sort(found)
			}
			must.Same(t, want, d.Model.Endpoint.Settings, "settings of the job (-documented +found out)", s.Refused())
		})
	}
}
