package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/agent/model/modeltest"
)

// bareVariable makes this test binary the bare loop.
const bareVariable = "BENCH_BARE"

// bareLoop is what a loop over a model and its tools takes without anything else: the
// requests that a run sent, to a server of the same session, and after each answer but
// the last a plain bash, which runs the same command. It is timed in a process of its
// own, from the first request to the last answer.
func bareLoop(b *testing.B, session string, requests []modeltest.Request) bareTimes {
	b.Helper()
	server := startServer(b, session)
	defer server.Close()
	bodies := make([][]byte, len(requests))
	for i, r := range requests {
		bodies[i] = r.Body
	}
	raw := must.Get(json.Marshal(bodies))(b)
	cmd := exec.CommandContext(b.Context(), os.Args[0])
	cmd.Env = []string{bareVariable + "=" + server.BaseURL() + "/responses", "PATH=" + os.Getenv("PATH")}
	cmd.Stdin, cmd.Dir = bytes.NewReader(raw), b.TempDir()
	var said bytes.Buffer
	cmd.Stderr = &said
	answer, err := cmd.Output()
	must.Do(b, err, "the bare loop", said.Bytes())
	var took bareTimes
	must.Do(b, json.Unmarshal(answer, &took))
	if faults := server.Faults(); len(faults) > 0 {
		b.Fatalf("the scripted server complains: %q", faults)
	}
	return took
}

// bareTimes is how long a bare loop takes: all of it, and the median of its requests and its commands.
type bareTimes struct{ All, Request, Command time.Duration }

// loop is the bare loop. It reads the bodies of its requests and writes how long it took.
func loop(url string) int {
	var bodies [][]byte
	if err := json.NewDecoder(os.Stdin).Decode(&bodies); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var requests, commands []time.Duration
	began := time.Now()
	for i, body := range bodies {
		asked := time.Now()
		if err := post(url, body); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		answered := time.Now()
		requests = append(requests, answered.Sub(asked))
		if i == len(bodies)-1 {
			break
		}
		if out, err := exec.Command("bash", "-c", fmt.Sprint("echo ", i)).CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "bash: %v\n%s", err, out)
			return 1
		}
		commands = append(commands, time.Since(answered))
	}
	took := bareTimes{time.Since(began), medianOf(requests), medianOf(commands)}
	if err := json.NewEncoder(os.Stdout).Encode(took); err != nil {
		return 1
	}
	return 0
}

func post(url string, body []byte) error {
	response, err := http.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the server answered %s", response.Status)
	}
	return nil
}
