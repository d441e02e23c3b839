// Package cluster owns a wave on Kubernetes: it writes the input for kubectl and parses its output. It
// does not know how runs work, and contacts no cluster.
package cluster

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/campaign/spec"

	"gopkg.in/yaml.v3"

	"github.com/agent-ci/agent-ci/runner/campaign"
)

// Wave is the input of a manifest.
type Wave struct {
	Campaign *spec.Campaign
	Runs     []campaign.Claimed
	File     []byte // the campaign file
	JobFile  []byte // the job file that it names; nil if it contains the job
	// Variables has environment variables of the runs. None is a secret.
	Variables map[string]string
	Ports     []int // ports that runs connect to, besides 443
	Publish   string
}

// Paths in a pod.
const (
	settingsPath = "/etc/agent-ci"
	statePath    = "/var/lib/agent-ci" // must match the Dockerfile
	reportPath   = "/dev/termination-log"
	container    = "agent-ci"
)

const (
	imageUser = 10001 // user id in the image
	// maxRetries is the number of retries of an index, if a volume keeps a pod's work.
	maxRetries = 2
	// graceSeconds is how many seconds a run has to exit after SIGTERM.
	graceSeconds = 150
)

// maxSettingsBytes is the largest ConfigMap, in bytes of JSON. Kubernetes permits larger ones, but kubectl
// apply stores the JSON in an annotation. All annotations together have this limit
// (TotalAnnotationSizeLimitB of k8s.io/apimachinery/pkg/api/validation).
const maxSettingsBytes = 256 << 10

// reservedBytes is how many bytes of maxSettingsBytes are reserved for everything except files.
const reservedBytes = 4096

// object is a part of a manifest, by the keys of the Kubernetes API.
type object = map[string]any

// addressVariables lists variables that the manifest copies from the environment of agent-ci.
var addressVariables = []string{"GITHUB_API_URL", "GITHUB_SERVER_URL", "OPENAI_BASE_URL"}

// CheckSettings returns an error if the campaign file lacks settings for a cluster. It also refuses addresses that
// contain a secret, because readers of the manifest could see it. get returns environment variables.
func CheckSettings(c *spec.Campaign, get func(name string) string) error {
	if c.Kubernetes.Image == "" {
		return errors.New("kubernetes.image is missing in the campaign file; name the image of agent-ci, by its digest")
	}
	if name := path.Clean(c.JobFile); name == campaignFile || name == waveFile {
		return fmt.Errorf("job_file is %s, as another file is called in a cluster; give the job another name", name)
	}
	for _, name := range addressVariables {
		u, err := url.Parse(get(name))
		if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			return fmt.Errorf("%s is written into the manifest, and has to be an address without a user, a password and a query; set it so, or unset it and put it into the secret %s", name, c.Kubernetes.Secret)
		}
	}
	return nil
}

// SetEndpoints sets Variables to the address variables that have a value, and adds the ports of these addresses
// and of the model's API to Ports. get returns environment variables.
func (w *Wave) SetEndpoints(modelURL string, get func(name string) string) {
	w.Variables = map[string]string{}
	addresses := []string{modelURL}
	for _, name := range addressVariables {
		if value := get(name); value != "" {
			w.Variables[name] = value
			addresses = append(addresses, value)
		}
	}
	for _, address := range addresses {
		if u, err := url.Parse(address); err == nil {
			defaultPort := map[string]string{"http": "80"}[u.Scheme] // the network policy allows port 443 anyway
			if port, err := strconv.Atoi(cmp.Or(u.Port(), defaultPort)); err == nil {
				w.Ports = append(w.Ports, port)
			}
		}
	}
}

// Manifest returns a wave's YAML documents for kubectl apply -f. Applying them again changes nothing. The
// secret and the volume must exist already: the manifest only names them.
func Manifest(w Wave) ([]byte, error) {
	settings, err := w.configMap()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	for _, document := range []object{w.serviceAccount(), w.networkPolicy(), settings, w.job()} {
		if err := encoder.Encode(document); err != nil {
			return nil, fmt.Errorf("write the manifest: %w", err)
		}
	}
	return out.Bytes(), encoder.Close()
}

// CountFitting returns how many targets, from the first, fit into one wave of the campaign called name. file and
// jobFile are its campaign file and job file, which share the ConfigMap with the wave.
func CountFitting(name string, targets []campaign.Target, file, jobFile []byte) int {
	remaining := maxSettingsBytes - jsonBytes(file) - jsonBytes(jobFile) - reservedBytes
	for i, t := range targets {
		// The largest numbers make the estimate an upper bound.
		raw, err := json.Marshal(campaign.Claimed{
			Campaign: name, Target: t, Template: strings.Repeat("0", 64), Wave: 1 << 30, Attempt: 1 << 30, Host: campaign.Kubernetes, Claim: campaign.Claim{USD: 1e9 + 0.000001, Tokens: 1 << 60},
		})
		if remaining -= jsonBytes(raw); err != nil || remaining < 0 {
			return i
		}
	}
	return len(targets)
}

// jsonBytes returns how many bytes a text has as a JSON string.
func jsonBytes(raw []byte) int {
	quoted, _ := json.Marshal(string(raw)) // a string always has JSON
	return len(quoted)
}

// Name returns the name of a campaign's Kubernetes objects, such as agent-ci-docs. A campaign's name that is
// longer than 30 characters or no valid object name is changed and shortened. It gets 6 digits of a digest to stay
// unique, such as agent-ci-my-docs-1a2b3c.
func Name(campaign string) string {
	slug := clip.Name(strings.ToLower(campaign), "", '-')
	if slug == campaign && len(slug) <= 30 && !strings.HasSuffix(slug, "-") {
		return "agent-ci-" + slug
	}
	digest := sha256.Sum256([]byte(campaign))
	return "agent-ci-" + strings.TrimRight(clip.Start(slug, 23), "-") + "-" + hex.EncodeToString(digest[:3])
}

// jobName returns the name of a wave's Job.
func jobName(runs []campaign.Claimed) string {
	return Name(runs[0].Campaign) + "-" + strconv.Itoa(runs[0].Wave)
}

// labels returns the labels of all objects of the campaign.
func (w Wave) labels() object {
	return object{"app.kubernetes.io/name": "agent-ci", "app.kubernetes.io/instance": Name(w.Campaign.Name)}
}

// newObject returns a Kubernetes object without its content.
func (w Wave) newObject(version, kind, name string) object {
	metadata := object{"name": name, "labels": w.labels()}
	if space := w.Campaign.Kubernetes.Namespace; space != "" {
		metadata["namespace"] = space
	}
	return object{"apiVersion": version, "kind": kind, "metadata": metadata}
}

// serviceAccount returns the pods' service account. It has no rights, and pods do not get its token.
func (w Wave) serviceAccount() object {
	o := w.newObject("v1", "ServiceAccount", Name(w.Campaign.Name))
	o["automountServiceAccountToken"] = false
	return o
}

// networkPolicy returns the network policy of the pods. They may use DNS and connect to the endpoints' ports.
// Nothing may connect to them.
func (w Wave) networkPolicy() object {
	o := w.newObject("networking.k8s.io/v1", "NetworkPolicy", Name(w.Campaign.Name))
	ports := []object{{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}}
	for _, port := range slices.Compact(slices.Sorted(slices.Values(append([]int{443}, w.Ports...)))) {
		ports = append(ports, object{"protocol": "TCP", "port": port})
	}
	o["spec"] = object{
		"podSelector": object{"matchLabels": w.labels()}, "policyTypes": []string{"Ingress", "Egress"},
		"egress": []object{{"ports": ports}},
	}
	return o
}

// Names of files in a pod, in settingsPath.
const (
	campaignFile = "campaign.yml"
	waveFile     = "wave.json"
	jobFile      = "job.yml"
)

// configMap returns the ConfigMap with the campaign file, the job file and the wave.
func (w Wave) configMap() (object, error) {
	wave, err := campaign.EncodeWave(w.Runs)
	if err != nil {
		return nil, err
	}
	data, size := object{campaignFile: yamlText(w.File), waveFile: yamlText(wave)}, jsonBytes(w.File)+jsonBytes(wave)+jsonBytes(w.JobFile)+reservedBytes
	if w.JobFile != nil {
		data[jobFile] = yamlText(w.JobFile)
	}
	if size > maxSettingsBytes {
		return nil, fmt.Errorf("the campaign file, its job and the wave have %d bytes as JSON, and kubectl apply takes %d of a ConfigMap; make them shorter", size, maxSettingsBytes)
	}
	o := w.newObject("v1", "ConfigMap", jobName(w.Runs))
	o["data"], o["immutable"] = data, true
	return o, nil
}

// yamlText returns a file's content as a YAML value. The encoder would change a leading tab or newline, so such
// a text is written in double quotes.
func yamlText(raw []byte) any {
	s := string(raw)
	if strings.IndexAny(s, "\t\n\r\u0085\u2028\u2029") == 0 {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle, Value: s}
	}
	return s
}

// fileItems returns the paths of the ConfigMap's files in a pod. The job file is where the campaign file names it.
func (w Wave) fileItems() []object {
	files := []object{{"key": campaignFile, "path": campaignFile}, {"key": waveFile, "path": waveFile}}
	if w.JobFile != nil {
		files = append(files, object{"key": jobFile, "path": path.Clean(w.Campaign.JobFile)})
	}
	return files
}

// job returns the Kubernetes Job, with an index for each run of the wave.
func (w Wave) job() object {
	o := w.newObject("batch/v1", "Job", jobName(w.Runs))
	o["spec"] = object{
		"completions": len(w.Runs), "parallelism": min(w.Campaign.Rollout.AtOnce, len(w.Runs)), "completionMode": "Indexed",
		"backoffLimitPerIndex": w.retries(), "podReplacementPolicy": "Failed", "podFailurePolicy": object{"rules": w.failureRules()},
		"template": object{"metadata": object{"labels": w.labels()}, "spec": w.pod()},
	}
	return o
}

// retries returns how often an index is retried. A retry resumes the first pod's run from the volume.
// Without a volume it would start again and be paid twice, so there is none.
func (w Wave) retries() int {
	if w.Campaign.Kubernetes.Volume == "" {
		return 0
	}
	return maxRetries
}

// failureRules returns which exit statuses of agent-ci campaign work fail an index at once. Others are
// retried: failures of the model or forge, and killed pods.
func (w Wave) failureRules() []object {
	final := object{"containerName": container, "operator": "In", "values": []int{1, 2, 3, 4, 5, 6, 9, 10, 11}}
	rules := []object{{"action": "FailIndex", "onExitCodes": final}}
	if w.retries() > 0 {
		rules = append(rules, object{"action": "Ignore", "onPodConditions": []object{{"type": "DisruptionTarget", "status": "True"}}})
	}
	return rules
}

// pod returns the pod that each index of the Job runs. Its only writable folders are the volumes.
func (w Wave) pod() object {
	k := w.Campaign.Kubernetes
	state := object{"name": "state", "emptyDir": object{}}
	if k.Volume != "" {
		state = object{"name": "state", "persistentVolumeClaim": object{"claimName": k.Volume}}
	}
	return object{
		"restartPolicy": "Never", "terminationGracePeriodSeconds": graceSeconds, "serviceAccountName": Name(w.Campaign.Name),
		"automountServiceAccountToken": false, "enableServiceLinks": false,
		"securityContext": object{"runAsNonRoot": true, "runAsUser": imageUser, "runAsGroup": imageUser, "fsGroup": imageUser, "seccompProfile": object{"type": "RuntimeDefault"}},
		"containers":      []object{w.container()},
		"volumes": []object{
			{"name": "settings", "configMap": object{"name": jobName(w.Runs), "items": w.fileItems()}},
			state,
			{"name": "tmp", "emptyDir": object{}},
			{"name": "home", "emptyDir": object{}},
			{"name": "work", "emptyDir": object{}},
		},
	}
}

// container returns the container that runs agent-ci campaign work for the target of its index.
func (w Wave) container() object {
	k := w.Campaign.Kubernetes
	c := object{
		"name": container, "image": k.Image,
		"args": []string{
			"campaign", "work", settingsPath + "/" + campaignFile, "--wave", settingsPath + "/" + waveFile,
			"--out", statePath + "/campaigns/" + Name(w.Campaign.Name), "--report", reportPath, "--publish", cmp.Or(w.Publish, "github"),
		},
		"envFrom":                  []object{{"secretRef": object{"name": k.Secret}}},
		"terminationMessagePath":   reportPath,
		"terminationMessagePolicy": "File",
		"securityContext":          object{"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": object{"drop": []string{"ALL"}}},
		"resources":                object{"requests": object{"cpu": k.CPU, "memory": k.Memory}, "limits": object{"memory": k.Memory}},
		"volumeMounts": []object{
			{"name": "settings", "mountPath": settingsPath, "readOnly": true},
			{"name": "state", "mountPath": statePath},
			{"name": "tmp", "mountPath": "/tmp"},
			{"name": "home", "mountPath": "/home/agent-ci"},
			{"name": "work", "mountPath": "/work"},
		},
	}
	var variables []object
	for _, name := range slices.Sorted(maps.Keys(w.Variables)) {
		variables = append(variables, object{"name": name, "value": yamlText([]byte(w.Variables[name]))})
	}
	if len(variables) > 0 {
		c["env"] = variables
	}
	return c
}
