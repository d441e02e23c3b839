package main_test

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/campaign"
)

// clustered is a campaign whose waves go to a cluster of .ci/kube, in a namespace of its own.
type clustered struct {
	*waveCampaign
	folder, namespace string
	serve             func(*campaigning) // has servers listen where pods reach them
	trust             []string           // the variables by which their certificate is believed, also by git
}

// nodeAddress is that of the test servers: pods reach it, and the cluster has a certificate for it.
const nodeAddress = "10.233.0.1"

// key is what a secret has for the model.
const key = "--from-literal=OPENAI_API_KEY=sk-test-0123456789abcdef"

// clusterFile is a campaign in a namespace, of which one target may be red.
func clusterFile(namespace, red string) string {
	return strings.NewReplacer(
		"at_once: 3", "at_once: 8",
		"Bump ${{ target.name }}.", "Bump ${{ target.name }}/${{ values.part }}.",
		"job:", "job:\n  on_verify_failed: none",
		"run: test -f log.txt}]", `run: test "$TARGET" != "`+red+`"}]
  policy: {env: {set: {TARGET: "${{ target.name }}/${{ values.part }}"}}}
kubernetes: {image: "localhost/agent-ci:test", namespace: `+namespace+`, volume: results, cpu: 50m, memory: 256Mi}`,
	).Replace(campaignFile)
}

func newClustered(t *testing.T, targets int, namespace, red string, credentials ...string) *clustered {
	t.Helper()
	folder := os.Getenv("AGENT_CI_CLUSTER")
	if os.Getenv("AGENT_CI_E2E") == "" || folder == "" {
		t.Skip("a cluster is asked in make e2e-cluster only (AGENT_CI_E2E=1, AGENT_CI_CLUSTER)")
	}
	certificates := filepath.Join(folder, "certs", "apiserver.crt")
	pair := must.Get(tls.LoadX509KeyPair(certificates, filepath.Join(folder, "certs", "apiserver.key")))(t)
	w := &clustered{folder: folder, namespace: namespace, trust: []string{"SSL_CERT_FILE=" + certificates, "GIT_SSL_CAINFO=" + certificates}}
	w.serve = func(c *campaigning) {
		c.start = func(server *httptest.Server) {
			_ = server.Listener.Close()
			server.Listener = must.Get(net.Listen("tcp", nodeAddress+":0"))(t)
			server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
			server.StartTLS()
		}
	}
	w.waveCampaign = newElsewhere(t, targets, clusterFile(namespace, red), w.serve)
	w.env = append(w.env, w.trust...)
	w.kubectl(nil, "create", "namespace", namespace)
	secret := []string{"create", "secret", "generic", "agent-ci-credentials", "--from-literal=GITHUB_TOKEN=" + w.forge.Token}
	w.kubectl(nil, append(secret, credentials...)...)
	w.kubectl(w.volume(), "apply", "--filename=-")
	return w
}

// volume is a folder of this machine, for what runs leave.
func (w *clustered) volume() []byte {
	must.Do(w.t, os.Mkdir(w.results, 0o777))
	if err := os.Chmod(w.results, 0o777); err != nil { // whatever the umask is: pods have another user
		w.t.Fatal(err)
	}
	return fmt.Appendf(nil, `
{apiVersion: v1, kind: PersistentVolume, metadata: {name: %[1]s}, spec: {
  capacity: {storage: 1Gi}, accessModes: [ReadWriteMany], storageClassName: none, hostPath: {path: %[2]s}, claimRef: {name: results, namespace: %[1]s}}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: results}, spec: {
  resources: {requests: {storage: 1Gi}}, accessModes: [ReadWriteMany], storageClassName: none, volumeName: %[1]s}}
`, w.namespace, w.results)
}

func (w *clustered) kubectl(stdin []byte, args ...string) string {
	w.t.Helper()
	cmd := exec.Command(filepath.Join(w.folder, "bin", "kubectl"), append([]string{"--kubeconfig=" + filepath.Join(w.folder, "kubeconfig"), "--namespace=" + w.namespace}, args...)...)
	var out, said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), &out, &said
	if err := cmd.Run(); err != nil {
		w.t.Fatalf("kubectl %s: %v\n%s%s", strings.Join(args, " "), err, &out, &said)
	}
	return out.String()
}

func (w *clustered) manifest() []byte {
	w.t.Helper()
	return w.must(w.say("plan", "bump.yml", "--ledger", w.ledger(), "--format", "kubernetes"))
}

// inCluster is a Job, as far as a test looks at it.
type inCluster struct {
	Status struct {
		CompletedIndexes, FailedIndexes string
		Conditions                      []struct{ Type, Reason string }
	}
}

// ofIndex is what kubectl says of the pod that an index has now.
func (w *clustered) ofIndex(index int, output string) string {
	w.t.Helper()
	return w.kubectl(nil, "get", "pods", fmt.Sprintf("--selector=batch.kubernetes.io/job-completion-index=%d", index), "--output="+output)
}

func (w *clustered) nameOf(index int) string {
	w.t.Helper()
	return w.ofIndex(index, "jsonpath={.items[0].metadata.name}")
}

// evict has a pod go as a node that is drained does.
func (w *clustered) evict(pod string) {
	w.t.Helper()
	eviction := fmt.Appendf(nil, `{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": %q}}`, pod)
	w.kubectl(eviction, "create", "--raw", "/api/v1/namespaces/"+w.namespace+"/pods/"+pod+"/eviction", "--filename=-")
}

// ended waits for the Job of the first wave, and gives it.
func (w *clustered) ended(condition string) (job inCluster) {
	w.t.Helper()
	w.kubectl(nil, "wait", "--for=condition="+condition, "job/agent-ci-bump-1", "--timeout=5m")
	must.Do(w.t, json.Unmarshal([]byte(w.kubectl(nil, "get", "job/agent-ci-bump-1", "--output=json")), &job))
	return job
}

// settled books what kubectl says, and what else is told, and gives the status after it.
func (w *clustered) settled(results ...string) campaign.Status {
	w.t.Helper()
	w.write("seen.json", w.kubectl(nil, "get", "jobs,pods", "--output=json"))
	w.must(w.say(append([]string{"settle", "bump.yml", "--ledger", w.ledger(), "seen.json"}, results...)...))
	return w.status()
}

// One target is red, one out of budget, one has its pod killed and one has it evicted; these two go on.
func TestClusterRunsACampaign(t *testing.T) {
	t.Parallel()
	w := newClustered(t, 8, "campaign", "r000/0", key)
	var paid atomic.Int64
	w.script = func(asked string) (stepwise, int) {
		steps, tokens := stepwise(2), 4000
		if strings.Contains(asked, "Bump r000/1.") {
			steps, tokens = 30, 7900 // until its limit ends it
		}
		paid.Add(int64(tokens) + 1)
		return steps, tokens
	}
	waits, hold := w.holdOnce("Bump r001/0.", "Bump r001/1.")
	w.before.Store(&hold)

	manifest := w.manifest()
	w.kubectl(manifest, "apply", "--dry-run=server", "--validate=strict", "--warnings-as-errors", "--filename=-")
	w.kubectl(manifest, "apply", "--filename=-")
	<-waits["Bump r001/0."]
	<-waits["Bump r001/1."]
	w.kubectl(nil, "delete", "pod", w.nameOf(2), "--grace-period=0", "--force")
	w.evict(w.nameOf(3))
	job := w.ended("Failed")
	must.Same(t, true, bytes.Equal(w.manifest(), manifest), "the wave that is out is written in another way when it is asked for again")

	if s := job.Status; s.CompletedIndexes != "2-7" || s.FailedIndexes != "0,1" || s.Conditions[len(s.Conditions)-1].Reason != "FailedIndexes" {
		t.Errorf("the Job ended with %+v", s)
	}
	for index, annotation := range map[int]string{2: "job-index-failure-count", 3: "job-index-ignored-failure-count"} {
		if n := w.ofIndex(index, `jsonpath={.items[*].metadata.annotations.batch\.kubernetes\.io/`+annotation+"}"); !strings.HasSuffix(n, "1") {
			t.Errorf("the pod that goes on with index %d has %s %q", index, annotation, n)
		}
	}
	s := w.settled()
	if s.Counts[campaign.Red] != 1 || s.Counts[campaign.Budget] != 1 || s.Counts[campaign.Opened] != 6 || s.Runs != 8 || w.published() != 6 {
		t.Errorf("the targets are %v after %d runs, %d published\n%+v", s.Counts, s.Runs, w.published(), s.Targets)
	}
	for _, target := range s.Targets {
		if r := target.Report; r == nil || r.CostUSD == nil || *r.CostUSD > w.plan.Claim.USD || target.Attempts != 1 {
			t.Errorf("%s came to %+v in %d attempts", target.Key, r, target.Attempts)
		}
	}
	if paid := float64(paid.Load()) * 2.5 / 1e6; s.Claimed.USD != 0 || s.Spent.USD < paid || s.Spent.USD > 8*w.plan.Claim.USD {
		t.Errorf("%v are booked, %v claimed, and %.4f dollars were paid", s.Spent, s.Claimed, paid)
	}

	asked := w.asked.Load()
	for line := range strings.Lines(w.kubectl(manifest, "apply", "--filename=-")) {
		must.Same(t, true, strings.HasSuffix(line, " unchanged\n"), "applied again", line)
	}
	must.Same(t, asked, w.asked.Load(), "the model was asked again")
}

// What is wrong for every target, such as a key that is missing, is reported for each and costs nothing.
func TestClusterReportsMissingKey(t *testing.T) {
	t.Parallel()
	w := newClustered(t, 4, "keyless", "")
	w.kubectl(w.manifest(), "apply", "--filename=-")
	must.Same(t, "0-3", w.ended("Failed").Status.FailedIndexes, "the Job ended with")
	s := w.settled()
	if s.Counts[campaign.Failed] != 4 || w.asked.Load() != 0 || s.Spent.USD != 0 {
		t.Errorf("the targets are %v, for %.2f dollars\n%+v", s.Counts, s.Spent.USD, s.Targets)
	}
	for _, target := range s.Targets {
		if target.Report == nil || target.Report.Reason != "no_api_key" {
			t.Errorf("%s came to %+v", target.Key, target.Report)
		}
	}
}

// holdOnce has the first request of each of some runs wait until its run is no more.
func (w *campaigning) holdOnce(prompts ...string) (waits map[string]chan struct{}, hold func(*http.Request)) {
	waits, first := map[string]chan struct{}{}, map[string]chan struct{}{}
	for _, prompt := range prompts {
		waits[prompt], first[prompt] = make(chan struct{}), make(chan struct{}, 1)
		first[prompt] <- struct{}{}
	}
	return waits, func(r *http.Request) {
		asked, _ := io.ReadAll(r.Body)
		for prompt := range waits {
			if !bytes.Contains(asked, []byte(prompt)) {
				continue
			}
			select {
			case <-first[prompt]:
				close(waits[prompt])
				select {
				case <-r.Context().Done():
				case <-w.t.Context().Done():
				}
			default:
			}
		}
	}
}
