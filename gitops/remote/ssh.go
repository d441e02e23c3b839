package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing/transport"
	gitssh "github.com/go-git/go-git/v5/plumbing/transport/ssh"
	"golang.org/x/crypto/ssh"

	"github.com/agent-ci/agent-ci/gitops/internal/program"
)

const defaultSSHPort = 22

// dialSSH starts a git service on the other side. The server must stand in
// known_hosts; the keys come from the agent, else from ~/.ssh. Cancelling ctx
// closes the connection.
func dialSSH(ctx context.Context, service string, endpoint *transport.Endpoint) (*pipeSession, error) {
	address := sshAddress(endpoint)
	config, err := sshConfig(endpoint.User, address)
	if err != nil {
		return nil, fmt.Errorf("%w: %v", ErrAuth, err)
	}
	dialer := net.Dialer{Timeout: connectTimeout}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	client, err := handshake(conn, address, config)
	if err != nil {
		stop()
		_ = conn.Close()
		return nil, sshRefused(err)
	}
	session, err := startService(client, service, endpoint.Path)
	if err != nil {
		stop()
		_ = client.Close()
		return nil, err
	}
	wait := session.end
	session.end = func() (string, error) {
		defer stop()
		return wait()
	}
	return session, nil
}

func sshAddress(endpoint *transport.Endpoint) string {
	port := cmp.Or(max(endpoint.Port, 0), defaultSSHPort)
	return net.JoinHostPort(strings.Trim(endpoint.Host, "[]"), strconv.Itoa(port))
}

func handshake(conn net.Conn, address string, config *ssh.ClientConfig) (*ssh.Client, error) {
	if err := conn.SetDeadline(time.Now().Add(2 * connectTimeout)); err != nil {
		return nil, err
	}
	c, channels, requests, err := ssh.NewClientConn(conn, address, config)
	if err != nil {
		return nil, err
	}
	return ssh.NewClient(c, channels, requests), conn.SetDeadline(time.Time{})
}

func sshRefused(err error) error {
	if errors.As(err, new(net.Error)) {
		return err
	}
	return fmt.Errorf("%w: %v", ErrAuth, err)
}

func startService(client *ssh.Client, service, path string) (*pipeSession, error) {
	session, err := client.NewSession()
	if err != nil {
		return nil, err
	}
	in, err := session.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := session.StdoutPipe()
	if err != nil {
		return nil, err
	}
	said := &words{}
	session.Stderr = said
	if err := session.Start(service + " " + program.Quoted(path)); err != nil {
		return nil, err
	}
	end := func() (string, error) {
		err := session.Wait()
		_ = client.Close()
		return said.String(), err
	}
	return &pipeSession{service: service, in: in, out: out, end: end}, nil
}

func sshConfig(user, address string) (*ssh.ClientConfig, error) {
	known, err := gitssh.NewKnownHostsDb()
	if err != nil {
		return nil, fmt.Errorf("%v; add the server to ~/.ssh/known_hosts", err)
	}
	user = cmp.Or(user, gitssh.DefaultUsername)
	keys, err := sshKeys(user)
	if err != nil {
		return nil, err
	}
	config, err := keys.ClientConfig()
	if err != nil {
		return nil, err
	}
	config.HostKeyCallback = known.HostKeyCallback()
	config.HostKeyAlgorithms = known.HostKeyAlgorithms(address)
	return config, nil
}

// sshKeys asks the agent where there is one, else takes the first usable
// default key.
func sshKeys(user string) (gitssh.AuthMethod, error) {
	if os.Getenv("SSH_AUTH_SOCK") != "" {
		return gitssh.NewSSHAgentAuth(user)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"id_ed25519", "id_ecdsa", "id_rsa"} {
		keys, err := gitssh.NewPublicKeysFromFile(user, filepath.Join(home, ".ssh", name), "")
		if err == nil {
			return keys, nil
		}
	}
	return nil, errors.New("no ssh agent (SSH_AUTH_SOCK) and no key without passphrase in ~/.ssh")
}
