package runner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/agent-ci/agent-ci/runner"
	"github.com/agent-ci/agent-ci/tools"
)

// A program that embeds agent-ci gives the model a tool of its own: a function.
func ExampleOptions_tools() {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	exampleRepository(dir)

	weather := tools.Tool{
		Spec: tools.Spec{
			Name: "weather", Description: "Tells the weather of a city.",
			Parameters: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`),
		},
		Run: func(_ context.Context, call tools.Call) (tools.Result, error) {
			var arguments struct{ City string }
			if err := call.Arguments(&arguments); err != nil {
				return tools.Result{}, err
			}
			fmt.Println("asked for", arguments.City)
			return tools.Result{Output: "sunny"}, nil
		},
	}
	result := runner.Run(context.Background(), runner.Options{
		Prompt: "Say what the weather is.", Dir: filepath.Join(dir, "repo"), Out: filepath.Join(dir, "run"), Publish: "none",
		Replay: filepath.Join(dir, "session.yml"), // stands in for the model
		Tools:  []tools.Tool{weather},
		Set:    []string{"policy.sandbox=danger-full-access"},
		Surroundings: runner.Surroundings{
			Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null"}, Quiet: true,
		},
	})
	fmt.Println(result.Outcome)
	// Output:
	// asked for Bern
	// no_changes
}

// exampleRepository makes a repository with one commit, and a session of a model.
func exampleRepository(dir string) {
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main", "repo"},
		{"-C", "repo", "-c", "user.name=Example", "-c", "user.email=example@example.invalid", "commit", "--quiet", "--allow-empty", "--message=begin"},
	} {
		git := exec.Command("git", args...)
		git.Dir = dir
		if out, err := git.CombinedOutput(); err != nil {
			panic(fmt.Sprintf("%v: %s", err, out))
		}
	}
	session := "version: 1\nturns:\n" +
		"  - output: [{call: weather, arguments: {city: Bern}}]\n" +
		"  - expect: [sunny]\n    output: [{say: It is sunny.}]\n" +
		"  - output: [{say: It is sunny.}]\n"
	if err := os.WriteFile(filepath.Join(dir, "session.yml"), []byte(session), 0o600); err != nil {
		panic(err)
	}
}
