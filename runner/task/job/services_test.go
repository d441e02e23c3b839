package job

import (
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/task/config"
)

func TestMergesServicesByNameAndKey(t *testing.T) {
	job := mustLoad(t,
		jobFile(start+"services: {db: {run: postgres, port: 5432, env: {A: b}}, web: {at: 'web.internal:80', port: 8080}}\n"),
		jobFile(start+"services: {db: {port: 5433, env: {C: d}}, cache: {at: '[::1]:6379'}}\n"),
		config.SetLayer("services.db.ready.timeout=5s"),
	)
	want := map[string]Service{
		"db":    {Run: "postgres", Init: []string{}, Ready: Ready{Timeout: mustDuration(t, "5s")}, Env: map[string]string{"A": "b", "C": "d"}, Port: 5433},
		"web":   {At: "web.internal:80", Init: []string{}, Ready: Ready{Timeout: mustDuration(t, "1m")}, Env: map[string]string{}, Port: 8080},
		"cache": {At: "[::1]:6379", Init: []string{}, Ready: Ready{Timeout: mustDuration(t, "1m")}, Env: map[string]string{}, Port: 6379},
	}
	must.Same(t, want, job.Services, "services")
}

func mustDuration(t *testing.T, text string) (d Duration) {
	t.Helper()
	must.Do(t, d.UnmarshalText([]byte(text)))
	return d
}

func TestRefusesInvalidServices(t *testing.T) {
	for services, want := range map[string]string{
		"{db: {}}":                                       "services.db.run: is missing",
		"{db: {run: x}}":                                 "services.db.port: is missing",
		"{db: {run: x, port: 1, at: 'a:1'}}":             "services.db.run: does not go with at",
		"{db: {at: 'a:1', init: [x]}}":                   "services.db.init: does not go with at",
		"{db: {at: 'a:1', env: {A: b}}}":                 "services.db.env: does not go with at",
		"{db: {at: 'a:1', user: postgres}}":              "services.db.user: does not go with at",
		"{db: {at: 'a:1', ready: {run: x}}}":             "services.db.ready.run: does not go with at",
		"{db: {at: 'a:0'}}":                              "services.db.at: must be HOST:PORT",
		"{db: {at: 'a:01'}}":                             "services.db.at: must be HOST:PORT",
		"{db: {at: 'a b:1'}}":                            "services.db.at: must be HOST:PORT",
		"{db: {at: ':1'}}":                               "services.db.at: must be HOST:PORT",
		"{db: {run: x, port: 1}, w: {at: 'a:1'}}":        "services.w.port: is also the port of services.db",
		"{db: {run: x, port: 1, user: 0}}":               "services.db.user: must be a user's name",
		"{db: {run: x, port: 1, user: -1}}":              "services.db.user: must be a user's name",
		"{../x: {run: x, port: 1}}":                      "this name must be a service's name",
		"{db: {run: x, port: 1}, db: {run: x, port: 2}}": "is given twice",
		"{db: {run: x, port: 3128}}\npolicy: {network: {allow: [a.example.com]}}":            "services.db.port: is 3128",
		"{db: {run: x, port: 3128}}\npolicy: {secrets: [{name: X, hosts: [a.example.com]}]}": "services.db.port: is 3128",
		"{db: {run: x, port: 1}}\npolicy: {network: full}":                                   "policy.network: is full",
		"{db: {run: x, port: 1}}\npolicy: {network: none}":                                   "policy.network: is none",
		"{db: [x]}":                        "must be a mapping",
		"[db]":                             "must be a mapping of mappings",
		"{db: {run: x, port: 1, prot: 2}}": "unknown key; did you mean services.db.port",
	} {
		wantProblem(t, "services: "+services, want)
	}
	var many strings.Builder
	for i := range maxServices + 1 {
		many.WriteString("  " + string(rune('a'+i)) + ": {at: 'a:" + string(rune('1'+i%9)) + string(rune('0'+i/9)) + "'}\n")
	}
	wantProblem(t, "services:\n"+many.String(), "has more than 16")
}
