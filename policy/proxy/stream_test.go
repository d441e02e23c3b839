package proxy

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
)

// told is what a hostile server can say of a credential, in each way that is looked for.
func told() []string {
	quoted, _ := json.Marshal(secret)
	all := []string{secret, url.QueryEscape(secret), string(quoted[1 : len(quoted)-1]), base64.StdEncoding.EncodeToString([]byte(secret))}
	for _, user := range []string{"u", "us", "use"} {
		all = append(all, base64.StdEncoding.EncodeToString([]byte(user+":"+secret)))
	}
	return all
}

func tells(text string) bool {
	for _, way := range told() {
		if strings.Contains(text, way) {
			return true
		}
	}
	return strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(secret))[:20])
}

func TestAnswersHideValues(t *testing.T) {
	t.Parallel()
	bothProtocols(t, func(t *testing.T, inside, outside bool) {
		h := holding(t, outside, func(w http.ResponseWriter, r *http.Request) {
			way := told()[0]
			var number, cut int
			if _, err := fmt.Sscanf(r.URL.RawQuery, "way=%d&cut=%d", &number, &cut); err == nil {
				way = told()[number]
			}
			control := http.NewResponseController(w)
			switch strings.TrimPrefix(r.URL.Path, "/team/") {
			case "header":
				w.Header().Set("X-Echo", way)
				w.Header().Set("X-"+secret[:6], r.Header.Get("Authorization"))
			case "redirect":
				w.Header().Set("Location", "https://evil.example.org/?"+url.QueryEscape(secret)+"#"+secret)
				w.WriteHeader(http.StatusFound)
			case "trailer":
				w.Header().Set("Trailer", "X-Announced")
				fmt.Fprint(w, "body")
				w.Header().Set("X-Announced", "a "+way)
				w.Header().Set(http.TrailerPrefix+"X-Sudden", "b "+way)
			case "chunks":
				fmt.Fprint(w, "before ", way[:cut])
				_ = control.Flush()
				fmt.Fprint(w, way[cut:], " after")
			case "length":
				body := strings.Repeat("x", 1<<20) + way + strings.Repeat("y", 1000)
				w.Header().Set("Content-Length", fmt.Sprint(len(body)))
				fmt.Fprint(w, body)
			case "failure":
				w.WriteHeader(http.StatusInternalServerError)
				fmt.Fprint(w, "invalid token ", way)
			}
		})
		client := h.client(inside)
		const team = "https://npm.example.org/team/"
		whole := func(what string) string {
			response, text := get(t, client, "GET", team+what, nil, "Authorization", bearer)
			head := must.Get(json.Marshal([]any{response.Header, response.Trailer}))(t)
			if tells(string(head)) || tells(text) {
				t.Errorf("%s tells: %s %.200s", what, head, text)
			}
			return string(head) + text
		}
		for number, way := range told() {
			whole(fmt.Sprintf("header?way=%d&cut=0", number))
			if got := whole(fmt.Sprintf("trailer?way=%d&cut=0", number)); strings.Count(got, "X-Announced") != 1 || strings.Count(got, "X-Sudden") != 1 {
				t.Errorf("the trailers are %s", got)
			}
			whole(fmt.Sprintf("failure?way=%d&cut=0", number))
			must.Contain(t, whole(fmt.Sprintf("length?way=%d&cut=0", number)), fmt.Sprintf(`"Content-Length":["%d"]`, 1<<20+1000+len(way)))
			for cut := 1; cut < len(way); cut += 3 {
				whole(fmt.Sprintf("chunks?way=%d&cut=%d", number, cut))
			}
		}
		for cut := range secret {
			if got := whole(fmt.Sprintf("chunks?way=0&cut=%d", cut)); !strings.HasSuffix(got, "before "+placeholder+" after") {
				t.Errorf("cut at %d it is %q", cut, got)
			}
		}
		if got := whole("redirect"); !strings.Contains(got, "https://evil.example.org/?") || h.used[len(h.used)-1] != "TOKEN npm.example.org:443" {
			t.Errorf("a redirect is %s", got)
		}
	})
}

func TestRefusesEncodedText(t *testing.T) {
	t.Parallel()
	var zipped bytes.Buffer
	zip := gzip.NewWriter(&zipped)
	fmt.Fprint(zip, secret)
	zip.Close()
	h := holding(t, true, func(w http.ResponseWriter, r *http.Request) {
		if kind := r.URL.Query().Get("type"); kind != "" {
			w.Header().Set("Content-Type", kind)
		} else {
			w.Header()["Content-Type"] = nil
		}
		w.Header().Set("Content-Encoding", r.URL.Query().Get("coding"))
		_, _ = w.Write(zipped.Bytes())
	})
	client := h.client(true)
	for _, test := range []struct {
		kind, coding string
		passes       bool
	}{
		{"text/plain; charset=utf-8", "gzip", false},
		{"text/html", "br", false},
		{"application/json", "gzip", false},
		{"application/vnd.npm.install-v1+json", "gzip", false},
		{"application/xml", "deflate", false},
		{"image/svg+xml", "gzip", false},
		{"application/javascript", "gzip", false},
		{"application/x-www-form-urlencoded", "gzip", false},
		{"application/yaml", "zstd", false},
		{"", "gzip", false},
		{"nonsense", "gzip", false}, // a type, if none that is known
		{"application/graphql-response", "gzip", false},
		{"application/toml", "gzip", false},
		{"application/vnd.docker.distribution.manifest.v1+prettyjws", "gzip", false},
		{"multipart/mixed; boundary=x", "gzip", false},
		{"image/png", "gzip", true},
		{"application/java-archive", "gzip", true},
		{"a b c", "gzip", false},
		{"application/octet-stream", "gzip", true},
		{"application/x-tar", "gzip", true},
		{"text/plain", "identity", true},
	} {
		response, text := get(t, client, "GET", "https://npm.example.org/team/a?type="+url.QueryEscape(test.kind)+"&coding="+test.coding, nil, "Authorization", bearer, "Accept-Encoding", "gzip")
		must.Same(t, test.passes, response.StatusCode == http.StatusOK, test.kind, "in", test.coding, "gives", response.Status, text)
	}
}

// Events come as they are sent, one by one.
func TestEventsStream(t *testing.T) {
	t.Parallel()
	bothProtocols(t, func(t *testing.T, inside, outside bool) {
		next := make(chan string)
		h := holding(t, outside, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for event := range next {
				fmt.Fprint(w, event)
				_ = http.NewResponseController(w).Flush()
			}
		})
		r := must.Get(http.NewRequestWithContext(t.Context(), "GET", "https://npm.example.org/team/events", nil))(t)
		r.Header.Set("Authorization", bearer)
		go func() { next <- "data: 0\n\n" }()
		response := must.Get(h.client(inside).Do(r))(t)
		defer response.Body.Close()
		for i, event := range []string{"data: 0\n\n", "data: 1\n\n", "data: " + secret + "\n\n", "ends like it: " + secret[:2]} {
			if i > 0 {
				next <- event
			}
			want := strings.ReplaceAll(event, secret, placeholder)
			got := make([]byte, len(want))
			if _, err := io.ReadFull(response.Body, got); err != nil || string(got) != want {
				t.Fatalf("event %d is %q, %v", i, got, err)
			}
		}
		close(next)
		must.None(t, must.Get(io.ReadAll(response.Body))(t), "the rest is")
	})
}

// A server that does not want a body is asked before the body is sent.
func TestHonoursExpectContinue(t *testing.T) {
	t.Parallel()
	bothProtocols(t, func(t *testing.T, inside, outside bool) {
		h := holding(t, outside, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/team/no" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			n, _ := io.Copy(io.Discard, r.Body)
			fmt.Fprint(w, n)
		})
		for path, want := range map[string]string{"yes": "200 OK 1048576", "no": "401 Unauthorized "} {
			body := &counting{from: io.LimitReader(zeros{}, 1<<20)}
			response, text := get(t, h.client(inside), "POST", "https://npm.example.org/team/"+path, body, "Authorization", bearer, "Expect", "100-continue")
			must.Same(t, want, response.Status+" "+text)
			if path == "no" && body.read.Load() > 0 && !inside {
				t.Errorf("%d bytes were sent", body.read.Load())
			}
		}
	})
}

type zeros struct{}

func (zeros) Read(to []byte) (int, error) {
	clear(to)
	return len(to), nil
}

type counting struct {
	from io.Reader
	read atomic.Int64
}

func (c *counting) Read(to []byte) (int, error) {
	n, err := c.from.Read(to)
	c.read.Add(int64(n))
	return n, err
}

func TestForwardsRangesAndHEAD(t *testing.T) {
	t.Parallel()
	bothProtocols(t, func(t *testing.T, inside, outside bool) {
		content := strings.Repeat("0123456789", 100)
		h := holding(t, outside, func(w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, "x.txt", time.Time{}, strings.NewReader(content))
		})
		client := h.client(inside)
		response, text := get(t, client, "GET", "https://npm.example.org/team/x", nil, "Range", "bytes=10-19", "Authorization", bearer)
		if response.StatusCode != http.StatusPartialContent || text != "0123456789" || response.Header.Get("Content-Range") != "bytes 10-19/1000" {
			t.Errorf("a range is %s %q %v", response.Status, text, response.Header)
		}
		response, text = get(t, client, "HEAD", "https://npm.example.org/team/x", nil, "Authorization", bearer)
		if response.StatusCode != http.StatusOK || text != "" || response.ContentLength != 1000 {
			t.Errorf("HEAD is %s %q %v", response.Status, text, response.Header)
		}
	})
}

// Trailers tell what became of a call, as those of gRPC do.
func TestForwardsAnswerTrailers(t *testing.T) {
	t.Parallel()
	h := holding(t, true, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Trailer", "Grpc-Status, Grpc-Message")
		_, _ = w.Write(append(body, r.Header.Get("Te")...))
		w.Header().Set("Grpc-Status", "16")
		w.Header().Set("Grpc-Message", "no such token: "+secret)
	})
	r := must.Get(http.NewRequestWithContext(t.Context(), "POST", "https://npm.example.org/team/Service/Call", strings.NewReader("\x00\x00\x00\x00\x01x")))(t)
	r.Header.Set("Authorization", bearer)
	r.Header.Set("Te", "trailers")
	r.Trailer = http.Header{"X-Client": {"1"}}
	response := must.Get(h.client(true).Do(r))(t)
	defer response.Body.Close()
	must.Same(t, "\x00\x00\x00\x00\x01xtrailers", string(must.Get(io.ReadAll(response.Body))(t)), "the body")
	must.Same(t, "16", response.Trailer.Get("Grpc-Status"), "the trailers", response.Trailer)
	must.Same(t, "no such token: "+placeholder, response.Trailer.Get("Grpc-Message"), "the trailers", response.Trailer)
}

// Both sides speak at once, and nobody waits for letters that are held back.
func TestStreamsBothWays(t *testing.T) {
	t.Parallel()
	h := holding(t, true, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		lines := bufio.NewReader(r.Body)
		for {
			one := make([]byte, 8)
			if _, err := io.ReadFull(lines, one); err != nil {
				return
			}
			_, _ = w.Write(one)
			_ = http.NewResponseController(w).Flush()
		}
	})
	from, send := io.Pipe()
	r := must.Get(http.NewRequestWithContext(t.Context(), "POST", "https://npm.example.org/team/Service/Stream", from))(t)
	r.Header.Set("Authorization", bearer)
	response := must.Get(h.client(true).Do(r))(t)
	defer response.Body.Close()
	for _, message := range []string{"message1", "meagentc", "messages"} { // "agentc" begins the placeholder, "s" the value
		must.Get(io.WriteString(send, message))(t)
		got := make([]byte, len(message))
		if _, err := io.ReadFull(response.Body, got); err != nil || string(got) != message {
			t.Fatalf("%s gives %q, %v", message, got, err)
		}
	}
	send.Close()
}

func TestSearchesLargeUploads(t *testing.T) {
	t.Parallel()
	eachProtocol(t, func(t *testing.T, h2 bool) {
		h := holding(t, h2, func(w http.ResponseWriter, r *http.Request) {
			n, err := io.Copy(io.Discard, r.Body)
			fmt.Fprint(w, n, err)
		})
		const length = 8 << 20
		if _, text := get(t, h.client(h2), "POST", "https://npm.example.org/team/up", io.LimitReader(zeros{}, length), "Authorization", bearer); text != fmt.Sprint(length, " <nil>") {
			t.Errorf("the server got %s", text)
		}
		broken := io.MultiReader(io.LimitReader(zeros{}, 1<<20), strings.NewReader(placeholder[:9]), strings.NewReader(placeholder[9:]), io.LimitReader(zeros{}, 1<<20))
		response, text := get(t, h.client(h2), "POST", "https://npm.example.org/team/up", broken, "Authorization", bearer)
		if response.StatusCode != http.StatusForbidden || !strings.Contains(text, "is in the body") {
			t.Errorf("with a placeholder in it the answer is %s: %s", response.Status, text)
		}
	})
}

// What goes through is twice what may be held.
func TestMemoryStaysFlat(t *testing.T) {
	const length, mostInUse = 64 << 20, 32 << 20
	eachProtocol(t, func(t *testing.T, h2 bool) {
		h := holding(t, h2, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(length))
			_, _ = io.Copy(w, io.LimitReader(zeros{}, length))
		})
		most, n := through(t, h, h2)
		must.Same(t, length, n, "bytes came through")
		if most > mostInUse {
			t.Errorf("%d MB of the heap were in use more than before", most>>20)
		}
	})
}

// through reads a large answer, and gives how much of the heap was in use at most.
func through(t testing.TB, h *held, inside bool) (most uint64, n int64) {
	t.Helper()
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	before := stats.HeapInuse
	r := must.Get(http.NewRequestWithContext(t.Context(), "GET", "https://npm.example.org/team/large", nil))(t)
	r.Header.Set("Authorization", bearer)
	response := must.Get(h.client(inside).Do(r))(t)
	defer response.Body.Close()
	for {
		part, err := io.CopyN(io.Discard, response.Body, 16<<20)
		n += part
		runtime.ReadMemStats(&stats)
		most = max(most, stats.HeapInuse)
		if err == io.EOF {
			return most - min(before, most), n
		}
		must.Do(t, err)
	}
}

// webSocket opens a WebSocket by hand (RFC 6455).
func webSocket(t *testing.T, h *held, header string) (net.Conn, *bufio.Reader, *http.Response) {
	t.Helper()
	conn := h.over("npm.example.org:443", "http/1.1")
	fmt.Fprintf(conn, "GET /team/socket HTTP/1.1\r\nHost: npm.example.org\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Extensions: permessage-deflate\r\n%s\r\n", header)
	reader := bufio.NewReader(conn)
	response := must.Get(http.ReadResponse(reader, &http.Request{Method: "GET"}))(t)
	return conn, reader, response
}

func frame(text string) []byte {
	head := []byte{0x81, byte(len(text))}
	if len(text) > 125 {
		head = binary.BigEndian.AppendUint16([]byte{0x81, 126}, uint16(len(text)))
	}
	return append(head, text...)
}

func TestProxiesWebSockets(t *testing.T) {
	t.Parallel()
	for _, outside := range []bool{false, true} {
		t.Run(fmt.Sprint(outside), func(t *testing.T) {
			h := holding(t, outside, func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "Bearer "+secret {
					http.Error(w, "no "+r.Header.Get("Authorization"), http.StatusUnauthorized)
					return
				}
				conn, rw, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				sum := sha1.Sum([]byte(r.Header.Get("Sec-Websocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
				fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: %s\r\nX-Asked: %s\r\nX-Echo: %s\r\n\r\n",
					base64.StdEncoding.EncodeToString(sum[:]), r.Header.Get("Sec-Websocket-Extensions"), r.Header.Get("Authorization"))
				for {
					head := make([]byte, 6) // of a short masked frame
					if _, err := io.ReadFull(rw, head); err != nil {
						return
					}
					body := make([]byte, head[1]&0x7f)
					if _, err := io.ReadFull(rw, body); err != nil {
						return
					}
					for i := range body {
						body[i] ^= head[2+i%4]
					}
					_, _ = conn.Write(frame(string(body) + " and " + secret + strings.Repeat("x", 100)))
				}
			})
			conn, reader, response := webSocket(t, h, "Authorization: "+bearer+"\r\n")
			if response.StatusCode != http.StatusSwitchingProtocols || response.Header.Get("Sec-Websocket-Accept") != "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" || response.Header.Get("X-Echo") != bearer || response.Header.Get("X-Asked") != "" {
				t.Fatalf("the answer is %s %v", response.Status, response.Header)
			}
			for _, message := range []string{"hello", "again"} {
				masked := append([]byte{0x81, 0x80 | byte(len(message)), 1, 2, 3, 4}, message...)
				for i := range message {
					masked[6+i] ^= masked[2+i%4]
				}
				must.Get(conn.Write(masked))(t)
				want := frame(message + " and " + placeholder + strings.Repeat("x", 100))
				got := make([]byte, len(want))
				if _, err := io.ReadFull(reader, got); err != nil || !bytes.Equal(got, want) {
					t.Fatalf("the frame is %q, %v", got, err)
				}
			}
			conn.Close()
			if _, _, response := webSocket(t, h, "Authorization: Bearer mine\r\n"); response.StatusCode != http.StatusUnauthorized {
				t.Errorf("without the credential it is %s", response.Status)
			}
			if _, _, response := webSocket(t, h, "X-Other: "+bearer+"\r\n"); response.StatusCode != http.StatusForbidden {
				t.Errorf("with the placeholder elsewhere it is %s", response.Status)
			}
		})
	}
}

// A host that merely says that it switches protocols is not one that opens a WebSocket.
func TestRefusesInvalidWebSocketUpgrades(t *testing.T) {
	t.Parallel()
	for name, header := range map[string]string{
		"no accept":      "Upgrade: websocket\r\n",
		"another accept": "Upgrade: websocket\r\nSec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n",
		"an extension":   "Upgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nSec-WebSocket-Extensions: permessage-deflate\r\n",
		"another one":    "Upgrade: h2c\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			h := holding(t, false, func(w http.ResponseWriter, _ *http.Request) {
				conn, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n%s\r\n", header)
			})
			if _, _, response := webSocket(t, h, "Authorization: "+bearer+"\r\n"); response.StatusCode != http.StatusBadGateway {
				t.Errorf("the answer is %s", response.Status)
			}
		})
	}
}

func TestCloseEndsInnerConnections(t *testing.T) {
	t.Parallel()
	asked := make(chan bool, 4)
	h := holding(t, true, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		asked <- true
		<-r.Context().Done()
	})
	h.over("npm.example.org:443") // says nothing
	h.connect("npm.example.org:443")
	for _, h2 := range []bool{false, true} {
		response := must.Get(h.client(h2).Get("https://npm.example.org/team/a"))(t)
		defer response.Body.Close()
		<-asked
	}
	h.proxy.Close()
	h.proxy.Close()
}

// Connections and requests that stand still are let go. On a busy machine a tunnel takes longer
// than a short limit, which is doubled then.
func TestClosesStalledInnerConnections(t *testing.T) {
	t.Parallel()
	const host = "npm.example.org:443"
	asking := func(request string, protocols ...string) func(*held) (net.Conn, error) {
		return func(h *held) (net.Conn, error) {
			conn, err := h.tryOver(host, protocols...)
			if err == nil {
				_, err = io.WriteString(conn, request)
			}
			return conn, err
		}
	}
	for name, begin := range map[string]func(*held) (net.Conn, error){
		"no TLS":                         func(h *held) (net.Conn, error) { return h.tryConnect(host) },
		"no request":                     asking(""),
		"no answer":                      asking("GET /team/a HTTP/1.1\r\nHost: npm.example.org\r\n\r\n"),
		"half a head":                    asking("GET /team/a HTTP/1.1\r\nHost: npm"),
		"half a body":                    asking("POST /team/a HTTP/1.1\r\nHost: npm.example.org\r\nContent-Length: 9\r\n\r\nabc"),
		"idle over h2, with no settings": asking("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00", "h2"),
	} {
		t.Run(name, func(t *testing.T) {
			for limit := 50 * time.Millisecond; ; limit *= 2 {
				h := holding(t, false, func(_ http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					<-r.Context().Done()
				}, limited(func(l *limits) { l.header, l.idle = limit, limit }))
				conn, err := begin(h)
				if err == nil {
					_, _ = io.Copy(io.Discard, conn) // until it is let go
					return
				}
				if limit > time.Hour {
					t.Fatal(err)
				}
			}
		})
	}
}

func TestBoundsInnerBytes(t *testing.T) {
	t.Parallel()
	h := holding(t, false, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.Copy(w, io.LimitReader(zeros{}, 4<<20))
	}, limited(func(l *limits) { l.bytes = 1 << 20 }))
	response := must.Get(h.client(true).Get("https://npm.example.org/team/a"))(t)
	defer response.Body.Close()
	if n, err := io.Copy(io.Discard, response.Body); err == nil || n > 1<<20 {
		t.Errorf("%d bytes came, %v", n, err)
	}
	long, _ := get(t, h.client(false), "POST", "https://npm.example.org/team/a", bytes.NewReader(make([]byte, 2<<20)))
	must.Same(t, http.StatusRequestEntityTooLarge, long.StatusCode, "a body that is too long", long.Status)
	chunked, _ := get(t, h.client(false), "POST", "https://npm.example.org/team/a", io.LimitReader(zeros{}, 2<<20))
	must.Same(t, http.StatusBadGateway, chunked.StatusCode, "chunks that are too long give", chunked.Status)
}

// smuggled are requests whose end two readers could find in different places.
func TestPreventsRequestSmuggling(t *testing.T) {
	t.Parallel()
	const (
		post  = "POST /team/a HTTP/1.1\r\nHost: npm.example.org\r\nAuthorization: " + bearer + "\r\n"
		inner = "GET /admin HTTP/1.1\r\nHost: npm.example.org\r\nAuthorization: " + bearer + "\r\n\r\n"
	)
	for _, test := range []struct{ name, request string }{
		{"CL.TE", post + fmt.Sprintf("Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n%s", len(inner)+5, inner)},
		{"TE.CL", post + fmt.Sprintf("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(inner), inner)},
		{"two lengths", post + fmt.Sprintf("Content-Length: 0\r\nContent-Length: %d\r\n\r\n%s", len(inner), inner)},
		{"lengths in a list", post + fmt.Sprintf("Content-Length: 0, %d\r\n\r\n%s", len(inner), inner)},
		{"a length with a sign", post + fmt.Sprintf("Content-Length: +%d\r\n\r\n%s", len(inner), inner)},
		{"TE twice", post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + inner},
		{"TE with a tab", post + "Transfer-Encoding:\tchunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n" + inner},
		{"TE with a letter more", post + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + inner},
		{"TE behind a space", post + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + inner},
		{"a folded line", post + "X: y\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + inner},
		{"a bare line feed", "POST /team/a HTTP/1.1\nHost: npm.example.org\nAuthorization: " + bearer + "\nContent-Length: 0\n\n" + inner},
		{"a bare carriage return", post + "X: y\rTransfer-Encoding: chunked\r\n\r\n" + inner},
		{"an extension of a chunk", post + "Transfer-Encoding: chunked\r\n\r\n0;a=\n\r\n\r\n" + inner},
		{"an extension with a line", post + "Transfer-Encoding: chunked\r\n\r\n1;\nx\r\n0\r\n\r\n" + inner},
		{"a chunk that is too long", post + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff1\r\n" + inner},
		{"a body of GET", "GET /team/a HTTP/1.1\r\nHost: npm.example.org\r\nContent-Length: 5\r\n\r\nGET /" + inner},
		{"a placeholder in a trailer", post + "Transfer-Encoding: chunked\r\nTrailer: X-End\r\n\r\n1\r\nx\r\n0\r\nX-End: " + placeholder + "\r\n\r\n"},
		{"a placeholder in a trailer nobody announced", post + "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nX-End: " + placeholder + "\r\n\r\n"},
		{"a placeholder in an extension", post + "Transfer-Encoding: chunked\r\n\r\n1;" + placeholder + "\r\nx\r\n0\r\n\r\n"},
		{"an authorization in a trailer", "POST /team/a HTTP/1.1\r\nHost: npm.example.org\r\nTransfer-Encoding: chunked\r\nTrailer: Authorization\r\n\r\n1\r\nx\r\n0\r\nAuthorization: " + bearer + "\r\n\r\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			handler, sent := watching(t, nil)
			h := holding(t, false, handler)
			conn := h.over("npm.example.org:443")
			var writing sync.WaitGroup
			writing.Go(func() {
				_, _ = io.WriteString(conn, test.request)
				_ = conn.CloseWrite()
			})
			answer, _ := io.ReadAll(conn)
			writing.Wait()
			for _, s := range sent() {
				if s.Target != "/team/a" || strings.Contains(s.Body, placeholder) || len(s.Trailer) > 0 || strings.Contains(fmt.Sprint(s.Header), placeholder) {
					t.Errorf("the server was sent %+v; the answer is\n%s", s, answer)
				}
			}
			if len(sent()) > 1 {
				t.Errorf("the server was sent %d requests", len(sent()))
			}
		})
	}
}

// costs are what a request takes, directly and through the proxy.
func BenchmarkRequests(b *testing.B) {
	for _, h2 := range []bool{false, true} {
		name := map[bool]string{false: "HTTP1", true: "h2"}[h2]
		h := holding(b, h2, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "ok") })
		b.Run("direct_"+name, func(b *testing.B) { requests(b, directly(h, h2)) })
		b.Run("through_the_proxy_"+name, func(b *testing.B) { requests(b, h.client(h2)) })
	}
}

// directly is a client that goes to the server itself.
func directly(h *held, h2 bool) *http.Client {
	h.roots.AppendCertsFromPEM(internet().Certificate())
	client := h.client(h2)
	transport := client.Transport.(*http.Transport)
	transport.Proxy = nil
	transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", h.upstream.Listener.Addr().String())
	}
	return client
}

// requests are a thousand over a connection that is kept.
func requests(b *testing.B, client *http.Client) {
	const each = 1000
	get(b, client, "GET", "https://npm.example.org/team/a", nil, "Authorization", bearer)
	for b.Loop() {
		for range each {
			get(b, client, "GET", "https://npm.example.org/team/a", nil, "Authorization", bearer)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N)/each, "ms/request")
}

// BenchmarkLarge is 1 GB through the proxy, with what of the heap is in use.
func BenchmarkLarge(b *testing.B) {
	const length = 1 << 30
	block := make([]byte, 1<<20)
	_, _ = rand.Read(block)
	for _, h2 := range []bool{false, true} {
		b.Run(map[bool]string{false: "HTTP1", true: "h2"}[h2], func(b *testing.B) {
			h := holding(b, h2, func(w http.ResponseWriter, r *http.Request) {
				for range length / len(block) {
					_, _ = w.Write(block)
				}
			})
			b.SetBytes(length)
			for b.Loop() {
				most, _ := through(b, h, h2)
				b.ReportMetric(float64(most)/1e6, "MB-in-use")
			}
		})
	}
}
