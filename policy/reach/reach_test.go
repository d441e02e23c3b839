package reach

import (
	"net/netip"
	"strings"
	"testing"
)

func TestParseEntry(t *testing.T) {
	for _, test := range []struct{ text, wrong string }{
		{"api.example.com", ""},
		{"API.Example.COM.", ""},
		{"*.example.org", ""},
		{"*.example.org:8443", ""},
		{"xn--bcher-kva.example", ""},
		{"intranet", ""},
		{"93.184.216.34", ""},
		{"93.184.216.34:8080", ""},
		{"[2606:2800:220:1::1]", ""},
		{"[2606:2800:220:1::1]:443", ""},
		{"2606:2800:220:1::1", ""},
		{"", "has no host"},
		{"*", "network: full"},
		{"**.example.org", "wildcard at its beginning"},
		{"a.*.example.org", "wildcard at its beginning"},
		{"*example.org", "wildcard at its beginning"},
		{"*.org", "whole top-level domain"},
		{"*.93.184.216.34", "wildcard before an address"},
		{"https://example.org", "has no port"},
		{"example.org/path", "without scheme"},
		{"user@example.org", "without scheme"},
		{"bücher.example", "ASCII form"},
		{"example.org:", "no port after its colon"},
		{"example.org:0", "no port after its colon"},
		{"example.org:080", "no port after its colon"},
		{"example.org:65536", "no port after its colon"},
		{"example..org", "is no host"},
		{"-a.example.org", "is no host"},
		{strings.Repeat("a", 64) + ".org", "is no host"},
		{strings.Repeat("a.", 130) + "org", "too long"},
		{"2130706433", "ends in a number"},
		{"0x7f000001", "ends in a number"},
		{"127.1", "ends in a number"},
		{"0177.0.0.1", "ends in a number"},
		{"example.0x7f", "ends in a number"},
		{"[fe80::1%25eth0]", "with a zone"},
		{"fe80::1%eth0", "with a zone"},
		{"[::ffff:8.8.8.8]", "inside an IPv6"},
		{"[example.org]", "brackets"},
		{"[2606::1]x", "brackets"},
		{"127.0.0.1", "is a loopback address, which no list opens"},
		{"10.0.0.5:8080", "is a private address"},
		{"169.254.169.254", "is a link-local address"},
		{"[::1]:443", "is a loopback address"},
		{"localhost", "is this machine"},
		{"*.svc.localhost", "is this machine"},
	} {
		t.Run(test.text, func(t *testing.T) {
			_, err := ParseEntry(test.text)
			if got := errorText(err); (got == "") != (test.wrong == "") || !strings.Contains(got, test.wrong) {
				t.Errorf("error %q, want %q", got, test.wrong)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestOpens(t *testing.T) {
	list, err := ParseList([]string{"Api.Example.com.", "*.example.org", "db.example.net:8443", "*.pages.example.net:80", "93.184.216.34", "[2606:2800:220:1::1]:8443"})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ protocol, authority, want string }{
		{HTTPS, "api.example.com:443", "Api.Example.com."},
		{HTTPS, "API.EXAMPLE.COM.:443", "Api.Example.com."},
		{HTTP, "api.example.com", "Api.Example.com."},
		{HTTP, "api.example.com:80", "Api.Example.com."},
		{HTTPS, "api.example.com:80", ""},
		{HTTP, "api.example.com:443", ""},
		{HTTPS, "api.example.com:22", ""},
		{HTTPS, "xapi.example.com:443", ""},
		{HTTPS, "x.api.example.com:443", ""},
		{HTTPS, "api.example.com.evil.example:443", ""},
		{HTTPS, "a.example.org:443", "*.example.org"},
		{HTTPS, "a.b.example.org:443", "*.example.org"},
		{HTTPS, "example.org:443", ""},
		{HTTPS, "xexample.org:443", ""},
		{HTTPS, "db.example.net:8443", "db.example.net:8443"},
		{HTTP, "db.example.net:8443", "db.example.net:8443"},
		{HTTPS, "db.example.net:443", ""},
		{HTTPS, "a.pages.example.net:80", "*.pages.example.net:80"},
		{HTTPS, "a.pages.example.net:443", ""},
		{HTTPS, "93.184.216.34:443", "93.184.216.34"},
		{HTTPS, "93.184.216.35:443", ""},
		{HTTPS, "[2606:2800:220:1:0::1]:8443", "[2606:2800:220:1::1]:8443"},
		{HTTPS, "[2606:2800:220:1::1]:443", ""},
	} {
		t.Run(test.protocol+" "+test.authority, func(t *testing.T) {
			target, err := ParseTarget(test.protocol, test.authority)
			if err != nil {
				t.Fatal(err)
			}
			e, ok := list.Opens(target)
			if e.String() != test.want || ok != (test.want != "") {
				t.Errorf("opened by %q", e)
			}
		})
	}
}

func TestParseTargetRefuses(t *testing.T) {
	for _, test := range []struct{ protocol, authority string }{
		{HTTPS, "api.example.com"},
		{HTTPS, ""},
		{HTTP, ""},
		{HTTPS, "2130706433:443"},
		{HTTPS, "0x7f.0.0.1:443"},
		{HTTPS, "127.1:443"},
		{HTTPS, "[::ffff:127.0.0.1]:443"},
		{HTTPS, "[fe80::1%eth0]:443"},
		{HTTPS, "a b:443"},
		{HTTPS, "a\x00.example.com:443"},
		{HTTPS, "api.example.com:https"},
		{HTTPS, "api.example.com:443:443"},
		{HTTPS, "*.example.org:443"},
		{HTTP, "bücher.example"},
	} {
		if target, err := ParseTarget(test.protocol, test.authority); err == nil {
			t.Errorf("%s %q is read as %v", test.protocol, test.authority, target)
		}
	}
}

func TestInside(t *testing.T) {
	for addr, want := range map[string]string{
		"8.8.8.8": "", "93.184.216.34": "", "172.15.0.1": "", "172.32.0.1": "", "100.128.0.1": "", "2606:4700::1": "", "2001:4860:4860::8888": "", "64:ff9b::808:808": "",
		"0.0.0.0": "unspecified", "0.1.2.3": "unspecified", "::": "unspecified", "10.1.2.3": "private", "172.16.0.1": "private", "172.31.255.255": "private", "192.168.1.1": "private",
		"fd00:ec2::254": "private", "100.64.0.1": "provider", "100.100.100.200": "provider", "127.0.0.1": "loopback", "127.255.0.1": "loopback", "::1": "loopback",
		"169.254.169.254": "link-local", "fe80::1": "link-local", "fec0::1": "link-local", "168.63.129.16": "cloud", "192.0.0.192": "protocol", "192.88.99.1": "protocol",
		"2001:0:4136:e378:8000:63bf:3fff:fdd2": "protocol", "192.0.2.1": "documentation", "198.18.0.1": "documentation", "203.0.113.9": "documentation", "2001:db8::1": "documentation", "3fff::1": "documentation",
		"224.0.0.1": "multicast", "239.1.1.1": "multicast", "ff02::1": "multicast", "240.0.0.1": "reserved", "255.255.255.255": "reserved",
		"::ffff:127.0.0.1": "loopback", "::ffff:8.8.8.8": "", "64:ff9b::7f00:1": "loopback", "64:ff9b::a9fe:a9fe": "link-local", "64:ff9b:1::808:808": "reserved",
		"2002:7f00:1::1": "holds an IPv4", "::127.0.0.1": "reserved", "4000::1": "reserved", "100::1": "reserved", "5f00::1": "reserved",
	} {
		if got := Inside(netip.MustParseAddr(addr)); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%s is %q, want %q", addr, got, want)
		}
	}
}

// What is read as a target is written as one that is read the same.
func FuzzParseTarget(f *testing.F) {
	for _, seed := range []string{"api.example.com:443", "[2606::1]:8443", "2606::1", "127.1:1", "A.:80", "[::1]", "::ffff:1.2.3.4"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, authority string) {
		target, err := ParseTarget(HTTP, authority)
		if err != nil {
			return
		}
		again, err := ParseTarget(HTTP, target.String())
		if err != nil || again != target {
			t.Errorf("%q is %+v, which is written %q and read as %+v, %v", authority, target, target, again, err)
		}
		if strings.ContainsAny(target.String(), " \r\n\t\x00/@%") {
			t.Errorf("%q is written %q", authority, target)
		}
	})
}
