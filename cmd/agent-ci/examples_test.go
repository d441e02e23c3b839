package main_test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"gopkg.in/yaml.v3"

	"github.com/agent-ci/agent-ci/policy/must"
)

const examples = "../../examples/"

// TestExampleCronAndDemoRun runs the line of the crontab as cron does, and the demo.
func TestExampleCronAndDemoRun(t *testing.T) {
	t.Parallel()
	root := must.Get(filepath.Abs(examples))(t)
	// The demo's session waits half a minute for go test, which an empty cache may
	// take longer than.
	cache := must.Get(exec.Command("go", "env", "GOCACHE").Output())(t)
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "examples"), Cmds: scriptCommands(), Condition: condition,
		Setup: func(env *testscript.Env) error {
			env.Setenv("EXAMPLES", root)
			env.Setenv("GOCACHE", strings.TrimSpace(string(cache)))
			return setUp(t, env)
		},
	})
}

// TestSystemdUnitsAreValid has systemd read the units, with this program for the one
// they start, and looks for what would take its namespaces from it.
func TestSystemdUnitsAreValid(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("there is no systemd-analyze to read the units")
	}
	dir := t.TempDir()
	verify := []string{"verify", "--man=no"}
	for _, name := range []string{"agent-ci-weekly.service", "agent-ci-weekly.timer"} {
		unit := strings.ReplaceAll(read(t, examples+"systemd/"+name), "/usr/local/bin/agent-ci", binary)
		path := filepath.Join(dir, name)
		must.Write(t, path, unit)
		verify = append(verify, path)
	}
	// A key that it does not know is no error to systemd, but it says so.
	out, err := exec.Command("systemd-analyze", verify...).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}

func TestServiceUnitKeepsNamespaces(t *testing.T) {
	t.Parallel()
	settings := map[string]string{}
	for _, line := range strings.Split(read(t, examples+"systemd/agent-ci-weekly.service"), "\n") {
		if key, value, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(line, "#") {
			settings[key] = value
		}
	}
	must.Same(t, []string{"user", "mnt", "pid", "ipc", "uts", "net"}, strings.Fields(settings["RestrictNamespaces"]), "RestrictNamespaces is")
	for _, key := range []string{
		"ProtectKernelTunables", "ProtectKernelLogs", "ProtectControlGroups", "ProtectProc", "ProcSubset",
		"ProtectHostname", "PrivateUsers", "SystemCallFilter",
	} {
		if value, set := settings[key]; set {
			t.Errorf("%s=%s keeps agent-ci from confining its commands", key, value)
		}
	}
	want := map[string]string{
		"ExecStart": "/usr/local/bin/agent-ci run /etc/agent-ci/weekly.yml", "EnvironmentFile": "/etc/agent-ci/credentials",
		"DynamicUser": "yes", "StateDirectory": "agent-ci", "ProtectSystem": "strict", "NoNewPrivileges": "yes", "CapabilityBoundingSet": "",
	}
	got := map[string]string{}
	for key := range want {
		got[key] = settings[key]
	}
	must.Same(t, want, got)
}

// TestExampleJobsAreValid reads each job of the examples as agent-ci does.
func TestExampleJobsAreValid(t *testing.T) {
	t.Parallel()
	inCluster := filepath.Join(t.TempDir(), "weekly.yml")
	must.Write(t, inCluster, readCluster(t).config.Data["weekly.yml"])
	for _, job := range []string{examples + "cron/weekly.yml", examples + "systemd/weekly.yml", examples + "demo/job.yml", inCluster} {
		if out, err := exec.Command(binary, "validate", job).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", job, err, out)
		}
	}
	must.Same(t, read(t, examples+"cron/weekly.yml"), read(t, examples+"systemd/weekly.yml"), "the job of cron and of systemd is the same one")
}

type mount struct {
	Name      string
	MountPath string `yaml:"mountPath"`
	ReadOnly  bool   `yaml:"readOnly"`
}

type container struct {
	Image           string
	Args            []string
	VolumeMounts    []mount `yaml:"volumeMounts"`
	SecurityContext struct {
		AllowPrivilegeEscalation *bool `yaml:"allowPrivilegeEscalation"`
		ReadOnlyRootFilesystem   bool  `yaml:"readOnlyRootFilesystem"`
		Capabilities             struct{ Drop []string }
	} `yaml:"securityContext"`
}

type podSpec struct {
	RestartPolicy   string `yaml:"restartPolicy"`
	Automount       *bool  `yaml:"automountServiceAccountToken"`
	SecurityContext struct {
		RunAsNonRoot   bool                  `yaml:"runAsNonRoot"`
		RunAsUser      int                   `yaml:"runAsUser"`
		RunAsGroup     int                   `yaml:"runAsGroup"`
		FSGroup        int                   `yaml:"fsGroup"`
		SeccompProfile struct{ Type string } `yaml:"seccompProfile"`
	} `yaml:"securityContext"`
	Containers []container
	Volumes    []struct {
		Name      string
		EmptyDir  *yaml.Node             `yaml:"emptyDir"`
		ConfigMap *struct{ Name string } `yaml:"configMap"`
	}
}

type cluster struct {
	config struct {
		Kind string
		Data map[string]string
	}
	cronJob struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Spec       struct {
			ConcurrencyPolicy string `yaml:"concurrencyPolicy"`
			JobTemplate       struct {
				Spec struct {
					BackoffLimit *int `yaml:"backoffLimit"`
					Template     struct{ Spec podSpec }
				}
			} `yaml:"jobTemplate"`
		}
	}
}

func readCluster(t *testing.T) (c cluster) {
	t.Helper()
	documents := yaml.NewDecoder(strings.NewReader(read(t, examples+"kubernetes/cronjob.yaml")))
	for _, document := range []any{&c.config, &c.cronJob} {
		must.Do(t, documents.Decode(document))
	}
	if err := documents.Decode(new(any)); err != io.EOF {
		t.Fatalf("after the second document: %v", err)
	}
	if c.config.Kind != "ConfigMap" || c.cronJob.Kind != "CronJob" || c.cronJob.APIVersion != "batch/v1" {
		t.Fatalf("%s and %s of %s", c.config.Kind, c.cronJob.Kind, c.cronJob.APIVersion)
	}
	return c
}

func TestPodIsRestricted(t *testing.T) {
	t.Parallel()
	job := readCluster(t).cronJob.Spec
	pod := job.JobTemplate.Spec.Template.Spec
	security := pod.SecurityContext
	c := pod.Containers[0]
	for what, holds := range map[string]bool{
		"one run at a time":           job.ConcurrencyPolicy == "Forbid",
		"no second attempt":           job.JobTemplate.Spec.BackoffLimit != nil && *job.JobTemplate.Spec.BackoffLimit == 0 && pod.RestartPolicy == "Never",
		"no token of the cluster":     pod.Automount != nil && !*pod.Automount,
		"not root":                    security.RunAsNonRoot,
		"the image's user":            security.RunAsUser == 10001 && security.RunAsGroup == 10001 && security.FSGroup == 10001,
		"a filter of system calls":    security.SeccompProfile.Type == "RuntimeDefault",
		"a root that is read-only":    c.SecurityContext.ReadOnlyRootFilesystem,
		"no more rights":              c.SecurityContext.AllowPrivilegeEscalation != nil && !*c.SecurityContext.AllowPrivilegeEscalation,
		"no capabilities":             slices.Equal(c.SecurityContext.Capabilities.Drop, []string{"ALL"}),
		"the job that is mounted":     slices.Equal(c.Args, []string{"run", "/etc/agent-ci/weekly.yml"}),
		"no digest that was made up":  !strings.Contains(c.Image, "@"),
		"one container, no unchecked": len(pod.Containers) == 1,
	} {
		must.Same(t, true, holds, "the pod lacks", what)
	}
}

// TestPodVolumesMatchImage compares the pod's volumes with the folders that
// the Dockerfile makes for its user.
func TestPodVolumesMatchImage(t *testing.T) {
	t.Parallel()
	pod := readCluster(t).cronJob.Spec.JobTemplate.Spec.Template.Spec
	empty := map[string]bool{}
	for _, volume := range pod.Volumes {
		empty[volume.Name] = volume.EmptyDir != nil
	}
	var writable []string
	for _, m := range pod.Containers[0].VolumeMounts {
		if isEmpty, known := empty[m.Name]; !known {
			t.Errorf("there is no volume %s", m.Name)
		} else if isEmpty {
			writable = append(writable, m.MountPath)
		}
	}
	slices.Sort(writable)
	must.Same(t, writableOfTheImage(t), writable)
}

// writableOfTheImage are the folders that the Dockerfile makes for its user, and
// /tmp.
func writableOfTheImage(t *testing.T) []string {
	t.Helper()
	line := regexp.MustCompile(`install --directory --owner=10001 --group=10001 (.*)`).FindStringSubmatch(read(t, "../../Dockerfile"))
	if line == nil {
		t.Fatal("the Dockerfile makes no folders for its user")
	}
	folders := append(strings.Fields(line[1]), "/tmp")
	slices.Sort(folders)
	return folders
}

// TestImageScriptCallsDocker gives examples/image/run.sh a docker that tells how it was
// called.
func TestImageScriptCallsDocker(t *testing.T) {
	t.Parallel()
	bin, work := t.TempDir(), t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(bin, "docker"), []byte("#!/bin/sh\nprintf '%s\\n' \"$@\"\n"), 0o755))
	script := must.Get(filepath.Abs(examples + "image/run.sh"))(t)
	run := exec.Command(script, "run", "--issue", "octo-org/widgets#7")
	run.Dir = work
	run.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "PWD=" + work, "OPENAI_API_KEY=sk-secret", "GITHUB_TOKEN=ghp-secret"}
	var stderr bytes.Buffer
	run.Stderr = &stderr
	out, err := run.Output()
	must.Do(t, err, &stderr)
	arguments := strings.Split(strings.TrimSpace(string(out)), "\n")
	must.Lack(t, string(out), "secret")
	for _, want := range []string{"--rm", "--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--env=OPENAI_API_KEY", "--env=GITHUB_TOKEN"} {
		must.Same(t, true, slices.Contains(arguments, want), "docker is called without", want)
	}
	must.Same(t, []string{"agent-ci", "run", "--issue", "octo-org/widgets#7"}, arguments[len(arguments)-4:], "the end of docker's arguments is")
	var mounted []string
	for _, argument := range arguments {
		if rest, ok := strings.CutPrefix(argument, "--tmpfs="); ok {
			path, options, _ := strings.Cut(rest, ":")
			must.Same(t, true, strings.Contains(options, "exec"), "no program runs from", path, "where docker says noexec by itself")
			mounted = append(mounted, path)
		}
		if rest, ok := strings.CutPrefix(argument, "--volume="); ok {
			mounted = append(mounted, strings.Split(rest, ":")[1])
		}
	}
	slices.Sort(mounted)
	must.Same(t, writableOfTheImage(t), mounted)
}
