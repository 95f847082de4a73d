package address

import "testing"

func TestHosts(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]struct {
		host     string
		loopback bool
	}{
		"localhost:80": {"localhost", true}, "localhost": {"localhost", true}, "127.1.2.3:1": {"127.1.2.3", true}, "[::1]:9": {"::1", true}, "[::1]": {"::1", true},
		"::1": {"::1", true}, "::ffff:127.0.0.1": {"::ffff:127.0.0.1", true}, "0.0.0.0:80": {"0.0.0.0", false}, ":80": {"", false}, "": {"", false},
		"localhost.example.org": {"localhost.example.org", false}, "[2001:db8::1]:80": {"2001:db8::1", false}, "10.0.0.1": {"10.0.0.1", false},
	} {
		if host := Host(in); host != want.host || IsLoopback(host) != want.loopback {
			t.Errorf("%q: %q, loopback %v", in, host, IsLoopback(host))
		}
	}
}
