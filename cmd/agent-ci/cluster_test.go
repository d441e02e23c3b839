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
	"testing"

	"github.com/agent-ci/agent-ci/runner/campaign"
)

// clustered is a campaign whose waves go to a cluster of .ci/kube, in a namespace of its own.
type clustered struct {
	*elsewhere
	folder, namespace string
}

// nodeAddress is that of the test servers: pods reach it, and the cluster has a certificate for it.
const nodeAddress = "10.233.0.1"

// clusterFile is a campaign in a namespace, one of whose targets is red.
func clusterFile(namespace string) string {
	return strings.NewReplacer(
		"at_once: 3", "at_once: 8",
		"Bump ${{ target.name }}.", "Bump ${{ target.name }}/${{ values.part }}.",
		"run: test -f log.txt}]", `run: test "$TARGET" != r000/0}]
  policy: {env: {set: {TARGET: "${{ target.name }}/${{ values.part }}"}}}
kubernetes: {image: "localhost/agent-ci:test", namespace: `+namespace+`, volume: results, cpu: 50m, memory: 256Mi}`,
	).Replace(campaignFile)
}

func newClustered(t *testing.T, targets int, namespace string, credentials ...string) *clustered {
	t.Helper()
	folder := os.Getenv("AGENT_CI_CLUSTER")
	if os.Getenv("AGENT_CI_E2E") == "" || folder == "" {
		t.Skip("a cluster is asked in make e2e-cluster only (AGENT_CI_E2E=1, AGENT_CI_CLUSTER)")
	}
	certificate, err := tls.LoadX509KeyPair(filepath.Join(folder, "certs", "apiserver.crt"), filepath.Join(folder, "certs", "apiserver.key"))
	if err != nil {
		t.Fatal(err)
	}
	w := &clustered{folder: folder, namespace: namespace}
	w.elsewhere = newElsewhere(t, targets, clusterFile(namespace), func(c *campaigning) {
		c.start = func(server *httptest.Server) {
			_ = server.Listener.Close()
			if server.Listener, err = net.Listen("tcp", nodeAddress+":0"); err != nil {
				t.Fatal(err)
			}
			server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
			server.StartTLS()
		}
	})
	w.env = append(w.env, "SSL_CERT_FILE="+filepath.Join(folder, "certs", "apiserver.crt"))
	w.kubectl(nil, "create", "namespace", namespace)
	t.Cleanup(func() { w.kubectl(nil, "delete", "namespace", namespace) })
	secret := []string{"create", "secret", "generic", "agent-ci-credentials", "--from-literal=GITHUB_TOKEN=" + w.forge.Token}
	w.kubectl(nil, append(secret, credentials...)...)
	w.kubectl(w.volume(), "apply", "--filename=-")
	return w
}

// volume is a folder of this machine, for what runs leave.
func (w *clustered) volume() []byte {
	if err := os.Mkdir(w.results, 0o777); err != nil {
		w.t.Fatal(err)
	}
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
		w.t.Errorf("kubectl %s: %v\n%s%s", strings.Join(args, " "), err, &out, &said)
	}
	return out.String()
}

func (w *clustered) manifest() []byte {
	w.t.Helper()
	return w.must(w.say("plan", "bump.yml", "--ledger", w.ledger(), "--format", "kubernetes"))
}

// settleBy books what kubectl says.
func (w *clustered) settleBy(seen string) {
	w.t.Helper()
	w.write("seen.json", seen)
	w.must(w.say("settle", "bump.yml", "--ledger", w.ledger(), "seen.json"))
}

// firstJob is the Job of the first wave.
const firstJob = "agent-ci-bump-1"

// pod is the name of the pod that works on an index now.
func (w *clustered) pod(index int) string {
	w.t.Helper()
	return w.kubectl(nil, "get", "pods", fmt.Sprintf("--selector=batch.kubernetes.io/job-completion-index=%d", index),
		"--field-selector=status.phase=Running", "--output=jsonpath={.items[*].metadata.name}")
}

// each is what kubectl says of a Job and its pods, as far as a test looks at it.
type each struct {
	Items []struct {
		Kind     string
		Metadata struct{ Annotations map[string]string }
		Status   struct {
			CompletedIndexes, FailedIndexes string
			Conditions                      []struct{ Type, Status, Reason string }
		}
	}
}

func (w *clustered) seen() (string, each) {
	w.t.Helper()
	out := w.kubectl(nil, "get", "jobs,pods", "--output=json")
	var all each
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		w.t.Fatal(err)
	}
	return out, all
}

func TestCluster(t *testing.T) {
	w := newClustered(t, 8, "campaign", "--from-literal=OPENAI_API_KEY=sk-test-0123456789abcdef")
	w.script = func(asked string) (stepwise, int) {
		if strings.Contains(asked, "Bump r000/1.") {
			return 30, 7900 // goes on until its limit ends it
		}
		return 2, 4000
	}
	waits, hold := w.holdOnce("Bump r001/0.", "Bump r001/1.")
	w.before.Store(&hold)

	manifest := w.manifest()
	w.kubectl(manifest, "apply", "--dry-run=server", "--validate=strict", "--warnings-as-errors", "--filename=-")
	w.kubectl(manifest, "apply", "--filename=-")
	<-waits["Bump r001/0."]
	<-waits["Bump r001/1."]
	w.kubectl(nil, "delete", "pod", w.pod(2), "--grace-period=0", "--force")
	evicted := w.pod(3)
	w.kubectl(fmt.Appendf(nil, `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":%q}}`, evicted),
		"create", "--raw", "/api/v1/namespaces/"+w.namespace+"/pods/"+evicted+"/eviction", "--filename=-")
	w.kubectl(nil, "wait", "--for=condition=Failed", "job/"+firstJob, "--timeout=300s")

	raw, _ := w.seen()
	fmt.Println(raw)
	w.settleBy(raw)
	s := w.status()
	t.Log(s.Counts)
	for _, target := range s.Targets {
		t.Logf("%s/%s %s %+v", target.Repository, target.Values["part"], target.Class, target.Report)
	}
	_ = campaign.Opened
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
