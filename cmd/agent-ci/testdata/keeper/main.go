// Command keeper is a small service for tests, and its client.
//
//	keeper serve           listen at 127.0.0.1:$SERVICE_PORT and keep words in $SERVICE_DATA
//	keeper ask PORT TEXT   send a line and print the answer
//	keeper flood MEGABYTES write so much
package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

func main() {
	args := os.Args[1:]
	switch {
	case len(args) == 1 && args[0] == "serve":
		fail(serve())
	case len(args) > 2 && args[0] == "ask":
		fail(ask(args[1], strings.Join(args[2:], " ")))
	case len(args) == 2 && args[0] == "flood":
		fail(flood(args[1]))
	default:
		fail(fmt.Errorf("unknown arguments %q", args))
	}
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "keeper:", err)
		os.Exit(1)
	}
}

func serve() error {
	l, err := net.Listen("tcp", "127.0.0.1:"+os.Getenv("SERVICE_PORT"))
	if err != nil {
		return err
	}
	fmt.Println("keeper serves at", l.Addr())
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer conn.Close()
			for lines := bufio.NewScanner(conn); lines.Scan(); {
				name, rest, _ := strings.Cut(lines.Text(), " ")
				io.WriteString(conn, answer(name, rest))
			}
		}()
	}
}

func answer(name, rest string) string {
	words := filepath.Join(os.Getenv("SERVICE_DATA"), "words")
	switch name {
	case "add":
		kept, _ := os.ReadFile(words)
		return done(os.WriteFile(words, append(kept, rest+" "...), 0o600))
	case "words":
		kept, err := os.ReadFile(words)
		return "words: " + string(kept) + done(err)
	case "read":
		kept, err := os.ReadFile(rest)
		return string(kept) + done(err)
	case "write":
		return done(os.WriteFile(rest, []byte("kept\n"), 0o600))
	case "reach":
		conn, err := net.DialTimeout("tcp", rest, 3*time.Second)
		if err == nil {
			conn.Close()
			return "REACHED " + rest + "\n"
		}
		return "not reached: " + err.Error() + "\n"
	case "user":
		return fmt.Sprintf("user %d group %d %s\n", os.Getuid(), os.Getgid(), os.Getenv("KEEPER"))
	case "end":
		os.Exit(7)
	}
	return "what?\n"
}

func done(err error) string {
	if err != nil {
		return err.Error() + "\n"
	}
	return "done\n"
}

func ask(port, text string) error {
	conn, err := net.Dial("tcp", "127.0.0.1:"+port)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := fmt.Fprintln(conn, text); err != nil {
		return err
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		return err
	}
	said, err := io.ReadAll(conn)
	os.Stdout.Write(said)
	if err == nil && len(said) == 0 {
		err = io.ErrUnexpectedEOF
	}
	return err
}

func flood(megabytes string) error {
	n, err := strconv.Atoi(megabytes)
	line := []byte(strings.Repeat("flood ", 1<<10/6) + "\n")
	for written := 0; err == nil && written < n<<20; written += len(line) {
		_, err = os.Stdout.Write(line)
	}
	return err
}
