package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
	"github.com/agent-ci/agent-ci/policy/must"
)

const (
	plannedTargets = 10_000
	planTime       = 5 * time.Second // of the processor, for their plan
	mostRequests   = 110
)

func BenchmarkPlanOfACampaign(b *testing.B) {
	program, err := filepath.Abs(*binary)
	if err == nil {
		_, err = os.Stat(program)
	}
	if err != nil {
		b.Skipf("there is no program to measure (%v); make bench builds it", err)
	}
	server := forgetest.New(b, forgetest.Options{})
	first := server.AddRepository("elsewhere", "first")
	listed := ""
	for i := range plannedTargets {
		server.AddTwin(first, "octo-org", fmt.Sprintf("r%05d", i))
		listed += fmt.Sprintf("octo-org/r%05d\n", i)
	}
	for _, from := range []struct{ name, targets string }{{"of an organisation", "{queries: [{organisation: octo-org}]}"}, {"of a list", "{file: targets.txt}"}} {
		dir := b.TempDir()
		text := "version: 1\nname: bump\ntargets: " + from.targets + "\njob: {version: 1, task: {prompt: \"Bump ${{ target.repository }}.\"}}\n"
		for name, content := range map[string]string{"campaign.yml": text, "targets.txt": listed} {
			must.Do(b, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
		}
		before := len(server.Requests())
		cmd := exec.CommandContext(b.Context(), program, "campaign", "plan", "campaign.yml", "--ledger", "ledger", "--format", "json")
		cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GITHUB_API_URL=" + server.APIURL, "GITHUB_SERVER_URL=" + server.URL, "GITHUB_TOKEN=" + server.Token}
		must.Do(b, must.Err(cmd.Output()), "agent-ci campaign plan")
		if asked := len(server.Requests()) - before; asked > mostRequests {
			b.Errorf("%d requests %s", asked, from.name)
		}
		results.time(fmt.Sprintf("plan of %d targets %s, processor time", plannedTargets, from.name), cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime(), planTime)
	}
}
