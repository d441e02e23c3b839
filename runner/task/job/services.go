package job

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/runner/task/config"
	"github.com/agent-ci/agent-ci/runner/task/form"
)

// Service listens at a port of the commands' own loopback. Run starts it, or it runs already At an address.
type Service struct {
	Run   string            `json:"run" form:"not_blank" about:"Shell command that starts the server and stays in the foreground. It restarts with empty data for every setup command, agent attempt and check."`
	Init  []string          `json:"init" form:"not_blank" example:"[createdb -h 127.0.0.1 app]" about:"Commands that run in order once the service is ready, such as one that creates a database."`
	Ready Ready             `json:"ready" about:"When the service counts as ready."`
	Env   map[string]string `json:"env" form:"value" names:"variable" example:"{PGUSER: postgres}" about:"More variables for the service and its commands."`
	Port  int               `json:"port" span:"0..65535" about:"Port at which the service listens and commands find it. With at: the port of that address if you leave it out."`
	User  string            `json:"user" config:"scalars" form:"user" about:"User name or number that the service sees as its own, for programs that refuse root, such as PostgreSQL."`
	At    string            `json:"at" form:"address" about:"HOST:PORT of a server that runs already, at a loopback or private address. Its name is resolved once, before the run."`
}

// Ready is the readiness check of a service: Run exits with status 0 or, if Run is empty, the
// service's port accepts connections.
type Ready struct {
	Run     string   `json:"run" form:"not_blank" about:"Command that agent-ci repeats until it exits with 0. Empty: the service is ready when its port accepts connections."`
	Timeout Duration `json:"timeout" default:"1m" about:"Time limit for the service to become ready, and for each init command."`
}

// maxServices is the maximum number of services in a job.
const maxServices = 16

// proxyPort is the loopback port of the proxy for a list of hosts.
const proxyPort = 3128

var userForm = form.Matching("a user's name or number other than root and 0", `[a-z_][a-z0-9_.-]{0,31}|[1-9][0-9]{0,8}`)

// checkUser requires a user name or number other than root.
func checkUser(s string) error {
	if s == "root" {
		s = "0"
	}
	return userForm.Check(s)
}

// checkServices checks the keys of every service, and fills in the port of running ones from At.
func (d *validator) checkServices() {
	if len(d.job.Services) == 0 {
		return
	}
	mode := d.job.Policy.Network.Mode
	d.reportEach("policy", mistake{mode == "none" || mode == "full", "network", "is " + mode + ", which gives commands no loopback of their own, where services listen; set loopback, or a list of hosts"})
	ports := make(map[int]string)
	for _, name := range slices.Sorted(maps.Keys(d.job.Services)) {
		service := d.job.Services[name]
		if address, err := form.ParseAddress(service.At); err == nil {
			service.Port = cmp.Or(service.Port, int(address.Port))
			d.job.Services[name] = service
		}
		const why = "does not go with at, which names something that runs already"
		isAt := service.At != ""
		place := config.JoinPath("services", name)
		d.reportEach(place,
			mistake{isAt && service.Run != "", "run", why},
			mistake{isAt && len(service.Init) > 0, "init", why},
			mistake{isAt && len(service.Env) > 0, "env", why},
			mistake{isAt && service.User != "", "user", why},
			mistake{isAt && service.Ready.Run != "", "ready.run", why})
		d.reportFirst(place,
			mistake{!isAt && strings.TrimSpace(service.Run) == "", "run", "is missing; give run, or at for something that runs already"},
			mistake{service.Port == 0, "port", "is missing; give the port at which commands find the service"},
			mistake{ports[service.Port] != "", "port", "is also the port of services." + ports[service.Port]},
			mistake{service.Port == proxyPort && d.usesProxy(), "port", fmt.Sprintf("is %d, where commands find the proxy for the hosts of lists and secrets", proxyPort)})
		ports[service.Port] = name
	}
}
