package remote_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/remote"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// serveSSH serves git over ssh on loopback, with its key in known_hosts and a
// user's key in ~/.ssh of the test's home.
func serveSSH(t *testing.T, repository string) remote.Remote {
	t.Helper()
	home := filepath.Join(os.Getenv("HOME"), ".ssh")
	user := newKey(t, filepath.Join(home, "id_ed25519"))
	host := newKey(t, "")
	config := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if string(key.Marshal()) != string(user.PublicKey().Marshal()) {
			return nil, errors.New("unknown key")
		}
		return nil, nil
	}}
	config.AddHostKey(host)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	write(t, filepath.Join(home, "known_hosts"), knownhosts.Line([]string{address}, host.PublicKey())+"\n")
	var connections sync.WaitGroup
	connections.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			connections.Go(func() { serveConnection(conn, config) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		connections.Wait()
	})
	return remote.Remote{URL: "ssh://git@" + address + repository}
}

func newKey(t *testing.T, file string) ssh.Signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	if file == "" {
		return signer
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, string(pem.EncodeToMemory(block)))
	return signer
}

func serveConnection(conn net.Conn, config *ssh.ServerConfig) {
	defer conn.Close()
	_, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for offered := range channels {
		channel, requests, err := offered.Accept()
		if err != nil {
			return
		}
		serveChannel(channel, requests)
	}
}

func serveChannel(channel ssh.Channel, requests <-chan *ssh.Request) {
	defer channel.Close()
	for request := range requests {
		if request.Type != "exec" {
			_ = request.Reply(false, nil)
			continue
		}
		_ = request.Reply(true, nil)
		var payload struct{ Command string }
		_ = ssh.Unmarshal(request.Payload, &payload)
		status := struct{ Code uint32 }{runService(channel, payload.Command)}
		_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(status))
		return
	}
}

func runService(channel ssh.Channel, command string) uint32 {
	service, path, _ := strings.Cut(command, " ")
	cmd := exec.Command(gitProgram, strings.TrimPrefix(service, "git-"), strings.Trim(path, "'"))
	cmd.Stdout, cmd.Stderr = channel, channel.Stderr()
	in, err := cmd.StdinPipe()
	if err != nil || cmd.Start() != nil {
		return 1
	}
	go func() {
		_, _ = io.Copy(in, channel)
		_ = in.Close()
	}()
	if cmd.Wait() != nil {
		return 1
	}
	return 0
}
