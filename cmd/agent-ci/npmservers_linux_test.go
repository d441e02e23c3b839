package main_test

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/proxy/proxytest"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/sandboxtest"
)

// npmServers are servers of tools that others wrote.
const (
	everythingServer = "@modelcontextprotocol/server-everything@2026.8.31"
	filesystemServer = "@modelcontextprotocol/server-filesystem@2026.8.31"
	conformance      = "@modelcontextprotocol/conformance@0.1.16"
	// nodePackage has the Node that the conformance suite needs, for %s.
	nodePackage, nodeVersion = "node-linux-%s", "22.23.3"
)

// npmSession calls the tools of npmServers: over standard streams and at an address, with the
// workspace, and with images, long and structured results.
const npmSession = `version: 1
turns:
  - output:
      - {call: mcp__all__echo, arguments: {message: said to everything}}
      - {call: mcp__all__get-sum, arguments: {a: 17, b: 25}}
      - {call: mcp__all__get-tiny-image, arguments: {}}
      - {call: mcp__all__get-structured-content, arguments: {location: Chicago}}
      - {call: mcp__web__echo, arguments: {message: said over HTTP}}
      - {call: mcp__web__get-tiny-image, arguments: {}}
      - {call: mcp__files__read_text_file, arguments: {path: "CHECKOUT/file"}}
      - {call: mcp__files__write_file, arguments: {path: "CHECKOUT/made", content: "by a server\n"}}
      - {call: mcp__files__write_file, arguments: {path: /etc/made, content: x}}
      - {call: list_mcp_resources, arguments: {server: all}}
      - {call: list_mcp_resources, arguments: {server: web}}
  - output: [{say: Done.}]
`

// npmAnswers are what the transcript has of these calls.
var npmAnswers = []string{
	`"output":"Echo: said to everything"`, "sum of 17 and 25 is 42", `"mcp_tool":"get-tiny-image"`, `temperature`, `"output":"what the file holds\n"`,
	`Access denied - path outside allowed directories`, `"resources\":[{`, `"name":"all","state":"ready","command":"node"`,
	`"output":"Echo: said over HTTP"`, `"mcp_server":"web","mcp_tool":"get-tiny-image"`, `"resources\":[{\"server\":\"web\"`, `"name":"web","state":"ready","host":"127.0.0.1:`,
}

// TestNPMServersAnswerCalls has a run call the tools of servers from npm.
func TestNPMServersAnswerCalls(t *testing.T) {
	t.Parallel()
	if !everything() {
		t.Skip("servers from npm are run in make e2e only (AGENT_CI_E2E=1)")
	}
	if confines() != sandbox.LevelFull {
		t.Skip("needs confinement with all layers")
	}
	dir, transcript := npmRun(t, installServers(t))
	for _, want := range npmAnswers {
		must.Same(t, true, strings.Contains(transcript, want), "the transcript has no", want)
	}
	must.Contain(t, string(must.Get(os.ReadFile(filepath.Join(dir, "out", "changes.patch")))(t)), "+by a server")
	for i, job := range npmJobs(t) {
		t.Run(fmt.Sprintf("job %d of the guide", i+1), func(t *testing.T) { runOfGuide(t, job) })
	}
}

// conformanceScenarios are the core scenarios for clients of the conformance suite, each with the call that
// it waits for and the words with which it ends. The last one wants every question of a server accepted
// with its defaults, and agent-ci declines questions: nobody is there to answer.
var conformanceScenarios = []struct{ name, call, want string }{
	{"initialize", `exec_command, arguments: {cmd: "true"}`, "OVERALL: PASSED"},
	{"tools_call", "mcp__s__add_numbers, arguments: {a: 5, b: 3}", "OVERALL: PASSED"},
	{"sse-retry", "mcp__s__test_reconnection, arguments: {}", "OVERALL: PASSED"},
	{"elicitation-sep1034-client-defaults", "mcp__s__test_client_elicitation_defaults, arguments: {}", "Expected action 'accept', got 'decline'"},
}

// TestMCPConformance has runs be the clients of the conformance suite.
func TestMCPConformance(t *testing.T) {
	t.Parallel()
	if !everything() {
		t.Skip("the conformance suite is run in make e2e only (AGENT_CI_E2E=1)")
	}
	node := fmt.Sprintf(nodePackage, cmp.Or(map[string]string{"amd64": "x64"}[runtime.GOARCH], runtime.GOARCH))
	modules := filepath.Join(installFromNPM(t, t.TempDir(), conformance, node+"@"+nodeVersion), "node_modules")
	suite := filepath.Join(modules, "@modelcontextprotocol", "conformance", "dist", "index.js")
	for _, scenario := range conformanceScenarios {
		t.Run(scenario.name, func(t *testing.T) {
			// The server is at localhost, which has two addresses; a URL in a job names one.
			client := filepath.Join(t.TempDir(), "client")
			r := newNPMRun(t, "", "version: 1\nturns:\n  - output: [{call: "+scenario.call+"}]\n  - output: [{say: Done.}]\n")
			script := "#!/bin/sh\ncd " + r.dir + "\n" +
				`printf 'version: 1\ntask: {prompt: x}\nmcp_servers:\n  s: {url: "%s", tools: ["*"]}\n' "$(echo "$1" | sed s/localhost/127.0.0.1/)" >job.yml` + "\n" +
				binary + " run job.yml --repo checkout --replay session.yml --out out --publish none\n"
			must.Do(t, os.WriteFile(client, []byte(script), 0o755))
			run := exec.Command(filepath.Join(modules, node, "bin", "node"), suite, "client", "--command", client, "--scenario", scenario.name, "-o", filepath.Join(r.dir, "results"))
			run.Dir, run.Env = r.dir, r.env
			if out, _ := run.CombinedOutput(); !strings.Contains(string(out), scenario.want) { // it exits with 1 after a scenario that failed
				t.Errorf("no %q in\n%s", scenario.want, out)
			}
		})
	}
}

// npmJobs are the jobs of docs/reference/mcp.md with a server from npm: by npx, and by setup.
func npmJobs(t *testing.T) []string {
	jobs := slices.DeleteFunc(yamlBlocks(t, "docs/reference/mcp.md"), func(block string) bool { return !strings.Contains(block, everythingServer) })
	must.Same(t, 2, len(jobs), "jobs of the guide with", everythingServer)
	return jobs
}

// runOfGuide runs a job as the guide has it. Its list of hosts holds, and is reached by a proxy of
// this test, since the registry may have an address here that no list opens.
func runOfGuide(t *testing.T, job string) {
	way := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { proxytest.Tunnel(w, r.Host) }))
	defer way.Close()
	const hosts = "network: {allow: [{preset: npm}]"
	if !strings.Contains(job, hosts) {
		t.Fatalf("the job has no %s", hosts)
	}
	r := newNPMRun(t, strings.Replace(job, hosts, hosts+", proxy: inherit", 1), `version: 1
turns:
  - output:
      - {call: mcp__everything__echo, arguments: {message: said as in the guide}}
      - {call: mcp__everything__get-sum, arguments: {a: 17, b: 25}}
  - output: [{say: Done.}]
`)
	// With --prefix npm reads no global configuration, so that a machine's own authority has to be
	// in a variable.
	r.env = append(r.env, "HTTPS_PROXY="+cmp.Or(os.Getenv("HTTPS_PROXY"), way.URL), "NODE_EXTRA_CA_CERTS="+os.Getenv("NODE_EXTRA_CA_CERTS"))
	transcript := r.run(t)
	for _, want := range []string{`"output":"Echo: said as in the guide"`, "sum of 17 and 25 is 42"} {
		must.Same(t, true, strings.Contains(transcript, want), "the transcript has no", want)
	}
}

// npmRun is a run with the servers that are installed there; it gives the folder of all of it.
func npmRun(t *testing.T, installed string) (dir, transcript string) {
	t.Helper()
	program := func(name string) string {
		return filepath.Join(installed, "node_modules", "@modelcontextprotocol", name, "dist", "index.js")
	}
	r := newNPMRun(t, "version: 1\ntask: {prompt: x}\nmcp_servers:\n"+
		"  all: {command: node, args: ["+program("server-everything")+`], tools: ["*"]}`+"\n"+
		"  web: {url: "+serveEverything(t, program("server-everything"))+", tools: [echo, get-tiny-image]}\n"+
		"  files: {command: node, args: ["+program("server-filesystem")+", CHECKOUT], tools: [read_text_file, write_file, list_directory], workspace: write}\n", npmSession)
	return r.dir, r.run(t)
}

// aRun is a run that is prepared in a folder.
type aRun struct{ workshop }

// newNPMRun prepares a run of a job with a session, in both of which CHECKOUT is the checkout.
func newNPMRun(t *testing.T, job, session string) aRun {
	t.Helper()
	r := aRun{newWorkshop(t)}
	r.prepare()
	checkout := filepath.Join(r.dir, "checkout")
	r.write("job.yml", strings.ReplaceAll(job, "CHECKOUT", checkout))
	r.write("session.yml", strings.ReplaceAll(session, "CHECKOUT", checkout))
	return r
}

// run runs it, and gives its transcript.
func (r aRun) run(t *testing.T) (transcript string) {
	t.Helper()
	if out, err := r.agent(prepared...); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return read(t, filepath.Join(r.dir, "out", "transcript.jsonl"))
}

// serveEverything starts the server at an address of this machine, and gives it. The server takes
// a port that is free beforehand, and says when it listens.
func serveEverything(t *testing.T, program string) (address string) {
	t.Helper()
	free := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	_, port, _ := net.SplitHostPort(free.Addr().String())
	free.Close()
	server := exec.Command("node", program, "streamableHttp")
	server.Env = append(os.Environ(), "PORT="+port)
	said, err := server.StderrPipe()
	if err == nil {
		err = server.Start()
	}
	must.Do(t, err)
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "listening on port") {
			go func() { _, _ = io.Copy(io.Discard, said) }() // ends with the server
			return "http://127.0.0.1:" + port + "/mcp"
		}
	}
	t.Fatal("the server at an address does not listen")
	return ""
}

// installServers installs the servers where sandboxes see them.
func installServers(t *testing.T) string {
	t.Helper()
	return installFromNPM(t, sandboxtest.Place(t, sandbox.RemoveScratch), everythingServer, filesystemServer)
}
