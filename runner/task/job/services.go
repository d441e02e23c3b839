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

// Service listens at a port of the commands' own loopback. It is either started by Run, or runs
// already At an address.
type Service struct {
	Run   string            `json:"run"`
	Init  []string          `json:"init"` // commands, after each start
	Ready Ready             `json:"ready"`
	Env   map[string]string `json:"env"`
	Port  int               `json:"port"` // of the commands' loopback, and of the service's
	User  string            `json:"user"` // name or number; "" for who starts agent-ci
	At    string            `json:"at"`   // HOST:PORT
}

// Ready is the readiness check of a service: Run exits with status 0 or, if Run is empty, the
// service's port accepts connections.
type Ready struct {
	Run     string   `json:"run"`
	Timeout Duration `json:"timeout"` // for that, and for each command of init
}

// MaxServices is the maximum number of services in a job.
const MaxServices = 16

// proxyPort is the loopback port of the proxy for a list of hosts.
const proxyPort = 3128

var (
	serviceName = form.Matching("a service's name: small letters, digits, - and _", `[a-z0-9][a-z0-9_-]{0,39}`)
	serviceAt   = &form.Form{Check: form.ReadableBy(form.SplitAddress), Pattern: `[^\s/@?#,]+:[0-9]{1,5}`}
	serviceUser = &form.Form{Check: checkUser, Pattern: anyUser.Pattern}
	anyUser     = form.Matching("a user's name or number other than root and 0", `[a-z_][a-z0-9_.-]{0,31}|[1-9][0-9]{0,8}`)
)

// checkUser takes no root.
func checkUser(s string) error {
	if s == "root" {
		s = "0"
	}
	return anyUser.Check(s)
}

// fitServices checks the keys of every service against each other, and fills in the port of running
// services from At.
func (d *checks) fitServices() {
	if len(d.job.Services) == 0 {
		return
	}
	mode := d.job.Policy.Network.Mode
	d.wrongEach("policy", mistake{mode == "none" || mode == "full", "network", "is " + mode + ", which gives commands no loopback of their own, where services listen; set loopback, or a list of hosts"})
	ports := make(map[int]string)
	for _, name := range slices.Sorted(maps.Keys(d.job.Services)) {
		service := d.job.Services[name]
		if address, err := form.SplitAddress(service.At); err == nil {
			service.Port = cmp.Or(service.Port, int(address.Port))
			d.job.Services[name] = service
		}
		const why = "does not go with at, which names something that runs already"
		isAt := service.At != ""
		place := config.At("services", name)
		d.wrongEach(place,
			mistake{isAt && service.Run != "", "run", why},
			mistake{isAt && len(service.Init) > 0, "init", why},
			mistake{isAt && len(service.Env) > 0, "env", why},
			mistake{isAt && service.User != "", "user", why},
			mistake{isAt && service.Ready.Run != "", "ready.run", why})
		d.wrongFirst(place,
			mistake{!isAt && strings.TrimSpace(service.Run) == "", "run", "is missing; give run, or at for something that runs already"},
			mistake{service.Port == 0, "port", "is missing; give the port at which commands find the service"},
			mistake{ports[service.Port] != "", "port", "is also the port of services." + ports[service.Port]},
			mistake{service.Port == proxyPort && d.proxied(), "port", fmt.Sprintf("is %d, where commands find the proxy for the hosts of lists and secrets", proxyPort)})
		ports[service.Port] = name
	}
}
