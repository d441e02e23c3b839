// Package cluster owns a wave on Kubernetes: it writes the input for kubectl and parses its output. It
// does not know how runs work, and contacts no cluster.
package cluster

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed"
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
	"text/template"

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

// container is the name of the pods' container.
const container = "agent-ci"

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

// manifest is the template of a wave's objects.
//
//go:embed manifest.tmpl
var manifest string

// Manifest returns a wave's YAML documents for kubectl apply -f. Applying them again changes nothing. The
// secret and the volume must exist already: the manifest only names them.
func Manifest(w Wave) ([]byte, error) {
	settings, err := w.settings()
	if err != nil {
		return nil, err
	}
	filled, err := w.fillTemplate()
	if err != nil {
		return nil, err
	}
	var documents [4]object
	decoder := yaml.NewDecoder(filled)
	for i := range documents {
		if err := decoder.Decode(&documents[i]); err != nil {
			return nil, fmt.Errorf("read the template of the manifest: %w", err)
		}
	}
	configMap, job := documents[2], documents[3]
	configMap["data"] = settings
	if len(w.Variables) > 0 {
		pod := job["spec"].(object)["template"].(object)["spec"].(object)
		pod["containers"].([]any)[0].(object)["env"] = w.environment()
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	for _, document := range documents {
		if err := encoder.Encode(document); err != nil {
			return nil, fmt.Errorf("write the manifest: %w", err)
		}
	}
	return out.Bytes(), encoder.Close()
}

// fillTemplate returns the manifest without files and variables, whose texts are not checked.
func (w Wave) fillTemplate() (*bytes.Buffer, error) {
	parsed, err := template.New("manifest").Parse(manifest)
	if err != nil {
		return nil, err
	}
	filled := new(bytes.Buffer)
	return filled, parsed.Execute(filled, struct {
		Wave
		Name, JobName, JobPath string
		AllPorts               []int
		AtOnce                 int
	}{
		w, Name(w.Campaign.Name), jobName(w.Runs), path.Clean(w.Campaign.JobFile),
		slices.Compact(slices.Sorted(slices.Values(append([]int{443}, w.Ports...)))), min(w.Campaign.Rollout.AtOnce, len(w.Runs)),
	})
}

// environment returns the variables of the runs, sorted by name.
func (w Wave) environment() (variables []object) {
	for _, name := range slices.Sorted(maps.Keys(w.Variables)) {
		variables = append(variables, object{"name": name, "value": yamlText([]byte(w.Variables[name]))})
	}
	return variables
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
	slug := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(campaign))
	if slug == campaign && len(slug) <= 30 && !strings.HasSuffix(slug, "-") {
		return "agent-ci-" + slug
	}
	digest := sha256.Sum256([]byte(campaign))
	return "agent-ci-" + strings.TrimRight(slug[:min(len(slug), 23)], "-") + "-" + hex.EncodeToString(digest[:3])
}

// jobName returns the name of a wave's Job.
func jobName(runs []campaign.Claimed) string {
	return Name(runs[0].Campaign) + "-" + strconv.Itoa(runs[0].Wave)
}

// Names of files in a pod. The template has them, too.
const (
	campaignFile = "campaign.yml"
	waveFile     = "wave.json"
	jobFile      = "job.yml"
)

// settings returns the content of the ConfigMap: the campaign file, the job file and the wave.
func (w Wave) settings() (object, error) {
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
	return data, nil
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
